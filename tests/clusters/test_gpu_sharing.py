"""GPUs that pods share on EKS: labels of nodes, and what the charts make of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.catalog import instance_types
from ultracluster.catalog.eks import charts
from ultracluster.catalog.mig import mig_profiles
from ultracluster.config.nodes import NodeGroup
from ultracluster.kubernetes.charts import Chart, device_charts
from ultracluster.kubernetes.gpu_sharing import plugin_configurations
from ultracluster.kubernetes.labels import node_labels
from ultracluster.model import resolve

TRAIN = "node_groups.train"
SLICED = {
    "node_groups.small": {
        "role": "compute",
        "instance_type": "g6.4xlarge",
        "count": 1,
        "gpu_time_slices": 4,
    },
    "node_groups.smaller": {
        "role": "compute",
        "instance_type": "g6.4xlarge",
        "count": 1,
        "gpu_time_slices": 8,
    },
}


def made(changes: dict[str, Any]) -> dict[str, Chart]:
    environment = loaded(changed(environment_data("eks-p5en"), changes)).environment
    return {one.name: one for one in device_charts(resolve(environment))}


def a_group(**fields: Any) -> NodeGroup:
    return NodeGroup(**{"role": "compute", "instance_type": "p5en.48xlarge", "count": 1} | fields)


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({}, {}),
        ({"mig_profile": "1g.18gb"}, {"nvidia.com/mig.config": "all-1g.18gb"}),
        ({"gpu_time_slices": 4}, {"nvidia.com/device-plugin.config": "time-slices-4"}),
    ],
)
def test_nodes_say_how_their_gpus_are_shared(fields: dict[str, Any], label: dict[str, str]) -> None:
    known = instance_types()["p5en.48xlarge"]
    plain = node_labels("train", a_group(), known)

    assert node_labels("train", a_group(**fields), known) == plain | label


def test_every_mig_profile_of_hyperpod_is_a_label_of_its_nodes() -> None:
    known = instance_types()["p5en.48xlarge"]
    for profile in mig_profiles(known):
        group = a_group(mig_profile=profile)
        assert (
            node_labels("train", group, known)["nvidia.com/mig.config"] == f"all-{profile.replace('+', '.')}"
        )


def layouts(changes: dict[str, Any]) -> dict[str, Any]:
    """Of the operator's values the configurations of its MIG manager, and the labels of the nodes."""
    found = {"orchestrator.gpu_plugin": "gpu-operator", **changes}
    cluster = resolve(loaded(changed(environment_data("eks-p5en"), found)).environment)
    labels = {
        name: node_labels(name, group.settings, group.checked_type).get("nvidia.com/mig.config")
        for name, group in cluster.with_role("compute").items()
    }
    manager = made(found)["gpu-operator"].values["migManager"]
    return {"labels": labels, "config": manager.get("config")}


@pytest.mark.parametrize(
    ("fields", "label"),
    [({"mig_profile": "1g.18gb+me"}, "all-1g.18gb.me"), ({"mig_layout": "all-balanced"}, "all-balanced")],
)
def test_the_mig_manager_knows_profiles_and_the_balanced_layout_itself(
    fields: dict[str, Any], label: str
) -> None:
    found = layouts({f"{TRAIN}.{key}": value for key, value in fields.items()})
    assert found == {"labels": {"train": label}, "config": None}


def test_other_layouts_are_configurations_of_ours_with_all_that_nodes_name() -> None:
    other = {"role": "compute", "instance_type": "p4d.24xlarge", "count": 1, "mig_profile": "1g.10gb"}
    mixed = [{"1g.18gb": 3, "4g.71gb": 1}] * 6 + [{}, {"7g.141gb": 1}]
    found = layouts({f"{TRAIN}.mig_layout": mixed, "node_groups.old": other})
    assert found["labels"] == {"train": "ultracluster-train", "old": "all-1g.10gb"}
    config = found["config"]
    assert config["create"] is True and config["name"]
    manager = json.loads(config["data"]["config.yaml"])

    assert manager["version"] == "v1" and set(manager["mig-configs"]) == {
        "all-disabled",
        *found["labels"].values(),
    }
    assert manager["mig-configs"]["ultracluster-train"] == [
        {"devices": [0, 1, 2, 3, 4, 5], "mig-enabled": True, "mig-devices": {"1g.18gb": 3, "4g.71gb": 1}},
        {"devices": [6], "mig-enabled": False},
        {"devices": [7], "mig-enabled": True, "mig-devices": {"7g.141gb": 1}},
    ]
    (old,) = manager["mig-configs"]["all-1g.10gb"]
    # four of an A100 with 40 GB, where one with 80 has seven
    assert old["mig-devices"] == {"1g.10gb": 4} and "0x20B010DE" in old["device-filter"]


def test_each_number_of_slices_is_a_configuration_by_the_name_on_its_nodes() -> None:
    found = made(SLICED)["nvidia-device-plugin"].values["config"]
    nodes = {
        number: node_labels("a", a_group(gpu_time_slices=number), instance_types()["g6.4xlarge"])
        for number in (4, 8)
    }

    assert found["default"] == "default" and set(found["map"]) == {
        "default", *(labels["nvidia.com/device-plugin.config"] for labels in nodes.values())
    }  # fmt: skip
    for number, labels in nodes.items():
        configuration = json.loads(found["map"][labels["nvidia.com/device-plugin.config"]])
        turns = configuration["sharing"]["timeSlicing"]
        assert configuration["version"] == "v1"
        assert turns["resources"] == [{"name": "nvidia.com/gpu", "replicas": number}]
        # a job that asks for whole GPUs finds none here, and nobody asks for two turns as if for two GPUs
        assert turns["renameByDefault"] is True and turns["failRequestsGreaterThanOne"] is True
    assert json.loads(found["map"]["default"]) == {"version": "v1"}


def test_the_gpu_operator_gets_the_same_configurations() -> None:
    plugin = made(SLICED)["nvidia-device-plugin"].values["config"]
    operator = made({**SLICED, "orchestrator.gpu_plugin": "gpu-operator"})["gpu-operator"].values
    config = operator["devicePlugin"]["config"]

    assert config["data"] == plugin["map"] and config["default"] == plugin["default"]
    assert config["create"] is True and config["name"]
    assert operator["mig"] == {"strategy": "mixed"}


def test_without_slices_the_plugin_has_no_configuration() -> None:
    assert plugin_configurations([a_group(), a_group(mig_profile="1g.18gb")]) == {}
    assert "config" not in made({})["nvidia-device-plugin"].values
    assert "devicePlugin" not in made({"orchestrator.gpu_plugin": "gpu-operator"})["gpu-operator"].values


@pytest.mark.parametrize("plugin", ["device-plugin", "gpu-operator"])
def test_the_catalogue_says_which_values_the_option_adds(plugin: str) -> None:
    name = "gpu-operator" if plugin == "gpu-operator" else "nvidia-device-plugin"
    row = charts()[name]

    rack = {"node_groups.rack": {"role": "compute", "instance_type": "p6e-gb200.36xlarge", "count": 2}}
    values = made({**SLICED, **rack, "orchestrator.gpu_plugin": plugin, "observability": {}})[name].values
    assert sorted(values) == sorted([*row["keys"], *row["options"]])
