"""What a cluster's file can only say once its network and storage are deployed, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ultracluster.config import Environment
from ultracluster.config.environment import StackPart
from ultracluster.config.parallelcluster import ParallelCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedValues:
    """Ids and names of what the stacks of an environment made: real ones, CDK tokens, or placeholders.

    Values of parts that an environment does not have are empty.
    """

    subnet_id: str
    """The subnet of all nodes that are in the network's own zone."""
    security_group_id: str
    """The group of all nodes; it admits itself, both ways."""
    node_policy_arn: str
    """Managed policy with what our scripts and Session Manager need: that of compute nodes, and of the others
    where they have none of their own."""
    scripts_bucket: str
    """Bucket of the lifecycle scripts."""
    scripts_prefix: str
    """Folder there of what head and login nodes run: `<cluster>/<content hash>`."""
    further_subnet_ids: str = ""
    """`<zone id>=subnet-...` of each further zone, separated by commas."""
    further_security_groups: str = ""
    """Further groups of all nodes, separated by commas."""
    queue_scripts: str = ""
    """Folders of what the nodes of queues run, next to it: `<queue>=<content hash>` for each, separated by
    commas. Without it queues have the same folder."""
    lustre_id: str = ""
    """`fs-...`"""
    further_lustre_ids: str = ""
    """`<name>=fs-...` of each further Lustre file system, separated by commas."""
    openzfs_volume_id: str = ""
    """`fsvol-...` of the root volume."""
    database_endpoint: str = ""
    """Host of the accounting database, without the port."""
    head_policy_arn: str = ""
    """That of the head node, which may also decrypt the database's password."""
    login_policy_arn: str = ""
    """That of login nodes."""
    database_secret_arn: str = ""
    """Secret whose whole text is the database's password; ParallelCluster takes no other form."""
    ssh_groups: str = ""
    """Security groups that let SSH into login pools: `<pool>=<group>` for each, separated by commas."""

    @property
    def security_group_ids(self) -> list[str]:
        """All groups of all nodes."""
        return [self.security_group_id, *filter(None, self.further_security_groups.split(","))]

    def further_lustre_id(self, name: str) -> str:
        """Id of a further Lustre file system; where nothing is deployed, what stands for all of them."""
        parts = (pair.partition("=") for pair in self.further_lustre_ids.split(","))
        ids = {lustre: identifier for lustre, _, identifier in parts}
        return ids.get(name) or self.further_lustre_ids

    def security_groups_of(self, pool: str) -> list[str]:
        """Those of a login pool that is reached by SSH.

        Raises:
            KeyError: groups of pools are known, and that of this one is not.
        """
        if self.ssh_groups.startswith("<"):  # a placeholder for all of them
            return [*self.security_group_ids, f"{self.ssh_groups[:-1]}.{pool}>"]
        groups = dict(entry.split("=", 1) for entry in self.ssh_groups.split(",") if entry)
        return [*self.security_group_ids, groups[pool]]

    def subnet_in(self, zone_id: str, home: str) -> str:
        """The subnet of a zone; `home` is the zone of the network.

        Raises:
            KeyError: subnets of further zones are known, and that of this one is not.
        """
        if zone_id == home:
            return self.subnet_id
        if self.further_subnet_ids.startswith("<"):  # a placeholder for all of them
            return f"{self.further_subnet_ids[:-1]}.{zone_id}>"
        return dict(pair.split("=", 1) for pair in self.further_subnet_ids.split(",") if pair)[zone_id]

    @property
    def scripts_uri(self) -> str:
        """The folder of the very scripts of head and login nodes; another content, another folder."""
        return f"s3://{self.scripts_bucket}/{self.scripts_prefix}"

    def queue_scripts_uri(self, queue: str) -> str:
        """The folder of the very scripts of a queue's nodes.

        Raises:
            KeyError: folders of queues are known, and that of this one is not.
        """
        if not self.queue_scripts:
            return self.scripts_uri
        if self.queue_scripts.startswith("<"):  # a placeholder for all of them
            return f"s3://{self.scripts_bucket}/{self.queue_scripts[:-1]}.{queue}>"
        folder = self.scripts_prefix.rpartition("/")[0]
        hashes = dict(entry.split("=", 1) for entry in self.queue_scripts.split(","))
        return f"s3://{self.scripts_bucket}/{folder}/{hashes[queue]}"

    def current_scripts_uri(self, cluster_name: str) -> str:
        """The folder that never changes its name, and leads to the newest of the others."""
        return f"s3://{self.scripts_bucket}/{current_prefix(cluster_name)}"


def current_prefix(cluster_name: str) -> str:
    """Prefix of the script that leads to a cluster's newest ones."""
    return f"{cluster_name}/current"


def deployed_parameter(cluster_name: str) -> str:
    """Parameter of Systems Manager with the hash of a cluster's newest scripts; from_s3.sh knows the name."""
    return f"/ultracluster/scripts/{cluster_name}"


FURTHER_SUBNETS = "FurtherSubnetIds"
"""Output of the network's stack: `<zone id>=subnet-...` of each further zone, separated by commas."""


@dataclass(frozen=True, slots=True, order=True)
class StackOutput:
    """An output of a deployed stack."""

    stack: str
    name: str

    @property
    def placeholder(self) -> str:
        """What stands for the value where nothing is deployed: `<prod-network.NodeSubnetId>`."""
        return f"<{self.stack}.{self.name}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSources:
    """Where the values come from: those that the environment file knows, and outputs for the others."""

    known: Mapping[str, str] = field(default_factory=dict[str, str])
    outputs: Mapping[str, StackOutput] = field(default_factory=dict[str, StackOutput])

    @property
    def stacks(self) -> list[str]:
        """The stacks to ask, in the order in which they are deployed."""
        return list(dict.fromkeys(output.stack for output in self.outputs.values()))

    def missing(self, deployed: Mapping[str, Mapping[str, str]]) -> list[StackOutput]:
        """Outputs that `deployed` (values by output name by stack) does not have."""
        return [
            output for output in self.outputs.values() if not deployed.get(output.stack, {}).get(output.name)
        ]

    def filled(self, deployed: Mapping[str, Mapping[str, str]]) -> DeployedValues:
        """The values.

        Raises:
            KeyError: an output is missing.
        """
        values = {key: deployed[output.stack][output.name] for key, output in self.outputs.items()}
        return DeployedValues(**self.known, **values)

    def placeholders(self) -> DeployedValues:
        """The values with named placeholders for what is not known before a deploy."""
        return DeployedValues(
            **self.known, **{key: output.placeholder for key, output in self.outputs.items()}
        )


def value_sources(environment: Environment) -> ValueSources:
    """Where each value of a ParallelCluster environment comes from."""
    network, storage = environment.network, environment.storage
    values: dict[str, str] = {}
    outputs: dict[str, StackOutput] = {}

    def of(part: StackPart, names: Iterable[tuple[str, str]]) -> None:
        outputs.update({key: StackOutput(environment.stack_name(part), name) for key, name in names})

    if network.subnet:
        values["subnet_id"] = network.subnet.id
    else:
        of("network", [("subnet_id", "NodeSubnetId")])
    if network.further_zones and network.subnet:
        existing = {zone: further.subnet_id for zone, further in network.further_zones.items()}
        values["further_subnet_ids"] = ",".join(
            f"{zone}={subnet}" for zone, subnet in existing.items() if subnet
        )
    elif network.further_zones:
        of("network", [("further_subnet_ids", FURTHER_SUBNETS)])
    if network.security_group:
        values["security_group_id"] = network.security_group.id
    else:
        of("network", [("security_group_id", "NodeSecurityGroupId")])
    if storage.scripts_bucket:
        values["scripts_bucket"] = storage.scripts_bucket.name
    else:
        of("buckets", [("scripts_bucket", "ScriptsBucketName")])
    if storage.lustre and storage.lustre.deployment == "existing":
        values["lustre_id"] = storage.lustre.id
    elif storage.lustre:
        of("storage", [("lustre_id", "LustreId")])
    if storage.further_lustre:
        of("cluster", [("further_lustre_ids", "FurtherLustreIds")])
    if storage.openzfs and storage.openzfs.deployment == "existing":
        values["openzfs_volume_id"] = storage.openzfs.volume_id or ""
    elif storage.openzfs:
        of("storage", [("openzfs_volume_id", "OpenZfsVolumeId")])
    if storage.accounting_database:
        if storage.accounting_database.kind == "existing":
            values["database_endpoint"] = storage.accounting_database.endpoint
        else:
            of("storage", [("database_endpoint", "AccountingEndpoint")])
        of("cluster", [("database_secret_arn", "AccountingPasswordSecretArn")])
    of("cluster", [("node_policy_arn", "NodePolicyArn"), ("head_policy_arn", "HeadPolicyArn")])
    if any(group.role == "login" for group in environment.node_groups.values()):
        of("cluster", [("login_policy_arn", "LoginPolicyArn")])
    if isinstance(environment.orchestrator, ParallelCluster) and environment.orchestrator.ssh_pools:
        of("cluster", [("ssh_groups", "SshGroups")])
    of("cluster", [("scripts_prefix", "ScriptsPrefix"), ("queue_scripts", "QueueScripts")])
    return ValueSources(known=values, outputs=outputs)
