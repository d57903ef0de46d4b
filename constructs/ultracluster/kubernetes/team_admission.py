"""What no level of the Pod Security Standards and no quota says of a team's objects.

Kubernetes documentation, "Validating Admission Policy"; expressions are CEL.
"""

from __future__ import annotations

from typing import Any

from ultracluster.kubernetes.checkpoints import checkpoint_accounts
from ultracluster.kubernetes.isolation import (
    TEAM_LABEL,
    UID_LABEL,
    job_namespace,
    limit_range,
    network_policies,
    no_system_priority,
    resource_quota,
    service_account,
)
from ultracluster.kubernetes.spaces import space_objects
from ultracluster.kubernetes.teams import team_namespaces, team_rights
from ultracluster.model import Cluster

Manifest = dict[str, Any]


def team_objects(cluster: Cluster) -> tuple[Manifest, ...]:
    """All that a deploy makes for teams, for namespaces that HyperPod makes after it.

    Raises:
        ValueError: there are no teams, or no namespaces.
    """
    if not cluster.kubernetes or not cluster.environment.teams:
        raise ValueError("there are no teams with namespaces of Kubernetes")
    objects = [*team_namespaces(cluster), *team_rights(cluster), *admission_policies(cluster)]
    for name in cluster.environment.teams:
        space = job_namespace(cluster, name).name
        objects += network_policies(cluster, space)
        objects += [resource_quota(cluster, name), no_system_priority(space)]
        objects += [limit_range(space), service_account(space), *checkpoint_accounts(cluster, [space])]
    return (*objects, *space_objects(cluster))


def admission_policies(cluster: Cluster) -> tuple[Manifest, ...]:
    """Services take no addresses of others, and a team with a `uid` has one user.

    A service with `externalIPs` takes traffic to these addresses on every node (CVE-2020-8554).
    """
    teams = cluster.environment.teams
    if not teams:
        return ()
    manifests = _admission(
        "ultracluster-team-services",
        resource="services",
        operations=["CREATE", "UPDATE"],
        label=TEAM_LABEL,
        expression="!has(object.spec.externalIPs) || size(object.spec.externalIPs) == 0",
        message="a team's service has no externalIPs: they would take traffic that is others'",
    )
    if any(team.uid is not None for team in teams.values()):
        manifests += _admission(
            "ultracluster-team-user",
            resource="pods",
            operations=["CREATE"],
            label=UID_LABEL,
            expression=ONE_USER,
            message="pods of this namespace run as the user and group of its label ultracluster/uid: set "
            "securityContext.runAsUser and runAsGroup of the pod to it, and name no other",
        )
    return tuple(manifests)


ONE_USER = """\
(!has(object.spec.hostUsers) || object.spec.hostUsers) &&
has(object.spec.securityContext) &&
has(object.spec.securityContext.runAsUser) &&
string(object.spec.securityContext.runAsUser) == namespaceObject.metadata.labels['ultracluster/uid'] &&
has(object.spec.securityContext.runAsGroup) &&
string(object.spec.securityContext.runAsGroup) == namespaceObject.metadata.labels['ultracluster/uid'] &&
(!has(object.spec.securityContext.fsGroup) ||
  string(object.spec.securityContext.fsGroup) == namespaceObject.metadata.labels['ultracluster/uid']) &&
(!has(object.spec.securityContext.supplementalGroups) ||
  object.spec.securityContext.supplementalGroups.all(group,
    string(group) == namespaceObject.metadata.labels['ultracluster/uid'])) &&
(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])).all(container,
  !has(container.securityContext) ||
  ((!has(container.securityContext.runAsUser) ||
    string(container.securityContext.runAsUser) == namespaceObject.metadata.labels['ultracluster/uid']) &&
  (!has(container.securityContext.runAsGroup) ||
    string(container.securityContext.runAsGroup) == namespaceObject.metadata.labels['ultracluster/uid'])))
"""
"""In CEL (Kubernetes documentation, Common Expression Language in Kubernetes)."""


def _admission(
    name: str, *, resource: str, operations: list[str], label: str, expression: str, message: str
) -> list[Manifest]:
    api = "admissionregistration.k8s.io/v1"
    return [
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": operations,
                            "resources": [resource],
                        }
                    ]
                },
                "validations": [{"expression": expression, "message": message}],
            },
        },
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {
                    "namespaceSelector": {"matchExpressions": [{"key": label, "operator": "Exists"}]}
                },
            },
        },
    ]
