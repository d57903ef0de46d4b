"""What a Kubernetes cluster gets for its scheduler and its teams, in the order in which it is applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from ultracluster.kubernetes.charts import Chart, chart
from ultracluster.kubernetes.kai import kai_objects, kai_values
from ultracluster.kubernetes.kueue import kueue_objects, kueue_values
from ultracluster.kubernetes.teams import team_members, team_namespaces, team_rights
from ultracluster.kubernetes.tolerations import system_tolerations
from ultracluster.kubernetes.volcano import volcano_objects, volcano_values
from ultracluster.model import Cluster
from ultracluster.model.team_shares import scheduler_of

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """The scheduler of a cluster and its teams."""

    chart: Chart | None = None
    """The scheduler's. It must run, with the definitions that it brings, before the objects."""
    namespaces: tuple[Manifest, ...] = ()
    """Of teams; they wait for nothing."""
    rights: tuple[Manifest, ...] = ()
    """Of teams in their namespaces."""
    objects: tuple[Manifest, ...] = ()
    """Queues, quotas, priorities, levels of the network: the scheduler's own kinds, mostly."""
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Kubernetes groups by IAM principal, for access entries."""


def scheduling(cluster: Cluster) -> Scheduling:
    """The scheduler that the environment requests, and its teams.

    With task governance HyperPod installs Kueue and makes namespaces and queues itself: nothing is made here.

    Raises:
        ValueError: quotas that the cluster does not have.
    """
    settings = cluster.kubernetes
    if settings is None:
        return Scheduling()
    match scheduler_of(cluster):
        case "kueue":
            name, values, objects = "kueue", kueue_values(cluster), kueue_objects(cluster)
        case "volcano":
            name, values, objects = "volcano", volcano_values(cluster), volcano_objects(cluster)
        case "kai":
            name, values, objects = "kai-scheduler", kai_values(), kai_objects(cluster)
        case "task-governance" | "none" | "slurm":
            return Scheduling()
        case _ as never:
            assert_never(never)
    return Scheduling(
        chart=chart(
            name,
            values,
            mirror=settings.chart_repository,
            extra=settings.chart_values.get(name),
            tolerations=system_tolerations(cluster),
        ),
        namespaces=team_namespaces(cluster),
        rights=team_rights(cluster),
        objects=objects,
        members=team_members(cluster),
    )
