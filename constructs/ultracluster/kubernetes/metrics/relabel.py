"""Steps of relabelling, and the limits of a target (Prometheus documentation, "Configuration")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.kubernetes.topology import LAYERS, ULTRASERVER
from ultracluster.model import Cluster

Job = dict[str, Any]
Step = dict[str, Any]


def of_node_labels() -> list[Step]:
    """What the node's own labels say. The last place that a node has in the network is its rack."""
    rack = [*LAYERS.values(), "topology.k8s.aws/network-node-layer-4", ULTRASERVER]
    return [
        copied(node_label(GROUP_LABEL), "node_group"),
        copied(node_label("node.kubernetes.io/instance-type"), "instance_type", regex=r"(?:ml\.)?(.+)"),
        *(copied(node_label(one), "rack") for one in rack[2:]),
    ]


def caps(series: int) -> Job:
    """A target that exceeds one of these is not taken in at all, and is `up == 0`.

    None sends the agent to another address, or says when its samples were taken: a time outside the
    workspace's bounds has the request refused in which others' samples are, too.
    """
    return {
        "follow_redirects": False,
        "honor_timestamps": False,
        "sample_limit": series,
        "label_limit": 64,
        "label_name_length_limit": 128,
        "label_value_length_limit": 512,
        "body_size_limit": "16MB",
    }


def copied(source: str, target: str, *, regex: str = "(.+)", replacement: str = "$1") -> Step:
    """Nothing is written where the source has nothing: what is not known is absent."""
    return {"source_labels": [source], "regex": regex, "replacement": replacement, "target_label": target}


def is_cluster(cluster: Cluster) -> Step:
    """By a step, not as an external label: a pod that calls itself of another cluster cannot overrule it."""
    return {"target_label": "cluster", "replacement": cluster.environment.cluster_name}


def kept(names: Iterable[str]) -> Step:
    return {"source_labels": ["__name__"], "regex": "|".join(sorted(names)), "action": "keep"}


def node_label(name: str) -> str:
    """Prometheus' name for a label of a node: what is no letter, digit or underscore is an underscore."""
    plain = "".join(one if one.isalnum() else "_" for one in name)
    return f"__meta_kubernetes_node_label_{plain}"


__all__ = ["Job", "Step", "caps", "copied", "is_cluster", "kept", "node_label", "of_node_labels"]
