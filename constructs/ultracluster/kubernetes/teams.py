"""Namespaces of teams, and what their members may do there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ultracluster.kubernetes.isolation import job_namespace
from ultracluster.model import Cluster
from ultracluster.model.devices import claims_devices, spaces_of
from ultracluster.model.team_shares import PRIORITIES, namespace_of

Manifest = dict[str, Any]

MEMBER_ROLE = "ultracluster-team-member"
_RBAC = "rbac.authorization.k8s.io"
_JOBS: Mapping[str, tuple[str, ...]] = {
    "batch": ("cronjobs", "jobs"),
    "batch.volcano.sh": ("jobs",),
    "jobset.x-k8s.io": ("jobsets",),
    "kubeflow.org": ("mpijobs", "pytorchjobs"),
    "leaderworkerset.x-k8s.io": ("leaderworkersets",),
    "sagemaker.amazonaws.com": ("hyperpodpytorchjobs",),
    "trainer.kubeflow.org": ("trainingruntimes", "trainjobs"),
}
"""What starts pods, and what its scheduler counts."""
_RAY: Mapping[str, tuple[str, ...]] = {"ray.io": ("rayclusters", "rayjobs")}
"""Kinds of KubeRay: without it Kueue does not count them."""
_CLAIMS: Mapping[str, tuple[str, ...]] = {
    "resource.k8s.io": ("resourceclaims", "resourceclaimtemplates"),
    "resource.nvidia.com": ("computedomains",),
}
"""What the pods of a job claim, where they claim devices."""
_SPACES: Mapping[str, tuple[str, ...]] = {
    "connection.workspace.jupyter.org": ("workspaceconnections",),
    "workspace.jupyter.org": ("workspaces",),
}
"""Notebooks and editors, and the way into them."""
_OWN = ("configmaps", "persistentvolumeclaims", "secrets", "services")
_SEEN: Mapping[str, tuple[str, ...]] = {
    "": ("endpoints", "events", "limitranges", "namespaces", "resourcequotas", "serviceaccounts"),
    "discovery.k8s.io": ("endpointslices",),
    "events.k8s.io": ("events",),
    "kueue.x-k8s.io": ("localqueues", "workloads"),
    "metrics.k8s.io": ("pods",),
    "networking.k8s.io": ("networkpolicies",),
    "scheduling.run.ai": ("podgroups",),
    "scheduling.volcano.sh": ("podgroups",),
}
_READ = ("get", "list", "watch")
_EVERY = ("create", "delete", "deletecollection", *_READ, "patch", "update")


def group_of(team: str) -> str:
    """The Kubernetes group of a team's members."""
    return f"ultracluster:team:{team}"


def team_namespaces(cluster: Cluster) -> tuple[Manifest, ...]:
    """A namespace for each team, with the level of its pods."""
    spaces = [job_namespace(cluster, name) for name in cluster.environment.teams]
    return tuple(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": space.name, "labels": dict(space.labels)},
        }
        for space in spaces
    )


def team_rights(cluster: Cluster) -> tuple[Manifest, ...]:
    """In its namespace a team may run jobs of every installed kind, and look into their pods.

    Kubernetes' own role `edit` would let it undo what keeps teams apart: it writes network policies, makes
    pods that no queue counts, and takes tokens of service accounts.
    """
    if not cluster.environment.teams:
        return ()
    role: Manifest = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": MEMBER_ROLE},
        "rules": [
            *(_rule(group, of, _EVERY) for group, of in _JOBS.items()),
            *(_rule(group, of, _EVERY) for group, of in _RAY.items() if _has_kuberay(cluster)),
            *(_rule(group, of, _EVERY) for group, of in _CLAIMS.items() if claims_devices(cluster)),
            *(_rule(group, of, _EVERY) for group, of in _SPACES.items() if spaces_of(cluster)),
            _rule("", _OWN, _EVERY),
            # they are made by jobs only, so that each is counted
            _rule("", ("pods",), ("delete", "deletecollection", *_READ)),
            _rule("", ("pods/log", "pods/status"), ("get",)),
            _rule("", ("pods/attach", "pods/exec", "pods/portforward"), ("create", "get")),
            *(_rule(group, of, _READ) for group, of in _SEEN.items()),
        ],
    }
    bindings = [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": MEMBER_ROLE, "namespace": namespace_of(cluster, name)},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": MEMBER_ROLE},
            "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group_of(name)}],
        }
        for name in cluster.environment.teams
    ]
    return (role, *bindings)


def _has_kuberay(cluster: Cluster) -> bool:
    return cluster.kubernetes is not None and cluster.kubernetes.kuberay


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Manifest:
    return {"apiGroups": [group], "resources": sorted(resources), "verbs": sorted(verbs)}


def team_members(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """Kubernetes groups of each IAM principal, for access entries: one principal may be in several teams."""
    members: dict[str, tuple[str, ...]] = {}
    for name, team in cluster.environment.teams.items():
        for member in team.members:
            members[member] = (*members.get(member, ()), group_of(name))
    return members


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
