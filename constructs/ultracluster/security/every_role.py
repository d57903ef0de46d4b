"""All roles of one cluster's nodes as one principal, so that one grant reaches every node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import jsii
from aws_cdk import aws_iam as iam
from constructs import DependencyGroup


@jsii.implements(iam.IPrincipal, iam.IGrantable)
class EveryRole:
    """What is granted to it is granted to each of several principals."""

    def __init__(self, principals: Iterable[iam.IPrincipal]) -> None:
        """Name them; at least one."""
        self._all = list(principals)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        return cast("iam.IPrincipal", self)

    @property
    def assume_role_action(self) -> str:
        return self._all[0].assume_role_action

    @property
    def principal_account(self) -> str | None:
        return self._all[0].principal_account

    @property
    def policy_fragment(self) -> iam.PrincipalPolicyFragment:
        """For policies of resources: each of them is named."""
        named: dict[str, list[str]] = {}
        for role in self._all:
            fragment: dict[str, Any] = dict(role.policy_fragment.principal_json)
            for kind, names in fragment.items():
                statements = named.setdefault(kind, [])
                statements += [name for name in names if name not in statements]
        return iam.PrincipalPolicyFragment(named)

    def add_to_policy(self, statement: iam.PolicyStatement) -> bool:
        return self.add_to_principal_policy(statement).statement_added

    def add_to_principal_policy(self, statement: iam.PolicyStatement) -> iam.AddToPrincipalPolicyResult:
        """Only what all of them got counts as added: else a grant turns to the policy of its resource."""
        results = [role.add_to_principal_policy(statement) for role in self._all]
        waits = DependencyGroup()
        for result in results:
            if result.policy_dependable:
                waits.add(result.policy_dependable)
        return iam.AddToPrincipalPolicyResult(
            statement_added=all(role.statement_added for role in results), policy_dependable=waits
        )


def every(principals: Iterable[iam.IPrincipal]) -> iam.IPrincipal:
    """One principal for several; the one itself where there is one."""
    distinct = list(dict.fromkeys(principals))
    return distinct[0] if len(distinct) == 1 else cast("iam.IPrincipal", EveryRole(distinct))
