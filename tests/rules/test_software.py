"""Rules on the software release, each broken and mended."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded
from rules_table import cases, found, table_tests, world_tests

from ultracluster.config import InvalidEnvironmentError
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configuration
from ultracluster.rules.sets import SOF
from ultracluster.software import lock
from ultracluster.software.environment_lock import lock_file_of
from ultracluster.software.fit import ON_KUBERNETES
from ultracluster.software.lock import releases_folder

SHIPPED = releases_folder()
R = "software.release"
CLOSED = {"network.egress": "closed"}
MIRROR = {"software.mirror": "s3://example-software/ultracluster"}


def made(folder: Path, name: str, **changes: Any) -> None:
    """A release like 2026.11 with components changed; `None` removes one."""
    content = json.loads((SHIPPED / "2026.11.lock").read_text())
    parts = content["components"]
    content["release"] = name
    for component, change in changes.items():
        key = component.replace("_", "-")
        if change is None:
            del parts[key]
        else:
            parts[key].update(change)
    for part in parts.values():
        part["needs"] = [need for need in part["needs"] if need in parts]
    (folder / f"{name}.lock").write_text(json.dumps(content))


@pytest.fixture(autouse=True, scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The shipped releases and some that are broken in one way each."""
    folder = tmp_path_factory.mktemp("releases")
    for file in SHIPPED.glob("*.lock"):
        shutil.copy(file, folder)
    made(folder, "2020.01", fabric_manager={"version": "580.159.04"})
    made(folder, "2020.02", neuron_driver=None, neuron_runtime=None, neuron_collectives=None)
    made(folder, "2020.03", lustre_efa_setup=None, nvidia_fs=None)
    made(folder, "2020.04", nccl={"version": "2.32.3"})
    made(folder, "2020.05", enroot={"artifacts": [_for("x86_64")], "packages": []})
    made(folder, "2020.06", nvidia_driver={"version": "580.105.08"}, fabric_manager={"version": "580.105.08"})
    old = {"version": "570.124.06"}
    made(folder, "2020.09", nvidia_driver=old, fabric_manager=old, cuda_runtime={"version": "12.8"},
         nccl={"provides": {"cuda": "12.8"}})  # fmt: skip
    toolkit = {"version": "1.30.0", "floor": _floor("1.30.0")}
    made(folder, "2020.12", container_toolkit=toolkit)
    for name, machines in (("2020.13", ("x86_64",)), ("2020.14", ("x86_64", "aarch64"))):
        made(folder, name, container_toolkit=toolkit)
        content = json.loads((folder / f"{name}.lock").read_text())
        content["package_sets"] = {f"ubuntu22.04-{machine}": "a" * 64 for machine in machines}
        (folder / f"{name}.lock").write_text(json.dumps(content))
    made(
        folder, "2020.15", gdrcopy={"version": "2.9", "floor": _floor("2.9"), "artifacts": [_open("gdrcopy")]}
    )
    no_key = {"url": "https://example.com/apt", "key_url": "https://example.com/key"}
    entry = {"os": ["ubuntu22.04"], "arch": ["x86_64"], "names": ["nvidia-fs"], "repository": no_key}
    made(folder, "2020.16", nvidia_fs={"packages": [entry]})
    newer = {"version": "1.60.0", "floor": _floor("1.60.0"), "provides": {}}
    made(folder, "2020.17", efa_installer={**newer, "artifacts": [_open("efa")]})
    (folder / "2020.07.lock").write_text("{")
    environments = folder / "environments"
    environments.mkdir()
    (environments / "damaged.lock").write_text("{")
    foreign = {"schema": 1, "environment": "foreign", "release": "2026.10"}
    (environments / "foreign.lock").write_text(json.dumps(foreign))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lock, "releases_folder", lambda: folder)
        patch.chdir(folder)
        _forget()
        yield
    _forget()


def _forget() -> None:
    lock.release_names.cache_clear()
    lock._loaded.cache_clear()


def _floor(version: str) -> dict[str, str]:
    return {"version": version, "mark": "confirmed", "source": "a test"}


def _open(name: str) -> dict[str, Any]:
    """A file of which nobody knows the digest."""
    file = {
        "os": ["ubuntu22.04"],
        "arch": ["x86_64"],
        "name": f"{name}.tar.gz",
        "url": "https://example.com/f",
    }
    return file | {"integrity": "to-be-locked"}


def _for(arch: str) -> dict[str, Any]:
    name = "enroot.deb"
    return {"os": ["ubuntu22.04"], "arch": [arch], "name": name, "integrity": "checksum", "sha256": "a" * 64}


def release(name: str) -> dict[str, Any]:
    return {R: name}


test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("software"))
test_the_examples_of_a_world_of_their_own = world_tests(SOF)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_shipped_environments_have_no_open_finding(name: str) -> None:
    findings = found(SOF, {}, name)
    assert not [one for one in findings if one.blocks]
    assert all(one.acknowledged for one in findings), findings


def test_a_breach_names_the_source_of_its_constraint() -> None:
    (finding,) = [one for one in found(SOF, release("2020.01")) if one.code == "SOF002"]
    assert "NVIDIA Fabric Manager" in finding.message


def test_other_rules_are_silent_about_a_release_that_is_not_there() -> None:
    missing = {**release("2026.10"), **CLOSED, "protect": True}
    assert {one.code for one in found(SOF, missing)} == {"SOF001"}


def test_nothing_is_asked_where_no_script_runs() -> None:
    quiet = {**CLOSED, "protect": True, "orchestrator.lifecycle": "none"}
    assert {one.code for one in found(SOF, quiet)} == {"SOF008"}


def test_what_the_image_brings_needs_no_mirror() -> None:
    assert found(SOF, CLOSED) == []


def test_what_is_not_known_to_be_on_the_image_is_asked_for() -> None:
    (finding,) = [one for one in found(SOF, CLOSED, "trainium") if one.code == "SOF004"]
    assert "neuron-runtime (not known to be on" in finding.message
    assert "nccl" not in finding.message and "neuron-driver" not in finding.message


def test_the_lock_of_the_environment_closes_what_the_release_leaves_open() -> None:
    content = {
        "schema": 1,
        "environment": "dev",
        "release": "2020.15",
        "files": {"gdrcopy.tar.gz": {"sha256": "b" * 64, "size": 1, "recorded": "2026-11-22"}},
    }
    file = lock_file_of("dev")
    file.write_text(json.dumps(content))
    try:
        assert found(SOF, release("2020.15")) == []
    finally:
        file.unlink()


@pytest.mark.parametrize(
    "mirror", ["s3://b", "https://bucket", "s3://Bucket/x", "s3://bucket/a b", "bucket/x"]
)
def test_a_mirror_is_a_bucket_and_a_prefix(mirror: str) -> None:
    with pytest.raises(InvalidEnvironmentError):
        found(SOF, {"software.mirror": mirror})


def test_the_mirror_reaches_the_nodes() -> None:
    without = loaded(environment_data()).environment
    with_it = loaded(changed(environment_data(), MIRROR)).environment
    assert script_configuration(resolve(without))["mirror"] is None
    assert script_configuration(resolve(with_it))["mirror"] == MIRROR["software.mirror"]


def test_what_kubernetes_nodes_need_is_what_their_steps_bring() -> None:
    """`STEPS_KUBERNETES` of lib/steps.sh; each component is named by the scripts of these steps alone."""
    table = (ROOT / "lifecycle_scripts" / "lib" / "steps.sh").read_text()
    lists = {name: words.split() for name, words in re.findall(r'readonly (STEPS_\w+)="([^"]+)"', table)}
    steps = {step for word in lists["STEPS_KUBERNETES"] for step in lists.get(word.strip("$"), [word])}
    named = {
        component
        for step in steps
        for component in re.findall(
            r"software::(?:for|settle|install|unpack) \"?([a-z][a-z-]+)",
            (ROOT / "lifecycle_scripts" / "steps" / f"{step}.sh").read_text(),
        )
    }
    assert named <= ON_KUBERNETES
    assert {"efa-installer", "lustre-client", "container-toolkit", "neuron-driver"} <= named
