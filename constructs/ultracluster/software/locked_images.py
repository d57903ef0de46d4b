"""What the lock of an environment (`environments/<name>.lock`) says of its images."""

from __future__ import annotations

from ultracluster.config.environment import Environment


def locked_image(environment: Environment, group: str) -> str | None:
    """Release of the image that was resolved for a group (`1.34.12-20261012`); None where none was."""
    return None
