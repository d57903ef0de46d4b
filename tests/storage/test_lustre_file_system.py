"""A Lustre file system in an app of another team: flat settings, rules, connections, imports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Union, cast, get_args, get_type_hints

import pytest
from aws_cdk import App, Aws, CfnParameter, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from foreign import (
    HOME,
    both_ways,
    figures,
    foreign_stack,
    group,
    imported_vpc,
    refusal,
    resources,
    rules,
    warnings,
)

from ultracluster import DataRepository, EfaSecurityGroup, ILustreFileSystem, LustreFileSystem
from ultracluster.config.storage import Persistent2SsdLustre
from ultracluster.rules import check
from ultracluster.storage.lustre_settings import MODELS, LustreArguments

TCP = (("tcp", 988, 988), ("tcp", 1018, 1023))
ALL = (("-1", None, None),)
CLIENTS = "sg-0123456789abcdef0"


def lustre(stack: Stack, **settings: Any) -> LustreFileSystem:
    vpc = imported_vpc(stack)
    return LustreFileSystem(stack, "Scratch", vpc=vpc, subnet=vpc.private_subnets[0], **settings)


def own(stack: Stack) -> str:
    (name,) = resources(stack, "AWS::EC2::SecurityGroup")
    return name


# Settings


def test_capacity_is_enough(stack: Stack) -> None:
    made: ILustreFileSystem = lustre(stack, capacity_gib=4800)

    (found,) = resources(stack, "AWS::FSx::FileSystem").values()
    told = found["Properties"]
    assert told["StorageCapacity"] == 4800
    assert told["LustreConfiguration"]["DeploymentType"] == "PERSISTENT_2"
    assert told["LustreConfiguration"]["PerUnitStorageThroughput"] == 125
    assert told["SubnetIds"] == ["subnet-0123456789abcdef0"]
    assert len(resources(stack, "AWS::KMS::Key")) == 1 and "KmsKeyId" in told
    assert made.mount.path == made.mount_path == "/fsx" and made.capacity_gib == 4800
    assert refusal(stack) == ""


def test_the_arguments_are_the_fields_of_the_models() -> None:
    hints = figures(get_type_hints(LustreArguments))
    fields: dict[str, Any] = {}
    for model in MODELS.values():
        for name, hint in get_type_hints(model).items():
            if name in model.model_fields:
                fields[name] = Union[fields.get(name, hint), hint]  # noqa: UP007 (not of strings)

    assert fields.pop("data_repositories") == dict[str, DataRepository]
    assert hints.pop("data_repositories") == Mapping[str, DataRepository]
    deployments = {
        value for part in get_args(fields.pop("deployment")) for value in get_args(part) or (part,)
    }
    assert set(MODELS) == deployments == set(get_args(hints.pop("deployment")))
    assert hints == fields


def test_the_model_of_a_file_is_taken_as_well(stack: Stack) -> None:
    config = Persistent2SsdLustre(
        deployment="persistent-2-ssd", capacity_gib=38_400, throughput_mbps_per_tib=125, efa=True, gds=True
    )

    made = lustre(stack, config=config)

    assert (made.efa, made.gds, made.config) == (True, True, config)


def test_both_forms_at_once_are_refused(stack: Stack) -> None:
    config = Persistent2SsdLustre(
        deployment="persistent-2-ssd", capacity_gib=4800, throughput_mbps_per_tib=125
    )
    with pytest.raises(ValueError, match="LustreFileSystem: efa is given beside config="):
        lustre(stack, config=config, efa=True)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "capacity_gib: `capacity_gib` is missing"),
        ({"capcity_gib": 4800}, "there is no `capcity_gib`. Instead: capacity_gib"),
        (
            {"capacity_gib": "4.8 TiB"},
            "a number is needed, not the text '4.8 TiB'. Instead: capacity_gib: 4800",
        ),
        ({"capacity_gib": 4800, "log_level": "all"}, "all is none of disabled, warn-only"),
        ({"deployment": "persistent-3", "capacity_gib": 4800}, "'persistent-3' is none of scratch-1"),
        ({"deployment": "persistent-1-ssd", "capacity_gib": 4800}, "`throughput_mbps_per_tib` is missing"),
    ],
)
def test_a_wrong_shape_is_refused_at_once(stack: Stack, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match="(?s)LustreFileSystem: .*" + re.escape(says)):
        lustre(stack, **settings)


# Rules


def test_what_fsx_refuses_is_refused_in_the_words_of_a_file(stack: Stack) -> None:
    lustre(stack, capacity_gib=5000)

    said = refusal(stack)
    (finding,) = check(
        Persistent2SsdLustre(deployment="persistent-2-ssd", capacity_gib=5000, throughput_mbps_per_tib=125)
    )
    assert f"[research/Scratch] FSX002 capacity_gib: {finding.message} Instead: {finding.instead}" in said
    assert "4800" in finding.instead


def test_a_warning_is_an_annotation(stack: Stack) -> None:
    lustre(stack, deployment="persistent-1-ssd", capacity_gib=103200, throughput_mbps_per_tib=50)

    (said,) = warnings(stack)
    assert "FSX007 capacity_gib: 103200 GiB" in said
    assert refusal(stack) == ""


def test_the_region_of_the_stack_is_known_to_the_rules() -> None:
    """A Region without FSx, or with another offer, is named by the rules that know Regions."""
    stack = foreign_stack(env=HOME)
    lustre(stack, capacity_gib=4800)
    assert refusal(stack) == ""


def test_a_token_is_not_judged(stack: Stack) -> None:
    size = CfnParameter(stack, "Size", type="Number")

    lustre(stack, capacity_gib=size.value_as_number, version="2.15")

    (found,) = resources(stack, "AWS::FSx::FileSystem").values()
    assert found["Properties"]["StorageCapacity"] == {"Ref": "Size"}
    assert refusal(stack) == ""


def test_beside_a_token_the_rest_is_judged(stack: Stack) -> None:
    size = CfnParameter(stack, "Size", type="Number")

    lustre(stack, capacity_gib=size.value_as_number, throughput_mbps_per_tib=300)

    said = refusal(stack)
    assert "FSX001 throughput_mbps_per_tib: 300" in said and "FSX002" not in said


# Who reaches it: FSx for Lustre User Guide, "File system access control with Amazon VPC"


@pytest.mark.parametrize(("efa", "ports"), [(False, TCP), (True, ALL)])
@pytest.mark.parametrize("asked_by", ["server", "client", "admit"])
def test_clients_and_servers_reach_each_other(stack: Stack, efa: bool, ports: Any, asked_by: str) -> None:
    made = lustre(stack, capacity_gib=38_400, efa=efa)
    clients = group(stack)

    if asked_by == "server":
        made.connections.allow_default_port_from(clients)
    elif asked_by == "client":
        clients.connections.allow_to_default_port(made)
    else:
        made.admit(stack, "Mounts", clients=clients)

    file_system = own(stack)
    within = {(way, file_system, file_system, *port) for way in ("ingress", "egress") for port in ports}
    assert rules(stack) == within | both_ways(CLIENTS, file_system, *ports)


def test_nobody_is_admitted_twice(stack: Stack) -> None:
    made = lustre(stack, capacity_gib=4800)
    made.connections.allow_default_port_from(group(stack))
    again = made.admit(stack, "Mounts", clients=group(stack, "TheSame"))
    group(stack, "ImportedAgain").connections.allow_to(made, ec2.Port.tcp(988))

    assert [one.node.path for one in again] != ["research/Mounts"] and len(again) == 1
    assert len(rules(stack)) == 4 + 8


def test_nodes_with_efa_are_admitted_with_all_their_traffic(stack: Stack) -> None:
    vpc = imported_vpc(stack)
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=vpc)
    made = LustreFileSystem(
        stack, "Scratch", vpc=vpc, subnet=vpc.private_subnets[0], capacity_gib=38_400, efa=True
    )

    made.connections.allow_default_port_from(nodes)

    client, server = (
        stack.resolve(cast("ec2.CfnSecurityGroup", one).logical_id)
        for one in (nodes.resource, made.node.find_child("SecurityGroup"))
    )
    assert both_ways(client, server, *ALL) < rules(stack)


def test_rules_are_in_the_stack_of_a_client_that_comes_and_goes() -> None:
    stack = foreign_stack()
    made = lustre(stack, capacity_gib=4800)
    cluster = Stack(cast("App", stack.node.root), "cluster")
    nodes = EfaSecurityGroup(cluster, "Nodes", vpc=imported_vpc(cluster))

    made.connections.allow_default_port_from(nodes)

    assert len(resources(stack, "AWS::EC2::SecurityGroupIngress")) == 2  # of the file system itself
    assert len(resources(cluster, "AWS::EC2::SecurityGroupIngress")) == 4 + 1


def test_addresses_are_admitted_too(stack: Stack) -> None:
    made = lustre(stack, capacity_gib=4800)

    made.connections.allow_default_port_from(ec2.Peer.ipv4("10.9.0.0/16"))

    found = [
        (rule["Properties"]["FromPort"], rule["Properties"]["ToPort"])
        for kind in ("Ingress", "Egress")
        for rule in resources(stack, f"AWS::EC2::SecurityGroup{kind}").values()
        if rule["Properties"].get("CidrIp") == "10.9.0.0/16"
    ]
    assert sorted(found) == [(988, 988), (988, 988), (1018, 1023), (1018, 1023)]


def test_a_group_of_the_user_is_taken(stack: Stack) -> None:
    made = lustre(stack, capacity_gib=4800, security_group=group(stack, "Own", "sg-0000000000000000a"))

    (found,) = resources(stack, "AWS::FSx::FileSystem").values()
    assert found["Properties"]["SecurityGroupIds"] == ["sg-0000000000000000a"] == [made.security_group_id]
    assert not resources(stack, "AWS::EC2::SecurityGroup")
    assert len(rules(stack)) == 4


# Imports


def test_an_imported_one_is_the_same_thing(stack: Stack) -> None:
    there: ILustreFileSystem = LustreFileSystem.from_lustre_attributes(
        stack,
        "There",
        file_system_id="fs-0123456789abcdef0",
        dns_name="fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
        mount_name="abcdef",
        security_group=group(stack, "Servers", "sg-0000000000000000b"),
        mount_path="/data",
        efa=True,
    )

    there.connections.allow_default_port_from(group(stack))

    assert (there.mount.path, there.mount.efa, there.mount.mount_name) == ("/data", True, "abcdef")
    assert rules(stack) == both_ways(CLIENTS, "sg-0000000000000000b", *ALL)


def test_without_its_group_nobody_is_admitted(stack: Stack) -> None:
    there = LustreFileSystem.from_lustre_attributes(
        stack, "There", file_system_id="fs-0123456789abcdef0", dns_name="fs.example", mount_name="abcdef"
    )

    there.connections.allow_default_port_from(group(stack))

    assert there.admit(stack, "Mounts", clients=group(stack, "Again")) == []
    assert rules(stack) == set()


@pytest.mark.parametrize(
    ("dns_name", "says"),
    [
        ("fs-0123456789abcdef0.fsx.eu-west-1.amazonaws.com", "the file system is in eu-west-1"),
        ("fs-0123456789abcdef1.fsx.us-east-1.amazonaws.com", "but id says fs-0123456789abcdef0"),
        ("fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com", ""),
        ("lustre.example.com", ""),
        (f"fs-0123456789abcdef0.fsx.{Aws.REGION}.amazonaws.com", ""),
    ],
    # numbers of tokens differ between workers
    ids=["another Region", "another name", "right", "own name", "token"],
)
def test_an_import_of_another_region_is_refused(dns_name: str, says: str) -> None:
    stack = foreign_stack(env=HOME)
    LustreFileSystem.from_lustre_attributes(
        stack, "There", file_system_id="fs-0123456789abcdef0", dns_name=dns_name, mount_name="abcdef"
    )

    said = refusal(stack)
    assert bool(said) == bool(says) and says in said


# Key, log group, data


def test_a_key_of_the_user_lets_cloudwatch_logs_use_it(stack: Stack) -> None:
    key: Any = kms.Key(stack, "Key")

    lustre(stack, capacity_gib=4800, log_level="warn-error", key=key)

    (found,) = resources(stack, "AWS::KMS::Key").values()
    sids = [one.get("Sid") for one in found["Properties"]["KeyPolicy"]["Statement"]]
    assert sids.count("CloudWatchLogs") == 1


def test_scratch_needs_no_key(stack: Stack) -> None:
    made = lustre(stack, deployment="scratch-2", capacity_gib=2400)

    assert made.key is None and not resources(stack, "AWS::KMS::Key")


def test_folders_are_linked_to_buckets_that_are_tokens(stack: Stack) -> None:
    key: Any = kms.Key(stack, "BucketKey")
    bucket: Any = s3.Bucket(stack, "Data", encryption_key=key)

    made = lustre(
        stack,
        capacity_gib=4800,
        data_repositories={"/data": DataRepository(prefix="train/", import_events=("new",))},
        data_bucket=bucket,
    )

    (found,) = resources(stack, "AWS::FSx::DataRepositoryAssociation").values()
    path = found["Properties"]["DataRepositoryPath"]["Fn::Join"][1]
    assert path[0] == "s3://" and path[-1] == "/train/"
    assert made.data_repositories and list(made.data_repositories.associations) == ["/data"]
    policies = [one["Properties"]["KeyPolicy"] for one in resources(stack, "AWS::KMS::Key").values()]
    assert all("FsxDataRepositories" in str(policy) for policy in policies) and len(policies) == 2


def test_whoever_mounts_over_efa_may_be_let_ask_fsx(stack: Stack) -> None:
    role = iam.Role(stack, "Role", assumed_by=iam.AccountRootPrincipal())  # type: ignore[arg-type]

    lustre(stack, capacity_gib=4800).grant_describe(role)

    (policy,) = resources(stack, "AWS::IAM::Policy").values()
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "fsx:DescribeFileSystems"


@pytest.fixture
def stack() -> Stack:
    return foreign_stack()


def test_the_app_is_not_ours(stack: Stack) -> None:
    assert isinstance(stack.node.root, App) and stack.node.try_get_context("env") is None
