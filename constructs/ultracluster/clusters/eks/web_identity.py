"""Roles for service accounts whose software asks for IAM roles for service accounts, and not Pod Identity.

EKS User Guide, "IAM roles for service accounts". The names of the trust's conditions hold the issuer of the
cluster's tokens, which is known only after the cluster is made; a template can name nothing so, but its text
can: CloudFormation takes the document of a trust as text, too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from aws_cdk import CfnResource, Fn, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

AUDIENCE = "sts.amazonaws.com"
_ISSUER, _PROVIDER, _ACCOUNT = "{issuer}", "{provider}", "{account}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebIdentity:
    """Who vouches for the service accounts of one cluster."""

    issuer: str
    """Of the cluster's tokens, without `https://`."""
    provider_arn: str
    """The identity provider in IAM that stands for it."""

    @staticmethod
    def made(scope: Construct, construct_id: str, *, issuer_url: str) -> WebIdentity:
        """With an identity provider that is made here: an account has one for an issuer."""
        provider = iam.CfnOIDCProvider(scope, construct_id, url=issuer_url, client_id_list=[AUDIENCE])
        return WebIdentity(issuer=_host(issuer_url), provider_arn=provider.attr_arn)

    @staticmethod
    def there(scope: Construct, *, issuer_url: str) -> WebIdentity:
        """With one that was made elsewhere."""
        issuer = _host(issuer_url)
        arn = Stack.of(scope).format_arn(
            service="iam", region="", resource="oidc-provider", resource_name=issuer
        )
        return WebIdentity(issuer=issuer, provider_arn=arn)

    def role(
        self,
        scope: Construct,
        construct_id: str,
        *,
        namespace: str,
        account: str,
        of: str,
        name: str | None = None,
        service: str | None = None,
    ) -> iam.Role:
        """A role that one service account may have, without permissions.

        Args:
            namespace: of the service account.
            account: its name.
            of: what it is for, in words.
            name: of the role, where something asks for a certain one.
            service: of AWS, which may have the role as well, for this account.
        """
        stack = Stack.of(scope)
        role = iam.Role(
            scope,
            construct_id,
            role_name=name,
            assumed_by=cast(
                "iam.IPrincipal",
                iam.FederatedPrincipal(self.provider_arn, {}, "sts:AssumeRoleWithWebIdentity"),
            ),
            description=of,
        )
        text = json.dumps(_trust(f"system:serviceaccount:{namespace}:{account}", service), sort_keys=True)
        for claim, value in (
            (_ISSUER, self.issuer),
            (_PROVIDER, self.provider_arn),
            (_ACCOUNT, stack.account),
        ):
            text = text.replace(claim, value)
        cast("CfnResource", role.node.default_child).add_property_override("AssumeRolePolicyDocument", text)
        return role


def _trust(subject: str, service: str | None) -> dict[str, Any]:
    ours: dict[str, Any] = {
        "Effect": "Allow",
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Principal": {"Federated": _PROVIDER},
        "Condition": {"StringEquals": {f"{_ISSUER}:aud": AUDIENCE, f"{_ISSUER}:sub": subject}},
    }
    statements = [ours]
    if service:
        statements.append(
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRole",
                "Principal": {"Service": service},
                # whoever sends no account passes: AWS does not say whether this service does
                "Condition": {"StringEqualsIfExists": {"aws:SourceAccount": _ACCOUNT}},
            }
        )
    return {"Version": "2012-10-17", "Statement": statements}


def _host(issuer_url: str) -> str:
    return Fn.select(1, Fn.split("//", issuer_url))
