"""A request of SageMaker's CreateCluster, as samples have it for `aws sagemaker create-cluster`, with the
older provisioning_parameters.json beside it (names by the API model of botocore 1.44.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ultracluster.config.orchestrator import HyperPodEks, HyperPodSlurm, OrchestratorKind
from ultracluster.imports.file_systems import add
from ultracluster.imports.hyperpod_groups import group_of
from ultracluster.imports.ledger import Ledger, Part
from ultracluster.imports.outcome import Drafted
from ultracluster.imports.owner import of_account, owner
from ultracluster.imports.placing import database_place, other_zone, place
from ultracluster.imports.reasons import levels, reasons
from ultracluster.imports.surroundings import Asked
from ultracluster.plan.draft_place import general_type

TOOL = "SageMaker HyperPod"
_ROLES = {"Controller": "controller", "Login": "login", "Compute": "compute"}
_SYSTEM_NODES = 2
_PARAMETERS = "provisioning_parameters.json"
_NETWORK_KEYS = {"SecurityGroupIds", "Subnets"}


def is_request(data: Mapping[str, Any]) -> bool:
    """Return whether it is one of CreateCluster, or an answer of DescribeCluster."""
    return "InstanceGroups" in data or ("ClusterName" in data and "VpcConfig" in data)


def whole(data: object) -> object:
    """Instance groups alone, as `--instance-groups` takes them, and a network alone as a request."""
    if isinstance(data, list):
        groups = cast("list[object]", data)
        named = groups and all(
            isinstance(group, Mapping) and "InstanceGroupName" in group for group in groups
        )
        return {"InstanceGroups": groups} if named else groups
    if not isinstance(data, Mapping):
        return data
    mapping = cast("Mapping[str, Any]", data)
    if "InstanceGroupName" in mapping:
        return {"InstanceGroups": [mapping]}
    return {"VpcConfig": mapping} if set(mapping) == _NETWORK_KEYS else mapping


def is_network(data: Mapping[str, Any]) -> bool:
    """Return whether it is the network of a cluster, as `--vpc-config` takes it."""
    return set(data) == {"VpcConfig"}


def is_parameters(data: Mapping[str, Any]) -> bool:
    """Return whether it is a provisioning_parameters.json."""
    return "workload_manager" in data or "controller_group" in data


def drafted(
    data: Mapping[str, Any], name: str, asked: Asked, parameters: Mapping[str, Any] | None = None
) -> Drafted:
    """Return what the request comes to as an environment."""
    ledger = Ledger(reasons=reasons("HyperPod"), levels=levels("HyperPod"))
    top = ledger.part(data)
    orchestrator = top.part("Orchestrator")
    kubernetes = "Eks" in orchestrator
    kind = HyperPodEks().kind if kubernetes else HyperPodSlurm().kind
    roles = _Roles(ledger.part(parameters or {}, _PARAMETERS))
    groups: dict[str, dict[str, Any]] = {}
    for part in top.parts("InstanceGroups"):
        group_name = part.needed("InstanceGroupName", "name the group")
        role = {"role": "compute"} if kubernetes else roles.of(group_name, part, ledger)
        groups[group_name] = {**role, **group_of(part, kubernetes=kubernetes)}
    roles.check(groups, ledger)
    if not groups:
        ledger.refuse(top.place("InstanceGroups"), "has no group", "name one at least")
    types = [group["instance_type"] for group in groups.values() if group["role"] == "compute"]
    account, region = owner([data, parameters or {}])
    subnets, security = _network(top, asked)
    settled = place(ledger, asked, region, kind, types, subnets=subnets, groups=security)
    of_account(ledger, account, *(["whose cluster it is"] if asked.around else []))
    storage = _mounted(top, roles.parameters, asked, ledger)
    if database := _database(orchestrator.part("Slurm"), ledger, settled, asked):
        storage["accounting_database"] = database
    settings = {"kind": kind, **_settings(top, orchestrator, ledger)}
    if kubernetes:
        groups, control = _kubernetes(orchestrator, groups, settled, ledger)
        settings |= control
    environment: dict[str, Any] = {
        "name": name,
        "account": account,
        **settled,
        "tags": {tag.text("Key") or "": tag.text("Value") or "" for tag in top.parts("Tags")},
        "storage": storage,
        "orchestrator": settings,
        "node_groups": groups,
    }
    theirs = top.text("ClusterName")
    if asked.around is None:  # a running cluster keeps its name, and has a row of its own
        ledger.renamed(top.place("ClusterName"), theirs, asked.name or name)
    scaling = top.part("AutoScaling")
    scaling.any("AutoScalerType")
    if scaling.text("Mode") == "Enable":
        ledger.left(
            scaling.where, "HyperPod's Karpenter needs a bound, which the file does not have",
            "write orchestrator.autoscaling: {max_nodes}; its groups have `count: 0`",
        )  # fmt: skip
    return Drafted(tool=TOOL, kind=cast("OrchestratorKind", kind), data=environment, ledger=ledger)


class _Roles:
    """Which group is what under Slurm: by SlurmConfig, else by the older file."""

    def __init__(self, parameters: Part) -> None:
        self.given = bool(parameters)
        parameters.any("version")
        parameters.any("workload_manager")
        self.controller = parameters.text("controller_group")
        self.login = parameters.text("login_group")
        workers = parameters.parts("worker_groups")
        self.partitions = {
            worker.text("instance_group_name"): worker.text("partition_name") for worker in workers
        }
        self.parameters = parameters

    def of(self, name: str, group: Part, ledger: Ledger) -> dict[str, Any]:
        """Role and partition of a group."""
        slurm = group.part("SlurmConfig")
        node_type = slurm.text("NodeType")
        partitions = slurm.texts("PartitionNames")
        if node_type in _ROLES:
            role = _ROLES[node_type]
            partition = next(iter(partitions), None) or name
        elif node_type is None and name in (self.controller, self.login, *self.partitions):
            role = "controller" if name == self.controller else "login" if name == self.login else "compute"
            partition = self.partitions.get(name) or name
        else:
            instead = (
                f"name it in {self.parameters.where}"
                if self.given
                else "add SlurmConfig.NodeType, or give provisioning_parameters.json as a second file"
            )
            ledger.refuse(slurm.place("NodeType"), f"nothing says what {name or 'the group'} is", instead)
            return {"role": "compute"}
        return {"role": role, **({"partition": partition} if role == "compute" else {})}

    def check(self, groups: Mapping[str, Any], ledger: Ledger) -> None:
        """Groups that the older file names must be there."""
        for name in filter(None, (self.controller, self.login, *self.partitions)):
            if name not in groups:
                ledger.refuse(
                    self.parameters.where, f"names the group {name}, which the cluster does not have",
                    f"one of {', '.join(groups) or 'its groups'}",
                )  # fmt: skip


def _network(top: Part, asked: Asked) -> tuple[list[str], list[str]]:
    """Subnets and security groups of the nodes by id, those of compute groups first; only where the account
    was asked, which says what they are."""
    if asked.around is None:
        return [], []
    network = top.part("VpcConfig")
    subnets: list[str] = []
    for part in top.parts("InstanceGroups"):
        subnets += part.part("OverrideVpcConfig").texts("Subnets")
        part.part("OverrideVpcConfig").leave(
            "SecurityGroupIds", "nodes have one security group", "add the rules that you need of these to it"
        )
    return [*subnets, *network.texts("Subnets")], network.texts("SecurityGroupIds")


def _mounted(top: Part, parameters: Part, asked: Asked, ledger: Ledger) -> dict[str, Any]:
    """File systems that nodes mount, where the account was asked, which says what they are."""
    storage: dict[str, Any] = {}
    if asked.around is None:
        return storage
    for part in top.parts("InstanceGroups"):
        for one in part.parts("InstanceStorageConfigs"):
            for key, usual in (("FsxLustreConfig", "/fsx"), ("FsxOpenZfsConfig", "/home")):
                mount = one.part(key)
                name, path = mount.text("DnsName"), mount.text("MountPath") or usual
                mount.any("MountName")
                if name:
                    add(storage, ledger, mount.where, asked.around, name, path)
    for key, path in (("fsx_dns_name", "/fsx"), ("fsx_openzfs_dns_name", "/home")):
        if name := parameters.text(key):
            parameters.any("fsx_mountname")
            add(storage, ledger, parameters.place(key), asked.around, name, path)
    return storage


def _settings(top: Part, orchestrator: Part, ledger: Ledger) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if (recovery := top.text("NodeRecovery")) is not None:
        found["node_recovery"] = recovery.lower()
    if top.text("NodeProvisioningMode") is None:
        ledger.changed(
            top.place("NodeProvisioningMode"), "the cluster was all or nothing for each change",
            "now nodes come as capacity does (`continuous`); orchestrator.provisioning: classic is as before",
        )  # fmt: skip
    tiers = top.part("TieredStorageConfig")
    percent = tiers.number("InstanceMemoryAllocationPercentage")
    if tiers.text("Mode") == "Enable" and percent is not None:
        found["tiered_checkpoints_percent"] = percent
    strategy = orchestrator.part("Slurm").text("SlurmConfigStrategy")
    if strategy not in (None, "Merge"):
        ledger.changed(
            orchestrator.part("Slurm").place("SlurmConfigStrategy"),
            "hand edits of slurm.conf are always merged",
            "only orchestrator.provisioning: classic has other strategies",
        )  # fmt: skip
    return found


def _kubernetes(
    orchestrator: Part, groups: dict[str, dict[str, Any]], settled: Mapping[str, Any], ledger: Ledger
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """With a control plane of its own, and nodes for its add-ons."""
    eks = orchestrator.part("Eks")
    eks.text("ClusterArn")
    ledger.changed(
        eks.place("ClusterArn"), "a control plane is made with the cluster, and the old one is not touched",
        "its version, add-ons and access: `ultracluster import` of the EKS cluster's own file shows them",
    )  # fmt: skip
    region, zone = settled.get("region", ""), settled.get("network", {}).get("zone_id", "")
    kind = general_type("2xlarge", region, zone, hyperpod=False, system=True)
    name = "system" if "system" not in groups else "eks-system"
    ledger.assumed(
        f"node_groups.{name}", f"the add-ons of Kubernetes need nodes of EC2: {_SYSTEM_NODES} x {kind}",
        "correct them where your cluster had others",
    )  # fmt: skip
    ledger.assumed(
        "orchestrator.admins", "the file does not say who may use the Kubernetes API",
        "write the ARNs of roles: nobody else can use the cluster, not even who deploys it",
    )  # fmt: skip
    control: dict[str, Any] = {}
    if second := other_zone(settled):
        control["second_zone_id"] = second
    return {name: {"role": "system", "instance_type": kind, "count": _SYSTEM_NODES}, **groups}, control


def _database(slurm: Part, ledger: Ledger, settled: Mapping[str, Any], asked: Asked) -> dict[str, Any] | None:
    if "AccountingDatabase" not in slurm:
        return None
    database = slurm.part("AccountingDatabase")
    endpoint, port, secret = database.text("Endpoint"), database.number("Port"), database.text("SecretArn")
    group = asked.around.databases.get(endpoint or "") if asked.around else None
    if group and endpoint and secret:
        kept: dict[str, Any] = {"kind": "existing", "endpoint": endpoint, "secret_arn": secret}
        kept |= {"port": port} if port else {}
        kept |= {"database_name": name} if (name := database.text("Name")) else {}
        return {**kept, "security_group_id": group}
    found: dict[str, Any] = {"kind": "rds-mysql", **database_place(settled, asked)}
    if name := database.text("Name"):
        found["database_name"] = name
    ledger.changed(
        database.where,
        "the file does not have the database's security group",
        "now a new RDS for MySQL is made. To keep the old one write storage.accounting_database: {kind: "
        "existing, endpoint, secret_arn, security_group_id}; to move accounts: `sacctmgr dump` and "
        "`sacctmgr load`",
    )
    return found
