"""An environment in a Local Zone: what AWS has in no such zone is in one of the Region."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import changed, environment_data, findings, loaded
from templates import templates_alone

ZONE, PARENT, SECOND = "use1-dfw2-az1", "use1-az4", "use1-az2"
ZFS = {"deployment": "single-az-2", "capacity_gib": 512, "throughput_mbps": 160}
DATABASE = {"kind": "rds-mysql", "second_zone_id": SECOND}
ENTRANCES = ("controller", "login", "head")


def local(base: str, **more: Any) -> dict[str, Any]:
    """Changes that put a shipped environment into a Local Zone, its entrances behind it."""
    groups = environment_data(base)["node_groups"]
    return {
        "region": "us-east-1",
        "network.zone_id": ZONE,
        "network.further_zones": {PARENT: {"cidr": "10.0.128.0/20"}},
        "network.cidr": "10.0.0.0/16",
        **{f"node_groups.{one}.zone_id": PARENT for one in groups if one in ENTRANCES},
        **more,
    }


def resources(base: str, changes: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Properties of all resources by type, with the zone in place of each subnet's reference."""
    templates = templates_alone(loaded(changed(environment_data(base), changes)).environment)
    found: dict[str, list[dict[str, Any]]] = {}
    for template in templates.values():
        for one in template["Resources"].values():
            found.setdefault(one["Type"], []).append(one.get("Properties", {}))
    return found


@pytest.mark.parametrize("base", ["dev", "parallelcluster-p5", "pcs-p6-b200"])
def test_homes_are_exported_to_head_and_login_nodes_too(base: str) -> None:
    changes = local(base, **{"storage.openzfs": ZFS})
    found = resources(base, changes)
    (homes,) = [one for one in found["AWS::FSx::FileSystem"] if one["FileSystemType"] == "OPENZFS"]
    volume = homes["OpenZFSConfiguration"]["RootVolumeConfiguration"]
    ((client,),) = [one["ClientConfigurations"] for one in volume["NfsExports"]]
    assert client["Clients"] == "10.0.0.0/16"
    assert not {"HYP077", "HYP078", "ENV032", "ENV033"} & {one.code for one in findings(changes, base=base)}


def plane_zones(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Zones of the subnets that are made for a control plane."""
    return sorted(
        one["AvailabilityZoneId"]
        for one in found["AWS::EC2::Subnet"]
        if any(tag["Key"] == "kubernetes.io/role/internal-elb" for tag in one["Tags"])
    )


@pytest.mark.parametrize("base", ["eks-p5en", "hyperpod-eks-p5"])
def test_subnets_of_a_control_plane_are_in_two_zones_of_the_region(base: str) -> None:
    changes = local(base, **{"orchestrator.second_zone_id": SECOND, "node_groups.system.zone_id": PARENT})
    found = resources(base, changes)

    assert plane_zones(found) == [SECOND, PARENT]
    assert "EKS017" not in {one.code for one in findings(changes, base=base)}


@pytest.mark.parametrize("base", ["eks-p5en", "hyperpod-eks-p5"])
def test_elsewhere_the_first_one_stays_beside_the_nodes(base: str) -> None:
    """CloudFormation would replace it, and EKS its control plane."""
    zone = environment_data(base)["network"]["zone_id"]
    second = environment_data(base)["orchestrator"]["second_zone_id"]
    further = {"network.further_zones": {second: {"cidr": "10.0.128.0/20"}}}
    for changes in ({}, further):
        assert plane_zones(resources(base, changes)) == sorted([zone, second])


def test_elsewhere_the_export_stays_as_it_was() -> None:
    (homes,) = [
        one
        for one in resources("dev", {"storage.openzfs": ZFS})["AWS::FSx::FileSystem"]
        if one["FileSystemType"] == "OPENZFS"
    ]
    volume = homes["OpenZFSConfiguration"]["RootVolumeConfiguration"]
    assert volume["NfsExports"][0]["ClientConfigurations"][0]["Clients"] == "10.0.0.0/17"


def test_no_subnet_of_the_database_is_in_the_local_zone() -> None:
    found = resources("dev", local("dev", **{"storage.accounting_database": DATABASE}))
    zones = [one["AvailabilityZoneId"] for one in found["AWS::EC2::Subnet"]]
    # one for NAT, one of the head and login nodes, one of the database; RDS takes no mixed group
    assert sorted(zones) == sorted([ZONE, PARENT, PARENT, PARENT, SECOND])


def test_the_interface_of_pcs_is_in_the_zone_of_the_region() -> None:
    (cluster,) = resources("pcs-p6-b200", local("pcs-p6-b200"))["AWS::PCS::Cluster"]
    (subnet,) = cluster["Networking"]["SubnetIds"]
    assert PARENT.replace("-", "") in str(subnet).replace("-", "").lower()
