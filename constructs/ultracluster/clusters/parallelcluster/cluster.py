"""AWS ParallelCluster inside a CloudFormation stack, through its own custom resource (ParallelCluster User
Guide, "AWS CloudFormation custom resource")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack, cast

from aws_cdk import CfnStack, CustomResource, Fn, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.catalog.parallelcluster import provider_template
from ultracluster.clusters.given import (
    MadeCluster,
    scripts_bucket_of,
    use_bucket_key,
    waits_of_nodes,
)
from ultracluster.clusters.job_access import deployed, job_role_by_path
from ultracluster.clusters.metrics import deployed as metrics_deployed
from ultracluster.clusters.metrics import write_statements
from ultracluster.clusters.parallelcluster.nodes import (
    ParallelClusterNodePolicy,
    ParallelClusterScripts,
    PlainPasswordSecret,
)
from ultracluster.clusters.parallelcluster.ways_out import ssh_groups, ways_out
from ultracluster.clusters.settings import ParallelClusterSettings
from ultracluster.clusters.state import deployed as state_deployed
from ultracluster.config.environment import Access
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup, Role
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model import Cluster
from ultracluster.model.leases import asked_of
from ultracluster.model.mounts import told
from ultracluster.model.slurm_topology import head_writes_topology
from ultracluster.network.efa_security_group import IEfaSecurityGroup
from ultracluster.network.existing import cidr_of
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.parallelcluster.configuration_file import cluster_configuration
from ultracluster.parallelcluster.deployed_values import DeployedValues
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.cluster_key import ClusterKey
from ultracluster.security.every_role import every
from ultracluster.storage.accounting_database import IAccountingDatabase
from ultracluster.storage.buckets import DataBucket
from ultracluster.storage.lustre_file_system import mounts_of
from ultracluster.storage.lustre_interface import ILustreFileSystem
from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem

LONGEST_NAME = 40
"""With an accounting database, whose name on the head node is made of it."""


class ParallelClusterCluster(MadeCluster):
    """A ParallelCluster with Slurm in one subnet, and what its nodes are given.

    What is not given is made below it: security group, key, bucket of the scripts. ParallelCluster makes the
    nodes' roles; a grant is written into the policies that they have. With `deploy_with: pcluster` the
    cluster itself is not made: `values` is then what the file for the `pcluster` command is rendered with.

    Attributes:
        cluster_name: name of the cluster.
        cluster_arn: of ParallelCluster's own stack, with `*` for the id that CloudFormation gives it.
        job_role: what users' jobs may do in S3; None without `storage.job_buckets`.
        key: encrypts scripts and the copy of the database's password.
        security_groups: of all nodes.
        scripts_bucket: where the lifecycle scripts are.
        policies: what nodes may do beyond ParallelCluster's own policies, by their role: `controller` (the
            head node), `compute`, `login`.
        values: ids and names that its configuration holds.
        cluster: what it was worked out to be, as rules and plans take it.
        resource: the cluster; None with `deploy_with: pcluster`.
        head_node_instance_id: of EC2; None with `deploy_with: pcluster`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        subnet: ec2.ISubnet,
        further_subnets: Mapping[str, ec2.ISubnet] | None = None,
        vpc: ec2.IVpc | None = None,
        vpc_id: str | None = None,
        security_groups: Sequence[ec2.ISecurityGroup | IEfaSecurityGroup] | None = None,
        key: kms.IKey | ClusterKey | None = None,
        cluster_name: str | None = None,
        node_groups: Mapping[str, NodeGroup] | None = None,
        lustre: ILustreFileSystem | None = None,
        further_lustre: Mapping[str, ILustreFileSystem] | None = None,
        open_zfs: IOpenZfsFileSystem | None = None,
        accounting: IAccountingDatabase | None = None,
        scripts_bucket: s3.IBucket | DataBucket | None = None,
        release: str | None = None,
        mirror: str | None = None,
        instance_types: Mapping[str, DeclaredInstanceType] | None = None,
        node_tags: Mapping[str, str] | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        access: Access | None = None,
        config: ParallelCluster | None = None,
        metrics: MetricsDestination | None = None,
        resolved: Cluster | None = None,
        **settings: Unpack[ParallelClusterSettings],
    ) -> None:
        """Make the cluster.

        Args:
            subnet: of all nodes but those of `further_subnets`.
            further_subnets: in other zones of the same VPC, by zone id: of head and login groups that name a
                `zone_id`, where the other nodes are in a Local Zone. By default none.
            vpc: of the subnet; needed where no `security_groups` are given; by default none.
            vpc_id: its id, where no `vpc` is given; needed where `login_pools` are reached by SSH; by default
                none.
            security_groups: of all nodes; each must allow all traffic from and to itself
                (`EfaSecurityGroup`, of which one is made by default).
            key: encrypts scripts and the copy of the database's password; made by default.
            cluster_name: unique in account and Region, by default from the construct's path; a new name is a
                new cluster.
            node_groups: node groups by name: one of role `controller`, with one node, and others. No default
                without `resolved`.
            lustre: mounted by its id; by default none.
            further_lustre: mounted by their ids beside `lustre`, each at its own path, by name; by default
                none.
            open_zfs: mounted by the id of its root volume; by default none.
            accounting: external accounting database; by default none.
            scripts_bucket: where the lifecycle scripts go; made by default.
            release: software release of the nodes; the newest one for ParallelCluster by default.
            mirror: `s3://bucket/prefix` of mirrored software releases, which nodes may read; by default none.
            instance_types: those that the catalogue does not have, by name; by default none.
            node_tags: of all that ParallelCluster makes; the CDK's own `Tags` do not get there; by default
                none.
            removal_policy: RETAIN leaves the cluster where it is when it leaves the stack; by default it is
                destroyed.
            access: `node_metadata` and `metadata_users`: who on a node reaches the instance metadata, and
                with it what the nodes' roles may; services only by default.
            config: the settings as a model, instead of by keyword; by default the keywords say them.
            metrics: where nodes write metrics: `ClusterObservability(...).destination`; by default they
                collect none.
            resolved: what an environment file comes to, instead of groups, names, release and settings; by
                default none, and the arguments say it.
            settings: fields of `ParallelCluster`: `os`, `partitions`, `monitoring` and others.

        Raises:
            ValueError: what is given contradicts itself, or no configuration can be made of it. What AWS
                would refuse otherwise is reported by the CDK's validation.
        """
        super().__init__(scope, construct_id)
        inputs = self._take(ParallelCluster, locals(), longest_name=LONGEST_NAME)
        self._settings = cast("ParallelCluster", inputs.cluster.settings)
        self._retain = removal_policy is not RemovalPolicy.DESTROY
        self.cluster_arn = Stack.of(self).format_arn(
            service="cloudformation", resource="stack", resource_name=f"{self.cluster_name}/*"
        )
        self.scripts_bucket = scripts_bucket_of(self, scripts_bucket, self.key, self.cluster_name)
        software = inputs.cluster.environment.software
        self.policies = self._node_policies(software.mirror)
        self.job_role = job_role_by_path(self, inputs.cluster, self.policies)
        for policy in self.policies.values():
            policy.add_statements(*write_statements(inputs.cluster, metrics))
        with inputs.in_words_of_rules():
            self._scripts = ParallelClusterScripts(
                self,
                "Scripts",
                bucket=self.scripts_bucket,
                cluster=inputs.cluster,
                locked=None if inputs.from_file else {},
                # it mounts itself; our scripts set up EFA for Lustre, and ask for what the mount will be
                deployed_values={
                    "mounts": told(
                        lustre.mount if lustre else None, further_lustre=mounts_of(further_lustre)
                    ),
                    **deployed(self.job_role),
                    **state_deployed(inputs.cluster, self.scripts_bucket),
                    **metrics_deployed(inputs.cluster, metrics),
                },
            )
        # a login node that fetches the newest script must have the rights that it asks for
        self._scripts.current.node.add_dependency(*self.policies.values())
        self.roles = {}
        self._principal = every(node_policy.grant_principal for node_policy in self.policies.values())
        use_bucket_key(self.scripts_bucket, self.key, self)
        self.values = self._deployed_values(subnet, vpc.vpc_id if vpc else vpc_id)
        self.resource: CustomResource | None = None
        self.head_node_instance_id: str | None = None
        if self._settings.deploy_with == "cloudformation":
            with inputs.in_words_of_rules():
                self.resource = self._make()
            self.head_node_instance_id = self.resource.get_att_string("headNode.instanceId")
            self.resource.node.add_dependency(
                *waits_of_nodes(subnet, self.security_groups),
                *self._admitted(),
                *(self._ways_out(vpc) if vpc else ()),
            )

    def _deployed_values(self, subnet: ec2.ISubnet, vpc_id: str | None) -> DeployedValues:
        """Values of the configuration known at deploy, with the secret and the groups that it names."""
        parts, password = self._parts, None
        if parts.accounting:
            password = PlainPasswordSecret(
                self, "Password", secret_arn=parts.accounting.accounting.secret_arn, key=self.key
            )
        first, *further = (group.security_group_id for group in self.security_groups)
        pools = self._ssh_groups(vpc_id)
        return DeployedValues(
            subnet_id=subnet.subnet_id,
            further_subnet_ids=",".join(
                f"{zone}={other.subnet_id}" for zone, other in (parts.further_subnets or {}).items()
            ),
            security_group_id=first,
            further_security_groups=",".join(further),
            node_policy_arn=self.policies["compute"].managed_policy_arn,
            head_policy_arn=self.policies["controller"].managed_policy_arn,
            login_policy_arn=self.policies["login"].managed_policy_arn if "login" in self.policies else "",
            scripts_bucket=self.scripts_bucket.bucket_name,
            scripts_prefix=self._scripts.prefix,
            queue_scripts=self._scripts.queues,
            lustre_id=parts.lustre.file_system_id if parts.lustre else "",
            further_lustre_ids=",".join(
                f"{name}={mount.file_system_id}" for name, mount in mounts_of(parts.further_lustre).items()
            ),
            openzfs_volume_id=parts.open_zfs.root_volume_id if parts.open_zfs else "",
            database_endpoint=parts.accounting.endpoint if parts.accounting else "",
            database_secret_arn=password.secret_arn if password else "",
            ssh_groups=",".join(f"{pool}={group.attr_group_id}" for pool, group in pools.items()),
        )

    def _node_policies(self, mirror: str | None) -> dict[Role, iam.ManagedPolicy]:
        """One for each role of node; ParallelCluster attaches it to the roles that it makes."""
        ids: dict[Role, str] = {"compute": "NodePolicy", "controller": "HeadPolicy"}
        if self.cluster.with_role("login"):
            ids["login"] = "LoginPolicy"
        directory = self._settings.directory_service
        return {
            role: ParallelClusterNodePolicy(
                self,
                construct_id,
                cluster_name=self.cluster_name,
                scripts_bucket=self.scripts_bucket,
                key=self.key,
                nodes=role,
                mirror=mirror,
                blocks=role == "controller" and bool(asked_of(self.cluster, "capacity-block")),
                topology=role == "controller" and head_writes_topology(self.cluster),
                directory_key=directory.password_key_arn if directory and role == "controller" else None,
            ).policy
            for role, construct_id in ids.items()
        }

    def _ssh_groups(self, vpc_id: str | None) -> dict[str, ec2.CfnSecurityGroup]:
        if not self._settings.ssh_pools:
            return {}
        if vpc_id is None:
            raise ValueError("login pools that are reached by SSH need `vpc` or `vpc_id`")
        return ssh_groups(self, self._settings, vpc_id=vpc_id, cluster_name=self.cluster_name)

    def _ways_out(self, vpc: ec2.IVpc) -> list[ec2.CfnSecurityGroupEgress]:
        (group, *_) = self.security_groups
        return ways_out(
            self, self._settings, security_group_id=group.security_group_id, vpc_cidrs=[cidr_of(vpc, self)]
        )

    def _make(self) -> CustomResource:
        stack = Stack.of(self)
        provider = CfnStack(
            self,
            "Provider",
            template_url=provider_template(
                self._settings.version, region=stack.region, dns_suffix=stack.url_suffix
            ),
            parameters={"AdditionalIamPolicies": self._validation_policy().managed_policy_arn},
        )
        # No RollbackOnFailure: the custom resource hands its properties to update-cluster, too, which
        # refuses an argument that only create-cluster has, and no update would ever pass. A failed creation
        # is removed with the stack in any case, unless DeletionPolicy keeps it.
        resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::PclusterCluster",
            service_token=Fn.get_att(provider.logical_id, "Outputs.ServiceToken").to_string(),
            properties={
                "ClusterName": self.cluster_name,
                "ClusterConfiguration": cluster_configuration(self.cluster, self.values),
                "DeletionPolicy": "Retain" if self._retain or self.cluster.environment.protect else "Delete",
                # what our rules and ParallelCluster's own validators let pass may warn, but not err
                "ValidationFailureLevel": "ERROR",
            },
        )
        # nodes need scripts and permissions before the first of them starts
        resource.node.add_dependency(self._scripts, *self.policies.values())
        return resource

    def _keys_read(self) -> list[str]:
        """The key, and that of the scripts' bucket where it is another."""
        bucket_key = self.scripts_bucket.encryption_key or self.key
        return list(dict.fromkeys([self.key.key_arn, bucket_key.key_arn]))

    def _validation_policy(self) -> iam.ManagedPolicy:
        """What ParallelCluster's validators look at, and its own policies for CloudFormation leave out."""
        scripts = self.scripts_bucket.arn_for_objects(f"{self.cluster_name}/*")
        directory = self._settings.directory_service
        secrets = [self.values.database_secret_arn, directory.password_secret_arn if directory else ""]
        statements = [
            iam.PolicyStatement(sid="FindScripts", actions=["s3:GetObject"], resources=[scripts]),
            iam.PolicyStatement(sid="UseKey", actions=["kms:Decrypt"], resources=self._keys_read()),
        ]
        if any(secrets):
            statements.append(
                iam.PolicyStatement(
                    sid="DescribeSecrets",
                    actions=["secretsmanager:DescribeSecret"],
                    resources=[arn for arn in secrets if arn],
                )
            )
        policy = iam.ManagedPolicy(
            self,
            "ValidationPolicy",
            description=f"ParallelCluster's validation of {self.cluster_name}",
            statements=statements,
        )
        acknowledge(policy, {wildcard(self, scripts): "Scripts of this cluster, of which it looks at one."})
        return policy
