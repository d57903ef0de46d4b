"""What rules need to know of a cluster: what it has, and the `<<values>>` that texts of alerts name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ultracluster.catalog import InstanceType
from ultracluster.metrics.xids import meaning_template, xid_groups
from ultracluster.model.cluster import Cluster, Group
from ultracluster.model.leases import leases
from ultracluster.model.observability import observability_of, series_budget

HAVES = {
    "gpu": "NVIDIA GPUs",
    "neuron": "Trainium or Inferentia",
    "efa": "nodes with EFA",
    "lustre": "a Lustre file system",
    "lustre-efa": "a Lustre file system that nodes reach over EFA",
    "slurm": "Slurm",
    "kubernetes": "Kubernetes",
    "health": "our health checks on its nodes",
    "release": "our lifecycle scripts on its nodes",
    "lease": "a Capacity Block or training plan whose end nodes know",
}
"""What a cluster may have, and an alert may need."""
DEFAULT_SCRAPE_SECONDS = 30
MOST_DRAINED = 10
"""Percent of the nodes, where the environment has no share of its own."""
_NODE = "node, node_group, rack, instance_type, instance_id"
"""What is known of a node, and does not change while it lives."""
_VALUE = re.compile(r"<<(\w+)>>")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Of one cluster."""

    cluster: str
    """The label of its series."""
    environment: str
    """As commands name it."""
    haves: frozenset[str]
    scrape_seconds: int
    accelerators: tuple[str, ...]
    """EC2's names."""
    most_drained_percent: int
    series_budgets: Mapping[str, int]
    """Active series that a node may have, by node group."""
    runbooks: str
    """What stands before `/<alert>.md`."""

    @property
    def evaluation_seconds(self) -> int:
        """AMP refuses less than 30 seconds."""
        return max(30, self.scrape_seconds)

    @cached_property
    def values(self) -> Mapping[str, str]:
        """Return what texts name."""
        groups = xid_groups(self.accelerators)
        return {
            "environment": self.environment,
            "node": _NODE,
            "window": f"{max(120, 4 * self.scrape_seconds)}s",
            # AWS does not know Slurm's names of ParallelCluster's and PCS's nodes
            "machine": "{{ with $labels.instance_id }}{{ . }}{{ else }}{{ $labels.node }}{{ end }}",
            "stale_seconds": str(max(300, 3 * self.scrape_seconds)),
            "most_drained_percent": str(self.most_drained_percent),
            "dcgm_later": "offset 5m" if "release" in self.haves else "",
            "over_budget": self._over_budget(),
            "xid_known": "|".join(code for codes in groups.values() for code in codes),
            **{f"xid_{name}": "|".join(codes) for name, codes in groups.items()},
            **{f"meaning_{name}": meaning_template(codes) for name, codes in groups.items()},
        }

    def _over_budget(self) -> str:
        return " or ".join(
            f'sum by ({_NODE}) (scrape_samples_post_metric_relabeling{{node_group="{name}"}}) > {budget}'
            for name, budget in self.series_budgets.items()
        )

    def filled(self, text: str) -> str:
        """The text with the cluster's values.

        Raises:
            KeyError: a value that nobody has.
        """
        return _VALUE.sub(lambda found: self.values[found[1]], text)


def facts_of(cluster: Cluster, *, runbooks: str) -> Facts:
    """Return what rules need to know of `cluster`, whose observability has been asked for."""
    wanted = observability_of(cluster)
    health = cluster.environment.health
    return Facts(
        cluster=cluster.cluster_name,
        environment=cluster.name,
        haves=frozenset(_haves(cluster)),
        scrape_seconds=wanted.scrape_seconds if wanted else DEFAULT_SCRAPE_SECONDS,
        accelerators=tuple(sorted({kind.accelerator.name for kind in _types(cluster) if kind.accelerator})),
        most_drained_percent=health.max_drained_percent if cluster.traits.slurm else MOST_DRAINED,
        series_budgets={name: series_budget(cluster, group) for name, group in cluster.groups.items()},
        runbooks=runbooks.rstrip("/"),
    )


def _haves(cluster: Cluster) -> Iterator[str]:
    makers = {kind.accelerator.manufacturer for kind in _types(cluster) if kind.accelerator}
    if "NVIDIA" in makers:
        yield "gpu"
    if makers - {"NVIDIA"}:
        yield "neuron"
    if any(group.role == "compute" and one.efa_interfaces for group, one in _grouped(cluster)):
        yield "efa"
    if cluster.lustre:
        yield "lustre"
        efa = any(lustre.efa for lustre in cluster.lustres.values())
        if efa and any(kind.lustre_efa_client for kind in _types(cluster)):
            yield "lustre-efa"
    yield "slurm" if cluster.traits.slurm else "kubernetes"
    if cluster.traits.slurm and cluster.runs_scripts:
        yield "release"
        if cluster.environment.health.mode != "off":
            yield "health"
        if leases(cluster):
            yield "lease"


def _grouped(cluster: Cluster) -> Iterator[tuple[Group, InstanceType]]:
    for group in cluster.groups.values():
        for kind in group.known_types:
            yield group, kind


def _types(cluster: Cluster) -> list[InstanceType]:
    return [one for _, one in _grouped(cluster)]
