"""The namespaces of jobs: their level, network policies, quotas, and accounts without a token."""

from __future__ import annotations

from constructs import IConstruct

from ultracluster.clusters.eks.kubectl import Kubectl
from ultracluster.kubernetes.isolation import (
    DEFAULT,
    elastic_quota,
    job_namespace,
    limit_range,
    network_policies,
    no_system_priority,
    resource_quota,
    service_account,
)
from ultracluster.kubernetes.pod_security import no_labels
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.team_admission import admission_policies
from ultracluster.model import Cluster


def isolate_namespaces(kubectl: Kubectl, cluster: Cluster, *, made: IConstruct | None) -> None:
    """Keep `default` and the namespaces of teams apart.

    Those that HyperPod makes for task governance are not there yet: `ultracluster export team-namespaces`.

    Args:
        kubectl: the way into the cluster.
        cluster: what it is worked out to be.
        made: what makes the namespaces of teams.
    """
    _default(kubectl, cluster)
    teams = list(cluster.environment.teams) if scheduling(cluster).namespaces else []
    if not teams:
        return
    spaces = {name: job_namespace(cluster, name).name for name in teams}
    fences = kubectl.add_manifest(
        "TeamFences",
        *(network_policy for space in spaces.values() for network_policy in network_policies(cluster, space)),
        *(resource_quota(cluster, name) for name in teams),
        *(no_system_priority(space) for space in spaces.values()),
        *(limit_range(space) for space in spaces.values()),
    )
    # Kubernetes makes the account with the namespace
    accounts = kubectl.add_manifest("TeamAccounts", *map(service_account, spaces.values()), overwrite=True)
    kubectl.add_manifest("TeamAdmission", *admission_policies(cluster))
    for applied in (fences, accounts):
        if made:
            applied.node.add_dependency(made)


def _default(kubectl: Kubectl, cluster: Cluster) -> None:
    """`default` and its account are Kubernetes' own, so they are changed, and never deleted."""
    settings = cluster.kubernetes
    assert settings, "namespaces are only for Kubernetes"
    free = no_labels(settings.pod_security, settings.kubernetes_version)
    kubectl.add_patch(
        "DefaultNamespace",
        f"namespace/{DEFAULT}",
        change={"metadata": {"labels": dict(job_namespace(cluster, None).labels)}},
        restore={"metadata": {"labels": free}},
    )
    kubectl.add_patch(
        "DefaultAccount",
        f"serviceaccount/{DEFAULT}",
        change={"automountServiceAccountToken": False},
        restore={"automountServiceAccountToken": True},
    )
    if policies := network_policies(cluster, DEFAULT):
        kubectl.add_manifest("DefaultPolicies", *policies)
    if quota := elastic_quota(cluster):
        kubectl.add_manifest("ElasticQuota", *quota)
