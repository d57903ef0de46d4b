"""Namespaces of teams, and what their members may do there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ultracluster.model import Cluster
from ultracluster.model.team_shares import PRIORITIES, namespace_of

Manifest = dict[str, Any]

TEAM_LABEL = "ultracluster/team"
"""On a team's namespace."""
JOBS_ROLE = "ultracluster-team-jobs"
_RBAC = "rbac.authorization.k8s.io"
_JOBS: Mapping[str, tuple[str, ...]] = {
    "batch.volcano.sh": ("jobs",),
    "jobset.x-k8s.io": ("jobsets",),
    "kubeflow.org": ("mpijobs", "pytorchjobs"),
    "leaderworkerset.x-k8s.io": ("leaderworkersets",),
    "trainer.kubeflow.org": ("trainjobs",),
}
_SEEN: Mapping[str, tuple[str, ...]] = {
    "kueue.x-k8s.io": ("localqueues", "workloads"),
    "scheduling.run.ai": ("podgroups",),
    "scheduling.volcano.sh": ("podgroups",),
}


def group_of(team: str) -> str:
    """The Kubernetes group of a team's members."""
    return f"ultracluster:team:{team}"


def team_namespaces(cluster: Cluster) -> tuple[Manifest, ...]:
    """A namespace for each team."""
    return tuple(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace_of(cluster, name), "labels": {TEAM_LABEL: name}},
        }
        for name in cluster.environment.teams
    )


def team_rights(cluster: Cluster) -> tuple[Manifest, ...]:
    """In its namespace a team has Kubernetes' own role `edit`, and may run jobs of every installed kind."""
    if not cluster.environment.teams:
        return ()
    every = ["create", "delete", "get", "list", "patch", "update", "watch"]
    role: Manifest = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": JOBS_ROLE},
        "rules": [
            *({"apiGroups": [group], "resources": list(of), "verbs": every} for group, of in _JOBS.items()),
            *(
                {"apiGroups": [group], "resources": list(of), "verbs": ["get", "list", "watch"]}
                for group, of in _SEEN.items()
            ),
        ],
    }
    bindings = [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {
                "name": f"ultracluster-team-{short}",
                "namespace": namespace_of(cluster, name),
            },
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": of},
            "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group_of(name)}],
        }
        for name in cluster.environment.teams
        for short, of in (("edit", "edit"), ("jobs", JOBS_ROLE))
    ]
    return (role, *bindings)


def team_members(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """Kubernetes groups of each IAM principal, for access entries: one principal may be in several teams."""
    found: dict[str, tuple[str, ...]] = {}
    for name, team in cluster.environment.teams.items():
        for member in team.members:
            found[member] = (*found.get(member, ()), group_of(name))
    return found


def priority_classes() -> tuple[Manifest, ...]:
    """Kubernetes' own priority classes, for schedulers without classes of their own."""
    return tuple(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": f"Jobs of {name} priority",
        }
        for name, value in PRIORITIES.items()
    )


__all__ = [
    "JOBS_ROLE",
    "TEAM_LABEL",
    "group_of",
    "priority_classes",
    "team_members",
    "team_namespaces",
    "team_rights",
]
