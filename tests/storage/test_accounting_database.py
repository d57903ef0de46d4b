"""The accounting database in an app of another team."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
from aws_cdk import CfnParameter, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from foreign import HOME, figures, foreign_stack, group, imported_vpc, refusal, resources, rules, template

from ultracluster import AccountingDatabase, IAccountingDatabase
from ultracluster.change import blast_radius
from ultracluster.change.changes import Verdict
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
    assert made.accounting.username == "slurmdbd" and made.accounting.secret_key_arn
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
    own = resources(stack, "AWS::EC2::SecurityGroup").values()
    assert found["DeletionPolicy"] == "Snapshot" and not [one for one in own if "DeletionPolicy" in one]


def test_controllers_reach_its_port_and_read_its_secret(stack: Stack) -> None:
    made = AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack))

    made.connections.allow_default_port_from(group(stack))
    made.grant_read_secret(role(stack))

    server, function = sorted(resources(stack, "AWS::EC2::SecurityGroup"), key=lambda one: "User" in one)
    port = ("tcp", 3306, 3306)
    assert rules(stack) == {
        (way, *pair, *port)
        for client in (CLIENTS, function)
        for way, pair in (("ingress", (server, client)), ("egress", (client, server)))
    }
    (policy,) = (one for name, one in resources(stack, "AWS::IAM::Policy").items() if name.startswith("Role"))
    read, decrypt = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (read["Action"], decrypt["Action"]) == ("secretsmanager:GetSecretValue", "kms:Decrypt")
    assert read["Resource"] == {"Ref": user_secret(stack)}


def user_secret(stack: Stack) -> str:
    (found,) = (
        name
        for name, one in resources(stack, "AWS::SecretsManager::Secret").items()
        if '"slurmdbd"' in one["Properties"]["GenerateSecretString"]["SecretStringTemplate"]
    )
    return found


def test_the_master_stays_who_it_was(stack: Stack) -> None:
    """RDS replaces a database whose master user has another name (CloudFormation: create-only)."""
    AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack))

    ((name, found),) = resources(stack, "AWS::RDS::DBInstance").items()
    other = {**found, "Properties": {**found["Properties"], "MasterUsername": "slurmdbd"}}
    (change,) = blast_radius({"s": {"Resources": {name: found}}}, {"s": {"Resources": {name: other}}})
    assert found["Properties"]["MasterUsername"] == "slurm"
    assert change.verdict in (Verdict.REPLACED, Verdict.DATA_LOSS)


def test_the_function_outside_reads_two_secrets_and_the_one_inside_none(stack: Stack) -> None:
    AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack))

    functions = resources(stack, "AWS::Lambda::Function")
    ((inside, writer),) = ((name, one) for name, one in functions.items() if "Writer" in name)
    ((_, broker),) = ((name, one) for name, one in functions.items() if "Broker" in name)
    assert writer["Properties"]["VpcConfig"]["SubnetIds"] == [
        "subnet-0123456789abcdef0",
        "subnet-0123456789abcdef1",
    ]
    assert "Environment" not in writer["Properties"] and "VpcConfig" not in broker["Properties"]
    policies = resources(stack, "AWS::IAM::Policy")
    rights = {
        "Writer" if "Writer" in name else "Broker": {
            one["Sid"]: one for one in policy["Properties"]["PolicyDocument"]["Statement"]
        }
        for name, policy in policies.items()
    }
    assert set(rights["Writer"]) == {"WriteLogs", "RunInVpc", "NotFromCode"}
    assert set(rights["Broker"]) == {"WriteLogs", "ReadSecrets", "MakeUser", "DecryptSecrets"}
    assert len(rights["Broker"]["ReadSecrets"]["Resource"]) == 2
    assert rights["Broker"]["MakeUser"]["Resource"] == {"Fn::GetAtt": [inside, "Arn"]}


def test_the_user_is_made_once_the_database_is_there_and_admits_the_function(stack: Stack) -> None:
    AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack))

    ((_, user),) = resources(stack, "Custom::AccountingUser").items()
    (database,) = resources(stack, "AWS::RDS::DBInstance")
    admitted = [
        name for kind in ("Ingress", "Egress") for name in resources(stack, f"AWS::EC2::SecurityGroup{kind}")
    ]
    assert {database, *admitted} <= set(user["DependsOn"]) and len(admitted) == 2
    assert user["Properties"]["ServiceTimeout"] == "900"
    assert "resolve:secretsmanager" not in str(user), "no password passes through CloudFormation"


def test_what_makes_the_user_goes_with_the_stack_and_its_secret_stays(stack: Stack) -> None:
    AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack))

    kept = {
        name
        for name, one in template(stack)["Resources"].items()
        if one.get("DeletionPolicy", "Delete") != "Delete" and "User" in name
    }
    assert kept == {user_secret(stack)} | {one for one in kept if "UltraclusterKey" in one}


@pytest.mark.parametrize(("asked", "server"), [({}, "OFF"), ({"require_tls": True}, "ON")])
def test_tls_is_required_where_it_is_asked_for(stack: Stack, asked: dict[str, Any], server: str) -> None:
    AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack), **asked)

    (group,) = resources(stack, "AWS::RDS::DBParameterGroup").values()
    (user,) = resources(stack, "Custom::AccountingUser").values()
    assert group["Properties"]["Parameters"]["require_secure_transport"] == server
    assert user["Properties"]["RequireTls"] is (server == "ON")


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
