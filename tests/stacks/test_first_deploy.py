"""What a first deploy needs: asked of every shipped environment and of every optional feature's overlay."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from project import ENVIRONMENTS, ROOT
from templates import Synthesised, assembly, many, statements
from wish_cases import OVERLAYS

from ultracluster.config import Environment, load

FILES = [*(f"environments/{name}.yaml" for name in ENVIRONMENTS), *OVERLAYS]


@cache
def environment(file: str) -> Environment:
    return load(ROOT / file).environment


def synthesised(file: str) -> Synthesised:
    return assembly(environment(file), checked=False)


def files_of(*kinds: str) -> list[str]:
    return [file for file in FILES if environment(file).orchestrator.kind in kinds]


KUBERNETES = files_of("eks", "hyperpod-eks")
ON_HYPERPOD = {"sagemaker:AttachClusterNodeVolume", "sagemaker:DescribeClusterNode",
               "sagemaker:DetachClusterNodeVolume", "eks:DescribeCluster"}  # fmt: skip


def rights_of_volumes(made: Synthesised) -> set[str]:
    """Actions of the role of the EBS CSI driver."""
    return {
        action
        for template in made.templates.values()
        for name, one in statements(template)
        if "AwsEbsCsiDriverRole" in name and one["Effect"] == "Allow"
        for action in many(one["Action"])
    }


@pytest.mark.parametrize("file", KUBERNETES)
def test_volumes_reach_the_nodes_of_the_orchestrator(file: str) -> None:
    """HyperPod's nodes are instances of a service's account: `ec2:AttachVolume` does not reach them."""
    hyperpod = environment(file).orchestrator.kind == "hyperpod-eks"
    rights = rights_of_volumes(synthesised(file))

    assert "ec2:AttachVolume" in rights
    assert (rights >= ON_HYPERPOD) == hyperpod
    assert hyperpod or not [one for one in rights if one.startswith("sagemaker:")]


def waits(made: Synthesised, stack: str) -> set[str]:
    """All stacks that are deployed before a stack."""
    artifacts: dict[str, Any] = json.loads((made.folder / "manifest.json").read_text())["artifacts"]
    found: set[str] = set()
    pending = [stack]
    while pending:
        new = {one for one in artifacts[pending.pop()].get("dependencies", []) if one in made.templates}
        pending += new - found
        found |= new
    return found


PROTECTED = [file for file in FILES if environment(file).makes_protection]


@pytest.mark.parametrize("file", PROTECTED)
def test_protection_of_a_control_plane_is_switched_on_last(file: str) -> None:
    """EKS takes one update of a cluster at a time: nothing else of the deploy may be at work on it."""
    made, of = synthesised(file), environment(file)
    before = waits(made, of.stack_name("protection"))
    if not of.orchestrator.kind.endswith("eks"):
        assert of.stack_name("cluster") not in before  # data is protected while nodes are created
        return
    busy = {stack for stack, one in made.templates.items() if "AWS::EKS::" in json.dumps(one)}

    assert busy and busy <= before
    assert before >= {of.stack_name(part) for part in ("system", "cluster", "workloads")}
