"""An EKS cluster as its API shows it, with node groups, launch templates, add-ons and access entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ultracluster.config.kubernetes import Eks
from ultracluster.config.plain_text import one_line
from ultracluster.imports import launch_template
from ultracluster.imports.eksctl import with_roles, with_system
from ultracluster.imports.file_systems import add
from ultracluster.imports.ledger import Ledger, Part
from ultracluster.imports.outcome import Drafted
from ultracluster.imports.owner import of_account
from ultracluster.imports.placing import place
from ultracluster.imports.reasons import reasons
from ultracluster.imports.states import state_row
from ultracluster.imports.surroundings import Asked, Subnet, Surroundings

TOOL = "Amazon EKS"
KIND = Eks().kind
_EFFECTS = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}
_ADMIN = "AmazonEKSClusterAdminPolicy"
_WORLD = "0.0.0.0/0"
_AWS_OWN = (":role/aws-service-role/", ":role/aws-reserved/", "AWSServiceRole")


def drafted(document: Mapping[str, Any], name: str, asked: Asked) -> Drafted:
    """Return what the cluster comes to as an environment.

    Args:
        document: `cluster`, `nodegroups` (each with its `launchTemplate`'s data), `addons`, `accessEntries`,
            `fargateProfiles` and `podIdentities`, each as EKS answers.
    """
    ledger = Ledger(reasons=reasons("EC2 launch template", "EKS"))
    top = ledger.part(document)
    groups: dict[str, dict[str, Any]] = {}
    subnets: list[str] = []
    fabric: set[str] = set()
    storage: dict[str, Any] = {}
    parts = {part.text("nodegroupName") or "": part for part in top.parts("nodegroups")}
    for group, part in parts.items():
        template = part.part("launchTemplate")
        if (settings := node_group(group, part)) is None:
            continue
        groups[group] = settings
        if launch_template.has_efa(template):
            fabric.add(group)
        for system, folder in launch_template.mounts(template):
            where = template.place("UserData")
            add(storage, ledger, where, asked.around, system, folder or "/fsx")
    if not groups:
        ledger.refuse("nodegroups", "the cluster has no node group", "EKS Auto Mode and Karpenter keep none")
    with_roles(groups, fabric)
    for group in sorted(groups, key=lambda group: groups[group]["role"] != "compute"):
        subnets += parts[group].texts("subnets")
    types = [group["instance_type"] for group in groups.values() if group["role"] == "compute"]
    settled = place(ledger, asked, "", KIND, types, subnets=subnets)
    cluster = top.part("cluster")
    state_row(ledger, "cluster.status", "the cluster", cluster.text("status") or "", _issues(cluster))
    if key := _key(cluster):
        storage["keys"] = {"secrets": {"arn": key}}
    control = control_plane(top, settled, asked.around)
    of_account(ledger, asked.around.account if asked.around else "", "whose cluster it is")
    environment: dict[str, Any] = {
        "name": name,
        "account": asked.around.account if asked.around else "",
        **settled,
        **({"protect": True} if cluster.flag("deletionProtection") else {}),
        "tags": {
            key: str(value)
            for key, value in cluster.map("tags").items()
            if not key.lower().startswith(("aws:", "alpha.eksctl.io/", "eksctl.cluster"))
        },
        "storage": storage,
        "orchestrator": {"kind": KIND, **control},
        "node_groups": with_system(groups, settled, ledger) if groups else {},
    }
    if not storage:
        ledger.assumed(
            "storage", "which file systems pods mount is in Kubernetes (`kubectl get pv`), not in AWS's API",
            "write storage.lustre with deployment existing for what jobs need",
        )  # fmt: skip
    return Drafted(tool=TOOL, kind=KIND, data=environment, ledger=ledger)


def control_plane(
    top: Part, settled: Mapping[str, Any], around: Surroundings | None = None
) -> dict[str, Any]:
    """Settings of a control plane like this one. It is made anew: a control plane cannot change hands."""
    ledger, cluster = top.ledger, top.part("cluster")
    network = cluster.part("resourcesVpcConfig")
    found: dict[str, Any] = {}
    ledger.changed(
        "cluster", "a control plane is made with the environment, and the old one is not touched",
        "move what runs in it (`kubectl get`, Helm values, Git), then end the old one",
    )  # fmt: skip
    if version := cluster.text("version"):
        found["kubernetes_version"] = version
    if support := cluster.part("upgradePolicy").text("supportType"):
        found["support"] = support.lower()
    if (tier := cluster.part("controlPlaneScalingConfig").text("tier")) not in (None, "standard"):
        found["scaling_tier"] = str(tier).removeprefix("tier-")
    inside = cluster.part("kubernetesNetworkConfig")
    if services := inside.text("serviceIpv4Cidr"):
        found["service_cidr"] = services
    if inside.text("ipFamily") == "ipv6":
        ledger.changed(inside.place("ipFamily"), "pods have IPv4 addresses", "nothing to do with IPv4")
    subnets = network.texts("subnetIds")
    if "vpc" in settled.get("network", {}):
        found["control_plane_subnet_ids"] = _private(subnets, around, network)
    found |= _endpoint(network, ledger)
    found |= _admins(top)
    return found


def _private(names: list[str], around: Surroundings | None, network: Part) -> list[str]:
    """Subnets of the control plane, without public ones where two zones are left."""
    subnets: Mapping[str, Subnet] = around.subnets if around else {}
    kept = [name for name in names if not (name in subnets and subnets[name].public)]
    zones = {subnets[one].zone_id for one in kept if one in subnets}
    if len(kept) == len(names) or len(zones) < 2:
        return names
    for number, one in enumerate(names):
        if one not in kept:
            where = f"{network.place('subnetIds')}[{number}]"
            network.ledger.left(
                where, f"{one} is public, and the API answers in private ones", "nothing to do"
            )
    return kept


def _endpoint(network: Part, ledger: Ledger) -> dict[str, Any]:
    networks = network.texts("publicAccessCidrs")
    network.any("endpointPrivateAccess")
    if not network.flag("endpointPublicAccess"):
        return {}
    if networks and _WORLD not in networks:
        return {"endpoint": {"kind": "public", "cidrs": networks}}
    ledger.changed(
        network.place("endpointPublicAccess"), "the Kubernetes API is never open to the whole internet",
        "now it answers within the VPC only; orchestrator.endpoint: {kind: public, cidrs} opens it",
    )  # fmt: skip
    return {}


def _admins(top: Part) -> dict[str, Any]:
    found: list[str] = []
    for part in top.parts("accessEntries"):
        arn, policies = part.text("principalArn") or "", part.parts("policies")
        groups, kind = part.texts("kubernetesGroups"), part.text("type")
        whole = False
        for policy in policies:
            scope = policy.part("accessScope")
            reach, name = scope.text("type"), policy.text("policyArn") or ""
            whole |= reach == "cluster" and name.endswith(_ADMIN)
            scope.any("namespaces")
        if kind not in (None, "STANDARD") or any(word in arn for word in _AWS_OWN):
            continue  # nodes, and AWS's own services, which make theirs again
        if whole or "system:masters" in groups:
            found.append(arn)
        else:
            top.ledger.left(
                part.where, f"only whole administrators carry over, and {one_line(arn)} is none",
                "write `teams` with their members",
            )  # fmt: skip
    if found:
        return {"admins": list(dict.fromkeys(found))}
    top.ledger.assumed(
        "orchestrator.admins", "no access entry names a role that may do everything",
        "write the ARNs of roles: nobody else can use the cluster, not even who deploys it",
    )  # fmt: skip
    return {}


def node_group(name: str, part: Part) -> dict[str, Any] | None:
    """A node group without its role; None where it is being deleted."""
    ledger, template = part.ledger, part.part("launchTemplate")
    status = part.text("status") or ""
    if status == "DELETING":
        ledger.left(part.where, f"node group {name} is being deleted", "nothing to do")
        part.map_all()
        template.map_all()
        return None
    state_row(ledger, part.place("status"), f"node group {name}", status, _issues(part))
    several = part.texts("instanceTypes") or [str(template.data.get("InstanceType") or "")]
    if not several[0]:
        ledger.refuse(
            part.place("instanceTypes"), "the group names no instance type", "write one in `instance_type`"
        )
    if several[1:]:
        ledger.changed(
            part.place("instanceTypes"), f"a group has one type, which leaves out {', '.join(several[1:])}",
            "make a group for each further type",
        )  # fmt: skip
    scaling = part.part("scalingConfig")
    count, most = scaling.number("desiredSize") or 0, scaling.number("maxSize")
    scaling.any("minSize")
    group: dict[str, Any] = {"instance_type": several[0], "count": count}
    if most is not None and most > count:
        ledger.left(
            scaling.place("maxSize"), "a managed group keeps its size: nothing here makes it grow",
            "orchestrator.karpenter starts nodes for pods that wait, up to max_count of the group",
        )  # fmt: skip
    kind = part.text("capacityType")
    found = launch_template.capacity(template, block=kind == "CAPACITY_BLOCK")
    if kind == "SPOT":
        found = {"kind": "spot"}
    if found:
        group["capacity"] = found
    group |= launch_template.root_volume(template) | launch_template.threads(template)
    if (size := part.number("diskSize")) is not None:
        group.setdefault("root_volume_gib", size)
    image = template.text("ImageId")
    if image and part.text("amiType") == "CUSTOM":
        group["image"] = image
    part.any("amiType")
    if labels := {
        key: str(value)
        for key, value in part.map("labels").items()
        if not key.startswith(("eks.amazonaws.com/", "alpha.eksctl.io/"))
    }:
        group["labels"] = labels
    taints: list[dict[str, str]] = []
    for one in part.parts("taints"):
        effect = one.text("effect") or ""
        taint = {
            "key": one.text("key"),
            "value": one.text("value"),
            "effect": _EFFECTS.get(effect, effect),
        }
        taints.append({key: value for key, value in taint.items() if value is not None})
    return {**group, **({"taints": taints} if taints else {})}


def _key(cluster: Part) -> str:
    found = ""
    for part in cluster.parts("encryptionConfig"):
        part.any("resources")
        found = part.part("provider").text("keyArn") or found
    return found


def _issues(part: Part) -> str:
    issues = part.part("health").parts("issues")
    texts = [f"{issue.text('code') or ''}: {issue.text('message') or ''}" for issue in issues]
    for issue in issues:
        issue.any("resourceIds")
    return "; ".join(texts)
