"""Rules on software releases and machine images."""

from ultracluster.rules.software import images, release, sources

__all__ = ["images", "release", "sources"]
