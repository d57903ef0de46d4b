"""Volcano: teams as queues of the capacity plugin, whole jobs placed at once, close to each other.

Objects of volcano-sh/volcano v1.15.1: `scheduling.volcano.sh/v1beta1`, and the configuration that its chart
takes (docs/user-guide: capacity plugin, HyperNode auto discovery, network topology aware scheduling).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ultracluster.kubernetes.job_pod import HUGE_PAGES_MIB
from ultracluster.kubernetes.teams import priority_classes
from ultracluster.kubernetes.topology import HOST, LAYERS
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import Cluster
from ultracluster.model.devices import claims_efa
from ultracluster.model.team_shares import Pool, pools, quotas, total_amount

Manifest = dict[str, Any]

TIERS = {name: tier for tier, name in enumerate(reversed(tuple(LAYERS)), start=1)}
"""Of a HyperNode, narrowest first: `layer-3` is tier 1."""
_API = "scheduling.volcano.sh/v1beta1"
_DISCOVERY = "aws"
"""Name of the kind of network; Volcano takes 20 characters."""


def volcano_values(cluster: Cluster) -> dict[str, Any]:
    """Values of the chart: plugins of the scheduler, and where its controller learns of the network."""
    resources = sorted({pool.resource for pool in pools(cluster)})
    weights = {f"hypernode.binpack.resources.{name}": 10 for name in resources}
    binpack = {"hypernode.binpack.resources": ", ".join(resources), **weights} if resources else {}
    scheduler: Manifest = {
        "actions": "enqueue, allocate, preempt, reclaim, backfill",
        "tiers": [
            {
                "plugins": [
                    {"name": "priority"},
                    # a gang is ended whole or not at all
                    {"name": "gang", "enablePreemptable": False},
                    {"name": "conformance"},
                ]
            },
            {
                "plugins": [
                    {"name": "drf", "enablePreemptable": False},
                    {"name": "predicates"},
                    # in the place of `proportion`: quotas that are lent and taken back
                    {"name": "capacity"},
                    {"name": "nodeorder"},
                    {"name": "binpack"},
                    {"name": "network-topology-aware", "arguments": {"weight": 10, **binpack}},
                ]
            },
        ],
    }
    # the chart takes one as text and the other as a mapping
    discovery: Manifest = {
        "source": "label",
        "enabled": True,
        "config": {
            "networkTopologyTypes": {_DISCOVERY: [{"nodeLabel": label} for label in (*LAYERS.values(), HOST)]}
        },
    }
    return {
        "custom": {
            "scheduler_config_override": yaml_text(scheduler),
            "controller_config_override": {"networkTopologyDiscovery": [discovery]},
        }
    }


def volcano_objects(cluster: Cluster) -> tuple[Manifest, ...]:
    """A queue for each team, and priorities. Without teams everyone uses Volcano's queue `default`.

    Raises:
        ValueError: quotas that the cluster does not have.
    """
    there = {pool.group: pool for pool in pools(cluster)}
    queues: list[Manifest] = []
    for name, quota in quotas(cluster).items():
        team = cluster.environment.teams[name]
        deserved: dict[str, Fraction] = {}
        for group, amount in quota.items():
            for resource, each in _of_a_node(there[group], efa=not claims_efa(cluster)).items():
                share = Fraction(amount * each, there[group].per_node)
                deserved[resource] = deserved.get(resource, Fraction(0)) + share
        amounts = {resource: _quantity(resource, value) for resource, value in deserved.items()}
        spec: Manifest = {"reclaimable": True}
        if amounts:
            spec["deserved"] = amounts
            if not team.lend:
                # of accelerators only: of processors a node has fewer to give than its type has
                kept = {there[group].resource for group in quota}
                spec["guarantee"] = {"resource": {key: amounts[key] for key in amounts if key in kept}}
        if team.limit is not None and there:
            spec["capability"] = {next(iter(there.values())).resource: str(total_amount(team.limit))}
        queues.append({"apiVersion": _API, "kind": "Queue", "metadata": {"name": name}, "spec": spec})
    return (*priority_classes(), *queues)


def _of_a_node(pool: Pool, *, efa: bool) -> dict[str, int]:
    """Everything that a job takes of a whole node.

    What is guaranteed is guaranteed by resource: a queue whose share of processors is not said has none, and
    its jobs could be ended for them however few accelerators they have (capacity plugin, reclaim).
    """
    instance_type = pool.instance_type
    node = {pool.resource: pool.per_node, "cpu": instance_type.vcpu, "memory": int(instance_type.memory_gib)}
    if interfaces := instance_type.least_efa_interfaces:
        node |= {"vpc.amazonaws.com/efa": interfaces * efa, "hugepages-2Mi": HUGE_PAGES_MIB}
    return {resource: each for resource, each in node.items() if each}


def _quantity(resource: str, value: Fraction) -> str:
    """A share as a quantity, rounded up: accelerators are whole, and decide."""
    whole = -(-value.numerator // value.denominator)
    unit = {"memory": "Gi", "hugepages-2Mi": "Mi"}.get(resource, "")
    return f"{whole}{unit}"


__all__ = ["TIERS", "volcano_objects", "volcano_values"]
