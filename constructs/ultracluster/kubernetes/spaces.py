"""What spaces of people are, and how many: a template, a quota and rights in each namespace of jobs.

Objects of `workspace.jupyter.org/v1alpha1` (jupyter-infra/jupyter-k8s v0.2.0), which the add-on
amazon-sagemaker-spaces brings (SageMaker Developer Guide, IDEs and Notebooks; Customize add-on).
"""

from __future__ import annotations

from typing import Any

from ultracluster.config.hyperpod_spaces import HyperPodSpaces
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.kubernetes.isolation import DEFAULT, SPACES, job_namespace, job_user
from ultracluster.kubernetes.labels import GPU_TAINT
from ultracluster.kubernetes.pod_security import DEFAULT_UID, container_context, pod_context
from ultracluster.model import Cluster
from ultracluster.model.devices import spaces_of
from ultracluster.model.team_shares import DEFAULT_PRIORITY, namespace_of

Manifest = dict[str, Any]

API, GROUP = "workspace.jupyter.org/v1alpha1", "workspace.jupyter.org"
CONTROLLER, ROUTER = "jupyter-k8s-controller-manager", "jupyter-k8s-authmiddleware"
"""Its service accounts."""
TEMPLATE = "ultracluster"
PORT = 8888
"""On which a space answers."""
STRATEGY = "hyperpod-access-strategy"
_HOME = "/home/sagemaker-user"
_ENTRY = "/opt/amazon/sagemaker/workspace/bin/entrypoint-workspace-jupyterlab"
_STORAGE_CLASS = "gp3"
"""Ours, with the key of the cluster; the add-on's own has the account's."""


def space_objects(cluster: Cluster) -> tuple[Manifest, ...]:
    """Templates and quotas, for namespaces that are there, once the add-on is.

    Namespaces that task governance makes are not yet there: `ultracluster export team-namespaces` has theirs.
    """
    settings = spaces_of(cluster)
    if settings is None:
        return ()
    teams: list[str | None] = list(cluster.environment.teams) or [None]
    objects: list[Manifest] = []
    for team in teams:
        objects += [space_template(cluster, settings, team), space_quota(cluster, settings, team)]
    return (*objects, *only_from_template(cluster))


def space_template(cluster: Cluster, settings: HyperPodSpaces, team: str | None) -> Manifest:
    """What a space of a team is, and may be at the most. Spaces that name no template get it."""
    most = {"cpu": str(settings.cpu), "memory": f"{settings.memory_gib}Gi"}
    # the add-on refuses less where editors connect
    least = {"cpu": "500m", "memory": "8Gi" if settings.remote_ide else "1Gi"}
    bounds = {name: {"min": least[name], "max": value} for name, value in most.items()}
    bounds["nvidia.com/gpu"] = {"min": "0", "max": str(settings.gpus)}
    idle = {
        "enabled": True,
        "idleTimeoutInMinutes": settings.idle_minutes,
        "detection": {"httpGet": {"path": "/api/idle", "port": PORT, "scheme": "HTTP"}},
    }
    space = job_namespace(cluster, team)
    # the home folder is a volume of its own, whose owner the kubelet changes
    owner = job_user(cluster, team) or DEFAULT_UID
    security = {**pod_context(space.level, job_user(cluster, team)), "fsGroup": owner}
    spec: Manifest = {
        "displayName": f"Space of {team}" if team else "Space",
        "defaultImage": settings.images[0],
        "allowedImages": list(settings.images),
        "allowCustomImages": False,
        "appType": "jupyterlab",
        "defaultContainerConfig": {"command": [_ENTRY]},
        "defaultResources": {"requests": most, "limits": most},
        "resourceBounds": {"resources": bounds},
        "primaryStorage": {
            "defaultSize": f"{settings.storage_gib}Gi",
            "minSize": "1Gi",
            "maxSize": f"{settings.storage_gib}Gi",
            "defaultStorageClassName": _STORAGE_CLASS,
            "defaultMountPath": _HOME,
        },
        "allowSecondaryStorages": True,
        "defaultNodeSelector": {GROUP_LABEL: settings.group},
        "defaultTolerations": _tolerations(cluster, settings.group),
        "defaultPodSecurityContext": security,
        "defaultContainerSecurityContext": container_context(space.level),
        "defaultAccessStrategy": {"name": STRATEGY, "namespace": SPACES},
        # who makes a space is the one who enters it
        "defaultAccessType": "OwnerOnly",
        "defaultOwnershipType": "OwnerOnly",
        "defaultIdleShutdown": idle,
        "idleShutdownOverrides": {"allow": True, "maxIdleTimeoutInMinutes": settings.idle_minutes},
    }
    if lustre := cluster.environment.storage.lustre:
        spec["defaultVolumes"] = [
            {"name": "lustre", "mountPath": lustre.mount_path, "persistentVolumeClaimName": "lustre"}
        ]
    if labels := _queue(cluster, team):
        spec["baseLabels"] = [{"key": key, "value": value} for key, value in labels.items()]
    return {
        "apiVersion": API,
        "kind": "WorkspaceTemplate",
        "metadata": {
            "name": TEMPLATE,
            "namespace": space.name,
            "labels": {f"{GROUP}/default-template": "true"},
        },
        "spec": spec,
    }


def space_quota(cluster: Cluster, settings: HyperPodSpaces, team: str | None) -> Manifest:
    """How many spaces a namespace has, stopped ones among them: each keeps a volume that costs money."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "ultracluster-spaces", "namespace": job_namespace(cluster, team).name},
        "spec": {"hard": {f"count/workspaces.{GROUP}": str(settings.per_team)}},
    }


def only_from_template(cluster: Cluster) -> tuple[Manifest, ...]:
    """A space is of its namespace's template: another would have other images, nodes and sizes."""
    names = sorted({job_namespace(cluster, team).name for team in cluster.environment.teams} or {DEFAULT})
    name = "ultracluster-spaces"
    expression = (
        f"has(object.spec.templateRef) && object.spec.templateRef.name == '{TEMPLATE}' && "
        "(!has(object.spec.templateRef.namespace) || "
        "object.spec.templateRef.namespace == object.metadata.namespace)"
    )
    api = "admissionregistration.k8s.io/v1"
    chosen = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": names}
    return (
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": [GROUP],
                            "apiVersions": ["v1alpha1"],
                            "operations": ["CREATE", "UPDATE"],
                            "resources": ["workspaces"],
                        }
                    ]
                },
                "validations": [
                    {
                        "expression": expression,
                        "message": f"a space has the template `{TEMPLATE}` of its namespace: leave "
                        "templateRef out, and it gets it",
                    }
                ],
            },
        },
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {"matchExpressions": [chosen]}},
            },
        },
    )


def space_values(settings: HyperPodSpaces, *, ssm_role_arn: str | None) -> dict[str, Any]:
    """Configuration values of the add-on (SageMaker Developer Guide, Install SageMaker AI Spaces Add-on)."""
    here: dict[str, Any] = {"remoteAccess": {"enabled": False}}
    if ssm_role_arn:
        here["remoteAccess"] = {"enabled": True, "ssmManagedNodeRole": ssm_role_arn}
    if web := settings.web_ui:
        here["clusterWebUI"] = {
            "enabled": True,
            "domain": web.domain,
            "awsCertificateArn": web.certificate_arn,
            "kmsEncryptionContext": {"enabled": True},
            "traefik": {"shouldInstall": True},
            "auth": {"kmsKeyId": web.key_arn},
            # the add-on's own default is internet-facing
            "alb": {"scheme": web.scheme},
        }
    return {"jupyter-k8s": {"workspacePodWatching": {"enable": True}}, "jupyter-k8s-aws-hyperpod": here}


def _tolerations(cluster: Cluster, group: str) -> list[dict[str, str]]:
    """Of the group's own taints, and of the one that keeps accelerated nodes for those who ask for GPUs."""
    tolerations = [{"key": GPU_TAINT, "operator": "Exists", "effect": "NoSchedule"}]
    cluster_group = cluster.groups.get(group)
    for taint in cluster_group.settings.taints if cluster_group else ():
        if taint.effect != "PreferNoSchedule" and taint.key != GPU_TAINT:
            same = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
            tolerations.append({"key": taint.key, **same, "effect": taint.effect})
    return tolerations


def _queue(cluster: Cluster, team: str | None) -> dict[str, str]:
    """Labels by which task governance counts a space (SageMaker Developer Guide, Task governance for
    Interactive Spaces on HyperPod). Our own Kueue counts jobs, and spaces are none."""
    settings = cluster.kubernetes
    if team is None or not isinstance(settings, HyperPodEks) or not settings.task_governance:
        return {}
    return {
        "kueue.x-k8s.io/queue-name": f"{namespace_of(cluster, team)}-localqueue",
        "kueue.x-k8s.io/priority-class": f"{DEFAULT_PRIORITY}-priority",
    }


__all__ = [
    "CONTROLLER",
    "PORT",
    "ROUTER",
    "only_from_template",
    "space_objects",
    "space_quota",
    "space_template",
    "space_values",
]
