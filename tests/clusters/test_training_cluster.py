"""The whole as one construct: it makes what the stacks of an environment make, but for what is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks
from foreign_clusters import PCS, SLURM, Team
from project import ROOT
from templates import Synthesised, app_in, finish

from ultracluster.clusters.composition.parts import NetworkParts
from ultracluster.clusters.training_cluster import TrainingCluster
from ultracluster.config import load
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HyperPodSlurm, Pcs
from ultracluster.storage.lustre_file_system import LustreFileSystem

ENVIRONMENTS = ROOT / "environments"
# one per orchestrator; prod has every part that an environment can have
NAMES = ["prod", "parallelcluster-p5", "pcs-p6-b200", "eks-p5en", "hyperpod-eks-p5"]


OF_A_STACK = ("SdkCalls", "AWS679f53fac002430cb0da5b7982bd2287")
"""Of these a stack has one, however much is in it: the CDK's function for calls, its role and log."""

OF_OTHERS = "StackPolicies"
"""Calls that give the stacks with data their policies; the one stack of a construct cannot guard itself."""


def kinds(made: Synthesised) -> Counter[str]:
    """How many resources of each type, besides what every stack has one of, and what guards other stacks."""
    return Counter(
        resource["Type"]
        for template in made.templates.values()
        for name, resource in template["Resources"].items()
        if not name.startswith((*OF_A_STACK, OF_OTHERS))
    )


def whole(name: str, folder: Path, **more: Callable[[cdk.Stack], Any]) -> tuple[TrainingCluster, Synthesised]:
    app = app_in(folder)
    asked = load(ENVIRONMENTS / f"{name}.yaml").environment
    stack = cdk.Stack(app, "One", env=cdk.Environment(account=asked.account, region=asked.region))
    given = {key: make(stack) for key, make in more.items()}
    made = TrainingCluster(stack, "Training", environment=ENVIRONMENTS / f"{name}.yaml", **given)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return made, finish(app, folder)


@pytest.mark.parametrize("name", NAMES)
def test_one_construct_makes_what_the_stacks_make(
    name: str, tmp_path: Path, synthesised: Callable[[str], Synthesised]
) -> None:
    cluster, made = whole(name, tmp_path)

    assert made.findings == set()
    assert kinds(made) == kinds(synthesised(name))
    assert cluster.cluster.cluster_name == load(ENVIRONMENTS / f"{name}.yaml").environment.cluster_name


def test_a_part_of_the_environment_is_replaced_by_an_object(tmp_path: Path) -> None:
    cluster, made = whole(
        "dev",
        tmp_path,
        key=lambda stack: kms.Key.from_key_arn(
            stack, "Ours", "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
        ),
        lustre=lambda stack: LustreFileSystem.from_lustre_attributes(
            stack,
            "Scratch",
            file_system_id="fs-0123456789abcdef0",
            dns_name="fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
            mount_name="abcdefgh",
        ),
    )

    assert made.resources("AWS::FSx::FileSystem") == {}
    assert made.resources("AWS::KMS::Key") == {}
    assert cluster.storage.file_systems.lustre is not None
    assert cluster.storage.file_systems.lustre.mount_name == "abcdefgh"
    assert "abcdefgh" in str(made.resources("AWS::SageMaker::Cluster"))


@pytest.mark.parametrize(("orchestrator", "groups"), [(HyperPodSlurm(), SLURM), (Pcs(), PCS)])
def test_a_cluster_from_parts_needs_no_file(
    orchestrator: HyperPodSlurm | Pcs, groups: dict[str, NodeGroup], tmp_path: Path
) -> None:
    app = app_in(tmp_path, validate=False)
    team = Team(app)
    cluster = TrainingCluster(
        team.stack,
        "Training",
        orchestrator=orchestrator,
        node_groups=groups,
        vpc=team.vpc,
        subnet=team.subnet,
        cluster_name="ours",
    )
    made = finish(app, tmp_path)

    assert cluster.resolved is None
    assert cluster.cluster.cluster_name == "ours"
    kind = "AWS::SageMaker::Cluster" if isinstance(orchestrator, HyperPodSlurm) else "AWS::PCS::Cluster"
    assert len(made.resources(kind)) == 1
    assert made.resources("AWS::EC2::VPC") == {}
    assert len(made.resources("AWS::KMS::Key")) == 1


class OwnNetwork(TrainingCluster):
    """A team that has its network from somewhere else than the environment."""

    def make_network(self) -> NetworkParts:
        return NetworkParts(
            vpc_id="vpc-0aaaaaaaaaaaaaaa1",
            vpc_cidr="10.9.0.0/16",
            subnet_id="subnet-0aaaaaaaaaaaaaaa1",
            security_group_ids=("sg-0aaaaaaaaaaaaaaa1",),
        )


def test_a_subclass_makes_a_part_in_another_way(tmp_path: Path) -> None:
    app = app_in(tmp_path, validate=False)
    stack = cdk.Stack(app, "One", env=cdk.Environment(region="us-west-2"))
    OwnNetwork(stack, "Training", environment=ENVIRONMENTS / "dev.yaml")
    made = finish(app, tmp_path)

    assert made.resources("AWS::EC2::VPC") == {}
    (cluster,) = made.resources("AWS::SageMaker::Cluster").values()
    assert cluster["Properties"]["VpcConfig"] == {
        "SecurityGroupIds": ["sg-0aaaaaaaaaaaaaaa1"],
        "Subnets": ["subnet-0aaaaaaaaaaaaaaa1"],
    }


def test_it_is_granted_and_connected_as_its_cluster(tmp_path: Path) -> None:
    one = Team(app_in(tmp_path, validate=False))
    made = TrainingCluster(
        one.stack, "Training", orchestrator=Pcs(), node_groups=PCS, vpc=one.vpc, subnet=one.subnet
    )
    bucket = s3.Bucket(one.stack, "Data")

    assert bucket.grant_read(made).success  # pyright: ignore[reportArgumentType]
    made.connections.allow_from(ec2.Peer.ipv4("10.0.0.0/8"), ec2.Port.tcp(22))

    assert made.grant_principal == made.cluster.grant_principal


def stack_in(region: str = "us-west-2") -> cdk.Stack:
    return cdk.Stack(cdk.App(analytics_reporting=False), "One", env=cdk.Environment(region=region))


def test_an_environment_of_another_region_is_refused() -> None:
    with pytest.raises(ValueError, match="dev is for Region us-west-2, and its stack for eu-west-1"):
        TrainingCluster(stack_in("eu-west-1"), "Training", environment=ENVIRONMENTS / "dev.yaml")


def test_what_breaks_a_rule_is_refused_in_the_words_of_the_file() -> None:
    loaded = load(ENVIRONMENTS / "dev.yaml").environment
    wrong = loaded.model_copy(
        update={
            "node_groups": {name: one for name, one in loaded.node_groups.items() if one.role == "compute"}
        }
    )
    stack = stack_in()
    TrainingCluster(stack, "Training", environment=wrong)
    with pytest.raises(RuntimeError, match=r"One/Training.*\b[A-Z]{3}\d{3}\b.*controller"):
        cdk.App.of(stack).synth()  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "give environment=, or orchestrator="),
        ({"environment": "x", "orchestrator": Pcs()}, "give environment=, or orchestrator="),
        ({"orchestrator": Pcs(), "node_groups": PCS}, "give vpc= and subnet="),
        ({"environment": "x", "release": "2026.11"}, "environment= says release"),
    ],
)
def test_contradictions_are_named(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        TrainingCluster(stack_in(), "Training", **given)
