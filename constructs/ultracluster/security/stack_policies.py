"""Stack policies: CloudFormation refuses to replace or delete what holds data, whoever deploys."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from aws_cdk import custom_resources as cr
from constructs import Construct

from ultracluster.model.stack_guards import OPEN, closed
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.sdk_calls import SdkCalls


class StackPolicies(Construct):
    """Closes the policies of stacks when it is made, and opens them when it is deleted.

    It belongs into a stack after those. A file system, bucket, database, key or log group in them can then be
    changed in place only; `ultracluster deploy --accept` opens the policy for what is accepted.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, stacks: Sequence[str], key: kms.IKey | None = None
    ) -> None:
        """Close the policies.

        Args:
            stacks: names of stacks of this account and Region, which are deployed before.
            key: encrypts the log of the calls; by default a `ClusterKey`.

        Raises:
            ValueError: no stack is named.
        """
        if not stacks:
            raise ValueError("StackPolicies: name the stacks that hold data: stacks=[...]")
        super().__init__(scope, construct_id)
        calls = SdkCalls.of(self, key=key)
        for name in stacks:
            arn = Stack.of(self).format_arn(
                service="cloudformation", resource="stack", resource_name=f"{name}/*"
            )
            calls.add(
                self,
                name,
                may=("cloudformation:SetStackPolicy", arn),
                always=self._call(name, closed()),
                # what is gone needs none
                on_delete=self._call(name, OPEN, "ValidationError"),
            )
            acknowledge(
                calls, {wildcard(self, arn): f"The ARN of {name} ends in an id that CloudFormation makes up."}
            )

    def _call(self, name: str, policy: str, ignored: str | None = None) -> cr.AwsSdkCall:
        return cr.AwsSdkCall(
            service="CloudFormation",
            action="setStackPolicy",
            parameters={"StackName": name, "StackPolicyBody": policy},
            physical_resource_id=cr.PhysicalResourceId.of(f"stack-policy-{name}"),
            ignore_error_codes_matching=ignored,
        )
