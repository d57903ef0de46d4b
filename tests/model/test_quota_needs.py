"""What an environment takes of which quota."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from project import ENVIRONMENTS, ROOT
from pydantic import TypeAdapter

from ultracluster.catalog import instance_types
from ultracluster.catalog.quotas import ec2_quota, quota, quota_by_type
from ultracluster.config import Environment, load
from ultracluster.config.capacity import Capacity
from ultracluster.config.network import ExistingSecurityGroup, ExistingSubnet, ExistingVpc
from ultracluster.model import resolve
from ultracluster.model.quota_needs import RULES, Need, needs

QUOTAS = json.loads((ROOT / "constructs/ultracluster/catalog/quotas.json").read_text())


@cache
def shipped(name: str) -> Environment:
    return load(ROOT / "environments" / f"{name}.yaml").environment


def by_name(environment: Environment) -> dict[str, Need]:
    return {need.quota.name: need for need in needs(resolve(environment))}


def with_group(environment: Environment, group: str, **changes: Any) -> Environment:
    changed = environment.node_groups[group].model_copy(update=changes)
    return environment.model_copy(update={"node_groups": {**environment.node_groups, group: changed}})


P = "Running On-Demand P instances"
PLANS = "Number of ml.p5en.48xlarge instances in reserved capacity across training plans per Region"
STANDARD = "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"


@pytest.mark.parametrize(
    ("name", "wanted", "absent"),
    [
        (
            "dev",
            {
                "ml.g6e.12xlarge for cluster usage": 2,
                "Maximum number instances allowed per SageMaker HyperPod cluster": 4,
                "Total number of instances allowed across SageMaker HyperPod clusters": 4,
                "Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance": 500,
                "EC2-VPC Elastic IPs": 1,
                "NAT gateways per Availability Zone": 1,
                "Lustre Persistent_2 storage capacity": 1200,
                # four nodes with one card each, a metadata and an object server, the NAT gateway
                "Network interfaces per Region": 7,
            },
            {STANDARD, "Clusters", "DB instances"},
        ),
        (
            "prod",
            {
                "ml.p5en.48xlarge for cluster usage": 16,
                PLANS: 16,
                "Interface VPC endpoints per VPC": 13,
                "DB instances": 1,
                "OpenZFS throughput capacity": 320,
            },
            {"EC2-VPC Elastic IPs", "NAT gateways per Availability Zone", P},
        ),
        (
            "parallelcluster-p5",
            # 2 x 4 nodes of 192; 33 interfaces each with efa-only beside the primary one; two of the function
            # that makes the database's user
            {
                P: 8 * 192,
                STANDARD: 20,
                "Network interfaces per Region": 2 + 8 * 33 + 5 + 2,
                "Network Load Balancers per Region": 1,
            },
            {"Clusters", "ml.p5.48xlarge for cluster usage"},
        ),
        # Capacity Blocks count against no quota of vCPUs
        ("pcs-p6-b200", {STANDARD: 16, "OpenZFS file systems": 1}, {P, "Clusters"}),
        (
            "eks-trn2",
            {
                STANDARD: 16,
                "Clusters": 1,
                "Managed node groups per cluster": 2,
                "Nodes per managed node group": 4,
            },
            {"Running On-Demand Trn instances"},
        ),
        (
            "hyperpod-eks-p5",
            {
                "ml.p5.48xlarge for cluster usage": 4,
                STANDARD: 16,
                "Clusters": 1,
                "Managed node groups per cluster": 1,
                "Maximum number instances allowed per SageMaker HyperPod cluster": 4,
            },
            {P},
        ),
    ],
)
def test_each_orchestrator_takes_its_own_quotas(
    name: str, wanted: dict[str, float], absent: set[str]
) -> None:
    found = by_name(shipped(name))
    assert {key: found[key].amount if key in found else None for key in wanted} == wanted
    assert not absent & set(found)


@pytest.mark.parametrize(
    ("instance_type", "purchase", "name"),
    [
        ("p4d.24xlarge", "spot", "All P4, P3 and P2 Spot Instance Requests"),
        ("p5.48xlarge", "spot", "All P5 Spot Instance Requests"),
        ("p6-b300.48xlarge", "spot", "All P5 Spot Instance Requests"),
        ("g6e.12xlarge", "spot", "All G and VT Spot Instance Requests"),
        ("trn2.48xlarge", "on-demand", "Running On-Demand Trn instances"),
        ("m7i.2xlarge", "on-demand", STANDARD),
        ("p6-b300.48xlarge", "on-demand", P),
    ],
)
def test_families_share_quotas(instance_type: str, purchase: Any, name: str) -> None:
    found = ec2_quota(instance_type.partition(".")[0], purchase)
    assert found is not None and found.name == name


def test_every_type_of_the_catalogue_has_a_quota() -> None:
    assert not {one.family for one in instance_types().values() if ec2_quota(one.family, "on-demand") is None}


def test_spot_on_hyperpod_counts_against_its_own_quotas() -> None:
    environment = with_group(
        shipped("dev"), "gpu", capacity=load_capacity({"kind": "spot"}), instance_types=("g6e.24xlarge",)
    )
    found = by_name(environment)
    assert found["ml.g6e.12xlarge for cluster spot instance usage"].amount == 2
    assert found["ml.g6e.24xlarge for cluster spot instance usage"].amount == 2
    assert found["Total number of Spot instances allowed across SageMaker HyperPod clusters"].amount == 2
    assert "ml.g6e.12xlarge for cluster usage" not in found


def load_capacity(data: dict[str, Any]) -> Any:
    return TypeAdapter(Capacity).validate_python(data)


@settings(max_examples=examples(10), deadline=None)
@given(name=st.sampled_from(ENVIRONMENTS), data=st.data(), more=st.integers(0, 500))
def test_needs_never_shrink_when_a_count_grows(name: str, data: st.DataObject, more: int) -> None:
    environment = shipped(name)
    group = data.draw(st.sampled_from(sorted(environment.node_groups)))
    field = data.draw(st.sampled_from(["count", "max_count"]))
    old = getattr(environment.node_groups[group], field) or 0
    before = {need.quota: need.amount for need in needs(resolve(environment))}
    grown = with_group(environment, group, **{field: old + more})
    after = {need.quota: need.amount for need in needs(resolve(grown))}
    assert not {quota.name for quota in before if after.get(quota, 0) < before[quota]}


def test_what_exists_takes_nothing_more() -> None:
    environment = shipped("dev")
    network = environment.network.model_copy(
        update={
            "vpc": ExistingVpc(id="vpc-00000001", cidr="10.0.0.0/16"),
            "subnet": ExistingSubnet(id="subnet-00000001", cidr="10.0.0.0/17"),
            "security_group": ExistingSecurityGroup(id="sg-00000001"),
        }
    )
    found = by_name(environment.model_copy(update={"network": network}))
    assert not {"VPCs per Region", "Subnets per VPC", "EC2-VPC Elastic IPs"} & set(found)
    assert found["VPC security groups per Region"].amount == 1  # that of Lustre


def test_names_and_codes_are_those_that_aws_lists() -> None:
    from moto.servicequotas.resources.default_quotas.vpc import VPC_DEFAULT_QUOTAS

    listed = {row["QuotaCode"]: row["QuotaName"] for row in VPC_DEFAULT_QUOTAS}
    rows = [row for row in QUOTAS["quotas"].values() if row["service"] == "vpc"]
    assert rows and {row["code"]: row["name"] for row in rows}.items() <= listed.items()


def test_no_code_stands_for_two_quotas_and_every_row_has_a_source() -> None:
    rows = list(QUOTAS["quotas"].values())
    typed = [one for row in QUOTAS["by_type"].values() for one in row["codes"].values()]
    codes = [row["code"] for row in [*rows, *typed] if "code" in row]
    assert len(codes) == len(set(codes))
    assert all(row["source"] and row["date"] for row in [*rows, *QUOTAS["by_type"].values()])
    assert all(row["confidence"] in ("A", "B") for row in [*rows, *typed] if "code" in row)
    assert {row["match"] for row in rows if row["service"] == "sagemaker"} == {"name"}
    contradicted = {"L-6865522E", "L-7EA2A41E", "L-5F10CB7E", "L-1A4B6BB5", "L-A9F29A4E", "L-5C4CD236"}
    assert not contradicted & set(codes)
    assert quota_by_type("hyperpod-usage", "trn2.48xlarge").code == ""
    assert quota("elastic-ips").match == "code"


def reviewed() -> list[str]:
    folder = ROOT / "tests" / "stacks" / "__snapshots__" / "test_environments"
    names = [file.stem.partition("[")[2][:-1] for file in folder.glob("test_templates_are_as_reviewed*")]
    return sorted(name for name in names if name in ENVIRONMENTS)


def resources(name: str) -> dict[str, Any]:
    folder = ROOT / "tests" / "stacks" / "__snapshots__" / "test_environments"
    stacks = json.loads((folder / f"test_templates_are_as_reviewed[{name}].json").read_text())
    return {
        f"{stack}/{key}": row
        for stack, template in stacks.items()
        for key, row in template["Resources"].items()
    }


@pytest.mark.parametrize("name", reviewed())
def test_needs_cover_what_the_stacks_make(name: str) -> None:
    found = by_name(shipped(name))
    made = resources(name)

    def count(kind: str, **wanted: Any) -> int:
        return sum(
            row["Type"] == kind and all(row["Properties"].get(key) == value for key, value in wanted.items())
            for row in made.values()
        )

    def need(quota_name: str) -> float:
        return found[quota_name].amount if quota_name in found else 0

    assert need("VPCs per Region") == count("AWS::EC2::VPC")
    assert need("Subnets per VPC") == count("AWS::EC2::Subnet")
    assert need("EC2-VPC Elastic IPs") == count("AWS::EC2::EIP")
    assert need("NAT gateways per Availability Zone") == count("AWS::EC2::NatGateway")
    assert need("Internet gateways per Region") == count("AWS::EC2::InternetGateway")
    endpoints = count("AWS::EC2::VPCEndpoint", VpcEndpointType="Interface")
    assert need("Interface VPC endpoints per VPC") == endpoints
    assert need("DB instances") == count("AWS::RDS::DBInstance")
    assert need("Clusters") == count("AWS::EKS::Cluster")
    assert need("VPC security groups per Region") > count("AWS::EC2::SecurityGroup")  # and the VPC's own
    groups = count("AWS::EKS::Nodegroup")
    assert need("Managed node groups per cluster") == groups
    rules: dict[str, int] = {}
    for row in made.values():
        if row["Type"] in ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"):
            key = json.dumps([row["Type"], row["Properties"].get("GroupId")])
            rules[key] = rules.get(key, 0) + 1
        if row["Type"] == "AWS::EC2::SecurityGroup":
            inline = [row["Properties"].get(f"SecurityGroup{way}gress", []) for way in ("In", "E")]
            assert max(map(len, inline)) <= RULES - max(rules.values(), default=0)
    assert max(rules.values()) <= RULES
