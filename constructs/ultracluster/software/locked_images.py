"""What the lock of an environment (`environments/<name>.lock`) says of its images."""

from __future__ import annotations

from ultracluster.config.environment import Environment
from ultracluster.software.environment_lock import environment_lock


def locked_image(environment: Environment, group: str) -> str | None:
    """Release of the image that was resolved for a group (`1.34.12-20261012`); None where none was.

    Raises:
        InvalidLockError: the lock is damaged.
    """
    lock = environment_lock(environment.name)
    found = lock.images.get(group) if lock and lock.environment == environment.name else None
    return found.release if found else None
