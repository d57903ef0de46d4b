"""HyperPod's observability add-on of EKS: what it may do, and where it writes metrics.

SageMaker Developer Guide, "Amazon SageMaker HyperPod observability with Amazon Managed Grafana and Amazon
Managed Service for Prometheus". The add-on itself is among those of the cluster (`clusters.hyperpod.addons`).
"""

from __future__ import annotations

from typing import Any

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam

from ultracluster.observability.workspace import MetricsDestination
from ultracluster.security.acknowledgements import acknowledge, wildcard

COLLECTOR = "hyperpod-observability-operator-otel-collector"
"""Service account of the pods that write."""


def allow_collecting(role: iam.Role | iam.IRole, *, workspace_arn: str) -> None:
    """Let the collector write metrics to a Prometheus workspace, and logs to HyperPod's groups."""
    stack = Stack.of(role)
    logs = stack.format_arn(
        service="logs",
        resource="log-group",
        resource_name="/aws/sagemaker/Clusters/*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    for sid, actions, resources in (
        ("WriteMetrics", ["aps:RemoteWrite"], [workspace_arn]),
        ("WriteLogs", _LOGS, [logs]),
        ("FindLogs", ["logs:DescribeLogGroups"], ["*"]),
    ):
        role.add_to_principal_policy(iam.PolicyStatement(sid=sid, actions=actions, resources=resources))
    acknowledge(
        role,
        {
            "AwsSolutions-IAM5[Resource::*]": "DescribeLogGroups is asked of all groups of the account.",
            wildcard(
                role, logs
            ): "The add-on names its groups below HyperPod's; how, AWS does not publish, and "
            "its own example allows all of these.",
        },
    )


def addon_values(metrics: MetricsDestination) -> dict[str, Any]:
    """Configuration of the add-on: the workspace that it writes to."""
    endpoint = metrics.remote_write_url.removesuffix("/api/v1/remote_write")
    return {"ampWorkspace": {"arn": metrics.workspace_arn, "prometheusEndpoint": endpoint}}


_LOGS = [
    "logs:CreateLogGroup",
    "logs:CreateLogStream",
    "logs:DescribeLogStreams",
    "logs:GetLogEvents",
    "logs:PutLogEvents",
]
