"""Several Lustre file systems on each orchestrator: who mounts which, and how."""

from __future__ import annotations

import json
from typing import Any

import pytest
from parallelcluster.explained import unexplained
from parallelcluster.rendered import validated
from rules_support import changed, environment_data, loaded
from templates import templates_alone

from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.parallelcluster.configuration_file import cluster_configuration
from ultracluster.parallelcluster.deployed_values import value_sources

FAST: dict[str, Any] = {
    "deployment": "persistent-2-ssd",
    "capacity_gib": 9600,
    "throughput_mbps_per_tib": 500,
    "efa": True,
    "mount_path": "/fast",
}


def environment(base: str, **more: Any) -> Environment:
    data = changed(environment_data(base), {"storage.further_lustre": {"fast": {**FAST, **more}}})
    return loaded(data).environment


def of(templates: dict[str, Any], stack: str, kind: str) -> dict[str, Any]:
    found = next(one for name, one in templates.items() if name.endswith(f"-{stack}"))["Resources"]
    return {name: one["Properties"] for name, one in found.items() if one["Type"] == kind}


def test_hyperpod_mounts_the_first_of_a_group() -> None:
    data = changed(
        environment_data("dev"),
        {"storage.further_lustre": {"fast": {**FAST, "groups": ["gpu"]}}, "storage.lustre.groups": ["login"]},
    )
    templates = templates_alone(loaded(data).environment)
    (cluster,) = of(templates, "cluster", "AWS::SageMaker::Cluster").values()
    paths = {
        group["InstanceGroupName"]: [
            one["FsxLustreConfig"]["MountPath"]
            for one in group["InstanceStorageConfigs"]
            if "FsxLustreConfig" in one
        ]
        for group in cluster["InstanceGroups"]
    }
    assert paths == {"controller": [], "login": ["/fsx"], "gpu": ["/fast"]}
    assert len(of(templates, "storage", "AWS::FSx::FileSystem")) == 2
    assert {"FastLustreId", "FastLustreDnsName"} <= set(templates["dev-storage"]["Outputs"])


def test_a_logical_id_of_the_first_one_does_not_move() -> None:
    """Its data would be lost."""
    one = loaded(environment_data("dev")).environment
    before = of(templates_alone(one), "storage", "AWS::FSx::FileSystem")
    after = of(templates_alone(environment("dev")), "storage", "AWS::FSx::FileSystem")
    (first,) = before
    assert after[first] == before[first]


def test_pcs_tells_its_nodes() -> None:
    templates = templates_alone(environment("pcs-p6-b200", groups=["train"]))
    groups = of(templates, "cluster", "AWS::PCS::ComputeNodeGroup")
    assert all("--further-lustre" in json.dumps(group) for group in groups.values())
    told = script_configurations(resolve(environment("pcs-p6-b200", groups=["train"]))).by_group
    lustre = {name: told[name]["node_groups"][name]["lustre"] for name in told}  # type: ignore[index]
    assert lustre == {"login": ["storage.lustre"], "train": ["storage.lustre", "fast"]}


@pytest.mark.parametrize("base", ["eks-p5en", "hyperpod-eks-p5"])
def test_pods_have_a_claim_for_each(base: str) -> None:
    templates = templates_alone(environment(base, groups=["train"]))
    text = json.dumps(next(one for name, one in templates.items() if name.endswith("-workloads")))
    plain = text.replace("\\", "").replace(" ", "")
    assert '"name":"lustre-fast"' in plain
    assert '"key":"ultracluster/node-group","operator":"In","values":["train"]' in plain
    told = script_configurations(resolve(environment(base, groups=["train"]))).by_group["train"]
    assert told["mounts"]["lustre"]["efa"] is True  # type: ignore[index]


def test_parallelcluster_mounts_each_by_its_id() -> None:
    asked = environment("parallelcluster-p5")
    values = value_sources(asked).placeholders()
    shared = cluster_configuration(resolve(asked), values)["SharedStorage"]
    (fast,) = [one for one in shared if one["MountDir"] == "/fast"]
    assert fast["Name"] == "lustre-fast"
    assert fast["FsxLustreSettings"] == {"FileSystemId": "<parallelcluster-p5-cluster.FurtherLustreIds>"}
    outputs = templates_alone(asked)["parallelcluster-p5-cluster"]
    assert "fast=" in json.dumps(outputs)


def test_parallelcluster_itself_takes_a_second_one_and_io2() -> None:
    data = changed(
        environment_data("parallelcluster-p5"),
        {"storage.further_lustre": {"fast": FAST}, "node_groups.head.root_volume_iops": 20_000},
    )
    asked = loaded(data).environment
    assert unexplained(validated({"several": asked})["several"], asked) == []
