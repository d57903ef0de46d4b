"""An OpenZFS file system in an app of another team."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
from aws_cdk import Stack
from foreign import figures, group, imported_vpc, refusal, resources, rules

from ultracluster import IOpenZfsFileSystem, OpenZfsFileSystem
from ultracluster.catalog.fsx import openzfs
from ultracluster.config.storage import NewOpenZfs
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
