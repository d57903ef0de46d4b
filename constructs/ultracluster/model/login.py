"""Commands that open a shell on a node, through SSM Session Manager: no port is open for it.

HyperPod's nodes are in an account of the service and have a target of their own; other nodes are instances
of the account (SageMaker Developer Guide, "Access your SageMaker HyperPod cluster nodes"). The parts may
hold tokens of the CDK, so nothing here looks into them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.config import Environment

DESCRIPTION = "needs the AWS CLI with its Session Manager plugin"
SSH_DOCUMENT = "AWS-StartSSHSession"
"""AWS's document that carries SSH to the sshd of a node. SSH is encrypted, so no log of sessions has it."""


def start_session(
    target: str, *, region: str, document: str = "", parameters: str = "", profile: str = ""
) -> list[str]:
    """The command of one session, one argument each.

    Args:
        target: an instance id, or `hyperpod_target`.
        document: name of the session document; the account's default where empty.
        parameters: of the document, as JSON.
        profile: of the AWS CLI; not named where empty or `default`.
    """
    words = ["aws", "ssm", "start-session", "--region", region]
    if document:
        words += ["--document-name", document]
    words += ["--target", target]
    if parameters:
        words += ["--parameters", parameters]
    if profile and profile != "default":
        words += ["--profile", profile]
    return words


def user_document(environment: Environment, user: str) -> str:
    """Name of the session document of one user, known before it is deployed: policies name it whole, because
    `al*` would be `alice`'s as well."""
    return f"{environment.stack_name('cluster')}-as-{user}"


def login_command(target: str, *, region: str, document: str) -> str:
    """The line that a user pastes into a shell; `target` may hold a `$(command)` that finds the node."""
    return " ".join(start_session(target, region=region, document=document))


def hyperpod_target(cluster_id: str, group: str, instance: str) -> str:
    """Target of a HyperPod node.

    Args:
        cluster_id: last part of the cluster's ARN.
        instance: its id, or a `$(command)` that finds one.
    """
    return f"sagemaker-cluster:{cluster_id}_{group}-{instance}"


def find_hyperpod_node(cluster_name: str, group: str, *, region: str) -> str:
    """`$(command)` for the id of the first node of an instance group."""
    return (
        f"$(aws sagemaker list-cluster-nodes --region {region} --cluster-name {cluster_name} "
        f"--instance-group-name-contains {group} --query 'ClusterNodeSummaries[0].InstanceId' --output text)"
    )


def find_instance(tags: Mapping[str, str], *, region: str) -> str:
    """`$(command)` for the id of the first running instance that has these tags."""
    filters = " ".join(f"Name=tag:{key},Values={value}" for key, value in tags.items())
    return (
        f"$(aws ec2 describe-instances --region {region} --filters {filters} "
        "Name=instance-state-name,Values=running --query 'Reservations[0].Instances[0].InstanceId' "
        "--output text)"
    )
