"""A ClusterConfig of eksctl (names by its schema, pkg/apis/eksctl.io/v1alpha5/assets/schema.json of
eksctl-io/eksctl, and its documentation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ultracluster.catalog import instance_type
from ultracluster.config.kubernetes import Eks
from ultracluster.imports.ledger import Ledger, Part
from ultracluster.imports.outcome import Drafted
from ultracluster.imports.owner import of_account, owner
from ultracluster.imports.placing import other_zone, place
from ultracluster.imports.reasons import levels, reasons
from ultracluster.imports.surroundings import Asked
from ultracluster.plan.draft_place import general_type

TOOL = "eksctl"
KIND = Eks().kind
_ADMIN = "AmazonEKSClusterAdminPolicy"
_MASTERS = "system:masters"
_WORLD = "0.0.0.0/0"
_TOOLS = ("karpenter.sh/", "k8s.io/cluster-autoscaler/", "kubernetes.io/", "eksctl.io/", "alpha.eksctl.io/")
"""Tags that controllers of Kubernetes and eksctl look for."""
_SYSTEM_NODES = 2
_DEFAULT_NODES = 2
"""Of a group that says neither desiredCapacity nor minSize."""


def is_configuration(data: Mapping[str, Any]) -> bool:
    """Return whether it is one of eksctl's."""
    return str(data.get("apiVersion", "")).startswith("eksctl.io/") or data.get("kind") == "ClusterConfig"


def drafted(data: Mapping[str, Any], name: str, asked: Asked) -> Drafted:
    """Return what the configuration comes to as an environment."""
    ledger = Ledger(reasons=reasons("eksctl"), levels=levels("eksctl"))
    top = ledger.part(data)
    top.any("apiVersion")
    top.any("kind")
    metadata = top.part("metadata")
    ledger.renamed(metadata.place("name"), metadata.text("name"), asked.name or name)
    metadata.any("annotations")
    parts = [*top.parts("managedNodeGroups"), *top.parts("nodeGroups")]
    if not parts:
        ledger.refuse("managedNodeGroups", "no group has nodes", "name one at least")
    groups = {part.needed("name", "name the group"): _group(part) for part in parts}
    with_roles(groups, {part.text("name") or "" for part in parts if part.data.get("efaEnabled")})
    types = [group["instance_type"] for group in groups.values() if group["role"] == "compute"]
    account, region = owner(data)
    settled = place(ledger, asked, metadata.text("region") or region, KIND, types)
    vpc = top.part("vpc")
    if "network" in settled and "id" not in vpc and (cidr := vpc.text("cidr")):
        settled["network"]["cidr"] = cidr
    control = {"kind": KIND, **_control_plane(top, metadata, vpc, ledger)}
    if second := other_zone(settled):
        control["second_zone_id"] = second
    of_account(ledger, account)
    key = top.part("secretsEncryption").text("keyARN")
    environment: dict[str, Any] = {
        "name": name,
        "account": account,
        **settled,
        "tags": _tags(metadata),
        "storage": {"keys": {"secrets": {"arn": key}}} if key else {},
        "orchestrator": control,
        "node_groups": with_system(groups, settled, ledger),
    }
    return Drafted(tool=TOOL, kind=KIND, data=environment, ledger=ledger)


def _tags(metadata: Part) -> dict[str, str]:
    """Tags without those that mean something to a tool that is not there any more."""
    tags = {one: str(value) for one, value in metadata.map("tags").items()}
    for name in [tag for tag in tags if tag.startswith(_TOOLS)]:
        metadata.ledger.left(
            f"{metadata.place('tags')}.{name}", "it marks resources for a tool that is not here",
            "orchestrator.karpenter tags what its nodes need by itself",
        )  # fmt: skip
        del tags[name]
    return tags


def _group(part: Part) -> dict[str, Any]:
    """A group without its role."""
    kind = _type(part)
    least, wanted = part.number("minSize"), part.number("desiredCapacity")
    count = wanted if wanted is not None else least if least is not None else _DEFAULT_NODES
    group: dict[str, Any] = {"instance_type": kind, "count": count}
    if least is not None and wanted is not None and least < wanted:
        part.ledger.left(
            part.place("minSize"), f"the group keeps its {wanted} nodes: nothing here makes it shrink",
            "orchestrator.karpenter ends nodes without pods",
        )  # fmt: skip
    most = part.number("maxSize")
    if most is not None and most > count:
        part.ledger.left(
            part.place("maxSize"), "a managed group keeps its size: nothing here makes it grow",
            "orchestrator.karpenter starts nodes for pods that wait, up to max_count of the group",
        )  # fmt: skip
    if capacity := _capacity(part):
        group["capacity"] = capacity
    if (size := part.number("volumeSize")) is not None:
        group["root_volume_gib"] = size
    if (speed := part.number("volumeThroughput")) is not None:
        group["root_volume_throughput_mbps"] = speed
    volume = part.text("volumeType")
    if volume not in (None, "gp3", "io1", "io2"):
        part.ledger.left(part.place("volumeType"), *part.ledger.reasons["volumeType"])
    if volume in ("io1", "io2") and (iops := part.number("volumeIOPS")) is not None:
        group["root_volume_iops"] = iops
    if image := part.text("ami"):
        if image.startswith("ami-"):
            group["image"] = image
        else:
            part.ledger.left(
                part.place("ami"), "it is no AMI id; EKS's own image is the default", "write `image`"
            )
    _efa(part, kind)
    labels = {one: str(value) for one, value in part.map("labels").items()}
    taints = _taints(part)
    return group | ({"labels": labels} if labels else {}) | ({"taints": taints} if taints else {})


def _type(part: Part) -> str:
    several = part.texts("instanceTypes")
    alone = part.text("instanceType")
    if not alone and not several:
        part.ledger.refuse(part.place("instanceType"), "is missing", "write the type of the group")
    if not alone and several[1:]:
        part.ledger.changed(
            part.place("instanceTypes"), f"a group has one type, which leaves out {', '.join(several[1:])}",
            "make a group for each further type",
        )  # fmt: skip
    return alone or next(iter(several), "")


def _capacity(part: Part) -> dict[str, Any]:
    target = part.part("capacityReservation").part("capacityReservationTarget")
    one, several = target.text("capacityReservationID"), target.text("capacityReservationResourceGroupARN")
    market = part.part("instanceMarketOptions").text("marketType")
    if part.flag("spot"):
        return {"kind": "spot"}
    if market == "capacity-block":
        if one is None:
            instead = "write the id of the block's reservation, cr-..."
            part.ledger.refuse(target.place("capacityReservationID"), "is missing", instead)
        return {"kind": "capacity-block", "id": one or ""}
    if one:
        return {"kind": "reservation", "id": one}
    return {"kind": "reservation", "resource_group_arn": several} if several else {}


def _efa(part: Part, kind: str) -> None:
    known = instance_type(kind)
    if known is not None and known.efa_interfaces and not part.flag("efaEnabled"):
        part.ledger.changed(
            part.place("efaEnabled"),
            f"nodes of {kind} always have their EFA interfaces here",
            "nothing to do",
        )
    part.any("efaEnabled")


def _taints(part: Part) -> list[dict[str, str]]:
    """A list of taints; eksctl also takes `key: value:effect`."""
    if isinstance(part.data.get("taints"), Mapping):
        short = ((key, str(value).partition(":")) for key, value in part.map("taints").items())
        return [{"key": key, "value": value, "effect": effect} for key, (value, _, effect) in short]
    found: list[dict[str, str]] = []
    for one in part.parts("taints"):
        taint = {"key": one.text("key"), "value": one.text("value"), "effect": one.text("effect")}
        found.append({key: value for key, value in taint.items() if value is not None})
    return found


def with_roles(groups: dict[str, dict[str, Any]], fabric: set[str]) -> None:
    """Nodes with accelerators or EFA run jobs, the others the add-ons.

    Where there are none such, all groups but the first run jobs.

    Args:
        fabric: groups that have EFA interfaces.
    """
    jobs = {name for name, one in groups.items() if name in fabric or _accelerated(one["instance_type"])}
    if not jobs:
        jobs = set(list(groups)[1:] or groups)
    for name, group in list(groups.items()):
        groups[name] = {"role": "compute" if name in jobs else "system", **group}


def _accelerated(kind: str) -> bool:
    known = instance_type(kind)
    return known is not None and known.accelerator is not None


def with_system(
    groups: dict[str, dict[str, Any]], settled: Mapping[str, Any], ledger: Ledger
) -> dict[str, dict[str, Any]]:
    """With nodes for the add-ons where no group is left for them."""
    if any(group["role"] == "system" for group in groups.values()):
        return groups
    region, zone = settled.get("region", ""), settled.get("network", {}).get("zone_id", "")
    kind = general_type("2xlarge", region, zone, hyperpod=False, system=True)
    name = "system" if "system" not in groups else "addons"
    ledger.assumed(
        f"node_groups.{name}", f"the add-ons of Kubernetes have nodes of their own: {_SYSTEM_NODES} x {kind}",
        "correct type and count",
    )  # fmt: skip
    return {name: {"role": "system", "instance_type": kind, "count": _SYSTEM_NODES}, **groups}


def _control_plane(top: Part, metadata: Part, vpc: Part, ledger: Ledger) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if version := metadata.text("version"):
        found["kubernetes_version"] = version
    if support := top.part("upgradePolicy").text("supportType"):
        found["support"] = support.lower()
    if (tier := top.part("controlPlaneScalingConfig").text("tier")) is not None:
        found["scaling_tier"] = tier.removeprefix("tier-")
    if services := top.part("kubernetesNetworkConfig").text("serviceIPv4CIDR"):
        found["service_cidr"] = services
    days = top.part("cloudWatch").part("clusterLogging").number("logRetentionInDays")
    if days is not None:
        found["log_retention_days"] = days
    found |= _endpoint(vpc, ledger)
    if admins := _admins(top):
        found["admins"] = admins
    else:
        ledger.assumed(
            "orchestrator.admins", "the file names no role that may use the Kubernetes API",
            "write the ARNs of roles: nobody else can use the cluster, not even who deploys it",
        )  # fmt: skip
    return found


def _endpoint(vpc: Part, ledger: Ledger) -> dict[str, Any]:
    endpoints = vpc.part("clusterEndpoints")
    if endpoints.flag("privateAccess") is False:
        ledger.changed(endpoints.place("privateAccess"), "the API always answers in the VPC", "nothing to do")
    networks = vpc.texts("publicAccessCIDRs")
    if endpoints.flag("publicAccess") is False:
        return {}
    if networks and _WORLD not in networks:
        return {"endpoint": {"kind": "public", "cidrs": networks}}
    ledger.changed(
        endpoints.place("publicAccess"), "the Kubernetes API is never open to the whole internet",
        "now it answers within the VPC only; orchestrator.endpoint: {kind: public, cidrs} opens it",
    )  # fmt: skip
    return {}


def _admins(top: Part) -> list[str]:
    """Roles and users that may do everything."""
    found: list[str] = []
    access = top.part("accessConfig")
    for part in access.parts("accessEntries"):
        arn = part.text("principalARN")
        policies = [policy.text("policyARN") or "" for policy in part.parts("accessPolicies")]
        groups = part.texts("kubernetesGroups")
        for key in ("kubernetesUsername", "type"):
            part.any(key)
        whole = any(policy.endswith(_ADMIN) for policy in policies)
        for policy in part.parts("accessPolicies"):
            scope = policy.part("accessScope")
            whole = scope.text("type") in (None, "cluster") and whole
            scope.any("namespaces")
        if arn and (whole or _MASTERS in groups):
            found.append(arn)
        else:
            top.ledger.left(
                part.where, "only whole administrators carry over", "write `teams` with their members"
            )
    for part in top.parts("iamIdentityMappings"):
        arn, groups = part.text("arn"), part.texts("groups")
        for key in ("username", "account", "namespace", "noDuplicateARNs", "serviceName"):
            part.any(key)
        if arn and _MASTERS in groups:
            found.append(arn)
        else:
            top.ledger.left(
                part.where, "only whole administrators carry over", "write `teams` with their members"
            )
    return list(dict.fromkeys(found))
