"""AWS ParallelCluster inside a CloudFormation stack, through its own custom resource (ParallelCluster User
Guide, "AWS CloudFormation custom resource")."""

from __future__ import annotations

from aws_cdk import CfnStack, CustomResource, Fn, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.clusters.parallelcluster.configuration_file import cluster_configuration, settings_of
from ultracluster.clusters.parallelcluster.deployed_values import DeployedValues
from ultracluster.clusters.parallelcluster.nodes import (
    ParallelClusterNodePolicy,
    ParallelClusterScripts,
    PlainPasswordSecret,
    arns_of,
)
from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.model.mounts import Accounting, LustreMount, OpenZfsMount, told
from ultracluster.security.acknowledgements import acknowledge, wildcard

PROVIDER = "parallelcluster/{version}/templates/custom_resource/cluster.yaml"


class ParallelClusterCluster(Construct):
    """A ParallelCluster with Slurm in one subnet, and what its nodes are given.

    With `deploy_with: pcluster` only the latter is made: `values` is then what the file for the `pcluster`
    command is rendered with.

    Attributes:
        cluster_name: name of the cluster.
        values: ids and names that its configuration holds.
        resource: the cluster; None with `deploy_with: pcluster`.
        head_node_instance_id: of EC2; None with `deploy_with: pcluster`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        subnet_id: str,
        security_group_id: str,
        key: kms.IKey,
        scripts_bucket: s3.IBucket,
        lustre: LustreMount | None = None,
        open_zfs: OpenZfsMount | None = None,
        accounting: Accounting | None = None,
    ) -> None:
        """Make the cluster.

        Args:
            environment: of kind `parallelcluster`, and free of findings of the rules; what is given below
                takes the place of its network and storage.
            subnet_id: the one subnet of all nodes.
            security_group_id: the group of all nodes, which must allow all traffic from and to itself.
            key: encrypts the copy of the database's password.
            scripts_bucket: where the lifecycle scripts go, with its key.
            lustre: mounted by its id.
            open_zfs: mounted by the id of its root volume.
            accounting: external accounting database.

        Raises:
            ValueError: the environment has another orchestrator, or no configuration can be made of it.
        """
        super().__init__(scope, construct_id)
        self._orchestrator = settings_of(environment)
        self._cluster = resolve(environment)
        self._bucket, self._key = scripts_bucket, key
        self.cluster_name = environment.cluster_name
        self._scripts = ParallelClusterScripts(
            self,
            "Scripts",
            bucket=scripts_bucket,
            cluster=self._cluster,
            # it mounts itself; our scripts set up EFA for Lustre, and ask for what the mount will be
            deployed_values={"mounts": told(lustre)},
        )
        self._policy = ParallelClusterNodePolicy(
            self,
            "NodePolicy",
            cluster_name=self.cluster_name,
            scripts_bucket=scripts_bucket,
            key=key,
            mirror=environment.software.mirror,
        )
        password = accounting and PlainPasswordSecret(
            self, "Password", secret_arn=accounting.secret_arn, key=key
        )
        self.values = DeployedValues(
            subnet_id=subnet_id,
            security_group_id=security_group_id,
            node_policy_arn=self._policy.policy.managed_policy_arn,
            scripts_bucket=scripts_bucket.bucket_name,
            scripts_prefix=self._scripts.prefix,
            queue_scripts=self._scripts.queues,
            lustre_id=lustre.file_system_id if lustre else "",
            openzfs_volume_id=open_zfs.volume_id if open_zfs else "",
            database_endpoint=accounting.endpoint if accounting else "",
            database_secret_arn=password.secret_arn if password else "",
        )
        self.resource: CustomResource | None = None
        self.head_node_instance_id: str | None = None
        if self._orchestrator.deploy_with == "cloudformation":
            self.resource = self._make()
            self.head_node_instance_id = self.resource.get_att_string("headNode.instanceId")

    def _make(self) -> CustomResource:
        stack = Stack.of(self)
        host = f"{stack.region}-aws-parallelcluster.s3.{stack.region}.{stack.url_suffix}"
        provider = CfnStack(
            self,
            "Provider",
            template_url=f"https://{host}/{PROVIDER.format(version=self._orchestrator.version)}",
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
                "ClusterConfiguration": cluster_configuration(self._cluster, self.values),
                "DeletionPolicy": "Retain" if self._cluster.environment.protect else "Delete",
                # what our rules and ParallelCluster's own validators let pass may warn, but not err
                "ValidationFailureLevel": "ERROR",
            },
        )
        # nodes need scripts and permissions before the first of them starts
        resource.node.add_dependency(self._scripts, self._policy)
        return resource

    def _validation_policy(self) -> iam.ManagedPolicy:
        """What ParallelCluster's validators look at, and its own policies for CloudFormation leave out."""
        scripts = self._bucket.arn_for_objects(f"{self.cluster_name}/*")
        directory = self._orchestrator.directory_service
        secrets = [self.values.database_secret_arn, directory.password_secret_arn if directory else ""]
        statements = [
            iam.PolicyStatement(sid="FindScripts", actions=["s3:GetObject"], resources=[scripts]),
            iam.PolicyStatement(
                sid="UseKey", actions=["kms:Decrypt"], resources=arns_of(self._key, self._bucket)
            ),
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
