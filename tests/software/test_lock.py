"""Lock files: those that are shipped, their schema, and what is refused."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest

from ultracluster.config.schema import field_docstrings
from ultracluster.scripts_folder import script_files, scripts_folder
from ultracluster.software import (
    Artifact,
    Component,
    InvalidLockError,
    UnknownReleaseError,
    load_release,
    nearest_releases,
    newest_release,
    read_lock,
    release_file,
    release_names,
)
from ultracluster.software.lock import releases_folder
from ultracluster.software.lock_text import lock_schema, written

NAMES = release_names()
KINDS_WITHOUT_FILES = {"image", "bundled"}


def data(name: str = "2026.11") -> dict[str, Any]:
    return json.loads(release_file(name).read_text())


def save(content: object, folder: Path, name: str = "2026.11.lock") -> Path:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_release_follows_the_published_schema(name: str) -> None:
    schema = json.loads((releases_folder() / "lock.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(data(name))


def test_the_published_schema_is_up_to_date() -> None:
    published = json.loads((releases_folder() / "lock.schema.json").read_text())
    assert published == lock_schema(), "`ultracluster schema release-lock` writes it"


def test_every_field_of_the_schema_that_needs_words_has_them() -> None:
    assert {"version", "need", "floor", "needs", "accelerator"} <= set(field_docstrings(Component))
    assert "description" in lock_schema()["$defs"]["Artifact"]["properties"]["integrity"]


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_release_is_written_in_one_form(name: str) -> None:
    assert written(data(name)) == release_file(name).read_text()


@pytest.mark.parametrize("name", NAMES)
def test_everything_has_a_source_and_every_secure_address(name: str) -> None:
    for component, part in load_release(name).components.items():
        assert len(part.source) > 15, component
        assert part.constraint.endswith("."), component
        for artifact in part.artifacts:
            assert artifact.url is None or artifact.url.startswith("https://"), artifact.name
            assert artifact.url or artifact.note, artifact.name
        if part.kind in KINDS_WITHOUT_FILES:
            assert not part.packages, component
        else:
            assert part.artifacts or part.packages, component


@pytest.mark.parametrize("name", NAMES)
def test_what_a_component_needs_comes_before_it(name: str) -> None:
    seen: set[str] = set()
    for component, part in load_release(name).components.items():
        assert set(part.needs) <= seen, component
        seen.add(component)


@pytest.mark.parametrize("name", NAMES)
def test_packages_of_one_system_and_machine_are_named_once(name: str) -> None:
    for component, part in load_release(name).components.items():
        places = [(system, arch) for entry in part.packages for system in entry.os for arch in entry.arch]
        assert len(places) == len(set(places)), component


def test_locks_travel_to_the_nodes() -> None:
    files = {file.relative_to(scripts_folder()).as_posix() for file in script_files(scripts_folder())}
    assert {f"releases/{name}.lock" for name in NAMES} <= files


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("2026.10", "2026.11"),
        ("2020.01", "2026.11"),
        ("hyperpod-slurm-2025.01", "hyperpod-slurm-2026.09"),
        ("parallelcluster-3.16.2", "parallelcluster-3.16.1"),
        ("hyperpod", "hyperpod-eks-2026.09"),
        ("eks", "eks-2026.10"),
    ],
)
def test_an_unknown_release_names_the_nearest(name: str, nearest: str) -> None:
    assert nearest_releases(name)[0] == nearest
    with pytest.raises(UnknownReleaseError, match=re.escape(nearest)):
        load_release(name)


def broken(path: str, value: object) -> dict[str, Any]:
    content = data()
    *parents, last = path.split(".")
    target: Any = content
    for part in parents:
        target = target[int(part)] if part.isdigit() else target[part]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return content


EFA = "components.efa-installer.artifacts.0"
FAULTS: list[tuple[str, str, object, str]] = [
    ("another schema", "schema", 3, "schema"),
    ("no name", "release", ..., "release"),
    ("a component that nobody knows", "components.cowsay", data()["components"]["dcgm"], "cowsay"),
    ("an unknown key", "components.nccl.colour", "red", "Extra inputs"),
    ("no source", "components.nccl.source", ..., "source"),
    ("a number as version", "components.nccl.version", 2.3, "version"),
    ("a need that is none", "components.nccl.need", "perhaps", "need"),
    ("a digest that is too short", f"{EFA}.sha256", "abc", "sha256"),
    ("a digest in capitals", f"{EFA}.sha256", "A" * 64, "sha256"),
    ("plain HTTP", f"{EFA}.url", "http://example.com/x", "url"),
    ("another scheme", f"{EFA}.url", "ftp://example.com/x", "url"),
    ("a path as name", f"{EFA}.name", "../../etc/passwd", "name"),
    ("no bytes", f"{EFA}.size", 0, "size"),
    ("a signature without a key", f"{EFA}.key_fingerprint", ..., "key_fingerprint"),
    (
        "a checksum without a digest",
        "components.aws-ofi-nccl.artifacts.0.sha512",
        ...,
        "without sha256 or sha512",
    ),
    ("locked and not locked", "components.gdrcopy.artifacts.0.integrity", "to-be-locked", "next to a digest"),
    ("another architecture", f"{EFA}.arch", ["riscv"], "arch"),
    ("a shell in a package name", "components.nccl.packages.0.names", ["x; reboot"], "names"),
    ("a need that is not there", "components.pyxis.needs", ["slurm", "enroot", "kernel"], ""),
]


@pytest.mark.parametrize(
    ("path", "value", "says"), [row[1:] for row in FAULTS[:-1]], ids=[r[0] for r in FAULTS[:-1]]
)
def test_bad_input_is_refused_and_named(path: str, value: object, says: str, tmp_path: Path) -> None:
    file = save(broken(path, value), tmp_path)
    with pytest.raises(InvalidLockError, match=re.escape(says)) as caught:
        read_lock(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{EFA}.key_fingerprint", ...),
        ("components.aws-ofi-nccl.artifacts.0.sha512", ...),
        ("components.gdrcopy.artifacts.0.integrity", "to-be-locked"),
    ],
)
def test_the_schema_knows_what_integrity_asks_for(path: str, value: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(lock_schema()).validate(broken(path, value))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 1, "schema": 1}', "\x00", "null"])
def test_what_is_no_lock_is_refused(content: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidLockError):
        read_lock(save(content, tmp_path))


def test_a_file_that_is_missing_misnamed_or_of_bytes(tmp_path: Path) -> None:
    with pytest.raises(InvalidLockError, match="No such file"):
        read_lock(tmp_path / "2026.11.lock")
    with pytest.raises(InvalidLockError, match=r"name it 2026\.11\.lock"):
        read_lock(save(data(), tmp_path, "2026.12.lock"))
    (tmp_path / "2026.11.lock").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidLockError, match="not JSON"):
        read_lock(tmp_path / "2026.11.lock")


def test_a_component_cannot_need_what_is_not_there(tmp_path: Path) -> None:
    content = copy.deepcopy(data())
    del content["components"]["slurm"]
    with pytest.raises(InvalidLockError, match="pyxis needs slurm"):
        read_lock(save(content, tmp_path))


def test_a_key_in_the_mirror_needs_a_digest() -> None:
    release = load_release("2026.11")
    plugin = release.components["aws-ofi-nccl"].artifacts[0]
    assert plugin.mirror_key("2026.11") == "2026.11/ab7aa6b6f2f51172/aws-ofi-nccl-1.21.1.tar.gz"
    both = Artifact.model_validate({**plugin.model_dump(), "sha256": "b" * 64})
    assert both.mirror_key("2026.11").split("/")[1] == "b" * 16
    with pytest.raises(ValueError, match="no digest yet"):
        plugin.model_copy(update={"sha512": None}).mirror_key("2026.11")


def test_what_nobody_could_check_is_unlocked(tmp_path: Path) -> None:
    """A file without a digest, also one that only a signature vouches for, and a key without fingerprint."""
    content = data()
    enroot, efa = (content["components"][name]["artifacts"][0] for name in ("enroot", "efa-installer"))
    del efa["sha256"]
    enroot |= {"integrity": "to-be-locked", "os": ["al2023"]}
    del enroot["sha256"]
    nccl = content["components"]["nccl"]["packages"]
    del nccl[0]["repository"]["key_fingerprint"]
    release = read_lock(save(content, tmp_path))
    before = set(load_release("2026.11").unlocked)
    found = [one for one in release.unlocked if one not in before]
    assert [(one.component, one.what) for one in found] == [
        ("efa-installer", "file"),
        ("nccl", "key"),
        ("enroot", "file"),
    ]
    assert found[1].name == nccl[0]["repository"]["key_url"]
    assert "enroot" in {one.component for one in release.unlocked_on("al2023", "x86_64")}
    assert {one.component for one in release.unlocked_on("ubuntu22.04", "x86_64")} == {
        "efa-installer",
        "nccl",
    }
    assert set(release.unlocked_on(None, None)) == set(release.unlocked)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("hyperpod-slurm", "hyperpod-slurm-2026.09"),
        ("eks-al2023", "eks-2026.10"),
        ("parallelcluster", "parallelcluster-3.16.3"),
        ("plain", "2026.11"),
    ],
)
def test_the_newest_release_of_a_family_is_the_one_made_for_it(family: Any, name: str) -> None:
    assert newest_release(family).release == name


def test_a_family_that_no_release_serves() -> None:
    with pytest.raises(UnknownReleaseError, match="no release serves nomad"):
        newest_release(cast("Any", "nomad"))
