"""What a directory adds to the templates: the way to its servers, and one secret for the nodes' roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("prod, buckets of jobs and a directory and observability", 3),
        ("pcs-p6-b200, no way out and buckets of jobs and a directory and observability", 2),
    ],
)
def test_nodes_reach_the_servers_and_read_one_secret(
    name: str, roles: int, templates_of: Callable[[str], dict[str, Any]]
) -> None:
    resources = {
        f"{stack}/{key}": resource
        for stack, template in templates_of(name).items()
        for key, resource in template["Resources"].items()
    }
    ways = [
        one["Properties"]
        for one in resources.values()
        if one["Type"] == "AWS::EC2::SecurityGroupEgress"
        and one["Properties"].get("Description") == "Directory of users"
    ]
    assert [(one["FromPort"], one["ToPort"], one["CidrIp"]) for one in ways] == [(636, 636, "10.200.0.0/24")]

    statements = [
        statement
        for one in resources.values()
        if one["Type"] == "AWS::IAM::Policy"
        for statement in one["Properties"]["PolicyDocument"]["Statement"]
        if str(statement.get("Sid", "")).endswith("DirectoryPassword")
    ]
    assert len(statements) == 2 * roles
    read = [one["Resource"] for one in statements if one["Action"] == "secretsmanager:GetSecretValue"]
    assert len(read) == roles and all("secret:directory/reader-AbCdEf" in str(one) for one in read)
    decrypt = [one for one in statements if one["Action"] == "kms:Decrypt"]
    assert all("kms:ViaService" in str(one["Condition"]) for one in decrypt) and len(decrypt) == roles
