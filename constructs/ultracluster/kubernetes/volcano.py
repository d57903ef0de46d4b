"""Volcano: teams as queues of the capacity plugin, whole jobs placed at once, close to each other.

Objects of volcano-sh/volcano v1.15.1: `scheduling.volcano.sh/v1beta1`, and the configuration that its chart
takes (docs/user-guide: capacity plugin, HyperNode auto discovery, network topology aware scheduling).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from ultracluster.kubernetes.accelerator_pods import HUGE_PAGES_MIB
from ultracluster.kubernetes.teams import priority_classes
from ultracluster.kubernetes.topology import HOST, LAYERS
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import Cluster
from ultracluster.model.devices import claims_efa
from ultracluster.model.team_shares import (
    Pool,
    parents_first,
    pools,
    quotas,
    teams_of,
    total_amount,
)

Manifest = dict[str, Any]

TIERS = {name: tier for tier, name in enumerate(reversed(tuple(LAYERS)), start=1)}
"""Of a HyperNode, narrowest first: `layer-3` is tier 1."""
_API = "scheduling.volcano.sh/v1beta1"
_DISCOVERY = "aws"
"""Name of the kind of network; Volcano takes 20 characters."""


def volcano_values(cluster: Cluster) -> dict[str, Any]:
    """Values of the chart: plugins of the scheduler, and where its controller learns of the network."""
    resources = sorted({name for pool in pools(cluster) for name in pool.offered})
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
                    {"name": "capacity", **({"enableHierarchy": True} if _tree(cluster) else {})},
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
    pool_of = {pool.group: pool for pool in pools(cluster)}
    teams, team_quotas = cluster.environment.teams, quotas(cluster)
    specs: dict[str, Manifest] = {}
    # a queue is made after its parent, and has as much as its children's rounded shares
    for name in reversed(parents_first(teams)):
        team, quota = teams[name], team_quotas[name]
        deserved: dict[str, Fraction] = {}
        for group, amount in quota.items():
            for resource, each in _of_a_node(pool_of[group], efa=not claims_efa(cluster)).items():
                share = Fraction(amount * each, pool_of[group].per_node)
                deserved[resource] = deserved.get(resource, Fraction(0)) + share
        below = [specs[team_name] for team_name in teams_of(teams, name)]
        amounts = _whole(deserved, [team_name["deserved"] for team_name in below if "deserved" in team_name])
        kept = [team_name["guarantee"] for team_name in below if "guarantee" in team_name]
        if not team.lend:
            # of accelerators only: of processors a node has fewer to give than its type has
            own = {name for group in quota for name in pool_of[group].offered}
            kept = [{key: amount for key, amount in amounts.items() if key in own}]
        spec: Manifest = {"reclaimable": True, **({"parent": team.parent} if team.parent else {})}
        if amounts:
            spec |= {"deserved": amounts, **({"guarantee": _whole({}, kept)} if kept else {})}
        if team.limit is not None and pool_of:
            spec["capability"] = next(iter(pool_of.values())).resources(total_amount(team.limit))
        specs[name] = spec
    queues = [
        {"apiVersion": _API, "kind": "Queue", "metadata": {"name": name}, "spec": _written(specs[name])}
        for name in parents_first(teams)
    ]
    return (*priority_classes(), *queues)


def _tree(cluster: Cluster) -> bool:
    return any(team.parent for team in cluster.environment.teams.values())


def _whole(shares: Mapping[str, Fraction], least: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Shares rounded up, as accelerators are whole; not less than these together."""
    names = dict.fromkeys([*shares, *(name for amounts in least for name in amounts)])
    return {
        name: max(-(-shares.get(name, Fraction(0)) // 1), sum(amounts.get(name, 0) for amounts in least))
        for name in names
    }


def _written(spec: Manifest) -> Manifest:
    quantities = ("deserved", "guarantee", "capability")
    written = {
        key: {name: _quantity(name, amount) for name, amount in value.items()} if key in quantities else value
        for key, value in spec.items()
    }
    return written | ({"guarantee": {"resource": written["guarantee"]}} if "guarantee" in spec else {})


def _of_a_node(pool: Pool, *, efa: bool) -> dict[str, int]:
    """Everything that a job takes of a whole node.

    What is guaranteed is guaranteed by resource: a queue whose share of processors is not said has none, and
    its jobs could be ended for them however few accelerators they have (capacity plugin, reclaim).
    """
    instance_type = pool.instance_type
    node = {**pool.offered, "cpu": instance_type.vcpu, "memory": int(instance_type.memory_gib)}
    if interfaces := instance_type.least_efa_interfaces:
        node |= {"vpc.amazonaws.com/efa": interfaces * efa, "hugepages-2Mi": HUGE_PAGES_MIB}
    return {resource: each for resource, each in node.items() if each}


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}{ {'memory': 'Gi', 'hugepages-2Mi': 'Mi'}.get(resource, '') }"
