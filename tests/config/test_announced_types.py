"""Types that AWS has announced, through every orchestrator: declared once, judged and planned with."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from project import ROOT
from rules_support import changed, environment_data, loaded

from ultracluster.catalog import instance_type, ultraservers
from ultracluster.catalog.instances import instance_types
from ultracluster.config.source import read
from ultracluster.model import resolve
from ultracluster.plan.environment_plan import plan
from ultracluster.rules import check

FILE = ROOT / "environments" / "announced" / "types.yaml"
DECLARED: dict[str, Any] = read(FILE).data["instance_types"]
BLOCK = {"kind": "capacity-block", "id": "cr-0123456789abcdef0"}
PLAN = {"kind": "training-plan", "arn": "arn:aws:sagemaker:{region}:111122223333:training-plan/announced"}
BASES = {
    "prod": PLAN, "hyperpod-eks-p5": PLAN,
    "parallelcluster-gb200": BLOCK, "pcs-p6-b200": BLOCK, "eks-p5en": BLOCK,
}  # fmt: skip
CARDS_UNKNOWN = {"PCS025"}
"""Without `network_like` only HyperPod can launch the type: these say so."""


def with_type(base: str, name: str) -> dict[str, Any]:
    """The environment, whose compute groups become one UltraServer of the type."""
    data = environment_data(base)
    groups: dict[str, Any] = data["node_groups"]
    first = next(key for key, group in groups.items() if group["role"] == "compute")
    (server,) = DECLARED[name]["ultraservers"]
    group = {"role": "compute", "instance_type": name, "count": ultraservers()[server].instances}
    capacity = {key: value.format(region=data["region"]) for key, value in BASES[base].items()}
    for key in [key for key, one in groups.items() if one["role"] == "compute"]:
        del groups[key]
    groups[first] = group | {"capacity": capacity}
    orchestrator: dict[str, Any] = data["orchestrator"]
    if orchestrator["kind"] in ("hyperpod-slurm", "parallelcluster", "pcs"):
        groups[first]["partition"] = first
    if orchestrator["kind"] in ("parallelcluster", "pcs"):
        orchestrator["partitions"] = {first: {"exclusive": True}}
    if orchestrator["kind"] == "parallelcluster" and DECLARED[name].get("architecture") != "arm64":
        for group in groups.values():  # all nodes have one architecture
            if group["role"] != "compute":
                group["instance_type"] = "m7i.2xlarge"
    if orchestrator["kind"] == "pcs":
        orchestrator["size"] = "medium"
        groups[first]["image"] = "ami-0123456789abcdef0"
    data.pop("teams", None)
    return changed(data, {"instance_types": copy.deepcopy(DECLARED)})


@pytest.mark.parametrize("name", DECLARED)
@pytest.mark.parametrize("base", BASES)
def test_every_orchestrator_is_planned_with_them(base: str, name: str) -> None:
    found = loaded(with_type(base, name))

    errors = {one.code: one.message for one in check(found) if one.severity == "error"}
    codes = {one.code for one in check(found)}

    allowed = set() if DECLARED[name].get("network_like") else CARDS_UNKNOWN
    assert errors.keys() <= allowed, errors
    assert "GRP050" in codes, "that nothing can be launched is said"
    assert "ENV008" not in codes, "groups leave the other types of the file unused"
    made = plan(resolve(found.environment))
    (group,) = [one for one in made.groups if one.role == "compute"]
    (server,) = DECLARED[name]["ultraservers"]
    row = ultraservers()[server]
    assert (group.accelerators, group.domains) == (row.accelerators, 1)
    assert group.domain
    assert (group.domain.ultraserver, group.domain.size) == (server, row.accelerators)
    assert group.vcpu == row.vcpu
    assert group.memory_gib == row.memory_gib


@pytest.mark.parametrize("name", DECLARED)
def test_none_is_in_the_catalogue_yet(name: str) -> None:
    assert name not in instance_types(), f"AWS has named {name}: take it out of {FILE.name}"
    like = DECLARED[name].get("network_like")
    assert like is None or instance_type(like)
