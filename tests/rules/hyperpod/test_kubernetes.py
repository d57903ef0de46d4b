"""Rules on HyperPod on EKS, each broken and mended; its tables held against AWS's own lists."""

from __future__ import annotations

import re
from typing import Any

import botocore.session
import pytest
from rules_support import changed, environment_data, loaded
from rules_table import Case, cases, found, table_tests

from ultracluster.catalog import instance_types, regions
from ultracluster.catalog.eks_calendar import read_on, releases_in_standard_support
from ultracluster.catalog.hyperpod_eks import health_agent_image, health_agent_regions
from ultracluster.catalog.mig import mig_profiles
from ultracluster.model import resolve
from ultracluster.model.addresses import address_budget
from ultracluster.rules.sets import HPE

BASE = "hyperpod-eks-p5"
TRAIN, SYSTEM, ASKED = "node_groups.train", "node_groups.system", "orchestrator"
GPU = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 1}


def case(rule: str, broken: dict[str, Any], at: str, says: str, instead: str, mended: dict[str, Any]) -> Case:
    return Case(rule, broken, at, says, instead, mended, base=BASE)


def labels(count: int) -> dict[str, str]:
    return {f"label-{number}": "x" for number in range(count)}


LABELS = case(
    "HPE030",
    {f"{TRAIN}.labels": labels(48)},
    f"{TRAIN}.labels",
    "48 labels, and this package adds 3",
    "47 or fewer",
    {f"{TRAIN}.labels": labels(47)},
)


test_breaks_and_is_mended, test_advice_works = table_tests(cases=[*cases("hyperpod_eks"), LABELS])


def test_a_p5_node_takes_81_addresses() -> None:
    budget = address_budget(resolve(loaded(environment_data(BASE)).environment))
    (row,) = [row for row in budget.rows if row.what.startswith("train ")]
    full = changed(environment_data(BASE), {f"{TRAIN}.efa_interface": ...})
    (certain,) = [
        row for row in address_budget(resolve(loaded(full).environment)).rows if row.what.startswith("train ")
    ]

    assert (row.each, row.count) == (81, 4)
    assert (certain.each, certain.certain) == (81, 81)


def test_mig_profiles_are_those_that_quotas_can_name() -> None:
    """B300 is newer than AWS's list, and every other GPU's profiles are in it, and nothing more."""
    model = botocore.session.get_session().get_service_model("sagemaker")
    named = {one.removeprefix("mig-") for one in model.shape_for("MIGProfileType").enum}
    ours = {
        profile
        for known in instance_types().values()
        if known.accelerator and known.accelerator.name != "B300"
        for profile in mig_profiles(known)
        if "+" not in profile
    }

    assert ours == named


def test_the_agent_is_looked_for_in_regions_that_exist() -> None:
    assert set(health_agent_regions()) <= set(regions())
    for name in health_agent_regions():
        assert re.fullmatch(
            rf"\d{{12}}\.dkr\.ecr\.{name}\.amazonaws\.com/[a-z-]+:[\w.]+", health_agent_image(name)
        )


@pytest.mark.parametrize("release", releases_in_standard_support(read_on()))
def test_every_release_of_the_control_plane_has_images_and_addons(release: str) -> None:
    everything = {
        "orchestrator.kubernetes_version": release,
        "orchestrator.scheduler": "none",
        "orchestrator.task_governance": True,
        "orchestrator.observability": {
            "workspace_arn": "arn:aws:aps:us-east-2:111122223333:workspace/ws-12345678"
        },
    }
    codes = {one.code for one in found(HPE, everything, BASE)}
    assert not codes & {"HPE002", "HPE003", "HPE004"}


def test_mig_profiles_fit_their_gpu() -> None:
    for known in instance_types().values():
        for profile, count in mig_profiles(known).items():
            slices, memory = map(int, re.findall(r"\d+", profile))
            assert known.accelerator
            gpu_gb = known.accelerator.memory_gib / known.accelerator.count * 1.08
            assert slices * count <= 7, (known.name, profile)
            assert memory * count <= gpu_gb * 1.02, (known.name, profile)


def test_the_guides_own_flexible_group_is_taken() -> None:
    """SageMaker Developer Guide, Flexible instance groups: p5.48xlarge, p4d.24xlarge, g6.48xlarge."""
    changes = {
        f"{TRAIN}.instance_type": "p5.48xlarge",
        f"{TRAIN}.instance_types": ["p4d.24xlarge", "g6.48xlarge"],
        f"{TRAIN}.capacity": {"kind": "on-demand"},
    }
    said = found(HPE, changes, BASE)
    assert {one.code for one in said if one.severity == "error"} == set()
