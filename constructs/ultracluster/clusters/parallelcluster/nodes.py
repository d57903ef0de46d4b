"""What nodes of a ParallelCluster are given from outside: scripts, permissions, the database's password."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import SecretValue, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as deployment
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from ultracluster.clusters.state import state_bundles
from ultracluster.config.nodes import Role
from ultracluster.lifecycle.bundles import NodeFiles, tools
from ultracluster.lifecycle.script_bundle import MEMORY_MIB, ScriptBundle
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import script_configuration
from ultracluster.parallelcluster.actions import FETCH, IMEX, ON_CONFIGURED, ON_START
from ultracluster.parallelcluster.deployed_values import current_prefix, deployed_parameter
from ultracluster.scripts_folder import scripts_folder
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.node_statements import MIRROR_IS_READ, SESSION_CHANNELS, named, read_below

ENTRIES = (ON_START, ON_CONFIGURED)


class ParallelClusterScripts(Construct):
    """The scripts of one cluster: a folder for each content hash, and one that stays and leads to the newest.

    Head and login nodes have one folder, each queue has its own: a change of the former replaces no compute
    node. ParallelCluster refuses an update in which the actions of head or login nodes changed, so these name
    the folder that stays. Which is the newest stands in a parameter, not in the bucket: whoever writes to the
    bucket only cannot have them run another.

    Attributes:
        bundle: the upload of the folders.
        prefix: that of head and login nodes, `<cluster>/<content hash>`.
        queues: content hashes of the queues, as `DeployedValues.queue_scripts` has them.
        deployed: the parameter with the hash of the newest.
        current: the upload into the one that stays.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bucket: s3.IBucket,
        cluster: Cluster,
        deployed_values: dict[str, Any],
        locked: Mapping[str, object] | None = None,
    ) -> None:
        """Upload the scripts.

        Args:
            bucket: where to.
            cluster: its name is the first part of the prefix.
            deployed_values: what is known only after deploy (CDK tokens).
            locked: as `script_configuration` takes it.
        """
        super().__init__(scope, construct_id)
        environment = cluster.environment
        cluster_name, release = environment.cluster_name, environment.software.release
        own = [*cluster.with_role("controller"), *cluster.with_role("login")]
        head = NodeFiles.of(*ENTRIES, release=release, also=[FETCH, f"{IMEX}.sh"])
        queue = NodeFiles.of(*ENTRIES, release=release, also=[FETCH])
        queues = {
            name: queue.in_folder(script_configuration(cluster, *groups, locked=locked))
            for name, groups in cluster.partitions.items()
        }
        newest = head.in_folder(script_configuration(cluster, *own, locked=locked))
        self.bundle = ScriptBundle(
            self,
            "Bundle",
            bucket=bucket,
            name=cluster_name,
            bundles={"": newest, **queues},
            others=[*tools(script_configuration(cluster, locked=locked)), *state_bundles(cluster)],
            deployed_values=deployed_values,
        )
        self.prefix = self.bundle.prefixes[""]
        self.queues = ",".join(f"{name}={bundle.folder}" for name, bundle in queues.items())
        prefix = current_prefix(cluster_name)
        # the CDK has one uploading function per stack, and with it one role: that of the bundle
        role = self.bundle.node.find_child("Role")
        log_group = self.bundle.node.find_child("Logs")
        assert isinstance(role, iam.Role) and isinstance(log_group, logs.LogGroup)
        self.current = deployment.BucketDeployment(
            self,
            "Current",
            sources=[
                deployment.Source.data(FETCH, (scripts_folder() / FETCH).read_text(encoding="utf-8")),
            ],
            destination_bucket=bucket,
            destination_key_prefix=prefix,
            prune=False,
            retain_on_delete=True,
            role=role.without_policy_updates(),
            memory_limit=MEMORY_MIB,
            log_group=log_group,
        )
        self.deployed = ssm.StringParameter(
            self,
            "Deployed",
            parameter_name=deployed_parameter(cluster_name),
            string_value=newest.sha256,
            description=f"Hash of the scripts of head and login nodes of {cluster_name}",
        )
        # it names a folder: that must be there, and what reads it comes last
        self.deployed.node.add_dependency(self.bundle)
        self.current.node.add_dependency(self.deployed)


class PlainPasswordSecret(Construct):
    """A copy of a secret's field `password` as a secret of its own, whose whole text it is.

    ParallelCluster hands the text of `PasswordSecretArn` to slurmdbd as it is, while RDS and others keep user
    and password together as JSON. CloudFormation copies it at deploy; the password is in no template.

    Attributes:
        secret_arn: the copy.
    """

    def __init__(self, scope: Construct, construct_id: str, *, secret_arn: str, key: kms.IKey) -> None:
        """Make the copy.

        Args:
            secret_arn: JSON secret with a field `password`.
            key: encrypts the copy.
        """
        super().__init__(scope, construct_id)
        password = SecretValue.secrets_manager(secret_arn, json_field="password")
        secret = secretsmanager.CfnSecret(
            self,
            "Resource",
            description="Password of the Slurm accounting database, plain for ParallelCluster",
            kms_key_id=key.key_arn,
            secret_string=password.unsafe_unwrap(),  # a dynamic reference, which CloudFormation resolves
        )
        self.secret_arn = secret.ref
        acknowledge(
            self,
            {"AwsSolutions-SMG4": "A copy: it follows the secret that it is a copy of, by a deploy."},
        )


class ParallelClusterNodePolicy(Construct):
    """What nodes may do beyond ParallelCluster's own policies, instead of AWS's wider ones for SSM and S3.

    ParallelCluster makes a role for the head node, for each queue and for each pool of login nodes; a cluster
    has one such policy for each role of node.

    Attributes:
        policy: the managed policy. Its path begins with `/parallelcluster/`: only such policies may
            ParallelCluster's own role for CloudFormation attach (its parallelcluster-policies.yaml).
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        scripts_bucket: s3.IBucket,
        key: kms.IKey,
        nodes: Role = "compute",
        mirror: str | None = None,
        blocks: bool = False,
        topology: bool = False,
        directory_key: str | None = None,
    ) -> None:
        """Make the policy.

        Args:
            cluster_name: first part of the scripts' prefix.
            scripts_bucket: where the scripts are.
            key: encrypts scripts and the password.
            nodes: role of the nodes that have it. Only the head node decrypts the database's password.
            mirror: `s3://bucket/prefix` of mirrored software releases.
            blocks: it asks when Capacity Blocks end.
            topology: they ask where EC2 has put the nodes.
            directory_key: KMS key of the directory's password, which the head node reads.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        scripts = scripts_bucket.arn_for_objects(f"{cluster_name}/*")
        through = ("s3", "secretsmanager") if nodes == "controller" else ("s3",)
        services = [f"{service}.{stack.region}.{stack.url_suffix}" for service in through]
        statements = [
            _statement("SessionManager", _SESSIONS, ["*"]),
            _statement(
                "ListScripts", ["s3:ListBucket"], [scripts_bucket.bucket_arn],
                {"StringLike": {"s3:prefix": [f"{cluster_name}/*"]}},
            ),
            _statement("ReadScripts", ["s3:GetObject"], [scripts]),
            _statement(
                "UseKey", ["kms:Decrypt"], [key.key_arn], {"StringEquals": {"kms:ViaService": services}}
            ),
        ]  # fmt: skip
        accepted = {
            "AwsSolutions-IAM5[Resource::*]": "ssmmessages knows no resources (Service Authorization "
            "Reference); UpdateInstanceInformation only tells Systems Manager what runs on a node.",
            wildcard(
                self, scripts
            ): "Every content hash of this cluster's scripts: while an update runs, some "
            "nodes still read the older one.",
        }
        if nodes != "compute":
            name = deployed_parameter(cluster_name).lstrip("/")
            deployed = stack.format_arn(service="ssm", resource="parameter", resource_name=name)
            statements.append(_statement("ReadDeployed", ["ssm:GetParameter"], [deployed]))
        if blocks:
            statements.append(_statement("ReadCapacityBlocks", ["ec2:DescribeCapacityReservations"], ["*"]))
            accepted["AwsSolutions-IAM5[Resource::*]"] += " Reservations cannot be named, either."
        if topology:
            statements.append(_statement("ReadPlaces", _PLACES, ["*"]))
            accepted["AwsSolutions-IAM5[Resource::*]"] += " Nor does EC2 for describing instances."
        if directory_key:
            statements.append(
                _statement(
                    "UseDirectoryKey", ["kms:Decrypt"], [directory_key],
                    {"StringEquals": {"kms:ViaService": f"secretsmanager.{stack.region}.{stack.url_suffix}"}},
                )
            )  # fmt: skip
        if mirror:
            reading, files = read_below(self, mirror, "Mirror")
            statements += reading
            accepted[wildcard(self, files)] = MIRROR_IS_READ
        self.policy = iam.ManagedPolicy(
            self,
            "Resource",
            path="/parallelcluster/",
            description=f"{named([nodes])} of the cluster {cluster_name}",
            statements=statements,
        )
        acknowledge(self, accepted)


_SESSIONS = [
    "ssm:UpdateInstanceInformation",
    *SESSION_CHANNELS,
]
"""What the agent needs for Session Manager (Systems Manager User Guide, "Add Session Manager permissions to
an existing IAM role")."""

_PLACES = ["ec2:DescribeInstances", "ec2:DescribeInstanceTopology"]
"""What lifecycle_scripts/files/topology_update.py asks."""


def _statement(
    sid: str, actions: list[str], resources: list[str], conditions: dict[str, object] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(sid=sid, actions=actions, resources=resources, conditions=conditions)
