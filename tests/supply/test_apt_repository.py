"""Debian's repositories in the mirror: what makes one trustworthy, and dpkg's order of versions."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from package_repositories import (
    CHOSEN,
    PAIR,
    VENDOR,
    Repositories,
    keys,
    listed,
    names,
)

from ultracluster.supply import apt_repository
from ultracluster.supply.mirror_bucket import MirrorError

Change = Callable[[Any], object]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_pause")]


def flip(repositories: Repositories, name: str) -> None:
    content = repositories.shop.files[name]
    repositories.shop.files[name] = bytes([content[0] ^ 1]) + content[1:]


TAMPERED: dict[str, tuple[Change, str]] = {
    "the index": (lambda r: flip(r, "vendor/Packages.xz"), r"refused Packages\.xz: its sha256 is"),
    "the index of the distribution": (
        lambda r: flip(r, "debian/dists/stable-updates/main/binary-amd64/Packages.xz"),
        r"refused Packages\.xz",
    ),
    "the signed file": (
        lambda r: r.shop.files.update({"vendor/Release": r.shop.files["vendor/Release"] + b"More: yes\n"}),
        "signature does not match",
    ),
    "another signer": (
        lambda r: r.shop.files.update(
            {"vendor/Release.gpg": r.archive_key.sign(r.shop.files["vendor/Release"])}
        ),
        "vendor/Release: refused Release",
    ),
    "another signer with its key": (
        lambda r: r.shop.files.update(
            {
                "vendor/Release.gpg": r.archive_key.sign(r.shop.files["vendor/Release"]),
                "vendor.key": r.archive_key.key,
            }
        ),
        "the release pins",
    ),
    "no signature": (lambda r: r.shop.files.pop("vendor/Release.gpg"), "HTTP 404"),
    "no index": (
        lambda r: r.sign("vendor", {}, r.vendor_key),
        "lists no Packages with a SHA256",
    ),
    "an old index": (
        lambda r: (setattr(r, "head", "Valid-Until: Sat, 01 Jan 2022 00:00:00 UTC\n"), r.publish()),
        "it was valid until Sat, 01 Jan 2022",
    ),
    "a dependency that is nowhere": (
        lambda r: r.publish(vendor={**VENDOR, "libtool": {"Version": "2.1", "Depends": "a (>= 1) | b"}}),
        r"libtool 2\.1 needs a \(>= 1\) \| b, which no repository has",
    ),
    "a dependency that is too old": (
        lambda r: r.publish(updates={"libc6": {"Version": "2.36"}}),
        r"libtool 2\.1-1~rc1 needs newlib \(>= 3\.0\), which no repository has",
    ),
    "the package itself": (lambda r: r.publish(vendor={}), r"dcgm: .*/vendor/ has no tool=1:2\.0-\*"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_cannot_be_trusted_stops_it_before_anything_is_uploaded(
    repositories: Repositories, lock: Any, mirror: Any, s3: Any, what: str
) -> None:
    change, says = TAMPERED[what]
    file = lock()
    before = file.read_bytes()
    change(repositories)
    with pytest.raises(MirrorError, match=says) as caught:
        mirror(file)
    assert len(caught.value.reasons) == 1
    assert caught.value.reasons[0].startswith(f"packages of {PAIR}: ")
    assert (keys(s3), file.read_bytes()) == (set(), before)


def test_a_repository_without_a_pinned_key(lock: Any, mirror: Any, shop: Any) -> None:
    with pytest.raises(
        MirrorError, match=r"dcgm: the key of .* has no fingerprint: `ultracluster software lock` first"
    ):
        mirror(lock(key_fingerprint=None))
    assert shop.sent == []


def test_an_index_by_its_digest(repositories: Repositories, lock: Any, mirror: Any, s3: Any) -> None:
    """Where a repository offers that, an update between the two files does not matter."""
    repositories.shop.files = {
        name: content for name, content in repositories.shop.files.items() if "Packages" not in name
    }
    repositories.head = "Acquire-By-Hash: yes\n"
    repositories.publish()
    file = lock()
    mirror(file)
    assert names(listed(s3, file)) == CHOSEN


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1.0", "1.0-1"),
        ("1.0~rc1", "1.0"),
        ("9", "1:1"),
        ("2.30.7-1+cuda13.2", "2.30.7-1+cuda13.3"),
        ("1.2.9", "1.2.10"),
        ("1.0-1ubuntu1~22.04", "1.0-1ubuntu1"),
        ("1.0a", "1.0+"),
    ],
)
def test_the_order_of_versions_is_that_of_dpkg(first: str, second: str) -> None:
    for one, other, order in ((first, second, -1), (second, first, 1), (first, first, 0)):
        assert apt_repository.compare(one, other) == order
        relation = {-1: "lt", 0: "eq", 1: "gt"}[order]
        assert (
            subprocess.run(["dpkg", "--compare-versions", one, relation, other], check=False).returncode == 0
        )
