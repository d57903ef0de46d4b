"""What the lock of an environment (`environments/<name>.lock`) says of its images."""

from __future__ import annotations

from ultracluster.config.environment import Environment
from ultracluster.software.environment_lock import environment_lock


def locked_image(environment: Environment, group: str) -> str | None:
    """Release of the image that was resolved for a group (`1.34.12-20261012`); None where none was.

    Raises:
        InvalidLockError: the lock is damaged.
    """
    lock = environment_lock(environment.file)
    found = lock.images.get(group) if lock and lock.environment == environment.name else None
    return found.release if found else None


def with_locked_images(environment: Environment) -> Environment:
    """The environment with AMI ids where the lock says what the parameter of a group's `image` stood for.

    Raises:
        InvalidLockError: the lock is damaged.
    """
    lock = environment_lock(environment.file)
    if not lock or lock.environment != environment.name:
        return environment
    ids = {
        name: found.image
        for name, found in lock.images.items()
        if found.image
        and (group := environment.node_groups.get(name))
        and group.image_parameter
        and group.image_parameter == found.parameter
    }
    groups = {
        name: group.model_copy(update={"image": ids[name]}) if name in ids else group
        for name, group in environment.node_groups.items()
    }
    return environment.model_copy(update={"node_groups": groups}) if ids else environment
