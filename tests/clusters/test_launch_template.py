"""Launch templates: one for every EFA type before CloudFormation's schemas, and the traps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, Fn, Stack, Tags, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template
from cdk_nag import AwsSolutionsChecks
from templates import Synthesised, app_in, cfn_lint, finish

from ultracluster.catalog import InstanceType, instance_type, instance_types
from ultracluster.clusters.launch_template import NodeLaunchTemplate
from ultracluster.clusters.launch_template_checks import USER_DATA_BYTES
from ultracluster.clusters.placement import ClusterPlacementGroup
from ultracluster.config.capacity import CapacityBlock, OnDemand, Reservation, Spot, TrainingPlan
from ultracluster.model.capacity import Capacity, placement_for, sold
from ultracluster.model.network_cards import network_card_plan
from ultracluster.network.efa_security_group import EfaSecurityGroup

KIND = "AWS::EC2::LaunchTemplate"
ID = "cr-0123456789abcdef0"
KEY = "arn:aws:kms:us-east-2:111122223333:key/12345678-1234-1234-1234-123456789012"
GROUP = "arn:aws:resource-groups:us-east-2:111122223333:group/reservations"
EFA_TYPES = {name: t for name, t in instance_types().items() if t.efa_interfaces != 0}
BLOCK = CapacityBlock(kind="capacity-block", id=ID)
PLAN = TrainingPlan(kind="training-plan", arn="arn:aws:sagemaker:us-east-2:111122223333:training-plan/large")
RESERVATION = Reservation(kind="reservation", id=ID)


def known(name: str) -> InstanceType:
    found = instance_type(name)
    assert found
    return found


def logical(name: str) -> str:
    return name.replace(".", "").replace("-", "")


class Bench:
    """A stack with what a launch template needs."""

    def __init__(self, app: App, name: str = "nodes", region: str = "us-east-2") -> None:
        self.stack = Stack(app, name, env=Environment(account="111122223333", region=region))
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self.stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=[f"{region}a"]
        )
        self.efa = EfaSecurityGroup(self.stack, "Efa", vpc=self.vpc)
        self.key = kms.Key.from_key_arn(self.stack, "Key", KEY)

    def add(self, name: str, t: str | InstanceType = "p5.48xlarge", **arguments: Any) -> NodeLaunchTemplate:
        defaults: dict[str, Any] = {
            "instance_type": known(t) if isinstance(t, str) else t,
            "security_groups": [self.efa.security_group],
            "key": self.key,
            "root_device": "/dev/xvda",
        }
        return NodeLaunchTemplate(self.stack, name, **(defaults | arguments))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(app_in(tmp_path, validate=False))


def rendered(resource: ec2.CfnLaunchTemplate) -> dict[str, Any]:
    """A launch template's data as CloudFormation gets it; synthesises, so add all constructs before."""
    stack = Stack.of(resource)
    template = Template.from_stack(stack).to_json()
    return template["Resources"][stack.get_logical_id(resource)]["Properties"]["LaunchTemplateData"]


def data(template: NodeLaunchTemplate) -> dict[str, Any]:
    return rendered(template.resource)


# --- every EFA type, before CloudFormation's schemas and cdk-nag -----------------------------------------


def region_of(t: InstanceType) -> str:
    return "us-east-2" if not t.regions or "us-east-2" in t.regions else t.regions[0]


def capacity_of(t: InstanceType) -> Capacity:
    return OnDemand() if sold("on-demand", t) else BLOCK


@pytest.fixture(scope="module")
def every_type(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """One stack per Region; in it a template for each EFA type, and on several cards one for PCS, too."""
    folder = tmp_path_factory.mktemp("every-type")
    app = app_in(folder)
    benches: dict[str, Bench] = {}
    for name, t in EFA_TYPES.items():
        region = region_of(t)
        if region not in benches:
            benches[region] = Bench(app, f"nodes-{region}", region)
        bench = benches[region]
        group = None
        if placement_for(capacity_of(t), instance_type=t).kind == "cluster":
            group = ClusterPlacementGroup(bench.stack, f"Group{logical(name)}").placement_group
        bench.add(logical(name), t, capacity=capacity_of(t), placement_group=group)
        if t.network_cards > 1:
            bench.add(f"Pcs{logical(name)}", t, capacity=capacity_of(t), orchestrator="pcs")
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return finish(app, folder)


def made(every: Synthesised, construct_id: str) -> dict[str, Any]:
    (found,) = [
        resource["Properties"]["LaunchTemplateData"]
        for path, resource in every.resources(KIND).items()
        if path.rpartition("/")[2][:-8] == construct_id
    ]
    return found


def test_cdk_validation_and_cdk_nag_find_nothing(every_type: Synthesised) -> None:
    assert len(every_type.resources(KIND)) > len(EFA_TYPES)
    assert every_type.findings == set()


def test_cfn_lint_finds_nothing(every_type: Synthesised) -> None:
    for stack in every_type.templates:
        file = every_type.folder / f"{stack}.template.json"
        assert cfn_lint([file], stack.removeprefix("nodes-"))[:2000] == ""


@pytest.mark.parametrize("name", EFA_TYPES)
def test_the_template_of_every_efa_type_carries_its_plan(name: str, every_type: Synthesised) -> None:
    t = EFA_TYPES[name]
    template = made(every_type, logical(name))
    interfaces = template["NetworkInterfaces"]

    assert template["InstanceType"] == name
    assert [(i["NetworkCardIndex"], i["DeviceIndex"], i["InterfaceType"]) for i in interfaces] == [
        (one.card, one.device, one.kind) for one in network_card_plan(t)
    ]
    assert sum(i["InterfaceType"] != "interface" for i in interfaces) == (t.efa_interfaces or 4)
    assert all(i["Groups"] and i["DeleteOnTermination"] for i in interfaces)
    assert not [i for i in interfaces if "SubnetId" in i or "AssociatePublicIpAddress" in i]
    assert "SecurityGroupIds" not in template
    assert ("Placement" in template) == sold("on-demand", t)
    assert ("InstanceMarketOptions" in template) == (not sold("on-demand", t))


@pytest.mark.parametrize("name", [name for name, t in EFA_TYPES.items() if t.network_cards > 1])
def test_pcs_gets_combined_interfaces_where_the_type_takes_them(name: str, every_type: Synthesised) -> None:
    interfaces = made(every_type, f"Pcs{logical(name)}")["NetworkInterfaces"]
    kinds = {i["InterfaceType"] for i in interfaces} - {"interface"}

    assert kinds == ({"efa-only"} if name == "p6e-gb200.36xlarge" else {"efa"})
    assert sum(i["InterfaceType"] != "interface" for i in interfaces) == (EFA_TYPES[name].efa_interfaces or 4)


# --- what a template holds -------------------------------------------------------------------------------


def test_metadata_volume_and_monitoring(bench: Bench) -> None:
    template = data(bench.add("Gpu", root_volume_gib=300))

    assert template["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpTokens": "required",
        "HttpPutResponseHopLimit": 1,
    }
    assert template["BlockDeviceMappings"] == [
        {
            "DeviceName": "/dev/xvda",
            "Ebs": {
                "VolumeType": "gp3",
                "VolumeSize": 300,
                "Encrypted": True,
                "KmsKeyId": KEY,
                "DeleteOnTermination": True,
            },
        }
    ]
    assert template["Monitoring"] == {"Enabled": True}
    assert not {"KeyName", "UserData", "CpuOptions", "ImageId", "IamInstanceProfile"} & set(template)


def test_options_are_passed_on(bench: Bench) -> None:
    profile = iam.InstanceProfile.from_instance_profile_arn(
        bench.stack, "Profile", "arn:aws:iam::111122223333:instance-profile/nodes"
    )
    template = data(
        bench.add(
            "Gpu",
            image_id="ami-0123456789abcdef0",
            instance_profile=profile,
            detailed_monitoring=False,
            metadata_hop_limit=2,
            threads_per_core=1,
            user_data="#!/bin/bash\ntrue\n",
        )
    )

    assert template["ImageId"] == "ami-0123456789abcdef0"
    assert template["IamInstanceProfile"] == {"Arn": "arn:aws:iam::111122223333:instance-profile/nodes"}
    assert template["Monitoring"] == {"Enabled": False}
    assert template["MetadataOptions"]["HttpPutResponseHopLimit"] == 2
    assert template["CpuOptions"] == {"CoreCount": 96, "ThreadsPerCore": 1}
    assert template["UserData"] == {"Fn::Base64": "#!/bin/bash\ntrue\n"}


def test_tags_reach_instances_volumes_and_interfaces(bench: Bench) -> None:
    template = data(bench.add("Gpu", tags={"team": "research"}))

    expected = [{"Key": "Name", "Value": "nodes/Gpu"}, {"Key": "team", "Value": "research"}]
    assert template["TagSpecifications"] == [
        {"ResourceType": kind, "Tags": expected} for kind in ("instance", "volume", "network-interface")
    ]


def test_the_attributes_are_tokens_of_the_resource(bench: Bench) -> None:
    template = bench.add("Gpu")
    name = bench.stack.resolve(bench.stack.get_logical_id(template.resource))

    assert bench.stack.resolve(template.launch_template_id) == {"Ref": name}
    version = {"Fn::GetAtt": [name, "LatestVersionNumber"]}
    assert bench.stack.resolve(template.latest_version_number) == version
    assert len(template.interfaces) == 33


def test_a_node_with_one_interface_asks_for_no_public_address(bench: Bench) -> None:
    (interface,) = data(bench.add("Login", "m5.4xlarge"))["NetworkInterfaces"]

    assert interface["AssociatePublicIpAddress"] is False


def test_groups_of_the_primary_interface_are_on_no_other(bench: Bench) -> None:
    files = ec2.SecurityGroup.from_security_group_id(bench.stack, "Files", "sg-0fedcba9876543210")
    first, *others = data(bench.add("Gpu", primary_security_groups=[files]))["NetworkInterfaces"]

    assert len(first["Groups"]) == 2
    assert first["Groups"][1] == "sg-0fedcba9876543210"
    assert {len(one["Groups"]) for one in others} == {1}


def test_a_subnet_is_in_each_interface_when_asked_for(bench: Bench) -> None:
    subnet = ec2.Subnet.from_subnet_id(bench.stack, "Subnet", "subnet-0123456789abcdef0")
    interfaces = data(bench.add("Gpu", "g6e.12xlarge", subnet=subnet))["NetworkInterfaces"]

    assert [one["SubnetId"] for one in interfaces] == ["subnet-0123456789abcdef0"] * 2


@pytest.mark.parametrize(
    ("capacity", "arguments", "market", "target"),
    [
        (OnDemand(), {}, None, None),
        (Spot(kind="spot"), {}, "spot", None),
        (Spot(kind="spot"), {"orchestrator": "eks"}, None, None),
        (Spot(kind="spot"), {"orchestrator": "pcs"}, None, None),
        (Reservation(kind="reservation"), {}, None, {"CapacityReservationPreference": "open"}),
        (RESERVATION, {}, None, {"CapacityReservationTarget": {"CapacityReservationId": ID}}),
        (
            Reservation(kind="reservation", resource_group_arn=GROUP),
            {"orchestrator": "pcs"},
            None,
            {"CapacityReservationTarget": {"CapacityReservationResourceGroupArn": GROUP}},
        ),
        (
            BLOCK,
            {"orchestrator": "eks"},
            "capacity-block",
            {"CapacityReservationTarget": {"CapacityReservationId": ID}},
        ),
    ],
)
def test_capacity(
    capacity: Capacity,
    arguments: dict[str, Any],
    market: str | None,
    target: dict[str, Any] | None,
    bench: Bench,
) -> None:
    template = data(bench.add("Gpu", capacity=capacity, **arguments))

    assert template.get("InstanceMarketOptions") == ({"MarketType": market} if market else None)
    assert template.get("CapacityReservationSpecification") == target


# --- traps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capacity", [RESERVATION, Reservation(kind="reservation"), BLOCK, PLAN])
def test_no_placement_group_with_a_reservation_made_outside_it(capacity: Capacity, bench: Bench) -> None:
    """11 of 16 nodes came up (eksctl-io/eksctl#7949)."""
    group = ClusterPlacementGroup(bench.stack, "Group").placement_group

    with pytest.raises(ValueError, match="Instead: "):
        bench.add("Gpu", capacity=capacity, placement_group=group)


def test_the_group_of_the_reservation_is_named(bench: Bench) -> None:
    group = ec2.PlacementGroup.from_placement_group_name(bench.stack, "Group", "made-with-the-reservation")
    for name, capacity, given in (("Block", BLOCK, group), ("NoGroup", RESERVATION, None)):
        with pytest.raises(ValueError, match=r"belongs? to no placement group|without placement_group"):
            bench.add(name, capacity=capacity, placement_group=given, reserved_in_group=True)
    template = data(bench.add("Gpu", capacity=RESERVATION, placement_group=group, reserved_in_group=True))

    assert template["Placement"] == {"GroupName": "made-with-the-reservation"}


def test_snake_case_dictionaries_vanish_and_ours_do_not(bench: Bench) -> None:
    """Why every part is a property class: the CDK passes on `{}` and says nothing."""
    loose = ec2.CfnLaunchTemplate(
        bench.stack,
        "Loose",
        launch_template_data={  # pyright: ignore[reportArgumentType]
            "networkInterfaces": [{"network_card_index": 0, "interface_type": "efa-only"}]
        },
    )
    ours = bench.add("Gpu", threads_per_core=1, tags={"team": "research"})

    assert not any(rendered(loose).get("NetworkInterfaces", [{}]))
    assert not list(empty(data(ours)))


def empty(value: Any) -> Iterator[Any]:
    """Everything within `value` that holds nothing."""
    if value in ({}, [], "", None):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from empty(part)
    elif isinstance(value, list):
        for part in value:
            yield from empty(part)


def test_a_changed_tag_does_not_replace_the_placement_group(tmp_path: Path) -> None:
    app = app_in(tmp_path)
    stack = Stack(app, "groups")
    ClusterPlacementGroup(stack, "Group")
    Tags.of(app).add("team", "research")

    (group,) = finish(app, tmp_path).resources("AWS::EC2::PlacementGroup").values()

    assert group["Properties"] == {"Strategy": "cluster"}


def test_a_placement_group_is_named_by_the_template(bench: Bench) -> None:
    group = ClusterPlacementGroup(bench.stack, "Group")
    template = data(bench.add("Gpu", placement_group=group.placement_group))

    assert template["Placement"] == {"GroupName": bench.stack.resolve(group.placement_group_name)}


@pytest.mark.parametrize(
    ("t", "arguments", "message"),
    [
        ("p5.48xlarge", {"security_groups": []}, "security_groups must hold at least one group"),
        ("p5.48xlarge", {"user_data": "x" * (USER_DATA_BYTES + 1)}, "at most 16384 bytes, got 16385"),
        ("p5.48xlarge", {"user_data": "ä" * USER_DATA_BYTES}, "at most 16384 bytes, got 32768"),
        (
            "p5.48xlarge",
            {"user_data": "#!/bin/sh", "orchestrator": "pcs"},
            "MIME multi-part document for PCS",
        ),
        ("g7.48xlarge", {"threads_per_core": 2}, r"threads_per_core must be 1 on g7\.48xlarge, got 2"),
        ("g5.48xlarge", {"threads_per_core": 1}, r"threads_per_core of g5\.48xlarge is unknown"),
        ("p5.48xlarge", {"tags": {"aws:team": "x"}}, "must not begin with aws:"),
        ("p6e-gb200.36xlarge", {}, r"p6e-gb200\.36xlarge is sold inside UltraServers"),
        ("p5.48xlarge", {"efa_interfaces": 33}, "interfaces must be 0 to 32"),
    ],
)
def test_what_aws_would_refuse_is_refused_first(
    t: str, arguments: dict[str, Any], message: str, bench: Bench
) -> None:
    with pytest.raises(ValueError, match=message):
        bench.add("Gpu", t, **arguments)


@pytest.mark.parametrize("orchestrator", ["eks", "pcs"])
@pytest.mark.parametrize("field", ["subnet", "instance_profile"])
def test_what_the_orchestrator_has_a_field_for_is_not_in_the_template(
    orchestrator: str, field: str, bench: Bench
) -> None:
    made: dict[str, Callable[[], Any]] = {
        "subnet": lambda: ec2.Subnet.from_subnet_id(bench.stack, "Subnet", "subnet-0123456789abcdef0"),
        "instance_profile": lambda: iam.InstanceProfile.from_instance_profile_arn(
            bench.stack, "Profile", "arn:aws:iam::111122223333:instance-profile/nodes"
        ),
    }

    with pytest.raises(ValueError, match=f"{field} cannot be in a launch template for {orchestrator}"):
        bench.add("Gpu", orchestrator=orchestrator, **{field: made[field]()})


def test_the_largest_user_data_and_one_of_tokens_are_taken(bench: Bench) -> None:
    largest = bench.add("Largest", user_data="x" * USER_DATA_BYTES)
    token = bench.add("Token", user_data=Fn.import_value("UserData"), orchestrator="pcs")

    assert data(largest)["UserData"] == {"Fn::Base64": "x" * USER_DATA_BYTES}
    assert data(token)["UserData"] == {"Fn::Base64": {"Fn::ImportValue": "UserData"}}


def test_what_rests_on_the_catalogue_is_a_warning(tmp_path: Path) -> None:
    app = app_in(tmp_path)
    bench = Bench(app)
    bench.add("Block", "g6e.12xlarge", capacity=BLOCK)

    assert ("ultracluster:capacity:capacity-block-unsold", "nodes/Block") in {
        (entry.data.rpartition("[ack: ")[2].rstrip("]"), construct.node.path)
        for construct in app.node.find_all()
        for entry in construct.node.metadata
        if entry.type == "aws:cdk:warning"
    }


def test_types_without_a_price_in_the_region_pass_cfn_lint(bench: Bench) -> None:
    """Sold as Capacity Blocks: cfn-lint's lists of types come from price lists (E3628)."""
    gb200 = bench.add("Block", "p6e-gb200.36xlarge", capacity=BLOCK).resource
    p5 = bench.add("Gpu").resource

    assert gb200.get_metadata("cfn-lint") == {"config": {"ignore_checks": ["E3628"]}}
    assert p5.get_metadata("cfn-lint") is None
