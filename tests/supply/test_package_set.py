"""Packages in the mirror: real packages in really signed repositories, moto's S3, and apt as the judge."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import ultracluster
from package_repositories import (
    BUCKET,
    CHOSEN,
    DISTRIBUTION,
    LOCK,
    PAIR,
    VENDOR,
    Repositories,
    downloaded,
    keys,
    listed,
    names,
)
from processes import forked, until

from ultracluster.supply import release_lock
from ultracluster.supply.mirror import Selection
from ultracluster.supply.mirror_bucket import MirrorError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_pause")]


def test_what_is_named_and_all_that_it_needs(lock: Any, mirror: Any, s3: Any) -> None:
    """Not what every image has, unless a newer one is needed; not what has only a similar name."""
    file = lock()
    done = mirror(file)
    content = listed(s3, file)
    assert names(content) == CHOSEN
    versions = {row["name"]: row["version"] for row in content["packages"]}
    assert (versions["tool"], versions["newlib"], versions["libtool"]) == ("1:2.0-1", "3.1", "2.1-1~rc1")
    assert done.package_sets == {PAIR: len(CHOSEN)}
    needs = {row["name"]: {one.rpartition("/")[2] for one in row["needs"]} for row in content["packages"]}
    assert needs["tool"] == {"libtool_2.1-1_rc1_amd64.deb", "vi_9_amd64.deb"}
    assert len(keys(s3)) == len(CHOSEN) + 3  # Packages, the list, the lock file


@pytest.mark.parametrize("suffix", [".xz", ".gz", ""])
def test_apt_installs_it_with_nothing_but_the_mirror(
    repositories: Repositories, lock: Any, mirror: Any, s3: Any, tmp_path: Path, suffix: str
) -> None:
    """apt itself resolves the set, on a system that has what every image has."""
    repositories.suffix = suffix
    repositories.publish()
    file = lock()
    mirror(file)
    folder = downloaded(s3, listed(s3, file), tmp_path / "node")
    said = simulated(folder, tmp_path / "apt", repositories.debs, "tool=1:2.0-1")
    installed = {line.split()[1] for line in said.splitlines() if line.startswith("Inst ")}
    assert installed == CHOSEN


def simulated(folder: Path, state: Path, debs: Any, *wanted: str) -> str:
    for path in ("lists/partial", "archives/partial", "etc"):
        (state / path).mkdir(parents=True)
    status = "".join(
        debs(name, DISTRIBUTION[name])[0] + "Status: install ok installed\n\n"
        for name in ("libc6", "shell", "libshell", "newlib")
    )
    (state / "status").write_text(status)
    (state / "sources.list").write_text(f"deb [trusted=yes] file:{folder} ./\n")
    options = {
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::State::Lists": state / "lists",
        "Dir::Cache": state,
        "Dir::Etc": state / "etc",
        "Dir::Etc::SourceList": state / "sources.list",
        "APT::Architecture": "amd64",
        "APT::Update::Error-Mode": "any",
        "APT::Sandbox::User": "",
    }
    command = ["apt-get", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
    for arguments in (["update"], ["--simulate", "--no-install-recommends", "install", *wanted]):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_second_run_asks_no_repository_and_changes_nothing(
    shop: Any, repositories: Repositories, lock: Any, mirror: Any, tmp_path: Path
) -> None:
    file = lock()
    mirror(file)
    before = file.read_bytes()
    repositories.publish(vendor={**VENDOR, "libtool": {"Version": "2.2-1"}})
    for cache in (tmp_path / "cache", tmp_path / "another"):
        shop.sent.clear()
        again = mirror(file, cache=cache)
        assert (again.uploaded, shop.sent, file.read_bytes()) == ([], [], before)
        assert again.package_sets == {PAIR: len(CHOSEN)}


@pytest.mark.parametrize("how", ["renew", "another name"])
def test_packages_are_chosen_again_when_asked_for(
    repositories: Repositories, lock: Any, mirror: Any, s3: Any, how: str
) -> None:
    file = lock()
    mirror(file)
    repositories.publish(vendor={**VENDOR, "libtool": {"Version": "2.2-1"}})
    if how == "another name":
        file.write_text(file.read_text().replace("tool=1:2.0-*", "tool"))
    mirror(file, selection=Selection(renew=how == "renew"))
    assert ("libtool", "2.2-1") in {(row["name"], row["version"]) for row in listed(s3, file)["packages"]}


def test_another_bucket_gets_the_same_set(
    repositories: Repositories, lock: Any, mirror: Any, s3: Any
) -> None:
    file = lock()
    mirror(file)
    before = file.read_bytes()
    repositories.publish(vendor={**VENDOR, "libtool": {"Version": "2.2-1"}})
    s3.create_bucket(Bucket="another-bucket")
    assert len(mirror(file, bucket="another-bucket").uploaded) == len(CHOSEN) + 3
    assert file.read_bytes() == before


def test_a_dry_run_changes_nothing(shop: Any, lock: Any, mirror: Any, s3: Any) -> None:
    file = lock()
    before = file.read_bytes()
    done = mirror(file, dry_run=True)
    assert len(done.uploaded) == len(CHOSEN) + 3
    assert (keys(s3), file.read_bytes()) == (set(), before)
    assert not [path for path, _, _ in shop.sent if path.endswith(".deb")]


def test_without_packages_the_lock_file_stays(shop: Any, lock: Any, mirror: Any, s3: Any) -> None:
    file = lock()
    before = file.read_bytes()
    done = mirror(file, selection=Selection(packages=False))
    assert (keys(s3), shop.sent, file.read_bytes()) == ({LOCK}, [], before)
    assert "the image has to bring them" in done.left_out[0]


def test_only_the_systems_that_are_asked_for(lock: Any, mirror: Any, shop: Any) -> None:
    done = mirror(lock(), selection=Selection(only=lambda system, arch: arch == "aarch64"))
    assert (done.package_sets, shop.sent) == ({}, [])


def flip(repositories: Repositories, name: str) -> None:
    content = repositories.shop.files[name]
    repositories.shop.files[name] = bytes([content[0] ^ 1]) + content[1:]


def test_a_tampered_package_is_refused_and_the_rest_stays_for_the_next_run(
    shop: Any, repositories: Repositories, lock: Any, mirror: Any, s3: Any
) -> None:
    file = lock()
    before = file.read_bytes()
    flip(repositories, "debian/pool/vi_9_amd64.deb")
    with pytest.raises(MirrorError, match=r"packages of .*: refused vi_9_amd64\.deb: its sha256"):
        mirror(file)
    assert len(keys(s3)) == len(CHOSEN) - 1  # neither index nor list nor lock file
    assert file.read_bytes() == before

    flip(repositories, "debian/pool/vi_9_amd64.deb")
    shop.sent.clear()
    mirror(file)
    assert [path for path, _, _ in shop.sent if path.endswith(".deb")] == ["debian/pool/vi_9_amd64.deb"]
    assert names(listed(s3, file)) == CHOSEN


def test_kernel_modules_are_there_for_every_kernel(
    repositories: Repositories, lock: Any, mirror: Any, s3: Any
) -> None:
    """Nodes ask for those of their own kernel, which no mirror brings; what nothing fits is left out."""
    modules = {
        f"lustre-client-modules-{kernel}-aws": {"Version": "2.15", "Depends": f"linux-image-{kernel}, {more}"}
        for kernel, more in (("6.8.0-1", "libtool"), ("6.8.0-2", "libtool"), ("6.5.0-9", "gone"))
    }
    utils = {"lustre-client-utils": {"Version": "2.15"}}
    repositories.publish(vendor={**VENDOR, **modules, **utils})
    file = lock("lustre-client-modules-aws")
    mirror(file)
    assert names(listed(s3, file)) == {
        "lustre-client-modules-6.8.0-1-aws",
        "lustre-client-modules-6.8.0-2-aws",
        "lustre-client-utils",
        "libtool",
        "newlib",
    }


def test_a_lock_file_that_cannot_be_written(lock: Any, mirror: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(release_lock, "write", refuse)
    with pytest.raises(MirrorError, match=r"2030\.01\.lock: the packages cannot be recorded in it \(Perm"):
        mirror(lock())


def test_killed_in_the_middle_the_next_run_goes_on(
    shop: Any, repositories: Repositories, lock: Any, mirror: Any, s3: Any, tmp_path: Path
) -> None:
    """kill -9 while the last package comes: nothing is recorded, and what had come is not fetched again."""
    file = lock()
    before = file.read_bytes()
    reached = tmp_path / "reached"

    class StopsAtTheLast:
        def start(self, name: str, size: int) -> Callable[[int], object]:
            return lambda _: (reached.touch(), signal.pause()) if name.startswith("vi-data") else None

    child = forked(lambda: mirror(file, progress=StopsAtTheLast(), jobs=1))
    until(reached.exists)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert file.read_bytes() == before
    shop.sent.clear()

    mirror(file)

    assert {path for path, _, _ in shop.sent if path.endswith(".deb")} <= {"debian/pool/vi-data_9_amd64.deb"}
    assert names(listed(s3, file)) == CHOSEN


def test_a_system_that_the_release_has_no_packages_for() -> None:
    words = ("software", "mirror", "--bucket", BUCKET, "--release", "2026.11", "--os", "ubuntu20.04")
    done = ultracluster(*words)
    assert done.returncode == 2
    assert "--os ubuntu20.04: the release has packages for al2023, ubuntu22.04" in done.stderr
