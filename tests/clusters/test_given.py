"""What clusters do with what they are given: rules speak, tokens pass, rights and rules follow."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from foreign import warnings
from foreign_clusters import IMAGE, KUBERNETES, MAKERS, PCS, SLURM, Team, group
from pcs_support import unjudged
from rules_support import environment_data, loaded
from templates import Synthesised, app_in

from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.clusters.eks.nodes import EksNodeGroup
from ultracluster.clusters.given import Parts
from ultracluster.clusters.hyperpod.slurm import HyperPodSlurmCluster
from ultracluster.clusters.launch_template import NodeLaunchTemplate
from ultracluster.clusters.pcs.cluster import PcsCluster
from ultracluster.config.capacity import Reservation
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.pcs import Pcs
from ultracluster.model import resolve
from ultracluster.network.efa_security_group import EfaSecurityGroup
from ultracluster.rules import check
from ultracluster.security.principals import service
from ultracluster.storage.lustre_file_system import LustreFileSystem
from ultracluster.storage.open_zfs_file_system import OpenZfsFileSystem


def team(folder: Path, **more: Any) -> Team:
    return Team(app_in(folder, validate=False), **more)


def synthesised(one: Team, folder: Path) -> Synthesised:
    app = one.stack.node.root
    assert isinstance(app, App)
    return unjudged(app, folder)


def resource(made: Synthesised, kind: str) -> dict[str, Any]:
    (found,) = made.resources(kind).values()
    return found


# Rules


def test_a_cluster_without_controller_is_refused_in_the_words_of_a_file(tmp_path: Path) -> None:
    one = team(tmp_path)
    one.add("hyperpod-slurm", node_groups={"train": SLURM["train"]})

    with pytest.raises(RuntimeError, match="ValidationFailed") as raised:
        synthesised(one, tmp_path)
    data = environment_data("dev")
    found = check(loaded({**data, "node_groups": {"gpu": data["node_groups"]["gpu"]}}))
    told = [finding.message for finding in found if finding.path == ("node_groups",)]
    assert told and all(message in str(raised.value) for message in told)
    assert "[research/Cluster]" in str(raised.value)


@pytest.mark.parametrize("kind", MAKERS)
def test_an_unknown_type_is_refused_in_the_words_of_a_file(kind: str, tmp_path: Path) -> None:
    groups = {"hyperpod-slurm": SLURM, "parallelcluster": SLURM, "pcs": PCS}.get(kind, KUBERNETES)
    wrong = groups["train"].model_copy(update={"instance_type": "p5enn.48xlarge"})

    one = team(tmp_path)

    def both() -> None:
        # at once where nothing can be made of it, else by the CDK's validation
        one.add(kind, node_groups={**groups, "train": wrong})
        synthesised(one, tmp_path)

    with pytest.raises((RuntimeError, ValueError)) as raised:
        both()
    assert re.search(
        r"node_groups\.train\.instance_type: the catalogue has no instance type `p5enn\.48xlarge`",
        str(raised.value),
    )
    assert "p5en.48xlarge" in str(raised.value)


def test_what_contradicts_itself_is_refused_at_once(tmp_path: Path) -> None:
    one = team(tmp_path)
    for more, says in (
        ({"config": HyperPodSlurm(), "node_recovery": "none"}, "node_recovery is given beside config="),
        ({"node_recovering": "none"}, "node_recovering.*node_recovery"),
        ({"node_recovery": "sometimes"}, "node_recovery"),
        ({"config": HyperPodSlurm(cluster_name="a"), "cluster_name": "b"}, "cluster_name .*config="),
        ({"node_groups": None}, "node_groups= is missing"),
        ({"node_groups": {"train one": SLURM["train"]}}, "node_groups"),
        ({"vpc": None}, "vpc=.*security_groups="),
        ({"config": Pcs()}, "config= is of Pcs; give one of HyperPodSlurm"),
        ({"cluster_name": "Bad_Name!"}, "cluster_name.*Bad_Name!"),
        ({"release": "pcs-2099.09"}, r"\[research/C\d+\] SOF001 software.release: there is no release"),
        ({"security_groups": []}, "security_groups="),
    ):
        with pytest.raises(ValueError, match=says):
            one.add("hyperpod-slurm", f"C{abs(hash(str(more)))}", **more)
    resolved = resolve(loaded(environment_data("dev")).environment)
    with pytest.raises(ValueError, match="resolved="):
        one.add("hyperpod-slurm", "Both", resolved=resolved)
    with pytest.raises(ValueError, match="hyperpod-slurm"):
        one.add("pcs", "Other", resolved=resolved, node_groups=None)


NO_OBJECTS: Mapping[str, tuple[Any, str]] = {
    "subnet": ("subnet-0123456789abcdef0", "an object.*ec2.Subnet.from_subnet_id.*subnet-0123456789abcdef0"),
    "vpc": ("vpc-0123456789abcdef0", "an object.*ec2.Vpc.from_vpc_attributes"),
    "security_groups": (["sg-0123456789abcdef0"], "a list of objects.*from_security_group_id"),
    "key": ("arn:aws:kms:us-east-2:111122223333:key/1", "an object.*kms.Key.from_key_arn"),
    "lustre": ("fs-0123456789abcdef0", "an object.*LustreFileSystem.from_lustre_attributes"),
    "further_lustre": ({"data": "fs-0123456789abcdef0"}, "an object.*from_lustre_attributes"),
    "open_zfs": ("fs-0123456789abcdef0", "an object.*from_open_zfs_attributes"),
    "scripts_bucket": ("scripts", "an object.*s3.Bucket.from_bucket_name"),
    "control_plane_subnets": (["subnet-0123456789abcdef0"], "a list of objects.*from_subnet_id"),
}


@pytest.mark.parametrize("name", NO_OBJECTS)
def test_an_id_is_refused_where_an_object_is_needed(name: str, tmp_path: Path) -> None:
    given, says = NO_OBJECTS[name]
    with pytest.raises(ValueError, match=f"^HyperPodEksCluster: {name}= must be {says}"):
        team(tmp_path).add("hyperpod-eks", **{name: given})


def test_one_object_and_a_list_are_told_apart(tmp_path: Path) -> None:
    one = team(tmp_path)
    nodes = EfaSecurityGroup(one.stack, "Nodes", vpc=one.vpc)
    with pytest.raises(ValueError, match=r"security_groups= must be a list.*security_groups=\[...\]"):
        one.add("pcs", "C1", security_groups=nodes)
    with pytest.raises(ValueError, match=r"subnet= must be one object.*subnet=...\[0\]"):
        one.add("pcs", "C2", subnet=one.vpc.private_subnets)
    with pytest.raises(ValueError, match="node_groups= has the wrong form: give a mapping"):
        one.add("pcs", "C3", node_groups=list(PCS.values()))


def test_a_refusal_is_told_once_in_one_traceback(tmp_path: Path) -> None:
    login = PCS["login"].model_copy(update={"image": None})
    with pytest.raises(ValueError, match="PCS010") as raised:
        team(tmp_path).add("pcs", node_groups={**PCS, "login": login})
    assert raised.value.__suppress_context__ and str(raised.value).count("PCS010") == 1


@pytest.mark.parametrize("kind", ["eks", "hyperpod-eks"])
def test_a_control_plane_is_in_the_private_subnets(kind: str, tmp_path: Path) -> None:
    one = team(tmp_path)
    cluster: Any = one.add(kind, control_plane_subnets=None)
    used = cluster.control_plane.cluster.node.default_child.resources_vpc_config.subnet_ids
    assert used == [subnet.subnet_id for subnet in one.vpc.private_subnets]
    one.vpc = ec2.Vpc.from_vpc_attributes(
        one.stack, "Bare", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-east-2a"]
    )
    with pytest.raises(ValueError, match="no private subnets that are known here"):
        one.add(kind, "Other", control_plane_subnets=None)


@pytest.mark.parametrize("kind", MAKERS)
def test_what_a_constructor_shares_is_taken_by_name(kind: str, tmp_path: Path) -> None:
    """Each constructor hands `locals()` on: what it calls otherwise would be dropped without a word."""
    parameters = inspect.signature(type(team(tmp_path).add(kind)).__init__).parameters
    taken = {field.name for field in dataclasses.fields(Parts)} | {"vpc", "security_groups", "key", "config"}
    own = {"self", "scope", "construct_id", "settings", "resolved", "role", "scripts_bucket", "upload_role"}
    own |= {"control_plane", "control_plane_subnets", "secrets_key", "agent_image", "after", "vpc_id"}
    assert parameters.keys() - taken - own <= {"removal_policy"}
    assert taken - parameters.keys() <= {"accounting", "node_tags", "access"}


def test_a_group_that_is_given_twice_is_written_once(tmp_path: Path) -> None:
    one = team(tmp_path)
    nodes = EfaSecurityGroup(one.stack, "Nodes", vpc=one.vpc)
    lustre = LustreFileSystem(one.stack, "Lustre", vpc=one.vpc, subnet=one.subnet, capacity_gib=4800)
    one.add("hyperpod-slurm", security_groups=[nodes, nodes.security_group], lustre=lustre)

    cluster = resource(synthesised(one, tmp_path), "AWS::SageMaker::Cluster")
    assert len(cluster["Properties"]["VpcConfig"]["SecurityGroupIds"]) == 1


@pytest.mark.parametrize("outbound", [True, False])
def test_a_group_without_self_rules_is_warned_of(outbound: bool, tmp_path: Path) -> None:
    one = team(tmp_path)
    plain = ec2.SecurityGroup(one.stack, "Plain", vpc=one.vpc, allow_all_outbound=outbound)
    one.add("hyperpod-slurm", security_groups=[plain])

    (told,) = [text for text in warnings(one.stack) if "efa-self-rules" in text]
    assert "security group research/Plain: EFA requires" in told
    assert ("allows all outbound" in told) is outbound


def test_of_a_group_for_efa_and_an_imported_one_nothing_is_said(tmp_path: Path) -> None:
    one = team(tmp_path)
    nodes = EfaSecurityGroup(one.stack, "Nodes", vpc=one.vpc).security_group
    imported = ec2.SecurityGroup.from_security_group_id(one.stack, "Theirs", "sg-0123456789abcdef0")
    one.add("hyperpod-slurm", security_groups=[nodes, imported])

    assert [text for text in warnings(one.stack) if "efa-self-rules" in text] == []


@pytest.mark.parametrize("kind", MAKERS)
def test_a_key_of_another_region_is_refused(kind: str, tmp_path: Path) -> None:
    one = team(tmp_path)
    arn = "arn:aws:kms:eu-west-1:111122223333:key/00000000-0000-4000-8000-000000000000"
    key = kms.Key.from_key_arn(one.stack, "Key", arn)
    cluster = one.add(kind, key=key)
    told = [text for text in cluster.node.validate() if text.startswith("key: it is of Region eu-west-1")]
    assert told and "Instead: one of us-east-2" in told[0]


def test_a_key_is_not_judged_where_the_region_is_not_known(tmp_path: Path) -> None:
    one = team(tmp_path, region=None)
    arn = "arn:aws:kms:eu-west-1:111122223333:key/00000000-0000-4000-8000-000000000000"
    one.add("hyperpod-slurm", key=kms.Key.from_key_arn(one.stack, "Key", arn))


@pytest.mark.parametrize("kind", MAKERS)
def test_a_release_that_is_not_there_is_named_with_the_place(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\[research/Cluster\] SOF001 software.release"):
        team(tmp_path).add(kind, release="pcs-2099.09")


@pytest.mark.parametrize("kind", ["eks", "hyperpod-eks"])
def test_a_control_plane_in_one_subnet_is_refused(kind: str, tmp_path: Path) -> None:
    one = team(tmp_path)
    one.add(kind, control_plane_subnets=[one.subnet])
    with pytest.raises(RuntimeError, match="EKS002 control_plane_subnets: EKS requires subnets in two zones"):
        synthesised(one, tmp_path)


@pytest.mark.parametrize("kind", ["eks", "pcs"])
def test_what_cannot_be_made_is_told_without_stand_ins(kind: str, tmp_path: Path) -> None:
    groups = KUBERNETES if kind == "eks" else PCS
    wrong = groups["train"].model_copy(update={"instance_type": "p5enn.48xlarge"})
    with pytest.raises(ValueError, match=r"\[research/Cluster\] ENV006") as raised:
        team(tmp_path).add(kind, node_groups={**groups, "train": wrong})
    assert "Token" not in str(raised.value)


@pytest.mark.parametrize("kind", ["parallelcluster", "open-zfs"])
def test_a_vpc_without_its_block_is_named_with_a_remedy(kind: str, tmp_path: Path) -> None:
    one = team(tmp_path)
    one.vpc = ec2.Vpc.from_vpc_attributes(
        one.stack, "Bare", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-east-2a"]
    )
    make = (
        partial(one.add, kind)
        if kind in MAKERS
        else partial(OpenZfsFileSystem, one.stack, "Home", vpc=one.vpc, subnet=one.subnet, capacity_gib=512)
    )
    with pytest.raises(ValueError, match=r"without its CIDR block.*vpc_cidr_block="):
        make()


# Tokens


def test_references_may_be_known_only_after_deploy(tmp_path: Path) -> None:
    one = team(tmp_path)
    reserved = ec2.CfnCapacityReservation(
        one.stack, "Reserved", instance_count=2, instance_platform="Linux/UNIX", instance_type="p5.48xlarge"
    )
    image = ec2.MachineImage.from_ssm_parameter(IMAGE).get_image(one.stack).image_id
    train = group(
        "compute", "p5.48xlarge", 2, partition="train", image=image, capacity=Reservation(id=reserved.ref)
    )
    one.add(
        "pcs", node_groups={"train": train}, mirror=f"s3://{s3.Bucket(one.stack, 'Mirror').bucket_name}/x"
    )
    made = synthesised(one, tmp_path)
    target = resource(made, "AWS::EC2::LaunchTemplate")["Properties"]["LaunchTemplateData"]

    assert target["CapacityReservationSpecification"]["CapacityReservationTarget"] == {
        "CapacityReservationId": {"Ref": "Reserved"}
    }
    assert "Ref" in resource(made, "AWS::PCS::ComputeNodeGroup")["Properties"]["AmiId"]


# Rights, rules, order


def test_everything_a_cluster_needs_waits_for_nothing_else(tmp_path: Path) -> None:
    """Of a network and a file system in the same stack: rules, routes, policies and scripts come first."""
    app = app_in(tmp_path, validate=False)
    stack = Stack(app, "research", env=Environment(account="111122223333", region="us-east-2"))
    vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
    (subnet,) = vpc.private_subnets
    efa = EfaSecurityGroup(stack, "Efa", vpc=vpc)
    lustre = LustreFileSystem(
        stack, "Lustre", vpc=vpc, subnet=subnet, capacity_gib=4800, throughput_mbps_per_tib=250
    )
    cluster = HyperPodSlurmCluster(
        stack,
        "Cluster",
        subnet=subnet,
        security_groups=[efa.security_group],
        node_groups=SLURM,
        lustre=lustre,
    )
    data = s3.Bucket(stack, "Data")
    data.grant_read(cluster)
    template = unjudged(app, tmp_path).templates["research"]["Resources"]
    (name,) = [key for key, one in template.items() if one["Type"] == "AWS::SageMaker::Cluster"]
    waits = template[name]["DependsOn"]
    kinds = {template[key]["Type"] for key in waits}

    assert {
        "AWS::EC2::Route",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::IAM::Policy",
        "Custom::CDKBucketDeployment",
    } <= kinds
    # both ways between nodes and file system, and within the nodes' group
    rules = [key for key in waits if "SecurityGroup" in template[key]["Type"]]
    assert len([key for key in rules if "LustreClients" in key]) == 8
    assert {key for key in rules if "SelfIngress" in key} and {key for key in rules if "SelfEgress" in key}
    statements = [
        statement
        for one in template.values()
        if one["Type"] == "AWS::IAM::Policy"
        for statement in one["Properties"]["PolicyDocument"]["Statement"]
    ]
    assert any("s3:GetObject*" in statement["Action"] for statement in statements)
    assert not any(name in str(template[key].get("DependsOn", "")) for key in template if key != name), (
        "nothing waits for the cluster"
    )


def test_the_key_that_is_made_or_given_lets_pcs_use_it(tmp_path: Path) -> None:
    one = team(tmp_path)
    key = kms.Key(one.stack, "Theirs")
    one.add("pcs", key=key)
    policy = resource(synthesised(one, tmp_path), "AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]
    told = {statement.get("Sid") for statement in policy}

    assert {"LaunchNodes", "AttachVolumes"} <= told
    assert "AWSServiceRoleForPCS" in str(policy)


def test_an_imported_key_is_told_of(tmp_path: Path) -> None:
    one = team(tmp_path)
    arn = "arn:aws:kms:us-east-2:111122223333:key/12345678-1234-1234-1234-123456789012"
    cluster = one.add("pcs", key=kms.Key.from_key_arn(one.stack, "Theirs", arn))
    told = [str(entry.data) for entry in cluster.node.metadata if entry.type == "aws:cdk:warning"]

    assert any("LaunchNodes" in text and "AWSServiceRoleForPCS" in text for text in told)


def test_a_role_that_is_given_gets_the_statements(tmp_path: Path) -> None:
    one = team(tmp_path)
    role = iam.Role(one.stack, "Theirs", assumed_by=service("sagemaker.amazonaws.com"), path="/research/")
    cluster = one.add("hyperpod-slurm", role=role)
    made = synthesised(one, tmp_path)
    roles = [each["Properties"].get("Path") for each in made.resources("AWS::IAM::Role").values()]
    groups = resource(made, "AWS::SageMaker::Cluster")["Properties"]["InstanceGroups"]

    assert roles.count("/research/") == 1
    assert len({str(each["ExecutionRole"]) for each in groups}) == 1
    assert "Theirs" in str(groups[0]["ExecutionRole"])
    assert isinstance(cluster, HyperPodSlurmCluster) and cluster.role is role
    policies = made.resources("AWS::IAM::Policy")
    sids = {
        statement.get("Sid")
        for name, each in policies.items()
        if "Theirs" in name
        for statement in each["Properties"]["PolicyDocument"]["Statement"]
    }
    assert {"AttachToVpc", "ReadScripts", "UseKey"} <= sids


@pytest.mark.parametrize("maker", [HyperPodSlurmCluster, PcsCluster])
def test_a_cluster_that_exists_can_be_granted_and_connected(maker: Any, tmp_path: Path) -> None:
    one = team(tmp_path)
    nodes = ec2.SecurityGroup.from_security_group_id(one.stack, "Nodes", "sg-0123456789abcdef0")
    role = iam.Role.from_role_arn(one.stack, "Role", "arn:aws:iam::111122223333:role/nodes")
    cluster = maker.from_cluster_attributes(
        one.stack,
        "Theirs",
        cluster_name="theirs",
        cluster_arn="arn:aws:sagemaker:us-east-2:111122223333:cluster/abc",
        security_groups=[nodes],
        role=role,
    )
    data = s3.Bucket(one.stack, "Data")
    data.grant_read(cluster)
    lustre = LustreFileSystem.from_lustre_attributes(
        one.stack,
        "Lustre",
        file_system_id="fs-0123456789abcdef0",
        dns_name="fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
        mount_name="abcdefgh",
        security_group=ec2.SecurityGroup.from_security_group_id(one.stack, "Fs", "sg-0fedcba9876543210"),
    )
    lustre.connections.allow_default_port_from(cluster)
    made = synthesised(one, tmp_path)

    assert resource(made, "AWS::IAM::Policy")["Properties"]["Roles"] == ["nodes"]
    assert len(made.resources("AWS::EC2::SecurityGroupIngress")) == 4


# EKS in parts


def test_a_node_group_joins_a_control_plane_of_another_stack(tmp_path: Path) -> None:
    one = team(tmp_path)
    nodes = EfaSecurityGroup(one.stack, "Efa", vpc=one.vpc)
    plane = EksControlPlane.from_cluster_attributes(
        one.stack,
        "Plane",
        cluster_name="research",
        kubectl_handler_arn="arn:aws:lambda:us-east-2:111122223333:function:handler",
        kubernetes_version="1.36",
        security_groups=[nodes.security_group],
    )
    added = EksNodeGroup(one.stack, "train", cluster=plane, subnet=one.subnet, node_group=KUBERNETES["train"])
    s3.Bucket(one.stack, "Data").grant_read(added)
    made = synthesised(one, tmp_path)
    told = resource(made, "AWS::EKS::Nodegroup")
    data = resource(made, "AWS::EC2::LaunchTemplate")["Properties"]["LaunchTemplateData"]

    assert told["Properties"]["ClusterName"] == "research"
    assert told["Properties"]["Labels"]["ultracluster/node-group"] == "train"
    assert len(data["NetworkInterfaces"]) == 33 and "UserData" in data
    assert {"SelfIngress" in key or "SelfEgress" in key for key in told["DependsOn"]} == {True, False}


def test_a_launch_template_needs_no_more_than_a_type(tmp_path: Path) -> None:
    """Security group and key are made, and whoever launches from it may use the key."""
    one = team(tmp_path)
    made_of = NodeLaunchTemplate(
        one.stack, "Template", instance_type="p5.48xlarge", root_device="/dev/xvda", vpc=one.vpc
    )
    made = synthesised(one, tmp_path)
    data = resource(made, "AWS::EC2::LaunchTemplate")["Properties"]["LaunchTemplateData"]

    assert len(made_of.interfaces) == len(data["NetworkInterfaces"]) == 33
    assert "AWSServiceRoleForAutoScaling" in str(resource(made, "AWS::KMS::Key"))
    assert len(made.resources("AWS::EC2::SecurityGroup")) == 1
    with pytest.raises(ValueError, match=r"no instance type 'p5enn\.48xlarge' \(p5en\.48xlarge"):
        NodeLaunchTemplate(
            one.stack, "Wrong", instance_type="p5enn.48xlarge", root_device="/dev/xvda", vpc=one.vpc
        )


def test_settings_by_keyword_are_those_of_the_model(tmp_path: Path) -> None:
    one = team(tmp_path)
    one.add("pcs", "Flat", cluster_name="flat", scaledown_seconds=60, rest=True, lifecycle="none")
    one.add(
        "pcs",
        "Model",
        cluster_name="model",
        config=Pcs(scaledown_seconds=60, rest=True, lifecycle="none"),
    )
    made = synthesised(one, tmp_path)
    clusters = [each["Properties"] for each in made.resources("AWS::PCS::Cluster").values()]

    assert {each.pop("Name") for each in clusters} == {"flat", "model"}
    for each in clusters:
        each.pop("Networking")
    assert clusters[0] == clusters[1]
