"""What in the record of an image contradicts the rest of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ultracluster.catalog.images import Image, efa_installers
from ultracluster.software.fit import in_matrix
from ultracluster.software.versions import Version

_USERS = {"ubuntu": "ubuntu", "al2": "ec2-user", "rhel": "ec2-user", "rocky": "rocky"}
_OF_THE_DRIVER = ("fabric_manager", "imex")
_ON_THE_DRIVER = (*_OF_THE_DRIVER, "gdrdrv", "nvidia_fs", "container_toolkit")


def contradictions(image: Image) -> tuple[str, ...]:
    """Each contradiction of a record in one clause; none where it may be true."""
    return tuple(_contradictions(image))


def _contradictions(image: Image) -> Iterator[str]:
    yield from _names(image)
    driver = image.fact("nvidia_driver")
    for field in _OF_THE_DRIVER:
        if driver and isinstance(driver.value, str) and _text(image, field) not in ("", driver.value):
            yield f"{field} is {_text(image, field)}, the driver {driver.value}: they have one version"
    if driver and driver.value is False:
        yield from (f"{part} without an NVIDIA driver" for part in _ON_THE_DRIVER if _text(image, part))
    installer = _text(image, "efa_installer")
    for field, expected in efa_installers().get(installer, {}).items():
        value = _text(image, field)
        if value and expected and not Version(value).within(Version(expected)):
            yield f"{field} is {value}, EFA installer {installer} brings {expected}"
    kernel, kernel_in_matrix = _text(image, "kernel"), image.fact("lustre_kernel_in_matrix")
    if kernel and ("-aws" in kernel) != image.os.startswith("ubuntu"):
        yield f"kernel {kernel} is none of {image.os}"
    elif kernel and kernel_in_matrix and in_matrix(image.os, kernel) is not kernel_in_matrix.value:
        yield f"FSx's matrix {'lacks' if kernel_in_matrix.value else 'has'} kernel {kernel} of {image.os}"
    cuda, every = _text(image, "cuda_default"), _text(image, "cuda_all")
    if cuda and every and cuda not in every.split():
        yield f"CUDA {cuda} is the default and not one of {every}"


def _names(image: Image) -> Iterator[str]:
    stamp = re.search(r"(\d{4})-?(\d\d)-?(\d\d)$", image.release)
    if stamp and "-".join(stamp.groups()) != image.date:
        yield f"release {image.release} is of {image.date}"
    if image.kubernetes and image.family.startswith("eks") and not image.release.startswith(image.kubernetes):
        yield f"release {image.release} is not of Kubernetes {image.kubernetes}"
    user = next((user for os, user in _USERS.items() if image.os.startswith(os)), None)
    if user and image.login_user not in (None, user):
        yield f"the login user {image.login_user} is none of {image.os}"


def _text(image: Image, field: str) -> str:
    fact = image.fact(field)
    return fact.value if fact and isinstance(fact.value, str) else ""
