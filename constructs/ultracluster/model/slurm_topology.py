"""What Slurm knows of the network below the nodes of a group, and who writes it, or why nobody does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog import InstanceType
from ultracluster.catalog.instances import rows_with
from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.config.orchestrator import HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.model.cluster import Cluster, Group

Kind = Literal["tree", "block", "flat", "unknown"]

_PLUGINS: dict[str, Kind] = {"topology/tree": "tree", "topology/block": "block"}


@dataclass(frozen=True, slots=True)
class SlurmTopology:
    """What Slurm knows of a group's network."""

    kind: Kind
    """`tree`: switches, `--switches` counts the leaves. `block`: NVLink domains, `--segment` stays in one.
    `flat`: nothing, and both are ignored. `unknown`: the service decides, and does not publish how."""
    writer: Literal["Ultracluster", "AWS", "you", "nobody"]
    why: str
    """One sentence, from the writer's side."""


def slurm_topology(cluster: Cluster, group: Group) -> SlurmTopology:
    """What Slurm knows of the nodes of one compute group.

    Raises:
        ValueError: the cluster has no Slurm.
    """
    match cluster.settings:
        case ParallelCluster() as settings:
            return _on_parallelcluster(cluster, settings)
        case HyperPodSlurm():
            return _on_hyperpod(cluster)
        case Pcs():
            if all(map(_has_nvlink, group.types)) and group.types:
                return SlurmTopology("block", "AWS", "AWS PCS writes the blocks of UltraServers")
            return SlurmTopology(
                "flat", "nobody", "AWS PCS has no setting for a topology but of UltraServers"
            )
        case other:
            raise ValueError(f"{other.kind} has no Slurm")


def head_writes_topology(cluster: Cluster) -> bool:
    """Whether a program of ours on the head node keeps Slurm's topology."""
    if not isinstance(cluster.settings, ParallelCluster):
        return False
    return _on_parallelcluster(cluster, cluster.settings).writer == "Ultracluster"


def _on_parallelcluster(cluster: Cluster, settings: ParallelCluster) -> SlurmTopology:
    for key, value in settings.slurm_settings.items():
        if key.lower() == "topologyplugin":
            kind = _PLUGINS.get(str(value).lower(), "flat")
            return SlurmTopology(kind, "you", f"slurm_settings has TopologyPlugin: {value}")
    types = [kind for group in cluster.with_role("compute").values() for kind in group.types]
    if any(map(_has_nvlink, types)):
        return SlurmTopology("block", "AWS", "ParallelCluster writes the blocks of UltraServers")
    if settings.topology == "flat":
        return SlurmTopology("flat", "nobody", "orchestrator.topology is flat")
    since = parallelcluster().topology_yaml_since
    if _numbers(settings.version) < _numbers(since):
        why = f"Slurm of ParallelCluster {settings.version} reads no topology.yaml; that of {since} does"
        return SlurmTopology("flat", "nobody", why)
    if not cluster.runs_scripts:
        return SlurmTopology("flat", "nobody", "the node scripts, which would write it, do not run")
    if not any(kind is None or kind.least_efa_interfaces for kind in types):
        return SlurmTopology("flat", "nobody", "no group has EFA")
    why = "the head node writes it from where EC2 has put the nodes"
    return SlurmTopology("tree", "Ultracluster", why)


def _on_hyperpod(cluster: Cluster) -> SlurmTopology:
    types = [kind for group in cluster.with_role("compute").values() for kind in group.types]
    if types and all(map(_has_nvlink, types)):
        return SlurmTopology("block", "AWS", "HyperPod writes the blocks of UltraServers")
    trees = rows_with("hyperpod_slurm")
    if types and all(kind is not None and kind.family in trees for kind in types):
        return SlurmTopology("tree", "AWS", "HyperPod writes it")
    why = "HyperPod writes one for P4, P5 and Trainium; with other types beside them it may write none"
    return SlurmTopology("unknown", "AWS", why)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _has_nvlink(kind: InstanceType | None) -> bool:
    return bool(kind and kind.imex)


__all__ = ["SlurmTopology", "head_writes_topology", "slurm_topology"]
