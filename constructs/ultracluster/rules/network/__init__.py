"""Rules on the network and its addresses."""

from ultracluster.rules.network import ranges, vpc

__all__ = ["ranges", "vpc"]
