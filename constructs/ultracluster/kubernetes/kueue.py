"""Kueue: teams as queues of a tree of cohorts, whole jobs admitted at once, close to each other.

Objects of `kueue.x-k8s.io/v1beta2` (kubernetes-sigs/kueue v0.19.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ultracluster.catalog.hyperpod_eks import operator_frameworks
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.config.teams import Team
from ultracluster.kubernetes.isolation import TEAM_LABEL
from ultracluster.kubernetes.tolerations import job_tolerations
from ultracluster.kubernetes.topology import kinds_of, levels, topology_of
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import Cluster
from ultracluster.model.devices import claims_devices
from ultracluster.model.team_shares import (
    PRIORITIES,
    Pool,
    limits,
    namespace_of,
    own_quotas,
    parents_first,
    pools,
    quotas,
    teams_of,
)

Manifest = dict[str, Any]

COHORT = "teams"
EVERYONE = "everyone"
"""The one queue where there are no teams, in the namespace `default`."""
QUEUE_LABEL, PRIORITY_LABEL = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
REQUIRED, PREFERRED = (
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
)
_API = "kueue.x-k8s.io/v1beta2"
READY_MINUTES = 20
"""In which all pods of a job must run: an image of twenty gigabytes is pulled in less."""


def kueue_values(cluster: Cluster) -> dict[str, Any]:
    """Values of the chart: Kueue's whole configuration, which is one text there."""
    configuration: Manifest = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": True},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "clientConnection": {"qps": 300, "burst": 500},
        # all pods of a job run within this time, or none: else it gives its place to the next one
        "waitForPodsReady": {
            "timeout": f"{READY_MINUTES}m",
            "recoveryTimeout": f"{READY_MINUTES}m",
            "blockAdmission": False,
            "requeuingStrategy": {"timestamp": "Eviction", "backoffBaseSeconds": 60, "backoffLimitCount": 10},
        },
        "integrations": {"frameworks": _frameworks(cluster), **_external(cluster)},
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        # quotas are of accelerators; what a job requests besides them is not counted
        "resources": {"quotaCheckStrategy": "IgnoreUndeclared"},
    }
    if claims_devices(cluster):
        # Kueue refuses jobs whose claims it has no resource for (since 0.18), and reads claims only from
        # Kubernetes 1.34 on; here claims go with whole nodes, whose accelerators are counted
        configuration["featureGates"] = dict.fromkeys(_CLAIM_GATES, False)
    if cluster.environment.teams:
        # a team's job without a queue would bypass the quota
        configuration["manageJobsWithoutQueueName"] = True
        configuration["managedJobsNamespaceSelector"] = {
            "matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]
        }
    return {"managerConfig": {"controllerManagerConfigYaml": yaml_text(configuration)}}


def kueue_objects(cluster: Cluster) -> tuple[Manifest, ...]:
    """Topologies, a flavor of each group, a queue of each team, priorities.

    What no team is guaranteed belongs to the cohort: whoever needs it borrows it.

    Raises:
        ValueError: quotas that the cluster does not have.
    """
    node_pools = pools(cluster)
    if not node_pools:
        return ()
    kinds = {pool.group: topology_of(cluster, pool) for pool in node_pools}
    topologies = [
        _object("Topology", kind, {"levels": [{"nodeLabel": label} for label in levels(kind)]})
        for kind in kinds_of(cluster, node_pools)
    ]
    flavors = [
        _object(
            "ResourceFlavor",
            flavor(pool),
            {
                "nodeLabels": {GROUP_LABEL: pool.group},
                "tolerations": job_tolerations(pool),
                **({} if kinds[pool.group] == "none" else {"topologyName": kinds[pool.group]}),
            },
        )
        for pool in node_pools
    ]
    own = own_quotas(cluster)
    spare = {
        pool.group: pool.total - sum(quota.get(pool.group, 0) for quota in own.values())
        for pool in node_pools
    }
    cohort = _object("Cohort", COHORT, _filled(resourceGroups=_groups(node_pools, spare)))
    priorities = [
        {
            "apiVersion": _API,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": f"Jobs of {name} priority",
        }
        for name, value in PRIORITIES.items()
    ]
    cohorts = [cohort, *_cohorts(cluster, node_pools)]
    return (*topologies, *flavors, *cohorts, *priorities, *_queues(cluster, node_pools, own))


def flavor(pool: Pool) -> str:
    """Name of a group's flavor: groups may have capitals, Kubernetes' names may not."""
    return pool.group.lower()


def queue(team: str | None) -> str:
    """Name of a team's queue, in the cluster and in its namespace alike."""
    return team or EVERYONE


def _cohorts(cluster: Cluster, node_pools: tuple[Pool, ...]) -> list[Manifest]:
    """A cohort of each team with teams below it: its limit and its weight are of all their queues and its own
    together. What it has itself is in its queue."""
    teams, team_quotas = cluster.environment.teams, quotas(cluster)
    cohorts: list[Manifest] = []
    for name in parents_first(teams):
        team = teams[name]
        if not teams_of(teams, name):
            continue
        limited = team.limit is not None or not team.lend
        borrow = _borrowed(cluster, node_pools, team, team_quotas[name])
        groups = _groups(node_pools, {}, borrow=borrow, lend=team.lend) if limited else []
        spec = {"parentName": team.parent or COHORT, "fairSharing": {"weight": str(team.weight)}}
        cohorts.append(_object("Cohort", name, spec | _filled(resourceGroups=groups)))
    return cohorts


def _borrowed(
    cluster: Cluster, node_pools: tuple[Pool, ...], team: Team, quota: Mapping[str, int]
) -> dict[str, int] | None:
    """Accelerators that a team may have above its quota, by group; None is no limit."""
    limit = limits(cluster, team)
    if limit is None:
        return None
    return {pool.group: limit.get(pool.group, 0) - quota.get(pool.group, 0) for pool in node_pools}


def _queues(
    cluster: Cluster, node_pools: tuple[Pool, ...], own: Mapping[str, Mapping[str, int]]
) -> list[Manifest]:
    teams = cluster.environment.teams
    if not teams:
        return _team_queue(EVERYONE, "default", Team(), _groups(node_pools, {}))
    manifests: list[Manifest] = []
    for name, team in teams.items():
        namespace = namespace_of(cluster, name)
        if teams_of(teams, name):
            # limit, weight and what is lent are its cohort's
            alike = Team(preempt_own=team.preempt_own)
            manifests += _team_queue(name, namespace, alike, _groups(node_pools, own[name]), cohort=name)
            continue
        groups = _groups(
            node_pools, own[name], borrow=_borrowed(cluster, node_pools, team, own[name]), lend=team.lend
        )
        manifests += _team_queue(name, namespace, team, groups, cohort=team.parent or COHORT)
    return manifests


def _team_queue(
    name: str, namespace: str, team: Team, groups: list[Manifest], *, cohort: str = COHORT
) -> list[Manifest]:
    cluster_queue = _object(
        "ClusterQueue",
        queue(name),
        {
            "cohortName": cohort,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": groups,
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
            "preemption": {
                # what is guaranteed is taken back from whoever borrowed it
                "reclaimWithinCohort": "Any",
                "withinClusterQueue": "LowerPriority" if team.preempt_own else "Never",
            },
            "fairSharing": {"weight": str(team.weight)},
        },
    )
    local = {
        "apiVersion": _API,
        "kind": "LocalQueue",
        "metadata": {"name": queue(name), "namespace": namespace},
        "spec": {"clusterQueue": queue(name)},
    }
    return [cluster_queue, local]


def _groups(
    node_pools: Iterable[Pool],
    nominal: Mapping[str, int],
    *,
    borrow: Mapping[str, int] | None = None,
    lend: bool = True,
) -> list[Manifest]:
    """A resource group for each kind of accelerator, with a flavor for each node group. A resource may be in
    one of them only: what mixed MIG layouts offer together is one, of which a flavor may have nothing."""
    groups: list[tuple[list[str], list[Pool]]] = []
    for pool in node_pools:
        names, pools_of = list(pool.offered), [pool]
        for merged in [group for group in groups if set(group[0]) & set(names)]:
            groups.remove(merged)
            names, pools_of = list(dict.fromkeys([*merged[0], *names])), [*merged[1], *pools_of]
        groups.append((names, pools_of))

    def resource(pool: Pool, name: str) -> Manifest:
        borrowed = None if borrow is None else pool.resources(max(0, borrow[pool.group])).get(name, 0)
        return {
            "name": name,
            "nominalQuota": pool.resources(nominal.get(pool.group, 0)).get(name, 0),
            **({} if borrowed is None else {"borrowingLimit": borrowed}),
            **({} if lend else {"lendingLimit": 0}),
        }

    return [
        {
            "coveredResources": names,
            "flavors": [
                {"name": flavor(pool), "resources": [resource(pool, name) for name in names]}
                for pool in pools_of
            ],
        }
        for names, pools_of in groups
    ]


def _object(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _filled(**fields: Any) -> Manifest:
    return {key: value for key, value in fields.items() if value}


def _frameworks(cluster: Cluster) -> list[str]:
    """Kinds of jobs that Kueue itself suspends and admits."""
    ray = _RAY if cluster.kubernetes and cluster.kubernetes.kuberay else ()
    return [*_FRAMEWORKS, *ray]


def _external(cluster: Cluster) -> Manifest:
    """Kinds of jobs whose own operator speaks to Kueue: HyperPod's training operator does."""
    settings = cluster.kubernetes
    asked = isinstance(settings, HyperPodEks) and settings.training_operator
    return {"externalFrameworks": list(operator_frameworks())} if asked else {}


_CLAIM_GATES = (
    "KueueDRAIntegration",
    # each of these two requires the first
    "KueueDRAIntegrationExtendedResource",
    "KueueDRAIntegrationPartitionableDevices",
    "KueueDRARejectWorkloadsWhenDRADisabled",
)
"""kubernetes-sigs/kueue v0.19.2, pkg/features/kube_features.go and pkg/config/validation.go."""
_FRAMEWORKS = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/mpijob",
    "kubeflow.org/pytorchjob",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "trainer.kubeflow.org/trainjob",
)
_RAY = ("ray.io/raycluster", "ray.io/rayjob")
"""kubernetes-sigs/kueue v0.19.2, pkg/controller/jobs/rayjob and raycluster."""

__all__ = [
    "COHORT",
    "EVERYONE",
    "PREFERRED",
    "PRIORITY_LABEL",
    "QUEUE_LABEL",
    "REQUIRED",
    "flavor",
    "kueue_objects",
    "kueue_values",
    "queue",
]
