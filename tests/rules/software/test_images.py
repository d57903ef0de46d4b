"""Rules on machine images, each broken and mended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from project import ENVIRONMENTS
from rules_support import changed, environment_data, loaded
from rules_table import cases, found, table_tests, world_tests

from ultracluster.catalog import images as catalogue
from ultracluster.catalog.images import Advisory, Fact, Image
from ultracluster.rules.engine import run
from ultracluster.rules.sets import IMG
from ultracluster.software import lock
from ultracluster.software.lock import releases_folder

R = "software.release"
IMAGE = "orchestrator.node_image_release"
NEWEST = "1.36.4-20261012"
AMI = "ami-0123456789abcdef0"
PCS_PARAMETER = "/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id"


def floor(version: str, mark: str = "confirmed") -> dict[str, str]:
    return {"version": version, "mark": mark, "source": "a test"}


def made(folder: Path, name: str, base: str, **changes: Any) -> None:
    content = json.loads((releases_folder() / f"{base}.lock").read_text())
    content["release"] = name
    for component, change in changes.items():
        content["components"][component.replace("_", "-")].update(change)
    (folder / f"{name}.lock").write_text(json.dumps(content))


def known() -> tuple[Image, ...]:
    """The catalogue, in which a maker withdrew one image, and one record contradicts itself."""
    rows: list[Image] = []
    for one in catalogue.images.__wrapped__():
        if one.id == "parallelcluster-3.16.1-ubuntu2404-x86_64":
            one = replace(one, advisories=(Advisory("its driver does not load", "maker", "pcl-rel"),))
        if one.id == "parallelcluster-3.16.1-alinux2023-x86_64":
            wrong = Fact("580.65.06", "confirmed", "pcl-rel", "2026")
            one = replace(one, values={**one.values, "fabric_manager": wrong})
        rows.append(one)
    return tuple(rows)


@pytest.fixture(autouse=True, scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Releases that do not fit, locks of environments, and images with faults."""
    folder = tmp_path_factory.mktemp("releases")
    for file in releases_folder().glob("*.lock"):
        shutil.copy(file, folder)
    base = "hyperpod-slurm-2026.09"
    for name, mark in (("2020.01", "confirmed"), ("2020.02", "inferred")):
        made(
            folder,
            name,
            base,
            nvidia_driver={"version": "600.1", "floor": floor("600.1", mark), "floors": {}},
        )
    made(
        folder,
        "2020.03",
        base,
        dcgm={"kind": "image", "need": "required", "version": "5", "floor": floor("5")},
    )
    (folder / "environments").mkdir()
    image = {"release": NEWEST, "recorded": "2026-11-22"}
    locked = {"schema": 1, "environment": "locked", "release": "eks-2026.10"}
    locked["images"] = {"system": image, "trn2": image}  # type: ignore[assignment]
    (folder / "environments" / "locked.lock").write_text(json.dumps(locked))
    # `half` was deployed, and has got a group since; `fresh` was not
    half = {"schema": 1, "environment": "half", "release": "pcs-2026.07"}
    half["images"] = {"login": {"image": AMI, "parameter": PCS_PARAMETER, "recorded": "2026-11-22"}}  # type: ignore[assignment]
    (folder / "environments" / "half.lock").write_text(json.dumps(half))
    rows = known()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lock, "releases_folder", lambda: folder)
        patch.setattr(catalogue, "images", lambda: rows)
        patch.chdir(folder)
        _forget()
        yield
    _forget()


def _forget() -> None:
    lock.release_names.cache_clear()
    lock._loaded.cache_clear()


def release(name: str) -> dict[str, Any]:
    return {R: name}


test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("images"))
test_the_examples_of_a_world_of_their_own = world_tests(IMG)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_shipped_environments_have_no_open_finding(name: str) -> None:
    assert [one for one in found(IMG, {}, name) if not one.acknowledged] == []


@pytest.mark.parametrize(
    ("kubernetes", "bad"), [("1.33", True), ("1.34", True), ("1.35", True), ("1.36", False)]
)
def test_the_field_report_is_on_kubernetes_up_to_1_35_only(kubernetes: str, bad: bool) -> None:
    changes = {"orchestrator.kubernetes_version": kubernetes, IMAGE: "20260930"}
    codes = {one.code for one in found(IMG, changes, "eks-trn2")}

    assert ("IMG002" in codes) is bad


def test_a_bad_image_of_two_groups_is_one_finding() -> None:
    (finding,) = [one for one in found(IMG, {"orchestrator.os": "ubuntu2404"}, "parallelcluster-p5")
                  if one.code == "IMG001"]  # fmt: skip

    assert finding.message.startswith(
        "head, login, reserved, more boot parallelcluster-3.16.1-ubuntu2404-x86_64"
    )


def test_nothing_is_said_of_nodes_on_which_no_script_runs() -> None:
    quiet = {**release("2020.01"), "orchestrator.lifecycle": "none"}

    assert found(IMG, quiet) == []


def test_a_lock_for_another_date_completes_nothing() -> None:
    changes = {"name": "locked", IMAGE: "20260917"}
    (finding,) = [one for one in found(IMG, changes, "eks-trn2") if one.code == "IMG007"]

    assert "(20260917)" in finding.message


def test_an_acknowledgement_of_a_date_stays_right_when_the_lock_is_there() -> None:
    data = changed(environment_data("eks-trn2"), {"name": "locked"})
    data["acknowledge"] = [{"rule": "IMG007", "at": IMAGE, "reason": "what a test says of it"}]
    assert run(IMG.rules, loaded(data)) == []


@pytest.mark.parametrize("base", ["eks-p5en", "eks-trn2", "hyperpod-eks-p5", "pcs-p6-b200"])
def test_before_the_first_deploy_an_image_that_is_not_locked_is_no_finding(base: str) -> None:
    assert "IMG007" not in {one.code for one in found(IMG, {"name": "fresh"}, base)}
    # once the lock has any image, each group without its own is one
    assert "IMG007" in {one.code for one in found(IMG, {"name": "half"}, base)}


def test_a_lock_of_another_kubernetes_release_completes_nothing() -> None:
    """The control plane moved up one release, and the lock was not made again."""
    changes = {"name": "locked", "orchestrator.kubernetes_version": "1.35"}
    (finding,) = [one for one in found(IMG, changes, "eks-trn2") if one.code == "IMG007"]

    assert "(pinned by this package)" in finding.message


def test_karpenter_takes_a_date() -> None:
    changes = {
        "name": "half",
        "orchestrator.karpenter": {"groups": ["trn2"]},
        "node_groups.trn2.capacity": {"kind": "on-demand"},
    }
    (finding,) = [one for one in found(IMG, changes, "eks-trn2") if one.code == "IMG007"]

    assert "system boots the newest image" in finding.message
