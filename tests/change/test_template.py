"""Templates of two environments, paired by what differs in their names only."""

from __future__ import annotations

from typing import Any

from blast_radius_support import resource

from ultracluster.change import blast_radius, paired


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
