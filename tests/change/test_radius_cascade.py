"""What a change takes along, over stacks and over environments."""

from __future__ import annotations

from typing import Any

import pytest
from blast_radius_support import CLUSTER, GROUP, LUSTRE, changes, cluster, lustre, resource, stack
from three_stacks import NODES, STORAGE, network

from ultracluster.change import Verdict, blast_radius, worst


def test_a_replaced_network_takes_along_what_is_in_it_over_stacks() -> None:
    old = {"dev-network": network("10.0.0.0/16"), "dev-storage": STORAGE, "dev-cluster": NODES}
    found = {
        (c.resource, c.path): c for c in blast_radius(old, {**old, "dev-network": network("10.1.0.0/16")})
    }

    lost = found["dev-storage/Lustre", "SubnetIds"]
    assert lost.verdict == "DATA LOSS"
    assert "refers to `dev-network/Subnet`" in lost.reason and "refuses to change one in use" in lost.reason
    mount = found["dev-cluster/Cluster", f"{GROUP}.InstanceStorageConfigs[FsxLustre].FsxLustreConfig.DnsName"]
    assert mount.verdict == "needs scale-to-zero" and "`dev-storage/Lustre`" in mount.reason
    assert ("dev-storage/Log", "RetentionInDays") not in found
    assert found["dev-network/Subnet", "VpcId"].verdict == "replaced"


@pytest.mark.parametrize(
    "reference",
    [
        {"Ref": "Vpc"},
        {"Fn::GetAtt": ["Vpc", "VpcId"]},
        {"Fn::GetAtt": "Vpc.VpcId"},
        {"Fn::Sub": "${Vpc}"},
        {"Fn::Sub": ["${Vpc.VpcId}-${x}", {"x": 1}]},
        {"Fn::Join": ["", ["a", {"Ref": "Vpc"}]]},
        {"Fn::Select": [0, [{"Fn::If": ["c", {"Ref": "Vpc"}, "b"]}]]},
    ],
)
def test_every_form_of_reference_is_followed(reference: Any) -> None:
    old, new = (
        stack(
            Vpc=resource("AWS::EC2::VPC", {"CidrBlock": cidr}),
            Group=resource("AWS::EC2::SecurityGroup", {"VpcId": reference}),
        )
        for cidr in ("a", "b")
    )
    found = {change.logical_id: change for change in blast_radius(old, new)}

    assert found["Group"].verdict == "replaced" and "`Vpc`" in found["Group"].reason


@pytest.mark.parametrize("kind", ["AWS::EKS::Nodegroup", "AWS::PCS::ComputeNodeGroup"])
def test_a_new_version_of_a_launch_template_renews_the_nodes(kind: str) -> None:
    name = "LaunchTemplate" if kind == "AWS::EKS::Nodegroup" else "CustomLaunchTemplate"
    version = {"Fn::GetAtt": ["Template", "LatestVersionNumber"]}
    old, new = (
        stack(
            Template=resource("AWS::EC2::LaunchTemplate", {"LaunchTemplateData": {"ImageId": image}}),
            Nodes=resource(kind, {name: {"Id": {"Ref": "Template"}, "Version": version}}),
        )
        for image in ("ami-1", "ami-2")
    )

    assert [(c.logical_id, c.verdict) for c in blast_radius(old, new)] == [
        ("Nodes", "rolling"),
        ("Template", "in place"),
    ]


def test_a_refused_change_replaces_nothing_else() -> None:
    old, new = (
        stack(
            Lustre=resource(LUSTRE, lustre(StorageCapacity=capacity)),
            Link=resource("AWS::FSx::DataRepositoryAssociation", {"FileSystemId": {"Ref": "Lustre"}}),
        )
        for capacity in (4800, 2400)
    )

    assert [(c.logical_id, c.refused) for c in blast_radius(old, new)] == [("Lustre", True)]


def test_a_changed_parameter_changes_what_refers_to_it() -> None:
    old, new = (
        {
            "s": {
                "Parameters": {"Zone": {"Default": zone}},
                "Resources": {"R": resource("AWS::EC2::Subnet", {"AvailabilityZone": {"Ref": "Zone"}})},
            }
        }
        for zone in ("a", "b")
    )

    assert worst(blast_radius(old, new)) == "replaced"


def test_a_named_resource_cannot_be_replaced_under_its_name() -> None:
    new = cluster(ClusterName="prod", VpcConfig={"Subnets": ["subnet-2"], "SecurityGroupIds": ["sg-1"]})
    (change,) = changes(CLUSTER, cluster(ClusterName="prod"), new)

    assert change.verdict is Verdict.REFUSED
    assert "makes the new one first, while its ClusterName `prod` is taken" in change.reason
    assert change.order == ("another ClusterName: the new one is made, then this one is deleted",)


def test_a_name_within_a_parent_is_free_in_another_parent() -> None:
    kind = "AWS::PCS::Queue"
    old, new = ({"Name": "train", "ClusterId": one} for one in ("pcs_1", "pcs_2"))
    (change,) = changes(kind, old, new)

    assert change.verdict is Verdict.REPLACED and "is taken" not in change.reason
