"""Repositories of RPM packages in the mirror, and rpm's order of versions."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from package_repositories import (
    LOCK,
    downloaded,
    keys,
    listed,
)

from ultracluster.supply import dnf_repository
from ultracluster.supply.mirror_bucket import MirrorError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_pause")]


PRIMARY = Path(__file__).with_name("primary.xml")


class DnfRepository:
    """A repository as createrepo_c writes it; what the packages contain does not matter to a mirror."""

    def __init__(self, shop: Any, signer: Any) -> None:
        self.shop, self.signer = shop, signer
        shop.files["rpm.key"] = signer.key

    def publish(self, primary: str) -> None:
        packed = gzip.compress(primary.encode())
        digest = hashlib.sha256(packed).hexdigest()
        repomd = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<repomd xmlns="http://linux.duke.edu/metadata/repo">'
            f'<data type="primary"><checksum type="sha256">{digest}</checksum>'
            '<location href="repodata/primary.xml.gz"/></data></repomd>\n'
        ).encode()
        self.shop.files |= {
            "rpm/repodata/primary.xml.gz": packed,
            "rpm/repodata/repomd.xml": repomd,
            "rpm/repodata/repomd.xml.asc": self.signer.sign(repomd),
        }


@pytest.fixture
def rpms(shop: Any, signers: Any) -> DnfRepository:
    made = DnfRepository(shop, signers[0])
    primary = PRIMARY.read_text()
    for line in primary.splitlines():
        if 'location href="' in line:
            name = line.split('"')[1]
            shop.files[f"rpm/{name}"] = name.rpartition(".")[0].rpartition(".")[0].encode()
    made.publish(primary)
    return made


@pytest.fixture
def rpm_lock(shop: Any, rpms: DnfRepository, lock: Any) -> Callable[..., Path]:
    def write(*names: str) -> Path:
        file = lock(
            *names,
            url=shop.url("rpm"),
            suite=None,
            key_url=shop.url("rpm.key"),
            key_fingerprint=rpms.signer.fingerprint,
        )
        content = json.loads(file.read_text())
        entries = content["components"]["dcgm"]["packages"]
        entries[0]["os"] = ["al2023"]
        entries.append({"os": ["al2023"], "arch": ["x86_64"], "names": ["lustre-client"]})
        file.write_text(json.dumps(content))
        return file

    return write


@pytest.mark.parametrize("asked", ["container-tool-1.20.1-1", "container-tool-1.20.1", "container-tool-1.2*"])
def test_rpm_packages_with_what_their_repository_has_of_their_needs(
    rpm_lock: Any, mirror: Any, s3: Any, tmp_path: Path, asked: str
) -> None:
    """glibc, /bin/sh and conditions are left to the system's own repositories."""
    file = rpm_lock(asked)
    done = mirror(file)
    content = listed(s3, file, "al2023-x86_64")
    assert {(row["name"], row["version"]) for row in content["packages"]} == {
        ("container-tool", "1.20.1-1"),
        ("container-tool-base", "1.20.1-1"),
        ("libcontainer1", "1:1.20.1-1"),
    }
    assert [line for line in done.left_out if "lustre-client on al2023" in line and "S3 buckets" in line]

    folder = downloaded(s3, content, tmp_path / "node")
    primary = (folder / "repodata/primary.xml").read_bytes()
    assert hashlib.sha256(primary).hexdigest() in (folder / "repodata/repomd.xml").read_text()
    hrefs = {row.get("href", "") for row in ElementTree.fromstring(primary).iter() if row.get("href")}  # noqa: S314
    assert hrefs == {row["file"] for row in content["packages"]}
    assert all((folder / href).is_file() for href in hrefs)
    assert mirror(file).uploaded == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("rpm/repodata/primary.xml.gz", r"refused primary\.xml\.gz: its sha256"),
        ("rpm/repodata/repomd.xml", "signature does not match"),
        ("rpm/repodata/repomd.xml.asc", r"refused repomd\.xml"),
        ("rpm/libcontainer1-1.20.1-1.x86_64.rpm", r"refused libcontainer1-1\.20\.1-1\.x86_64\.rpm"),
    ],
)
def test_a_tampered_rpm_repository(
    rpms: DnfRepository, rpm_lock: Any, mirror: Any, s3: Any, name: str, says: str
) -> None:
    file = rpm_lock("container-tool-1.20.1-1")
    content = rpms.shop.files[name]
    rpms.shop.files[name] = b"no signature at all" if name.endswith(".asc") else content[:-1] + b" "
    with pytest.raises(MirrorError, match=says):
        mirror(file)
    assert LOCK not in keys(s3)


def test_an_rpm_that_is_not_there(rpm_lock: Any, mirror: Any) -> None:
    with pytest.raises(MirrorError, match=r"dcgm: .*/rpm has no container-tool-9 for x86_64"):
        mirror(rpm_lock("container-tool-9"))


@pytest.mark.parametrize(
    ("first", "second", "order"),
    [
        ("1.0-1", "1.0-2", -1),
        ("1.0", "1.0-2", 0),
        ("1:1.0-1", "2.0-1", 1),
        ("1.10-1", "1.9-1", 1),
        ("1.0~rc1-1", "1.0-1", -1),
        ("2.30.7-1+cuda13.3", "2.30.7-1+cuda13.3", 0),
    ],
)
def test_the_order_of_versions_is_that_of_rpm(first: str, second: str, order: int) -> None:
    assert dnf_repository.compare(first, second) == order
    assert dnf_repository.compare(second, first) == -order
