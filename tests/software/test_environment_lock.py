"""The lock of an environment: what is read, what is refused, and what it adds to a release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import ROOT

from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configuration
from ultracluster.rules import check
from ultracluster.software import (
    EnvironmentLock,
    InvalidLockError,
    Release,
    completed,
    environment_lock,
    load_release,
)
from ultracluster.software.first_boot import release_of
from ultracluster.software.lock import read_lock, release_file

RELEASE = "hyperpod-slurm-2026.09"
ENROOT = "enroot_4.2.1-1_arm64.deb"
ZIP = "configure-efa-fsx-lustre-client.zip"
KEY = "https://example.com/key.asc"
CONTENT: dict[str, Any] = {
    "schema": 1,
    "environment": "prod",
    "release": RELEASE,
    "files": {ENROOT: {"sha256": "a" * 64, "size": 12, "recorded": "2026-11-22", "from": "https://example.com"}},
    "keys": {KEY: {"fingerprint": "A" * 40, "recorded": "2026-11-22"}},
    "images": {"train": {"image": "ami-0123456789abcdef0", "release": "1.34.12-20261012",
                         "parameter": "/aws/service/x", "recorded": "2026-11-22"}},
}  # fmt: skip


def lock(**changes: Any) -> EnvironmentLock:
    return EnvironmentLock.model_validate(json.loads(json.dumps({**CONTENT, **changes})))


def saved(content: object, folder: Path) -> Path:
    (folder / "environments").mkdir(exist_ok=True)
    file = folder / "environments" / "prod.lock"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


@pytest.mark.parametrize("asked", ["prod", "environments/prod.yaml", "environments/prod.lock"])
def test_it_is_found_by_name_and_beside_the_environment(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert environment_lock(asked) is None
    saved(CONTENT, tmp_path)
    assert environment_lock(asked) == environment_lock(Path(asked)) == lock()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ('{"schema": 1, "schema": 1}', "stands twice"),
        ({**CONTENT, "schema": 2}, "schema"),
        ({**CONTENT, "colour": "red"}, "Extra inputs"),
        ({**CONTENT, "files": {ENROOT: {"sha256": "abc", "size": 1, "recorded": "2026-11-22"}}}, "sha256"),
        ({**CONTENT, "files": {"../x": CONTENT["files"][ENROOT]}}, "files"),
        ({**CONTENT, "keys": {KEY: {"fingerprint": "abc", "recorded": "2026-11-22"}}}, "fingerprint"),
        ({**CONTENT, "images": {"train": {"image": "latest", "recorded": "2026-11-22"}}}, "image"),
    ],
)
def test_a_damaged_one_is_refused_and_named(content: object, says: str, tmp_path: Path) -> None:
    file = saved(content, tmp_path)
    with pytest.raises(InvalidLockError, match=says) as caught:
        environment_lock(file)
    assert str(file) in str(caught.value)


def test_bytes_and_a_folder_are_refused(tmp_path: Path) -> None:
    file = saved("", tmp_path)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidLockError, match="is not JSON"):
        environment_lock(file)
    file.unlink()
    file.mkdir()
    with pytest.raises(InvalidLockError, match="directory"):
        environment_lock(file)


def test_the_lock_of_another_environment_or_release_says_so() -> None:
    assert lock().faults("prod", RELEASE) == []
    found = lock().faults("dev", "2026.11")
    assert found == [
        "it is of environment prod, not dev",
        f"it completes release {RELEASE}, and the environment has 2026.11",
    ]


def test_nodes_get_digests_and_fingerprints() -> None:
    assert lock().for_nodes() == {"files": {ENROOT: f"sha256:{'a' * 64}"}, "keys": {KEY: "A" * 40}}


def artifact(release: Release, component: Any, name: str) -> Any:
    return next(one for one in release.components[component].artifacts if one.name == name)


def test_it_completes_what_the_release_leaves_open() -> None:
    release = load_release(RELEASE)
    assert ENROOT in {one.name for one in release.unlocked}
    after = completed(release, lock())
    found = artifact(after, "enroot", ENROOT)
    assert (found.sha256, found.size, found.integrity) == ("a" * 64, 12, "checksum")
    assert ENROOT not in {one.name for one in after.unlocked}
    assert set(after.unlocked) < set(release.unlocked)


def test_what_the_release_records_stays_but_for_a_file_that_its_maker_changes() -> None:
    """enroot for x86-64 has a version in its name; the archive of FSx has one name for ever."""
    release = load_release(RELEASE)
    amd = "enroot_4.2.1-1_amd64.deb"
    row = CONTENT["files"][ENROOT]
    after = completed(release, lock(files={amd: row, ZIP: row}))
    assert artifact(after, "enroot", amd) == artifact(release, "enroot", amd)
    assert artifact(after, "lustre-efa-setup", ZIP).sha256 == "a" * 64


def test_it_pins_a_key_that_the_release_leaves_open(tmp_path: Path) -> None:
    content = json.loads(release_file(RELEASE).read_text())
    where = content["components"]["nccl"]["packages"][0]["repository"]
    where["key_url"] = KEY
    del where["key_fingerprint"]
    file = tmp_path / f"{RELEASE}.lock"
    file.write_text(json.dumps(content))
    release = read_lock(file)
    assert KEY in {one.name for one in release.unlocked}
    repository = completed(release, lock()).components["nccl"].packages[0].repository
    assert repository is not None and repository.key_fingerprint == "A" * 40


@pytest.mark.parametrize("known", [None, lock(release="2026.11"), lock(files={}, keys={})])
def test_without_a_lock_of_this_release_nothing_changes(known: EnvironmentLock | None) -> None:
    release = load_release(RELEASE)
    assert completed(release, known) is release


def test_a_signed_file_keeps_its_signature(tmp_path: Path) -> None:
    release = load_release("parallelcluster-3.16.3")
    name = "aws-efa-installer-1.51.0.tar.gz"
    after = completed(release, lock(release=release.release, files={name: CONTENT["files"][ENROOT]}))
    found = artifact(after, "efa-installer", name)
    assert (found.integrity, found.sha256) == ("signature", "a" * 64)
    assert found.key_fingerprint


def test_it_lies_beside_the_file_of_its_environment_wherever_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in environments/ of the folder that a command happens to run in."""
    monkeypatch.chdir(tmp_path)
    shipped = (ROOT / "environments" / "prod.yaml").read_text()
    theirs = tmp_path / "theirs" / "training.yaml"
    theirs.parent.mkdir()
    theirs.write_text(shipped)
    saved("{", tmp_path)  # of another environment of this name
    theirs.with_suffix(".lock").write_text(json.dumps(CONTENT))

    environment = load(theirs).environment
    assert artifact(release_of(environment), "enroot", ENROOT).sha256 == "a" * 64
    told = script_configuration(resolve(environment))["locked"]
    assert told == {"files": {ENROOT: f"sha256:{'a' * 64}"}, "keys": {KEY: "A" * 40}}
    assert {one.code for one in check(load(theirs))} & {"SOF010"} == set()
    assert environment.asked_as == str(theirs)

    (tmp_path / "environments" / "prod.yaml").write_text(shipped)
    (broken,) = [one for one in check(load("environments/prod.yaml")) if one.code == "SOF010"]
    assert broken.instead == (
        "remove it, or restore the committed one; then `ultracluster software lock --for prod`"
    )
    theirs.with_suffix(".lock").write_text("{")
    (broken,) = [one for one in check(load(theirs)) if one.code == "SOF010"]
    assert f"`ultracluster software lock --for {theirs}`" in broken.instead


def test_while_a_lock_is_damaged_no_acknowledgement_is_called_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prod acknowledges SOF004, which cannot be judged then."""
    monkeypatch.chdir(tmp_path)
    saved("{", tmp_path)
    file = tmp_path / "environments" / "prod.yaml"
    file.write_text((ROOT / "environments" / "prod.yaml").read_text())
    assert [one.code for one in check(load(file)) if not one.acknowledged] == ["SOF010"]
