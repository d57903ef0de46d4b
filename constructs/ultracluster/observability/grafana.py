"""A workspace of Amazon Managed Grafana with a role that reads metrics of one cluster, and nothing else.

Amazon Managed Grafana User Guide: "Permissions and policies for AWS data sources", "SAML", "Cross-service
confused deputy prevention". Data sources, dashboards and admins are no part of CloudFormation: `ultracluster
apply observability` makes them.
"""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_grafana as grafana
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.config.observability import Grafana
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.security.acknowledgements import acknowledge
from ultracluster.security.principals import trusted

_CLOUDWATCH = ["cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData", "cloudwatch:ListMetrics"]
_WORKSPACE = grafana.CfnWorkspace


class GrafanaWorkspace(Construct):
    """A Grafana of one cluster.

    Attributes:
        workspace_id: `g-...`
        endpoint: host name that browsers go to.
        role: what its data sources may do.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        config: Grafana | None = None,
        metrics: MetricsDestination | None = None,
        key: kms.IKey | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
    ) -> None:
        """Make the workspace.

        Args:
            name: shown in the console and in IAM Identity Center.
            config: how people log in, and Grafana's version.
            metrics: what it may read besides CloudWatch; nothing by default.
            key: of the workspace with the metrics.
            removal_policy: what happens to dashboards and users when it leaves the stack.
        """
        super().__init__(scope, construct_id)
        config = config or Grafana()
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=trusted(self, "grafana.amazonaws.com"),
            description=f"Grafana of {name}: reads metrics",
        )
        if metrics:
            self.role.add_to_policy(metrics.query_statement())
        if metrics and key and not metrics.role_arn:
            self.role.add_to_policy(
                iam.PolicyStatement(
                    sid="DecryptMetrics",
                    actions=["kms:Decrypt", "kms:GenerateDataKey"],
                    resources=[key.key_arn],
                )
            )
        self.role.add_to_policy(
            iam.PolicyStatement(sid="ReadCloudWatch", actions=_CLOUDWATCH, resources=["*"])
        )
        acknowledge(
            self.role,
            {"AwsSolutions-IAM5[Resource::*]": "CloudWatch knows no resources for reading metrics."},
        )
        self.resource = _WORKSPACE(
            self,
            "Resource",
            name=name,
            description=f"Dashboards of {name}",
            account_access_type="CURRENT_ACCOUNT",
            authentication_providers=[config.authentication],
            permission_type="CUSTOMER_MANAGED",
            data_sources=["CLOUDWATCH", *(["PROMETHEUS"] if metrics else [])],
            grafana_version=config.version,
            plugin_admin_enabled=False,
            role_arn=self.role.role_arn,
            saml_configuration=_saml(config),
        )
        self.resource.apply_removal_policy(removal_policy)
        self.workspace_id, self.endpoint = self.resource.attr_id, self.resource.attr_endpoint


def _saml(config: Grafana) -> grafana.CfnWorkspace.SamlConfigurationProperty | None:
    if config.authentication != "SAML" or config.saml_metadata_url is None:
        return None
    return _WORKSPACE.SamlConfigurationProperty(
        idp_metadata=_WORKSPACE.IdpMetadataProperty(url=config.saml_metadata_url),
        assertion_attributes=_WORKSPACE.AssertionAttributesProperty(role=config.saml_role_attribute),
        role_values=_WORKSPACE.RoleValuesProperty(admin=list(config.admins)),
    )
