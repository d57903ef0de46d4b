"""Levels of the network, as Kubernetes' labels name them."""

from __future__ import annotations

import json

import pytest
from crd_fields import problems
from kubernetes_support import environment
from scheduling_support import GB200, PLAIN, made, of_kind

from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.model import resolve

# --- topology --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheduler", "kind"), [("kueue", "Topology"), ("kai", "Topology")])
def test_levels_are_the_layers_of_the_network_down_to_the_node(scheduler: str, kind: str) -> None:
    teams = {"research": {"quota": 8}}
    found = of_kind(made(scheduler, teams=teams, node_groups__plain=PLAIN), kind)
    labels = {name: [one["nodeLabel"] for one in item["spec"]["levels"]] for name, item in found.items()}
    layer = "topology.k8s.aws/network-node-layer-"

    assert labels == {
        "network": [f"{layer}1", f"{layer}2", f"{layer}3", "kubernetes.io/hostname"],
        "host": ["kubernetes.io/hostname"],  # g5.xlarge has no EFA
    }


def test_ultraservers_are_a_level_where_nodes_have_its_label() -> None:
    plan = {"kind": "training-plan", "arn": "arn:aws:sagemaker:us-east-2:111122223333:training-plan/rack"}
    hyperpod = environment({"node_groups.rack": {**GB200, "capacity": plan}}, base="hyperpod-eks-p5")
    label = "topology.k8s.aws/ultraserver-id"

    assert label in json.dumps(of_kind(hyperpod, "Topology")["ultraserver"])
    assert of_kind(hyperpod, "ResourceFlavor")["rack"]["spec"]["topologyName"] == "ultraserver"
    assert label not in json.dumps(of_kind(made("kueue", node_groups__rack=GB200), "Topology"))


def test_nodes_that_are_started_for_pods_have_no_topology() -> None:
    elastic = {**PLAIN, "count": 0, "max_count": 4}
    env = made("kueue", teams={}, node_groups__more=elastic, orchestrator__karpenter={"groups": ["more"]})
    flavors = of_kind(env, "ResourceFlavor")

    assert "topologyName" not in flavors["more"]["spec"] and flavors["train"]["spec"]["topologyName"]
    assert set(of_kind(env, "Topology")) == {"network"}
    assert all(problems(one) == [] for one in scheduling(resolve(env)).objects)
