"""Templates of three stacks that refer to each other: a network, storage in it, and nodes on both."""

from __future__ import annotations

from typing import Any

from blast_radius_support import CLUSTER, LUSTRE, cluster, group, resource


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
