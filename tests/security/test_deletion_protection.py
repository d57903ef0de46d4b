"""Deletion protection takes what it protects, whoever made it."""

from __future__ import annotations

import json

import pytest
from aws_cdk import Stack
from aws_cdk import aws_eks_v2 as eks
from foreign import foreign_stack, imported_vpc, refusal, resources

from ultracluster import AccountingDatabase, DeletionProtection
from ultracluster.model.stack_guards import EKS_SWITCH


@pytest.fixture
def stack() -> Stack:
    return foreign_stack()


def test_a_database_and_a_cluster_are_protected(stack: Stack) -> None:
    database = AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack))
    cluster = eks.Cluster.from_cluster_attributes(stack, "Cluster", cluster_name="theirs")

    DeletionProtection(stack, "Protection", database=database, cluster=cluster)

    calls = json.dumps(resources(stack, "Custom::AWS"))
    (switch,) = resources(stack, EKS_SWITCH).values()
    assert switch["Properties"]["ClusterName"] == "theirs" and "modifyDBInstance" in calls
    (name,) = resources(stack, "AWS::RDS::DBInstance")
    assert name in calls and refusal(stack) == ""


def test_nothing_to_protect_is_an_error(stack: Stack) -> None:
    with pytest.raises(ValueError, match="give cluster=, database= or both"):
        DeletionProtection(stack, "Protection")
