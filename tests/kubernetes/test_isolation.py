"""What keeps namespaces apart: who may speak to whom, what a team can have, and accounts without a token."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from crd_fields import problems
from kubernetes_support import environment
from scheduling_support import SCHEDULERS, TEAMS, made

from ultracluster.catalog.eks import kubernetes_releases
from ultracluster.kubernetes.isolation import (
    limit_range,
    network_policies,
    no_system_priority,
    resource_quota,
    service_account,
)
from ultracluster.kubernetes.kueue import kueue_objects
from ultracluster.kubernetes.teams import team_namespaces
from ultracluster.model import resolve

HYPERPOD = "hyperpod-eks-p5"


@dataclass(frozen=True)
class End:
    """One end of a connection: a pod, or an address of nobody's."""

    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    address: str = "10.0.0.9"


DNS = End("kube-system", {"k8s-app": "kube-dns"})
TRAINER = End("research")


def allowed(policies: list[dict[str, Any]], source: End, target: End, port: str) -> bool:
    """As Kubernetes documents it: an isolated end lets in, or out, only what some policy of its names."""
    return _side(policies, source, target, "Egress", port) and _side(
        policies, target, source, "Ingress", port
    )


def _side(policies: list[dict[str, Any]], own: End, other: End, way: str, port: str) -> bool:
    mine = [
        one["spec"]
        for one in policies
        if one["metadata"]["namespace"] == own.namespace
        and way in one["spec"]["policyTypes"]
        and one["spec"]["podSelector"].get("matchLabels", {}).items() <= own.labels.items()
    ]
    peers = {"Egress": "to", "Ingress": "from"}[way]
    return not mine or any(
        _port(rule, port) and any(_is(peer, other, own.namespace) for peer in rule[peers])
        for spec in mine
        for rule in spec.get(way.lower(), [])
    )


def _port(rule: dict[str, Any], port: str) -> bool:
    named = [f"{one['protocol']} {one['port']}" for one in rule.get("ports", [])]
    return not named or port in named


def _is(peer: dict[str, Any], end: End, namespace: str) -> bool:
    if "ipBlock" in peer:
        return ip_address(end.address) in ip_network(peer["ipBlock"]["cidr"])
    wanted = peer.get("namespaceSelector", {"matchLabels": {"kubernetes.io/metadata.name": namespace}})
    if wanted["matchLabels"] != {"kubernetes.io/metadata.name": end.namespace}:
        return False
    labels = peer.get("podSelector", {}).get("matchLabels", {})
    return labels.items() <= end.labels.items()


def policies(base: str = "eks-p5en", **changes: Any) -> list[dict[str, Any]]:
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    cluster = resolve(environment({"teams": TEAMS, **keys}, base=base))
    spaces = ["default", *(one["metadata"]["name"] for one in team_namespaces(cluster))]
    return [one for space in spaces for one in network_policies(cluster, space)]


@pytest.mark.parametrize(
    ("source", "target", "port", "passes"),
    [
        (TRAINER, TRAINER, "TCP 29500", True),  # torchrun
        (TRAINER, TRAINER, "TCP 2222", True),  # MPI's SSH
        (TRAINER, TRAINER, "UDP 4000", True),
        (TRAINER, DNS, "UDP 53", True),
        (TRAINER, DNS, "TCP 53", True),
        (TRAINER, DNS, "TCP 9153", False),
        (TRAINER, End(address="52.219.0.1"), "TCP 443", True),  # S3, by its gateway
        (TRAINER, End(address="10.0.0.1"), "TCP 443", True),  # endpoints, and the Kubernetes API
        (TRAINER, End(address="169.254.170.23"), "TCP 80", True),  # EKS Pod Identity
        (TRAINER, End(address="169.254.169.254"), "TCP 80", False),  # the node's metadata
        (TRAINER, End(address="10.0.3.7"), "TCP 10250", False),  # kubelets
        (TRAINER, End(address="10.0.3.7"), "TCP 988", False),  # Lustre is mounted by the node
        (TRAINER, End(address="10.0.3.7"), "TCP 22", False),
        (TRAINER, End("product"), "TCP 29500", False),
        (TRAINER, End("product"), "TCP 443", False),
        (TRAINER, End("default"), "TCP 8080", False),
        (End("product"), TRAINER, "TCP 6006", False),
        (End("monitoring"), TRAINER, "TCP 6006", False),
        (End("kube-system"), TRAINER, "TCP 6006", False),
        (End("aws-hyperpod"), TRAINER, "TCP 8080", False),
        (End("default"), End("default"), "TCP 2222", True),  # the acceptance job
        (End("default"), End("product"), "TCP 2222", False),
    ],
)
def test_pods_speak_within_their_namespace_and_to_what_training_needs(
    source: End, target: End, port: str, passes: bool
) -> None:
    assert allowed(policies(), source, target, port) is passes


def test_without_policies_everything_passes() -> None:
    assert policies(orchestrator__network_policies=False) == []
    assert allowed([], TRAINER, End("product"), "TCP 22")


def test_hyperpods_operator_asks_the_pods_of_its_jobs() -> None:
    open_to_it = policies(HYPERPOD, orchestrator__training_operator=True)

    assert allowed(open_to_it, End("aws-hyperpod"), TRAINER, "TCP 8080")
    closed = policies(HYPERPOD, orchestrator__training_operator=False)
    assert not allowed(closed, End("aws-hyperpod"), TRAINER, "TCP 8080")
    assert not allowed(open_to_it, End("product"), TRAINER, "TCP 8080")


@pytest.mark.parametrize("base", ["eks-p5en", HYPERPOD])
def test_kuberays_operator_asks_the_heads_of_ray_clusters(base: str) -> None:
    operator = End("kuberay-system", {"app.kubernetes.io/name": "kuberay-operator"})
    head = End("research", {"ray.io/node-type": "head"})
    open_to_it = policies(base, orchestrator__kuberay=True)

    assert all(problems(one) == [] for one in open_to_it)
    assert allowed(open_to_it, operator, head, "TCP 8265")
    assert not allowed(open_to_it, operator, head, "TCP 6379"), "programs are started there"
    assert not allowed(open_to_it, operator, TRAINER, "TCP 8265")
    assert not allowed(open_to_it, End("kuberay-system"), head, "TCP 8265")
    assert not allowed(open_to_it, End("product"), head, "TCP 8265")
    assert not allowed(policies(base), operator, head, "TCP 8265")


def test_models_of_hyperpods_inference_are_reached_in_default_only() -> None:
    inference = {
        "execution_role_arn": "arn:aws:iam::111122223333:role/a",
        "load_balancer_role_arn": "arn:aws:iam::111122223333:role/b",
        "autoscaler_role_arn": "arn:aws:iam::111122223333:role/c",
        "certificate_bucket": "certificates-111122223333",
    }
    found = policies(HYPERPOD, orchestrator__inference=inference)

    assert allowed(found, End(address="10.0.0.4"), End("default"), "TCP 8443")
    assert not allowed(found, End(address="10.0.0.4"), TRAINER, "TCP 8443")
    assert not allowed(found, End("default"), TRAINER, "TCP 8443")


# --- quotas ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "teams",
    [
        TEAMS,
        {"a": {"quota": {"train": 16}, "limit": {"train": 24}}},
        {"a": {"quota": 16, "limit": 16}},
        {"a": {}},
    ],
)
def test_a_quota_is_never_below_what_the_scheduler_admits(teams: dict[str, Any]) -> None:
    """Kueue admits up to the nominal quota and the borrowing limit; without one up to all there is."""
    cluster, total = resolve(environment({"teams": teams})), 64
    queues = [one for one in kueue_objects(cluster) if one["kind"] == "ClusterQueue"]
    assert queues
    for queue in queues:
        (flavor,) = queue["spec"]["resourceGroups"][0]["flavors"]
        (row,) = flavor["resources"]
        admitted = row["nominalQuota"] + row.get("borrowingLimit", total)
        hard = resource_quota(cluster, queue["metadata"]["name"])["spec"]["hard"]
        assert int(hard["requests.nvidia.com/gpu"]) == min(admitted, total)


def test_the_rest_is_the_size_of_the_cluster() -> None:
    cluster = resolve(made("kueue"))
    hard = resource_quota(cluster, "product")["spec"]["hard"]

    assert hard == {
        "persistentvolumeclaims": "50",
        "pods": "880",
        "requests.cpu": "1536",
        "requests.memory": "16384Gi",
        "requests.nvidia.com/gpu": "64",
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }


def test_accelerators_are_counted_by_their_names() -> None:
    neuron = resolve(environment({"teams": {"a": {"quota": 16}}}, base="eks-trn2"))
    shared = resolve(made("kueue", node_groups__train__gpu_time_slices=4))

    assert "requests.aws.amazon.com/neuron" in resource_quota(neuron, "a")["spec"]["hard"]
    assert resource_quota(shared, "product")["spec"]["hard"]["requests.nvidia.com/gpu.shared"] == "256"


def test_no_pod_of_a_team_goes_before_all_others() -> None:
    quota = no_system_priority("research")
    (expression,) = quota["spec"]["scopeSelector"]["matchExpressions"]

    assert quota["spec"]["hard"] == {"pods": "0"}
    assert set(expression["values"]) == {"system-cluster-critical", "system-node-critical"}


def test_a_container_without_requests_gets_some_and_no_limit() -> None:
    (row,) = limit_range("research")["spec"]["limits"]

    assert set(row) == {"type", "defaultRequest"}
    assert {"cpu", "memory"} == set(row["defaultRequest"])


@pytest.mark.parametrize("release", kubernetes_releases())
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_kubernetes_takes_them(scheduler: str, release: str) -> None:
    cluster = resolve(made(scheduler, teams={**TEAMS, "own": {"uid": 2001, "pod_security": "baseline"}}))
    objects = [
        *team_namespaces(cluster),
        *network_policies(cluster, "research"),
        *(resource_quota(cluster, team) for team in cluster.environment.teams),
        no_system_priority("research"),
        limit_range("research"),
        service_account("research"),
    ]

    assert [found for one in objects for found in problems(one, kubernetes=release)] == []
    assert service_account("research")["automountServiceAccountToken"] is False
