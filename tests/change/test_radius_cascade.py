"""What a change takes along, over stacks and over environments."""

from __future__ import annotations

from typing import Any

import pytest
from blast_radius_support import CLUSTER, GROUP, LUSTRE, changes, cluster, group, lustre, resource, stack

from ultracluster.change import blast_radius, paired, worst


def network(cidr: str) -> dict[str, Any]:
    return {
        "Resources": {
            "Vpc": resource("AWS::EC2::VPC", {"CidrBlock": cidr}),
            "Subnet": resource(
                "AWS::EC2::Subnet", {"VpcId": {"Ref": "Vpc"}, "CidrBlock": {"Fn::GetAtt": "Vpc.CidrBlock"}}
            ),
        },
        "Outputs": {"Id": {"Value": {"Ref": "Subnet"}, "Export": {"Name": "dev-network-Id"}}},
    }


STORAGE = {
    "Resources": {
        "Lustre": resource(LUSTRE, {"SubnetIds": [{"Fn::ImportValue": "dev-network-Id"}]}),
        "Log": resource("AWS::Logs::LogGroup", {"RetentionInDays": 7}),
    },
    "Outputs": {
        "Dns": {"Value": {"Fn::GetAtt": ["Lustre", "DNSName"]}, "Export": {"Name": "dev-storage-Dns"}}
    },
}
NODES = {
    "Resources": {
        "Cluster": resource(
            CLUSTER,
            cluster(
                group(
                    InstanceStorageConfigs=[
                        {"FsxLustreConfig": {"DnsName": {"Fn::ImportValue": "dev-storage-Dns"}}}
                    ]
                )
            ),
        )
    }
}


def test_what_is_exported_and_read_goes_in_the_other_order() -> None:
    """Storage first, as a deploy goes, CloudFormation refuses; the row says what works."""
    old = {"dev-network": network("10.0.0.0/16"), "dev-storage": STORAGE, "dev-cluster": NODES}
    new = {**old, "dev-storage": {**STORAGE, "Outputs": {}}, "dev-cluster": {"Resources": {}}}

    (row,) = [change for change in blast_radius(old, new) if change.refused]

    assert (row.stack, row.logical_id) == ("dev-storage", "")
    assert "`dev-storage-Dns` goes, and dev-cluster imports it" in row.reason
    assert "`cdk deploy -c env=dev -e dev-cluster`, then `cdk deploy -c env=dev --all`" in row.reason


def test_a_reader_that_stays_or_is_left_behind_must_let_go_first() -> None:
    old = {"dev-storage": STORAGE, "dev-cluster": NODES}
    gone = {**STORAGE, "Outputs": {}}

    def reason(new: dict[str, Any]) -> str:
        (row,) = [change for change in blast_radius(old, new) if change.refused and not change.logical_id]
        return row.reason

    assert "take the import out of dev-cluster" in reason({**old, "dev-storage": gone})
    assert "delete-stack --stack-name dev-cluster" in reason({"dev-storage": gone})
    assert not [change for change in blast_radius(old, {**old, "dev-cluster": {}}) if change.refused]


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

    assert "While its ClusterName stays `prod`, CloudFormation refuses" in change.reason


def test_environments_are_compared_stack_by_stack_and_ids_that_hold_the_stacks_name_match() -> None:
    def one(name: str) -> dict[str, Any]:
        secret = resource("AWS::SecretsManager::Secret")
        using = resource("AWS::RDS::DBInstance", {"MasterUserPassword": {"Ref": f"{name}storageSecret1A2B"}})
        return {
            f"{name}-network": {
                "Outputs": {"Id": {"Value": {"Ref": "V"}, "Export": {"Name": f"{name}-network-Id"}}},
                "Resources": {"V": resource("AWS::EC2::VPC")},
            },
            f"{name}-storage": {
                "Resources": {
                    f"{name}storageSecret1A2B": secret,
                    "Db": using,
                    "G": resource(
                        "AWS::EC2::SecurityGroup", {"VpcId": {"Fn::ImportValue": f"{name}-network-Id"}}
                    ),
                }
            },
        }

    assert blast_radius(paired(one("dev"), one("prod")), one("prod")) == []
