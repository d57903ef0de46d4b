"""What the lock of an environment (`environments/<name>.lock`) says of its images."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.config.environment import Environment
from ultracluster.software.environment_lock import LockedImage, environment_lock


def locked_image(environment: Environment, group: str) -> str | None:
    """Release of the image that was resolved for a group (`1.34.12-20261012`); None where none was.

    Raises:
        InvalidLockError: the lock is damaged.
    """
    image = _images(environment).get(group)
    return image.release if image else None


def locked_parameter(environment: Environment, group: str) -> str | None:
    """The parameter of which the lock has what it stood for; None where it has nothing of the group.

    Raises:
        InvalidLockError: the lock is damaged.
    """
    image = _images(environment).get(group)
    return image.parameter if image and image.image else None


def waits_for_first_deploy(environment: Environment) -> bool:
    """Return whether `ultracluster deploy` is still to lock the images: the lock has none. It locks none of
    constructs in an app.

    Raises:
        InvalidLockError: the lock is damaged.
    """
    return not environment.in_app and not _images(environment)


def _images(environment: Environment) -> Mapping[str, LockedImage]:
    lock = environment_lock(environment.file)
    return lock.images if lock and lock.environment == environment.name else {}


def with_locked_images(environment: Environment) -> Environment:
    """The environment with AMI ids where the lock says what the parameter of a group's `image` stood for.

    Raises:
        InvalidLockError: the lock is damaged.
    """
    ids = {
        name: image.image
        for name, image in _images(environment).items()
        if image.image
        and (group := environment.node_groups.get(name))
        and group.image_parameter
        and group.image_parameter == image.parameter
    }
    groups = {
        name: group.model_copy(update={"image": ids[name]}) if name in ids else group
        for name, group in environment.node_groups.items()
    }
    return environment.model_copy(update={"node_groups": groups}) if ids else environment
