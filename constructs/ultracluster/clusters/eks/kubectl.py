"""What applies charts and manifests to a cluster while it is deployed, also where the API is private.

The CDK's handler runs `helm` and `kubectl` in the VPC. Its own roles carry managed policies of AWS that are
far wider than what it does, so they are written out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from aws_cdk import ArnFormat, CfnResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultracluster.kubernetes.charts import Chart
from ultracluster.lifecycle.script_bundle import RUNTIME
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.cdk_tree import below, policy_of
from ultracluster.security.principals import trusted

INTERFACES = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
]
"""AWS Lambda Developer Guide, "Giving Lambda functions access to resources in an Amazon VPC", which asks to
allow them on all resources."""

HELM_WAITS = Duration.minutes(10)
"""The CDK's function has 15 minutes (aws-cdk-lib, KubectlProvider); ended by Lambda it reports nothing."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """Puts objects into one cluster, from any stack that knows the cluster's name and its handler."""

    scope: Construct
    cluster: eks.ICluster

    def add_manifest(
        self, construct_id: str, *objects: Mapping[str, Any], overwrite: bool = False
    ) -> eks.KubernetesManifest:
        """Apply Kubernetes objects; they are deleted with the resource.

        Args:
            overwrite: what is there already is changed, instead of refused.
        """
        return eks.KubernetesManifest(
            self.scope,
            construct_id,
            cluster=self.cluster,
            manifest=[dict(manifest) for manifest in objects],
            overwrite=overwrite or None,
        )

    def add_patch(
        self, construct_id: str, name: str, *, change: Mapping[str, Any], restore: Mapping[str, Any]
    ) -> eks.KubernetesPatch:
        """Change an object that Kubernetes makes itself in the namespace `default`, and never deletes.

        Args:
            name: as `namespace/default`.
            change: what is merged into it.
            restore: what is merged into it when the resource goes.
        """
        return eks.KubernetesPatch(
            self.scope,
            construct_id,
            cluster=self.cluster,
            resource_name=name,
            apply_patch=dict(change),
            restore_patch=dict(restore),
        )

    def add_chart(self, construct_id: str, chart: Chart, *, wait: bool = False) -> eks.HelmChart:
        """Install a chart.

        Args:
            chart: from `ultracluster.kubernetes.charts`.
            wait: until everything in it runs, for what comes after it (webhooks). Helm gives up, and says
                why, before the function that runs it is ended.
        """
        # an index is asked for a chart by its name; an OCI address is the chart
        return eks.HelmChart(
            self.scope,
            construct_id,
            cluster=self.cluster,
            chart=chart.name,
            release=chart.name,
            repository=chart.repository,
            version=chart.version,
            namespace=chart.namespace,
            values=dict(chart.values),
            wait=wait,
            timeout=HELM_WAITS if wait else None,
        )


def handler_role(scope: Construct, construct_id: str, *, cluster_arn: str) -> iam.Role:
    """The role of the function that runs `helm` and `kubectl`; in the cluster it may do everything."""
    stack = Stack.of(scope)
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=trusted(scope, "lambda.amazonaws.com"),
        description="Applies charts and manifests",
    )
    registries = stack.format_arn(service="ecr", resource="repository", resource_name="*")
    _add(role, "FindCluster", ["eks:DescribeCluster"], [cluster_arn])
    _add(
        role,
        "ReadCharts",
        ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
        [registries],
    )
    tokens = ["ecr-public:GetAuthorizationToken", "ecr:GetAuthorizationToken", "sts:GetServiceBearerToken"]
    _add(role, "RegistryTokens", tokens, ["*"])
    _run_in_vpc(role)
    acknowledge(role, {wildcard(scope, registries): "Copies of charts in the account's registry, read-only."})
    return role


def provider_of(cluster: eks.Cluster) -> eks.KubectlProvider:
    """What the CDK makes with a cluster to run `helm` and `kubectl`.

    Raises:
        CdkTreeError: the installed CDK makes it in another way.
    """
    return below(cluster, eks.KubectlProvider, "KubectlProvider")


def write_out(cluster: eks.Cluster, key: kms.IKey) -> None:
    """Replace AWS's managed policies on the role of the CDK's framework function, and encrypt its logs.

    Raises:
        CdkTreeError: the installed CDK makes the function in another way.
    """
    provider = provider_of(cluster)
    role = below(provider, iam.Role, "Provider", "framework-onEvent", "ServiceRole")
    cast("CfnResource", role.node.default_child).add_property_deletion_override("ManagedPolicyArns")
    _run_in_vpc(role)
    runs = "It invokes any version of the one handler, as the CDK's framework does."
    handler = below(provider, lambda_.Function, "Handler").function_arn
    acknowledge(policy_of(role), {wildcard(role, f"{handler}:*"): runs})
    acknowledge(provider, {"AwsSolutions-L1": RUNTIME})
    for child in provider.node.find_all():
        if isinstance(child, logs.CfnLogGroup):
            child.kms_key_id = key.key_arn
            child.retention_in_days = 90
            child.apply_removal_policy(RemovalPolicy.DESTROY)  # the CDK's default leaves it behind
    acknowledge(role, {f"AwsSolutions-IAM4[Policy::{arn}]": REMOVED for arn in MANAGED})


MANAGED = tuple(
    f"arn:<AWS::Partition>:iam::aws:policy/service-role/{name}"
    for name in ("AWSLambdaBasicExecutionRole", "AWSLambdaVPCAccessExecutionRole")
)
REMOVED = "It is taken off the role and replaced by the statements that are needed."


def _run_in_vpc(role: iam.Role) -> None:
    stack = Stack.of(role)
    groups = stack.format_arn(
        service="logs",
        resource="log-group",
        # CloudFormation shortens the stack's name in that of the function
        resource_name=f"/aws/lambda/{stack.stack_name[:20]}*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    _add(role, "WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], [groups])
    _add(role, "RunInVpc", INTERFACES, ["*"])
    # they are for Lambda, which makes the interfaces; its own code is refused them (same page, "Security best
    # practices"): only a call of the code names a function
    role.add_to_policy(
        iam.PolicyStatement(
            sid="NotFromCode",
            effect=iam.Effect.DENY,
            actions=[*INTERFACES, "ec2:DetachNetworkInterface"],
            resources=["*"],
            conditions={"Null": {"lambda:SourceFunctionArn": "false"}},
        )
    )
    acknowledge(
        role,
        {
            wildcard(role, groups): "The CDK names the function, and Lambda its log streams.",
            "AwsSolutions-IAM5[Resource::*]": "Lambda asks for calls about interfaces on all resources, to "
            "attach the function (Lambda Developer Guide); the function's code is refused them. Registry "
            "tokens know no resources (Service Authorization Reference).",
        },
    )


def _add(role: iam.Role, sid: str, actions: list[str], resources: list[str]) -> None:
    role.add_to_policy(iam.PolicyStatement(sid=sid, actions=actions, resources=resources))
