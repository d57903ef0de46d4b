"""EKS Capabilities: Argo CD, ACK and KRO, run by AWS (EKS User Guide, "EKS Capabilities")."""

from __future__ import annotations

from typing import cast

from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.config.kubernetes import ArgoCd, Capabilities
from ultracluster.security.principals import trusted


def add_capabilities(scope: Construct, config: Capabilities, *, cluster_name: str) -> None:
    """Add those that are asked for, each with a role of its own that starts without permissions.

    What ACK or Argo CD may do in the account is the reader's to decide: attach policies to its role.
    """
    if config.argo_cd:
        settings = eks.CfnCapability.CapabilityConfigurationProperty(argo_cd=_argo_cd(config.argo_cd))
        _add(scope, "ArgoCd", "ARGOCD", cluster_name, settings)
    if config.ack:
        ack = eks.CfnCapability.AckProperty(disabled_services=list(config.ack.disabled_services) or None)
        settings = eks.CfnCapability.CapabilityConfigurationProperty(ack=ack)
        _add(scope, "Ack", "ACK", cluster_name, settings if config.ack.disabled_services else None)
    if config.kro:
        _add(scope, "Kro", "KRO", cluster_name, None)


def _add(
    scope: Construct,
    name: str,
    kind: str,
    cluster_name: str,
    settings: eks.CfnCapability.CapabilityConfigurationProperty | None,
) -> None:
    role = iam.Role(
        scope,
        f"{name}CapabilityRole",  # without a path: EKS refuses one here
        assumed_by=cast(
            "iam.IPrincipal",
            iam.SessionTagsPrincipal(trusted(scope, "capabilities.eks.amazonaws.com")),
        ),
        description=f"EKS capability {kind}",
    )
    eks.CfnCapability(
        scope,
        f"{name}Capability",
        cluster_name=cluster_name,
        capability_name=kind.lower(),
        type=kind,
        role_arn=role.role_arn,
        delete_propagation_policy="RETAIN",  # the only value
        configuration=settings,
    )


def _argo_cd(config: ArgoCd) -> eks.CfnCapability.ArgoCdProperty:
    capability = eks.CfnCapability
    return capability.ArgoCdProperty(
        aws_idc=capability.AwsIdcProperty(
            idc_instance_arn=config.idc_instance_arn, idc_region=config.idc_region
        ),
        namespace=config.namespace,
        rbac_role_mappings=[
            capability.ArgoCdRoleMappingProperty(
                role=mapping.role.upper(),
                identities=[
                    capability.SsoIdentityProperty(id=identity, type=kind)
                    for kind, ids in (("SSO_USER", mapping.users), ("SSO_GROUP", mapping.groups))
                    for identity in ids
                ],
            )
            for mapping in config.roles
        ]
        or None,
    )
