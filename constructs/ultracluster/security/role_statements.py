"""Statements of a role that was made here or given, and what has to wait for them."""

from __future__ import annotations

from collections.abc import Iterable

from aws_cdk import aws_iam as iam
from constructs import IDependable


class RoleStatements:
    """Adds statements to a role through the CDK's public interface, whoever made the role.

    A role that must not change (`mutable=False`, `without_policy_updates`) stays as it is, as it does with
    the CDK's own grants: its owner has to allow what its nodes need.

    Attributes:
        role: the role.
        dependables: what has to be there before someone uses the role.
    """

    def __init__(self, role: iam.IRole) -> None:
        self.role = role
        self.dependables: list[IDependable] = []

    def add(self, statements: Iterable[iam.PolicyStatement]) -> None:
        for statement in statements:
            result = self.role.add_to_principal_policy(statement)
            if result.policy_dependable:
                self.dependables.append(result.policy_dependable)
