"""Rows of lock files held against records: the shipped ones agree, and each mutation is refused by line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ultracluster.software import release_names
from ultracluster.software.lock import InvalidLockError, release_file
from ultracluster.software.records import checked, records

LOCK = release_file("pcs-2026.07")
Change = tuple[str, str]


def changed(tmp_path: Path, *changes: Change, lock: Path = LOCK) -> Path:
    """A copy of a lock file with texts replaced at their first place."""
    text = lock.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    file = tmp_path / lock.name
    file.write_text(text, encoding="utf-8")
    return file


def line_of(file: Path, text: str) -> int:
    lines = file.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


@pytest.mark.parametrize("name", release_names())
def test_a_shipped_release_contradicts_no_record(name: str) -> None:
    found = checked(release_file(name))
    assert found.contradictions == ()
    assert 0 < found.checked < found.total
    assert found.checked + len(found.open) == found.total
    assert found.sentence == f"{found.checked} of {found.total} artefacts checked against a record"


NAME = '"name": "pyxis-0.24.0.tar.gz"'
DIGEST = "32bc7b2c198dd97ec251de0ff4823252c95e31a4c79a5f843c82514c9af2052b"
MUTATIONS: dict[str, tuple[Change, str]] = {
    "one digit of a digest": ((DIGEST, "4" + DIGEST[1:]), "the sha256 of gdrcopy-2.5.2.tar.gz is 42bc7b2c"),
    "a version that does not exist": (
        ("libnccl2=2.29.2-1+cuda13.1", "libnccl2=9.99.9-1+nosuchversion"),
        "2.30.4-1+cuda13.2, 2.29.2-1+cuda13.1 by the records, not 9.99.9-1+nosuchversion",
    ),
    "an address of a file": (
        ("refs/tags/v2.5.2.tar.gz", "refs/tags/v2.5.3.tar.gz"),
        "gdrcopy-2.5.2.tar.gz is at /NVIDIA/gdrcopy/archive/refs/tags/v2.5.2.tar.gz, not",
    ),
    "the key of a file": (
        ('"key_fingerprint": "4E9091BC', '"key_fingerprint": "4E9091BD'),
        "the key of aws-efa-installer-1.47.0.tar.gz is 4E9091BC",
    ),
    "the address of a file's key": (
        ("amazonaws.com/aws-efa-installer.key", "amazonaws.com/aws-efa-installer2.key"),
        "is at https://efa-installer.amazonaws.com/aws-efa-installer.key, not",
    ),
    "the signature of another file": (
        ("aws-efa-installer-1.47.0.tar.gz.sig", "aws-efa-installer-1.47.1.tar.gz.sig"),
        "aws-efa-installer-1.47.1.tar.gz.sig is no signature of",
    ),
    "the address of a repository's key": (
        ("3bf863cc.pub", "3bf863cd.pub"),
        "the key of NVIDIA CUDA for apt is at https://",
    ),
    "a host of a repository": (
        ("https://nvidia.github.io/", "https://nowhere.example/"),
        "no record knows the host nowhere.example",
    ),
    "a host of a file": (
        ("https://docs.aws.amazon.com/", "https://nowhere.example/"),
        "no record knows the host nowhere.example",
    ),
    "another file's host": (
        ("https://docs.aws.amazon.com/fsx", "https://github.com/fsx"),
        "configure-efa-fsx-lustre-client.zip is at docs.aws.amazon.com, not github.com",
    ),
    "a repository of a known host": (
        ("cuda/repos/ubuntu2204/x86_64/", "cuda/repos/ubuntu2604/x86_64/"),
        "no record knows the repository https://developer.download.nvidia.com",
    ),
    "the repository of another system": (
        ("cuda/repos/ubuntu2204/x86_64/", "cuda/repos/ubuntu2404/x86_64/"),
        "is for ubuntu24.04-x86_64, not ubuntu22.04-x86_64",
    ),
    "a suite": (
        ('"suite": "jammy main"', '"suite": "trixie main"'),
        "no record knows the suite 'trixie main'",
    ),
    "a package": (
        ('"nvidia-fs-dkms=2.26.6-1"', '"nvidia-gdsfs=2.26.6-1"'),
        "no record knows the package nvidia-gdsfs",
    ),
    "a package of the system": (
        ('"squashfs-tools"', '"squashfs-toolz"'),
        "no record knows the package squashfs-toolz",
    ),
    "a key": (
        (
            '"key_fingerprint": "EB693B3035CD5710E231E123A4B469963BF863CC"',
            '"key_fingerprint": "EB693B3035CD5710E231E123A4B469963BF863CD"',
        ),
        "the key of NVIDIA CUDA for apt is EB693B3035CD5710E231E123A4B469963BF863CC",
    ),
    "a file": ((NAME, '"name": "pyxis-0.25.0.tar.gz"'), "no record knows the file pyxis-0.25.0.tar.gz"),
    "a size": (('"size": 48061', '"size": 48062'), "pyxis-0.24.0.tar.gz has 48,061 bytes, not 48,062"),
    "the version of a component": (
        ('"version": "0.24.0"', '"version": "0.25.0"'),
        "pyxis-0.24.0.tar.gz is pyxis 0.24.0, not pyxis 0.25.0",
    ),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutated_row_is_refused_with_file_and_line(mutation: str, tmp_path: Path) -> None:
    (old, new), says = MUTATIONS[mutation]
    file = changed(tmp_path, (old, new))
    found = checked(file)
    assert found.total == checked(LOCK).total
    where, _, detail = found.contradictions[0].partition(": ")
    assert says in detail
    of_the_file = mutation in ("a size", "the version of a component")
    assert where == f"{file}:{line_of(file, NAME if of_the_file else new)}"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('"version": "1.19.1"', '"version": "1.19.2"'), "no package here has version 1.19.2"),
        (('"os": ["ubuntu22.04"', '"os": ["ubuntu22.05"'), "no record knows the system ubuntu22.05"),
    ],
    ids=["the version of a component of packages", "a system that there is not"],
)
def test_what_a_row_is_of_has_to_agree_with_it(change: Change, says: str, tmp_path: Path) -> None:
    assert any(says in one for one in checked(changed(tmp_path, change)).contradictions)


def test_the_line_is_that_of_the_row_and_not_of_its_twin(tmp_path: Path) -> None:
    text = LOCK.read_text(encoding="utf-8")
    key = "EB693B3035CD5710E231E123A4B469963BF863CC"
    third = text.index(key, text.index(key, text.index(key) + 1) + 1)
    file = tmp_path / LOCK.name
    file.write_text(text[:third] + key[:-1] + "D" + text[third + len(key) :], encoding="utf-8")
    assert {one.split(": ")[0] for one in checked(file).contradictions} == {
        f"{file}:{text[:third].count(chr(10)) + 1}"
    }


def test_a_version_of_another_system_is_open_and_not_checked() -> None:
    rows = {(row.name, row.line): row for row in checked(LOCK).rows if row.component == "nccl"}
    states = [row.state for row in rows.values() if row.name == "libnccl2=2.29.2-1+cuda13.1"]
    assert sorted(states) == ["checked", "open", "open", "open"]


def test_a_file_without_a_digest_is_open(tmp_path: Path) -> None:
    file = changed(
        tmp_path, (f'"sha256": "{DIGEST}",', ""), ('"integrity": "checksum"', '"integrity": "to-be-locked"')
    )
    row = next(row for row in checked(file).rows if row.name == "gdrcopy-2.5.2.tar.gz")
    assert (row.state, row.detail.partition(":")[0]) == ("open", "no digest to compare")


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        ("datacenter-gpu-manager-4-core-4.7.0", "checked"),
        ("datacenter-gpu-manager-4-core-4.9.9", "contradiction"),
        ("cuda-toolkit-13-2", "checked"),
        ("cuda-toolkit-13-9", "contradiction"),
        ("libnccl-2.30.7-1+cuda13.3", "open"),
        ("libnccl-9.9.9-1+cuda13.3", "contradiction"),
    ],
)
def test_packages_of_dnf_are_told_from_their_versions(spec: str, state: str, tmp_path: Path) -> None:
    lock = release_file("2026.11")
    data = json.loads(lock.read_text(encoding="utf-8"))
    entry = next(e for e in data["components"]["cuda-runtime"]["packages"] if e["os"] == ["al2023"])
    data["components"]["cuda-runtime"]["packages"] = [{**entry, "names": [spec]}]
    data["components"]["cuda-runtime"]["version"] = spec.rpartition("-")[2]
    assert entry["arch"] == ["x86_64"]
    file = tmp_path / lock.name
    file.write_text(json.dumps(data, indent=1), encoding="utf-8")
    row = next(row for row in checked(file).rows if row.component == "cuda-runtime" and row.name == spec)
    assert row.state == state, row.detail


def of_mine(tmp_path: Path, write: Callable[[Path], Any]) -> Path:
    file = tmp_path / "mine-2026.11.lock"
    text = LOCK.read_text(encoding="utf-8").replace("pcs-2026.07", "mine-2026.11")
    text = text.replace("https://nvidia.github.io/", "https://packages.example/")
    file.write_text(text, encoding="utf-8")
    write(file.with_suffix(".records.json"))
    return file


def test_records_beside_a_lock_of_your_own_add_to_those_of_the_package(tmp_path: Path) -> None:
    mirror = next(one for one in records().repositories if one.name == "NVIDIA container toolkit for apt")
    data = mirror.model_dump(mode="json")
    data["urls"] = {
        url.replace("nvidia.github.io", "packages.example"): at for url, at in data["urls"].items()
    }
    data["key_urls"] = [url.replace("nvidia.github.io", "packages.example") for url in data["key_urls"]]
    source = {"toolkit-deb": {"what": "Our own mirror, by hand", "date": "2026-11-27"}}

    def write(own: Path) -> None:
        own.write_text(json.dumps({"sources": source, "repositories": [data]}), encoding="utf-8")

    assert checked(of_mine(tmp_path, lambda _: None)).contradictions
    assert checked(of_mine(tmp_path, write)).contradictions == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "Invalid JSON"), ('{"sources": {}, "flies": {}}', "flies"), ("[]", "not a file of records")],
)
def test_damaged_records_beside_a_lock_are_refused(text: str, says: str, tmp_path: Path) -> None:
    file = of_mine(tmp_path, lambda own: own.write_text(text, encoding="utf-8"))
    with pytest.raises(
        InvalidLockError, match=r"mine-2026\.11\.records\.json is not a file of records"
    ) as error:
        checked(file)
    assert says in str(error.value)


def test_every_record_names_a_source_that_there_is() -> None:
    known = records()
    used = {one.source for one in known.files.values()} | {one.source for one in known.repositories}
    groups = [one.packages for one in known.repositories] + list(known.systems.values())
    used |= {version.source for group in groups for version in group}
    assert used == set(known.sources)


def test_no_record_is_of_a_file_or_package_that_no_release_has() -> None:
    names = {row.name for name in release_names() for row in checked(release_file(name)).rows}
    assert set(records().files) <= names
    packages = {package.name for one in records().repositories for package in one.packages}
    assert all(any(name.startswith(package) for name in names) for package in packages)
