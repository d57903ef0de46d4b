"""Sessions on nodes: as an ordinary user for people, as the image's for administrators; and their log."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultracluster.clusters.cluster import ICluster
from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import removal
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.model import Cluster
from ultracluster.model.login import user_document
from ultracluster.model.people import people
from ultracluster.security.log_retention import retention


def add_sessions(scope: Construct, cluster: Cluster, *, nodes: ICluster, key: kms.IKey) -> SessionDocument:
    """Add the documents and the log group; gives the document of people who have no account of their own.

    Each user with principals has a document, which runs as that user: IAM says who may start which document,
    and not as whom one runs.

    Args:
        nodes: the cluster, whose nodes write the log.
        key: of the environment.
    """
    environment = cluster.environment
    access, log = environment.access, None
    if access.session_logs == "cloudwatch":
        log = logs.LogGroup(
            scope, "SessionLogs", encryption_key=key_for(scope, environment, "logs", key),
            retention=retention(access.session_log_days), removal_policy=removal(environment),
        )  # fmt: skip
        for statement in _write(log):
            nodes.grant_principal.add_to_principal_policy(statement)
    SessionDocument(
        scope, "AdminSession", user=environment.admin_user, access=access, log_group=log,
        purpose="A login shell of a user who may sudo, on a node of the cluster",
    )  # fmt: skip
    for account in people(cluster).accounts if cluster.traits.slurm else ():
        if account.principals:
            SessionDocument(
                scope, f"UserSession-{account.name}", user=account.name, access=access, log_group=log,
                name=user_document(environment, account.name),
                purpose=f"A login shell of {account.name}, on a node of the cluster",
            )  # fmt: skip
    return SessionDocument(
        scope, "Session", user=environment.session_user, access=access, log_group=log
    )  # fmt: skip


def _write(log: logs.ILogGroup) -> list[iam.PolicyStatement]:
    """Systems Manager User Guide, "Logging session data using Amazon CloudWatch Logs"."""
    return [
        iam.PolicyStatement(
            sid="WriteSessionLogs",
            actions=["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            resources=[log.log_group_arn],
        ),
        # the agent looks whether the group is encrypted, which IAM can limit to no group
        iam.PolicyStatement(sid="FindSessionLogs", actions=["logs:DescribeLogGroups"], resources=["*"]),
    ]
