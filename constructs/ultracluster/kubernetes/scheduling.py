"""What a Kubernetes cluster gets for its scheduler and its teams, in the order in which it is applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ultracluster.config import Environment
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.kubernetes.charts import Chart, chart
from ultracluster.kubernetes.kai import kai_objects, kai_values
from ultracluster.kubernetes.kueue import kueue_objects, kueue_values
from ultracluster.kubernetes.system_tolerations import system_tolerations
from ultracluster.kubernetes.teams import team_members, team_namespaces, team_rights
from ultracluster.kubernetes.volcano import volcano_objects, volcano_values
from ultracluster.model import resolve
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


def scheduling(environment: Environment) -> Scheduling:
    """The scheduler that the environment asks for, and its teams.

    With task governance HyperPod installs Kueue and makes namespaces and queues itself: nothing is made here.

    Raises:
        ValueError: quotas that the cluster does not have.
    """
    orchestrator = environment.orchestrator
    assert isinstance(orchestrator, Eks | HyperPodEks)
    scheduler = scheduler_of(resolve(environment))
    if scheduler == "kueue":
        name, values, objects = "kueue", kueue_values(environment), kueue_objects(environment)
    elif scheduler == "volcano":
        name, values, objects = "volcano", volcano_values(environment), volcano_objects(environment)
    elif scheduler == "kai":
        name, values, objects = "kai-scheduler", kai_values(), kai_objects(environment)
    else:
        return Scheduling()
    return Scheduling(
        chart=chart(
            name,
            values,
            mirror=orchestrator.chart_repository,
            extra=orchestrator.chart_values.get(name),
            tolerations=system_tolerations(environment),
        ),
        namespaces=team_namespaces(environment),
        rights=team_rights(environment),
        objects=objects,
        members=team_members(environment),
    )


__all__ = ["Scheduling", "scheduling"]
