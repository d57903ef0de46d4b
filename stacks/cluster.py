"""The stack of the cluster itself. It holds no data: it may be deleted and made again."""

from __future__ import annotations

from dataclasses import replace

import aws_cdk as cdk
from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.parts import NetworkParts, StorageParts
from ultracluster.config import Environment
from ultracluster.config.storage import ExistingDatabase, ExistingLustre, ExistingOpenZfs
from ultracluster.lifecycle.configuration import script_configuration
from ultracluster.network.admission import Admission, Traffic
from ultracluster.network.existing import existing_subnet
from ultracluster.orchestrators.hyperpod_slurm import HyperPodSlurmCluster
from ultracluster.orchestrators.session_document import SessionDocument
from ultracluster.storage.lustre_file_system import admit_to_lustre
from ultracluster.storage.open_zfs_file_system import admit_to_open_zfs


class ClusterStack(Stack):
    """A HyperPod Slurm cluster, its role and its lifecycle scripts."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Environment,
        env: cdk.Environment,
        network: NetworkParts,
        storage: StorageParts,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=config.protect,
            description=f"Ultracluster {config.name}: HyperPod cluster with Slurm",
        )  # fmt: skip
        key = kms.Key.from_key_arn(self, "Key", storage.key_arn)
        admissions = self._admit(config, network.security_group_id)
        cluster = HyperPodSlurmCluster(
            self,
            "Cluster",
            cluster_name=config.cluster_name,
            config=config.orchestrator,
            node_groups=config.node_groups,
            subnet=existing_subnet(self, "Nodes", network.subnet_id),
            security_groups=[network.security_group_id],
            key=key,
            scripts_bucket=s3.Bucket.from_bucket_attributes(
                self, "ScriptsBucket", bucket_name=storage.scripts_bucket, encryption_key=key
            ),
            script_configuration=script_configuration(config),
            lustre=storage.lustre,
            open_zfs=storage.open_zfs,
            accounting=_with_secret_key(storage),
            mirror=config.software.mirror,
        )
        for admission in admissions:
            cluster.resource.node.add_dependency(admission)
        session = SessionDocument(self, "Session", access=config.access)
        self._outputs(config, cluster, session)

    def _admit(self, config: Environment, nodes: str) -> list[Admission]:
        """Rules in the groups of file systems and databases that other stacks made."""
        storage = config.storage
        admissions: list[Admission] = []
        if isinstance(storage.lustre, ExistingLustre):
            admissions.append(
                admit_to_lustre(
                    self, "LustreClients", clients=nodes,
                    file_system_group=storage.lustre.security_group_id, efa=storage.lustre.efa,
                )
            )  # fmt: skip
        if isinstance(storage.openzfs, ExistingOpenZfs):
            admissions.append(
                admit_to_open_zfs(
                    self, "OpenZfsClients", clients=nodes, file_system_group=storage.openzfs.security_group_id
                )
            )
        if isinstance(storage.accounting_database, ExistingDatabase):
            database = storage.accounting_database
            traffic = (Traffic("MySql", "tcp", database.port, database.port),)
            admissions.append(
                Admission(
                    self,
                    "AccountingClients",
                    clients=nodes,
                    servers=database.security_group_id,
                    traffic=traffic,
                )
            )
        return admissions

    def _outputs(self, config: Environment, cluster: HyperPodSlurmCluster, session: SessionDocument) -> None:
        group = next(iter(config.groups("login") or config.groups("controller")))
        first = "--query 'ClusterNodeSummaries[0].InstanceId' --output text"
        find = (
            f"aws sagemaker list-cluster-nodes --region {config.region} --cluster-name {config.cluster_name} "
            f"--instance-group-name-contains {group} {first}"
        )
        start = f"aws ssm start-session --region {config.region} --document-name {session.name}"
        target = f"sagemaker-cluster:{cluster.cluster_id}_{group}-$({find})"
        CfnOutput(
            self,
            "LoginCommand",
            description="Opens a shell on the cluster (needs the AWS CLI with its Session Manager plugin)",
            value=f"{start} --target {target}",
        )
        CfnOutput(self, "ClusterName", value=cluster.cluster_name, description="HyperPod cluster")
        CfnOutput(self, "ClusterArn", value=cluster.cluster_arn, description="HyperPod cluster")
        CfnOutput(
            self,
            "LogGroup",
            value=f"/aws/sagemaker/Clusters/{cluster.cluster_name}/{cluster.cluster_id}",
            description="Logs of lifecycle scripts and health checks",
        )


def _with_secret_key(storage: StorageParts):
    accounting = storage.accounting
    if accounting and accounting.secret_key_arn is None:
        return replace(accounting, secret_key_arn=storage.key_arn)
    return accounting
