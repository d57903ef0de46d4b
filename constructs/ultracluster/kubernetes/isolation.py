"""What keeps the namespaces of jobs apart: network policies, quotas, and accounts without a token.

Kubernetes documentation: "Network Policies", "Resource Quotas", "Limit Ranges".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ultracluster.catalog.eks import charts
from ultracluster.catalog.hyperpod_eks import tiered_checkpoints
from ultracluster.config.kubernetes import HyperPodEks, PodSecurity
from ultracluster.kubernetes.hyperpod_eks import NAMESPACE as HYPERPOD
from ultracluster.kubernetes.pod_security import DEFAULT_UID, namespace_labels
from ultracluster.model import Cluster
from ultracluster.model.inference import serves
from ultracluster.model.observability import collects, observability_of
from ultracluster.model.team_shares import namespace_of, pools, quotas

Manifest = dict[str, Any]

METRICS_NAMESPACE = "ultracluster-metrics"
"""Of what needs nothing of a node: the agent, kube-state-metrics."""
AGENT = "agent"
"""Service account of the agents, and the value of their label."""
APP_LABEL = "app.kubernetes.io/name"
TRAINING_PORT = 9475
"""Where a training script offers its own metrics (docs/training-metrics.md)."""

SERVING_PORT = 8000
"""Where a model server answers, its metrics among it."""
SERVES = "ultracluster/serves"
"""Annotation of the pods of model servers: the engine. It tells them from training scripts."""
DEFAULT = "default"
TEAM_LABEL = "ultracluster/team"
"""On a team's namespace."""
UID_LABEL = "ultracluster/uid"
"""On a namespace whose pods run as one user."""
SPACES = "jupyter-k8s-system"
"""Namespace of the add-on of SageMaker Spaces."""
POD_IDENTITY = "169.254.170.23/32"
"""Where the agent of EKS Pod Identity answers pods, on port 80 (EKS User Guide, Set up the Amazon EKS Pod
Identity Agent)."""
KUBERAY = "kuberay-operator"
"""Its chart, and the name of its pods."""
RAY_DASHBOARD = 8265
PODS_OF_A_NODE = 110
"""At the most (Kubernetes documentation, Considerations for large clusters)."""
CLAIMS = 50
"""Volumes of a namespace at the most: file systems, folders of S3, and EBS volumes, which cost money."""
_REQUESTS = {"cpu": "500m", "memory": "1Gi"}
"""Of a container that requests nothing. Not a limit: that would end jobs that work today."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNamespace:
    """A namespace in which jobs run."""

    name: str
    team: str | None
    level: PodSecurity
    labels: Mapping[str, str]
    uid: int | None = None
    """The one user that its pods run as."""


def job_namespace(cluster: Cluster, team: str | None) -> JobNamespace:
    """That of a team, or `default`."""
    settings = cluster.kubernetes
    assert settings, "namespaces are only for Kubernetes"
    release = settings.kubernetes_version
    if team is None:
        level = settings.pod_security
        return JobNamespace(name=DEFAULT, team=None, level=level, labels=namespace_labels(level, release))
    team_settings = cluster.environment.teams[team]
    labels = {TEAM_LABEL: team, **namespace_labels(team_settings.pod_security, release)}
    if team_settings.uid is not None:
        labels[UID_LABEL] = str(team_settings.uid)
    return JobNamespace(
        name=namespace_of(cluster, team),
        team=team,
        level=team_settings.pod_security,
        labels=labels,
        uid=team_settings.uid,
    )


def job_user(cluster: Cluster, team: str | None) -> int | None:
    """User id that a job's pods name; None leaves it to the image."""
    namespace = job_namespace(cluster, team)
    if namespace.uid is None and namespace.level == "restricted":
        return DEFAULT_UID
    return namespace.uid


def network_policies(cluster: Cluster, namespace: str) -> tuple[Manifest, ...]:
    """Nothing in and nothing out, but for what training needs: own pods, DNS, HTTPS, the pods' credentials.

    HTTPS goes to any address: neither endpoints of the VPC nor S3's addresses are known to Kubernetes. Which
    of them answer is the security groups', the routes' and the endpoint policies' to say. File systems are
    mounted by the node, and EFA goes past the kernel: no policy sees either.
    """
    settings = cluster.kubernetes
    if settings is None or not settings.network_policies:
        return ()
    hyperpod = settings if isinstance(settings, HyperPodEks) else None
    own: Manifest = {"podSelector": {}}
    both = ["Ingress", "Egress"]
    if hyperpod and hyperpod.inference and namespace == DEFAULT:
        # load balancers speak to models from addresses of the VPC, which pods have, too
        both = ["Egress"]
    sources: list[Manifest] = [own]
    if hyperpod and hyperpod.training_operator:
        # it asks the agent in each pod of a job how the job does
        sources.append({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": HYPERPOD}}})
    if hyperpod and hyperpod.spaces and hyperpod.spaces.web_ui:
        # the router, through which web browsers reach spaces
        sources.append({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACES}}})
    dns: Manifest = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    rules: Manifest = {
        "podSelector": {},
        "policyTypes": both,
        "egress": [
            {"to": [own]},
            {"to": [dns], "ports": _ports("UDP 53", "TCP 53")},
            {"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": _ports("TCP 443")},
            {"to": [{"ipBlock": {"cidr": POD_IDENTITY}}], "ports": _ports("TCP 80")},
            *_to_checkpoint_memory(hyperpod),
        ],
        **({"ingress": [{"from": sources}]} if "Ingress" in both else {}),
    }
    return (
        _policy("ultracluster-default-deny", namespace, {"podSelector": {}, "policyTypes": both}),
        _policy("ultracluster-training", namespace, rules),
        *(_asked_by_kuberay(namespace) if settings.kuberay and "Ingress" in both else ()),
        # where nothing is kept out, a policy that lets one in would keep out everybody else
        *(_scraped(cluster, namespace) if "Ingress" in both else ()),
    )


def _to_checkpoint_memory(hyperpod: HyperPodEks | None) -> list[Manifest]:
    """The daemon of tiered checkpoints answers by a headless service on each node: its pods' addresses can be
    those of their nodes, which no selector of pods knows."""
    if hyperpod is None or not hyperpod.tiered_checkpoints_percent:
        return []
    ports = _ports(f"TCP {tiered_checkpoints()['port']}")
    return [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": ports}]


def _asked_by_kuberay(namespace: str) -> tuple[Manifest, ...]:
    """The operator, and nobody else of its namespace, to the dashboard of a Ray cluster's head: there it asks
    how a RayJob does (ray-project/kuberay v1.6.2, rayjob_controller.go)."""
    operator: Manifest = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": charts()[KUBERAY]["namespace"]}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": KUBERAY}},
    }
    rules: Manifest = {
        "podSelector": {"matchLabels": {"ray.io/node-type": "head"}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [operator], "ports": _ports(f"TCP {RAY_DASHBOARD}")}],
    }
    return (_policy("ultracluster-kuberay", namespace, rules),)


def _scraped(cluster: Cluster, namespace: str) -> tuple[Manifest, ...]:
    """The agent, and nobody else of its namespace, to the one port of a training script's metrics."""
    settings = observability_of(cluster)
    if settings is None or not collects(cluster) or settings.collector != "agent":
        return ()
    agent: Manifest = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": METRICS_NAMESPACE}},
        "podSelector": {"matchLabels": {APP_LABEL: AGENT}},
    }
    ports = [TRAINING_PORT, *([SERVING_PORT] if serves(cluster) else ())]
    let_in = {"from": [agent], "ports": _ports(*(f"TCP {port}" for port in ports))}
    rules: Manifest = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [let_in]}
    return (_policy("ultracluster-metrics", namespace, rules),)


def resource_quota(cluster: Cluster, team: str) -> Manifest:
    """What all pods of a team can have together, queued jobs or not.

    Raises:
        ValueError: quotas that the cluster does not have.

    Accelerators: the team's `limit`, else all there are. A share is the scheduler's to guarantee and to lend,
    and a quota at the share would forbid to borrow. The rest is the size of the cluster: it stops a runaway,
    and no job.
    """
    settings = cluster.environment.teams[team]
    hard: dict[str, str] = {
        "persistentvolumeclaims": str(CLAIMS),
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }
    by_resource: dict[str, int] = {}
    for pool in pools(cluster):
        most = pool.total
        if isinstance(settings.limit, Mapping):
            # a limit by group never takes away what is guaranteed
            own = quotas(cluster)[team].get(pool.group, 0)
            most = min(most, max(own, settings.limit.get(pool.group, 0)))
        elif settings.limit is not None:
            most = min(most, settings.limit)
        for resource, amount in pool.resources(most).items():
            by_resource[resource] = by_resource.get(resource, 0) + amount
            if isinstance(settings.limit, int) and not pool.mixed:
                by_resource[resource] = min(by_resource[resource], settings.limit)
    hard |= {f"requests.{resource}": str(most) for resource, most in by_resource.items()}
    groups = cluster.with_role("compute").values()
    if groups and all(group.type and group.type.vcpu and group.type.memory_gib for group in groups):
        types = [(group.most_nodes, instance_type) for group in groups for instance_type in group.known_types]
        hard["requests.cpu"] = str(sum(nodes * instance_type.vcpu for nodes, instance_type in types))
        hard["requests.memory"] = (
            f"{sum(nodes * int(instance_type.memory_gib) for nodes, instance_type in types)}Gi"
        )
    hard["pods"] = str(PODS_OF_A_NODE * max(1, sum(group.most_nodes for group in groups)))
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "ultracluster", "namespace": namespace_of(cluster, team)},
        "spec": {"hard": dict(sorted(hard.items()))},
    }


def elastic_quota(cluster: Cluster) -> tuple[Manifest, ...]:
    """What elastic jobs in `default` can ask Karpenter for: all the nodes that there may be, and no more.

    The guide's example names `nvidia.com/gpu`, which Kubernetes counts as `requests.nvidia.com/gpu` only
    (Kubernetes documentation, Resource Quotas, "Resource quota for extended resources"). Processors and
    memory are left out: with them Kubernetes refuses every pod of `default` that does not say its needs.
    """
    settings = cluster.kubernetes
    if not isinstance(settings, HyperPodEks) or not settings.autoscaling:
        return ()
    if "elastic" not in settings.resilience:
        return ()
    hard: dict[str, int] = {}
    for pool in pools(cluster):
        efa = pool.instance_type.least_efa_interfaces or 0
        for resource, amount in (*pool.offered.items(), ("vpc.amazonaws.com/efa", efa)):
            if amount:
                key = f"requests.{resource}"
                hard[key] = hard.get(key, 0) + amount * pool.nodes
    return (
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "ultracluster-elastic", "namespace": DEFAULT},
            "spec": {"hard": {key: str(amount) for key, amount in sorted(hard.items())}},
        },
    )


def no_system_priority(namespace: str) -> Manifest:
    """No pod with a priority that Kubernetes keeps for itself, before which every job would have to go."""
    names = ["system-cluster-critical", "system-node-critical"]
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "ultracluster-no-system-priority", "namespace": namespace},
        "spec": {
            "hard": {"pods": "0"},
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": names}]
            },
        },
    }


def limit_range(namespace: str) -> Manifest:
    """Requests of containers that have none: a quota of processors refuses a pod without."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "ultracluster", "namespace": namespace},
        "spec": {"limits": [{"type": "Container", "defaultRequest": dict(_REQUESTS)}]},
    }


def service_account(namespace: str) -> Manifest:
    """The account that pods have unless they name one, without a token of the Kubernetes API."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": namespace},
        "automountServiceAccountToken": False,
    }


def _ports(*ports: str) -> list[Manifest]:
    pairs = [port.split() for port in ports]
    return [{"protocol": protocol, "port": int(number)} for protocol, number in pairs]


def _policy(name: str, namespace: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
