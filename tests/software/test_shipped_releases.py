"""The shipped releases: made from their table, complete as far as anybody records digests, fit for images."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from project import ROOT

from ultracluster.catalog.images import Image, image
from ultracluster.catalog.instances import instance_types
from ultracluster.software import Component, Release, breaches, load_release, release_names
from ultracluster.software.lock import releases_folder
from ultracluster.software.lock_text import written
from ultracluster.software.solver import instance_rows
from ultracluster.software.versions import Version

NAMES = release_names()
FAMILY_RELEASES = [name for name in NAMES if not name[0].isdigit()]
FIELDS = {
    "nvidia-driver": "nvidia_driver",
    "fabric-manager": "fabric_manager",
    "cuda-runtime": "cuda_default",
    "efa-installer": "efa_installer",
    "libfabric": "libfabric",
    "aws-ofi-nccl": "aws_ofi_nccl",
    "nccl": "nccl",
    "gdrcopy": "gdrdrv",
    "lustre-client": "lustre_client",
    "lustre-efa-setup": "fsx_efa_setup",
    "nvidia-fs": "nvidia_fs",
    "container-toolkit": "container_toolkit",
    "enroot": "enroot",
    "pyxis": "pyxis",
    "dcgm": "dcgm",
    "neuron-driver": "neuron_driver",
    "neuron-runtime": "neuron_runtime",
    "neuron-collectives": "neuron_collectives",
    "slurm": "slurm",
}
"""What an image's record calls a component."""


def table() -> Any:
    """The module tools/releases.py."""
    path = ROOT / "tools" / "releases.py"
    spec = importlib.util.spec_from_file_location("releases_table", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["releases_table"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["README.md", "docs/releases.md"])
def test_pages_count_what_no_source_records(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert table().counted(text) == text, "run `make generate`"
    assert "in `eks-2026.10`" in text


def test_the_files_are_what_the_table_says() -> None:
    made = table().locks()
    assert set(made) == set(NAMES)
    for name, content in made.items():
        shipped = json.loads((releases_folder() / f"{name}.lock").read_text())
        shipped.pop("package_sets", None)
        assert written(shipped) == written(content), f"`make generate` writes {name}.lock"


def test_a_file_that_the_table_does_not_know_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = table()
    content = json.loads((ROOT / "tools" / "releases.json").read_text())
    del content["digests"]["pyxis-0.24.0.tar.gz"]
    (tmp_path / "releases.json").write_text(json.dumps(content))
    monkeypatch.setattr(module, "FILE", tmp_path / "releases.json")
    with pytest.raises(ValueError, match=r"pyxis-0\.24\.0\.tar\.gz: `digests` says neither"):
        module.locks()


def test_every_pinned_key_has_its_recorders() -> None:
    content = json.loads((ROOT / "tools" / "releases.json").read_text())
    pinned = set(re.findall(r'"key_fingerprint": "([0-9A-F]{40})"', json.dumps(content)))
    assert pinned == set(content["keys"])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_open_is_what_nobody_records(name: str) -> None:
    """All keys are pinned; of files only enroot's for Arm and RPM systems, and the newest EFA installer."""
    for one in load_release(name).unlocked:
        assert one.what == "file", one
        assert (
            one.component == "enroot" and ("aarch64" in one.arch or "al2023" in one.os)
        ) or one.name == "aws-efa-installer-1.51.0.tar.gz", one


@pytest.mark.parametrize("name", NAMES)
def test_only_what_ends_a_training_job_is_required(name: str) -> None:
    required = {part for part, found in load_release(name).components.items() if found.need == "required"}
    assert required <= {
        *("kernel", "slurm", "nvidia-driver", "fabric-manager", "neuron-driver"),
        *("efa-installer", "lustre-client"),
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_floor_is_not_above_the_preferred_version(name: str) -> None:
    for component, part in load_release(name).components.items():
        for floor in (part.floor, *part.floors.values()):
            if floor and part.version[0].isdigit():
                assert Version(floor.version) <= Version(part.version), component


@pytest.mark.parametrize("name", NAMES)
def test_the_floor_of_the_driver_is_the_highest_that_a_row_requires_of_the_family(name: str) -> None:
    """By its branch, as nodes judge it. A row that only warns or recommends ends no node."""
    driver = load_release(name).components["nvidia-driver"]
    assert driver.floor
    for kind in instance_types().values():
        if not kind.accelerator or kind.accelerator.manufacturer != "NVIDIA":
            continue
        floor = driver.floor_of(kind.name)
        rows = [
            (str(one.value).partition(".")[0], row.source)
            for row in instance_rows(kind.accelerator.name, kind.name)
            if not row.recommended
            for one in row.require
            if (row.severity, one.fact, one.op) == ("error", "nvidia-driver", ">=")
        ]
        highest = max([int(branch) for branch, _ in rows] + [int(driver.floor.version)])
        assert floor and (int(floor.version), floor.mark) == (highest, "confirmed"), kind.name
        assert floor is driver.floor or any(floor.source == source for _, source in rows), kind.name
    floors = {
        "p4d.24xlarge": "525",
        "p5.48xlarge": "530",
        "p5en.48xlarge": "550",
        "p6-b200.48xlarge": "570",
        "p6-b300.48xlarge": "580",
        "p9.48xlarge": "525",
    }
    assert {kind: getattr(driver.floor_of(kind), "version", "") for kind in floors} == floors


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_fit_together(name: str) -> None:
    assert breaches(load_release(name)) == []


def pairs() -> list[tuple[str, str]]:
    return [(name, one) for name in NAMES for one in load_release(name).images]


@pytest.mark.parametrize(("name", "image_id"), pairs())
def test_each_release_is_solved_against_its_images(name: str, image_id: str) -> None:
    """What an image has is at its floor, or can be installed; what is not known is no fault."""
    release, found = load_release(name), image(image_id)
    assert found.node_family in release.families
    for component, part in release.components.items():
        if {(component, found.family), (component, found.arch)} & NOT_THERE:
            continue
        if component in FIELDS and not _is_for_others(part, found):
            problem = _problem(release, component, part, found)
            assert not problem, f"{component} of {name} on {image_id}: {problem}"


@pytest.mark.parametrize(("name", "image_id"), pairs())
def test_the_kernel_of_an_image_is_one_that_fsx_lists(name: str, image_id: str) -> None:
    found = image(image_id)
    fact = found.fact("kernel")
    if fact is None or not isinstance(fact.value, str):
        return
    ranges = load_release(name).components["kernel"].provides[found.os].split()
    kernel = Version(fact.value)
    assert any(
        Version(low) <= kernel and (kernel <= Version(high) or kernel.within(Version(high)))
        for low, high in (one.split("..") for one in ranges)
    ), fact.value


@pytest.mark.parametrize("name", FAMILY_RELEASES)
def test_nothing_required_has_to_be_installed_on_the_image_of_its_own_release(name: str) -> None:
    """The drivers, fabric manager and EFA of a release are those of its images: a boot only detects them."""
    release = load_release(name)
    for one in (image(image_id) for image_id in release.images):
        for component in ("nvidia-driver", "fabric-manager", "efa-installer"):
            part = release.components[component]
            value = _value(one, component)
            if isinstance(value, str) and part.floor and not _is_for_others(part, one):
                assert Version(value) >= Version(part.floor.version), (component, one.id)


def _is_for_others(part: Component, found: Image) -> bool:
    has_nvidia = not found.family.endswith(("-neuron", "-standard"))
    has_neuron = not found.family.endswith(("-nvidia", "-standard")) and found.arch == "x86_64"
    return (part.accelerator == "nvidia" and not has_nvidia) or (
        part.accelerator == "neuron" and not has_neuron
    )


NOT_THERE = {("slurm", "dlami-base"), ("nvidia-fs", "arm64")}
"""An orchestrator adds its Slurm to a base image; no type with Arm processors has GPUDirect Storage."""


def _value(found: Image, component: str) -> str | bool | None:
    fact = found.fact(FIELDS[component])
    if fact is None or isinstance(fact.value, bool):
        return fact.value if fact else None
    version = re.search(r"\d+(\.\d+)+", fact.value)
    return version[0] if version else None


def _problem(release: Release, component: str, part: Component, found: Image) -> str:
    value = _value(found, component)
    if value is None or value is True:
        return ""
    if isinstance(value, str) and (part.floor is None or Version(value) >= Version(part.floor.version)):
        return ""
    # what is bundled comes with the installer
    source = release.components["efa-installer"] if part.kind == "bundled" else part
    machine = {"arm64": "aarch64"}.get(found.arch, found.arch)
    if any(one.suits(found.os, machine) for one in source.artifacts):
        return ""
    if any(found.os in entry.os and machine in entry.arch for entry in source.packages):
        return ""
    return f"the image has {value}, and nothing installs it on {found.os} {machine}"
