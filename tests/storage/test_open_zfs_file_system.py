"""An OpenZFS file system in an app of another team."""

from __future__ import annotations

import json
from typing import Any, get_type_hints

import pytest
from aws_cdk import Stack
from foreign import figures, foreign_stack, group, imported_vpc, refusal, resources, rules

from ultracluster import IOpenZfsFileSystem, OpenZfsFileSystem
from ultracluster.catalog.fsx import openzfs
from ultracluster.config.storage import NewOpenZfs, NfsRootSquash
from ultracluster.storage.open_zfs_file_system import OpenZfsArguments

CLIENTS = "sg-0123456789abcdef0"
NFS = {
    (protocol, first, last)
    for protocol in ("tcp", "udp")
    for first, last in ((111, 111), (2049, 2049), (20001, 20003))
}


def home(stack: Stack, **settings: Any) -> OpenZfsFileSystem:
    vpc = imported_vpc(stack)
    return OpenZfsFileSystem(stack, "Home", vpc=vpc, subnet=vpc.private_subnets[0], **settings)


def test_capacity_is_enough(stack: Stack) -> None:
    made: IOpenZfsFileSystem = home(stack, capacity_gib=512)

    (found,) = resources(stack, "AWS::FSx::FileSystem").values()
    told = found["Properties"]["OpenZFSConfiguration"]
    assert (told["DeploymentType"], told["ThroughputCapacity"]) == ("SINGLE_AZ_2", 160)
    (client,) = told["RootVolumeConfiguration"]["NfsExports"][0]["ClientConfigurations"]
    assert client["Clients"] == "10.0.0.0/16"
    assert made.mount.path == "/home" and made.mount.volume_id == made.root_volume_id
    assert refusal(stack) == ""


def exports(call: str) -> list[tuple[str, list[str]]]:
    (export,) = json.loads(call)["parameters"]["OpenZFSConfiguration"]["NfsExports"]
    return [(one["Clients"], one["Options"]) for one in export["ClientConfigurations"]]


def test_root_squash_is_set_by_a_call_and_leaves_the_file_system_as_it_is(stack: Stack) -> None:
    home(stack, capacity_gib=512)
    without = resources(stack, "AWS::FSx::FileSystem")

    other = foreign_stack(name="squashed")
    home(other, capacity_gib=512, root_squash=NfsRootSquash(exempt_clients=("10.0.1.6", "10.0.2.0/28")))
    made = resources(other, "AWS::FSx::FileSystem")

    def settings(found: dict[str, Any]) -> Any:
        return [one["Properties"]["OpenZFSConfiguration"] for one in found.values()]

    assert settings(made) == settings(without)
    (call,) = resources(other, "Custom::AWS").values()
    (volume,) = made
    create, update, delete = (
        _text(call["Properties"][verb], volume) for verb in ("Create", "Update", "Delete")
    )
    assert create == update
    assert exports(create) == [
        ("10.0.1.6", ["rw", "crossmnt", "no_root_squash"]),
        ("10.0.2.0/28", ["rw", "crossmnt", "no_root_squash"]),
        ("10.0.0.0/16", ["rw", "crossmnt", "root_squash"]),
    ]
    assert exports(delete) == [("10.0.0.0/16", ["rw", "crossmnt", "no_root_squash"])]
    assert refusal(other) == ""


def _text(value: Any, volume: str) -> str:
    """A call with references put in."""
    if isinstance(value, str):
        return value
    return "".join(part if isinstance(part, str) else volume for part in value["Fn::Join"][1])


@pytest.mark.parametrize("deployment", ["single-az-1", "single-az-2", "single-az-ha-1", "single-az-ha-2"])
def test_the_usual_throughput_is_one_that_the_deployment_has(stack: Stack, deployment: str) -> None:
    made = home(stack, capacity_gib=512, deployment=deployment)

    assert made.config.throughput_mbps in openzfs(made.config.deployment).throughput
    assert made.config.throughput_mbps - 1 not in openzfs(made.config.deployment).throughput
    assert refusal(stack) == ""


def test_the_arguments_are_the_fields_of_the_model() -> None:
    hints = figures(get_type_hints(OpenZfsArguments))

    assert hints == {name: get_type_hints(NewOpenZfs)[name] for name in NewOpenZfs.model_fields}


def test_what_fsx_refuses_is_refused(stack: Stack) -> None:
    home(stack, capacity_gib=60, throughput_mbps=200)

    said = refusal(stack)
    assert "[research/Home] FSX040 throughput_mbps: 200 MB/s" in said and "160" in said
    assert "FSX041 capacity_gib: 60 GiB" in said


@pytest.mark.parametrize("asked_by", ["server", "client", "admit"])
def test_clients_reach_all_ports_of_nfs(stack: Stack, asked_by: str) -> None:
    made = home(stack, capacity_gib=512)
    clients = group(stack)

    if asked_by == "server":
        made.connections.allow_default_port_from(clients)
    elif asked_by == "client":
        clients.connections.allow_to_default_port(made)
    else:
        made.admit(stack, "Mounts", clients=clients)

    (server,) = resources(stack, "AWS::EC2::SecurityGroup")
    ingress = {("ingress", server, CLIENTS, *port) for port in NFS}
    assert rules(stack) == ingress | {("egress", CLIENTS, server, *port) for port in NFS}


def test_an_imported_one_is_the_same_thing(stack: Stack) -> None:
    there: IOpenZfsFileSystem = OpenZfsFileSystem.from_open_zfs_attributes(
        stack,
        "There",
        file_system_id="fs-0123456789abcdef0",
        dns_name="fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
        security_group=group(stack, "Servers", "sg-0000000000000000b"),
    )

    there.connections.allow_default_port_from(group(stack))

    assert there.mount.path == "/home" and len(rules(stack)) == 2 * len(NFS)
