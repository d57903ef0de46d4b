"""What the add-on of SageMaker Spaces may do: register spaces of this cluster with Systems Manager, and sign
people's tokens. Written out after AmazonSageMakerSpacesControllerPolicy (v3, 2026-02-12) and
AmazonSageMakerSpacesRouterPolicy (AWS Managed Policy Reference), for this cluster's ARN alone, and less what
the add-on's source does not do (jupyter-infra/jupyter-k8s-aws b6adb6f, 2026-08-07, internal/awsplugin): tags
of nodes that are registered, documents of other names, resetting the tier.
"""

from __future__ import annotations

from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.kubectl import Kubectl
from ultracluster.clusters.eks.roles import addon_role
from ultracluster.config.hyperpod_spaces import HyperPodSpaces
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.spaces import CONTROLLER, ROUTER, space_objects
from ultracluster.model import Cluster
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.principals import trusted

ADDON = "amazon-sagemaker-spaces"
_MANAGED_BY = "sagemaker.amazonaws.com/managed-by"
_CLUSTER = "sagemaker.amazonaws.com/eks-cluster-arn"
_TIER = "managed-instance/activation-tier"
_DOCUMENT = "SageMaker-SpaceSSHSessionDocument"
"""The document that the add-on makes, one for the account (internal/awsplugin/constants.go)."""


class SpacesRoles(Construct):
    """Roles of the add-on.

    Attributes:
        identities: roles by service account.
        ssm: what a space's agent of Systems Manager may do; None without `remote_ide`.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, wanted: HyperPodSpaces, eks_cluster_arn: str
    ) -> None:
        """Make them.

        Args:
            wanted: what is asked for.
            eks_cluster_arn: the EKS cluster, whose pods have the roles, and which spaces are tagged with.
        """
        super().__init__(scope, construct_id)
        self._eks_cluster_arn = eks_cluster_arn
        controller = addon_role(self, "Controller", cluster_arn=eks_cluster_arn, addon=ADDON)
        self.identities = {CONTROLLER: controller}
        self.ssm: iam.Role | None = None
        if wanted.remote_ide:
            self.ssm = self._agent()
            self._let_in(controller, self.ssm)
        if wanted.web_ui:
            router = addon_role(self, "Router", cluster_arn=eks_cluster_arn, addon=ADDON)
            self.identities[ROUTER] = router
            for role in (controller, router):
                self._sign(role, wanted.web_ui.key_arn)

    def _agent(self) -> iam.Role:
        """Of the agent beside each space: it opens sessions and tells that it lives.

        Systems Manager User Guide, Verify or create an IAM role with Session Manager permissions.
        """
        role = iam.Role(
            self,
            "Agent",
            assumed_by=trusted(self, "ssm.amazonaws.com"),
            description="Agent of Systems Manager in spaces",
        )
        spaces = self._ssm("managed-instance", "*")
        kinds = ("CreateControl", "CreateData", "OpenControl", "OpenData")
        channels = [f"ssmmessages:{kind}Channel" for kind in kinds]
        _add(role, "TellState", ["ssm:UpdateInstanceInformation"], [spaces])
        _add(role, "SessionManager", channels, ["*"])
        acknowledge(
            role,
            {
                "AwsSolutions-IAM5[Resource::*]": "ssmmessages knows no resource (Service Authorization "
                "Reference).",
                wildcard(role, spaces): "The id of a space is known only once it is registered.",
            },
        )
        return role

    def _let_in(self, role: iam.Role, agent: iam.Role) -> None:
        """Register spaces, open sessions to them, end them; each carries the tag of this cluster."""
        tags = {_MANAGED_BY: ADDON, _CLUSTER: self._eks_cluster_arn}
        asked = {"StringEquals": {f"aws:RequestTag/{key}": value for key, value in tags.items()}}
        marked = {"StringEquals": {f"ssm:resourceTag/{key}": value for key, value in tags.items()}}
        spaces, document = self._ssm("managed-instance", "*"), self._ssm("document", _DOCUMENT)
        ssh = self._ssm("document", "AWS-StartSSHSession", account="")
        to_ssm = {"StringEquals": {"iam:PassedToService": "ssm.amazonaws.com"}}
        seen = ["ssm:DescribeActivations", "ssm:DescribeInstanceInformation", "ssm:DescribeSessions"]
        _add(role, "RegisterSpaces", ["ssm:CreateActivation"], ["*"], asked)
        _add(role, "FindSpaces", [*seen, "ssm:DeleteActivation"], ["*"])
        # The tags of an activation are asked for before its node is registered, and has an id. What has one
        # may be a server of somebody else: whoever tags it could then enter and end it as a space.
        _add(role, "TagSpaces", ["ssm:AddTagsToResource"], [spaces, agent.role_arn], asked)
        registered = iam.PolicyStatement(
            sid="TagNoNode",
            effect=iam.Effect.DENY,
            actions=["ssm:AddTagsToResource"],
            resources=[self._ssm("managed-instance", "mi-*")],
        )
        role.add_to_policy(registered)
        _add(role, "EndSpaces", ["ssm:DeregisterManagedInstance"], [spaces], marked)
        # else a session without a document opens the account's default one, which is a shell
        checked = {"BoolIfExists": {"ssm:SessionDocumentAccessCheck": "true"}}
        _add(role, "EnterSpaces", ["ssm:StartSession"], [spaces], marked | checked)
        _add(role, "SessionDocuments", ["ssm:StartSession"], [ssh, document])
        # of one name, and it cannot be changed: no other document is there to enter with
        of_session = {"StringEquals": asked["StringEquals"] | {"ssm:DocumentType": "Session"}}
        _add(role, "MakeSessionDocument", ["ssm:CreateDocument"], [document], of_session)
        _add(role, "TagSessionDocument", ["ssm:AddTagsToResource"], [document], asked)
        _add(role, "SeeSessionDocument", ["ssm:DescribeDocument"], [document])
        _add(role, "PassAgentRole", ["iam:PassRole"], [agent.role_arn], to_ssm)
        tier = ["ssm:GetServiceSetting", "ssm:UpdateServiceSetting"]
        # Session Manager is for managed nodes of the advanced tier only
        _add(role, "AdvancedTier", tier, [self._ssm("servicesetting", f"ssm/{_TIER}")])
        acknowledge(
            role,
            {
                "AwsSolutions-IAM5[Resource::*]": "Activations have no ARN; a new one must carry this "
                "cluster's tag, and no condition key limits which is deleted (Service Authorization "
                "Reference, AWS Systems Manager).",
                wildcard(role, spaces): "Spaces come and go; each must carry the tag of this cluster, which "
                "nothing gets once it is registered.",
            },
        )

    def _sign(self, role: iam.Role, key_arn: str) -> None:
        context = "kms:EncryptionContext:sagemaker"
        whose = {f"{context}:component": ADDON, f"{context}:eks-cluster-arn": self._eks_cluster_arn}
        _add(role, "SeeSigningKey", ["kms:DescribeKey"], [key_arn])
        _add(role, "SignTokens", ["kms:Decrypt", "kms:GenerateDataKey"], [key_arn], {"StringEquals": whose})

    def _ssm(self, resource: str, name: str, account: str | None = None) -> str:
        stack = Stack.of(self)
        return stack.format_arn(service="ssm", account=account, resource=resource, resource_name=name)


def give_spaces(kubectl: Kubectl, cluster: Cluster, *, addon: IConstruct | None) -> None:
    """Templates and quotas of spaces, in namespaces that are there.

    Those that task governance makes are not: `ultracluster export team-namespaces` has what belongs there.

    Args:
        kubectl: the way into the cluster.
        cluster: what it is worked out to be.
        addon: it brings the definitions.
    """
    objects = space_objects(cluster)
    if addon is None or not objects or (cluster.environment.teams and not scheduling(cluster).namespaces):
        return
    manifest = kubectl.add_manifest("Spaces", *objects)
    manifest.node.add_dependency(addon)


def _add(
    role: iam.Role,
    sid: str,
    actions: list[str],
    resources: list[str],
    conditions: dict[str, Any] | None = None,
) -> None:
    role.add_to_policy(
        iam.PolicyStatement(sid=sid, actions=actions, resources=resources, conditions=conditions or {})
    )
