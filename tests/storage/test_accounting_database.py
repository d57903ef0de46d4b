"""The accounting database in an app of another team."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
from aws_cdk import CfnParameter, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from foreign import HOME, figures, foreign_stack, group, imported_vpc, refusal, resources, rules

from ultracluster import AccountingDatabase, IAccountingDatabase
from ultracluster.config.storage import RdsMySql
from ultracluster.storage.accounting_database import AccountingArguments

SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:slurm-AbCdEf"  # noqa: S105 (its name)
CLIENTS = "sg-0123456789abcdef0"
ELSEWHERE = {"kind", "second_zone_id", "subnet_ids"}
"""What a file says of subnets, which are objects here."""


def role(stack: Stack) -> Any:
    return iam.Role(stack, "Role", assumed_by=iam.AccountRootPrincipal())  # type: ignore[arg-type]


def test_nothing_but_the_vpc_is_needed(stack: Stack) -> None:
    made: IAccountingDatabase = AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack))

    (found,) = resources(stack, "AWS::RDS::DBInstance").values()
    assert found["DeletionPolicy"] == "RetainExceptOnCreate" and found["Properties"]["StorageEncrypted"]
    (subnets,) = resources(stack, "AWS::RDS::DBSubnetGroup").values()
    assert len(subnets["Properties"]["SubnetIds"]) == 2
    assert made.accounting.username == "slurm" and made.accounting.secret_key_arn
    assert refusal(stack) == ""


def test_a_vpc_of_one_zone_is_refused(stack: Stack) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-east-1a"]
    )
    with pytest.raises(ValueError, match=r"two zones, and the VPC has no private ones. Instead: subnets="):
        AccountingDatabase(stack, "Accounting", vpc=vpc)


def test_the_arguments_are_the_fields_of_the_model() -> None:
    fields = {name: get_type_hints(RdsMySql)[name] for name in RdsMySql.model_fields}

    assert figures(get_type_hints(AccountingArguments)) == {
        k: v for k, v in fields.items() if k not in ELSEWHERE
    }


def test_what_rds_refuses_is_refused(stack: Stack) -> None:
    AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack), instance_class="t2.nano")

    assert "[research/Accounting] DB" in refusal(stack) or "instance_class" in refusal(stack)


def test_storage_may_be_a_token(stack: Stack) -> None:
    size = CfnParameter(stack, "Size", type="Number")

    AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack), storage_gib=size.value_as_number)

    (found,) = resources(stack, "AWS::RDS::DBInstance").values()
    assert found["Properties"]["AllocatedStorage"] == {"Ref": "Size"} or "Size" in str(found["Properties"])
    assert "MaxAllocatedStorage" not in found["Properties"] and refusal(stack) == ""


def test_what_may_go_leaves_a_snapshot(stack: Stack) -> None:
    AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack), removal_policy=RemovalPolicy.SNAPSHOT)

    (found,) = resources(stack, "AWS::RDS::DBInstance").values()
    (own,) = resources(stack, "AWS::EC2::SecurityGroup").values()
    assert found["DeletionPolicy"] == "Snapshot" and "DeletionPolicy" not in own


def test_controllers_reach_its_port_and_read_its_secret(stack: Stack) -> None:
    made = AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack))

    made.connections.allow_default_port_from(group(stack))
    made.grant_read_secret(role(stack))

    (server,) = resources(stack, "AWS::EC2::SecurityGroup")
    port = ("tcp", 3306, 3306)
    assert rules(stack) == {("ingress", server, CLIENTS, *port), ("egress", CLIENTS, server, *port)}
    (policy,) = resources(stack, "AWS::IAM::Policy").values()
    actions = [one["Action"] for one in policy["Properties"]["PolicyDocument"]["Statement"]]
    assert actions == ["secretsmanager:GetSecretValue", "kms:Decrypt"]


def test_an_imported_one_has_its_own_port_and_key(stack: Stack) -> None:
    key = kms.Key.from_key_arn(
        stack, "Key", "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    )
    secret = secretsmanager.Secret.from_secret_attributes(
        stack,
        "Secret",
        secret_complete_arn=SECRET,
        encryption_key=key,
    )
    there: IAccountingDatabase = AccountingDatabase.from_accounting_attributes(
        stack,
        "There",
        endpoint="slurm.cluster-abc.us-east-1.rds.amazonaws.com",
        secret=secret,
        port=3307,
        security_group=group(stack, "Servers", "sg-0000000000000000b"),
    )

    there.connections.allow_default_port_from(group(stack))

    assert {one[3:] for one in rules(stack)} == {("tcp", 3307, 3307)}
    assert there.accounting.secret_key_arn == key.key_arn


def test_an_import_of_another_region_is_refused() -> None:
    stack = foreign_stack(env=HOME)
    AccountingDatabase.from_accounting_attributes(
        stack,
        "There",
        endpoint="slurm.abc.eu-west-1.rds.amazonaws.com",
        secret=secretsmanager.Secret.from_secret_complete_arn(stack, "Secret", SECRET),
        security_group=group(stack),
    )

    assert "[research/There] DATA026 endpoint: the endpoint is in eu-west-1" in refusal(stack)
