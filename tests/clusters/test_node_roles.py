"""IAM roles of nodes in an app of another team: one for each role of node, or what was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Stage
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk.assertions import Template
from foreign_clusters import KUBERNETES, MAKERS, PCS, SLURM, Team, group
from node_rights import rights_of_nodes
from templates import Synthesised, app_in

from ultracluster.clusters.hyperpod.karpenter import CLUSTER_TAG
from ultracluster.storage.accounting_database import AccountingDatabase

SAGEMAKER: Any = iam.ServicePrincipal("sagemaker.amazonaws.com")
EC2: Any = iam.ServicePrincipal("ec2.amazonaws.com")
WITH_LOGIN = {**SLURM, "login": group("login", "m5.xlarge", 1)}


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(app_in(tmp_path / "assembly", validate=False))


def made(team: Team) -> Synthesised:
    Template.from_stack(team.stack)
    stage = Stage.of(team.stack)
    assert stage
    return Synthesised(Path(stage.outdir))


def sids(one: Synthesised, cluster: Any) -> dict[str, set[str]]:
    rights = rights_of_nodes(one, cluster.cluster.environment)
    return {role: {statement["Sid"] for statement in found} for role, found in rights.items()}


def database(team: Team) -> Any:
    secret = secretsmanager.Secret.from_secret_complete_arn(
        team.stack,
        "Secret",
        "arn:aws:secretsmanager:us-east-2:111122223333:secret:slurm-abcdef",
    )
    return AccountingDatabase.from_accounting_attributes(
        team.stack, "Accounting", endpoint="slurm.example.com", secret=secret
    )


def policies_with(one: Synthesised, words: str) -> int:
    found = [*one.resources("AWS::IAM::Policy").values(), *one.resources("AWS::IAM::ManagedPolicy").values()]
    return sum(words in str(policy) for policy in found)


def test_each_role_of_node_has_its_own(team: Team) -> None:
    cluster: Any = team.add("hyperpod-slurm", node_groups=WITH_LOGIN, accounting=database(team))

    told = sids(made(team), cluster)

    assert cluster.roles.keys() == told.keys() == {"controller", "login", "compute"}
    assert len({role.role_arn for role in cluster.roles.values()}) == 3
    assert cluster.role is cluster.roles["compute"]
    assert {role for role, found in told.items() if "ReadDatabaseSecret" in found} == {"controller"}
    assert {role for role, found in told.items() if "DescribeFileSystems" in found} == {"compute"}
    assert all({"AttachToVpc", "ReadScripts", "SessionManager"} <= found for found in told.values())


def test_a_role_of_the_compute_nodes_is_where_that_of_all_nodes_was(team: Team) -> None:
    """What runs jobs must not be touched because others got roles of their own."""
    team.add("hyperpod-slurm", node_groups=WITH_LOGIN)

    (cluster,) = made(team).resources("AWS::SageMaker::Cluster").values()
    roles = {
        one["InstanceGroupName"]: one["ExecutionRole"]["Fn::GetAtt"][0]
        for one in cluster["Properties"]["InstanceGroups"]
    }

    assert roles["train"] == "ClusterRoleCDCF2F52"
    assert roles["head"].startswith("ClusterControllerRole") and roles["login"].startswith("ClusterLoginRole")


@pytest.mark.parametrize(("kind", "groups"), [("hyperpod-slurm", WITH_LOGIN), ("pcs", PCS)])
def test_one_role_can_be_that_of_all(team: Team, kind: str, groups: Any) -> None:
    role = iam.Role(team.stack, "Theirs", assumed_by=EC2 if kind == "pcs" else SAGEMAKER, path="/aws-pcs/")
    cluster: Any = team.add(kind, role=role, node_groups=groups)

    told = sids(made(team), cluster)

    assert all(one is role for one in cluster.roles.values()) and cluster.role is role
    assert len({frozenset(found) for found in told.values()}) == 1
    assert "DescribeFileSystems" in next(iter(told.values()))


def test_a_cluster_that_was_made_with_one_role_can_keep_it(team: Team) -> None:
    cluster: Any = team.add("hyperpod-slurm", node_groups=WITH_LOGIN, node_roles="one")

    (told,) = made(team).resources("AWS::SageMaker::Cluster").values()

    groups = told["Properties"]["InstanceGroups"]
    assert {one["ExecutionRole"]["Fn::GetAtt"][0] for one in groups} == {"ClusterRoleCDCF2F52"}
    assert len({role.role_arn for role in cluster.roles.values()}) == 1


def test_roles_can_be_given_by_role_of_node(team: Team) -> None:
    front = iam.Role(team.stack, "Front", assumed_by=SAGEMAKER)
    cluster: Any = team.add(
        "hyperpod-slurm",
        node_groups=WITH_LOGIN,
        role={"controller": front, "login": front},
        accounting=database(team),
    )

    told = sids(made(team), cluster)

    assert cluster.roles["controller"] is cluster.roles["login"] is front
    assert cluster.roles["compute"] is not front
    assert "ReadDatabaseSecret" in told["controller"] and "ReadDatabaseSecret" not in told["compute"]
    assert "DescribeFileSystems" not in told["login"]


def test_a_role_for_nodes_that_there_are_not_is_refused(team: Team) -> None:
    role = iam.Role(team.stack, "Theirs", assumed_by=EC2)
    with pytest.raises(
        ValueError, match="names controller, and the roles of its node groups are compute, login"
    ):
        team.add("pcs", role={"controller": role})


GRANTED = [
    ("hyperpod-slurm", WITH_LOGIN, 3),
    ("pcs", PCS, 2),
    ("parallelcluster", WITH_LOGIN, 3),
    ("eks", KUBERNETES, 2),
    ("hyperpod-eks", KUBERNETES, 2),
]


@pytest.mark.parametrize(("kind", "groups", "roles"), GRANTED, ids=[kind for kind, _, _ in GRANTED])
def test_a_grant_to_a_cluster_reaches_all_its_nodes(team: Team, kind: str, groups: Any, roles: int) -> None:
    assert {one for one, _, _ in GRANTED} == MAKERS.keys()
    bucket = s3.Bucket.from_bucket_name(team.stack, "Data", "our-data")
    cluster = team.add(kind, node_groups=groups)

    assert bucket.grant_read(cluster).success  # type: ignore[arg-type]

    assert policies_with(made(team), ":s3:::our-data") == roles


def test_only_the_head_node_decrypts_the_password(team: Team) -> None:
    cluster: Any = team.add("parallelcluster", node_groups=WITH_LOGIN, accounting=database(team))

    rights = rights_of_nodes(made(team), cluster.cluster.environment)
    through = {
        role: [s["Condition"]["StringEquals"]["kms:ViaService"] for s in found if s["Sid"] == "UseKey"]
        for role, found in rights.items()
    }

    assert cluster.policies.keys() == through.keys() == {"controller", "login", "compute"}
    assert {role for role, services in through.items() if "secretsmanager" in str(services)} == {"controller"}


def test_karpenter_changes_nodes_of_its_own_cluster_only(team: Team) -> None:
    groups = {**KUBERNETES, "burst": group("compute", "p5.48xlarge", 0)}
    cluster: Any = team.add("hyperpod-eks", node_groups=groups, autoscaling={"max_nodes": 4})

    one = made(team)
    (told,) = one.resources("AWS::SageMaker::Cluster").values()
    (statement,) = [
        statement
        for policy in one.resources("AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement.get("Sid") == "ScaleGroups"
    ]

    assert {"Key": CLUSTER_TAG, "Value": cluster.cluster_name} in told["Properties"]["Tags"]
    asked = statement["Condition"]["StringEquals"]
    assert asked[f"aws:ResourceTag/{CLUSTER_TAG}"] == cluster.cluster_name


def test_the_ebs_driver_is_bound_to_its_own_volumes_and_the_clusters_nodes(team: Team) -> None:
    cluster: Any = team.add("eks")

    found = {
        statement.get("Sid"): statement
        for name, policy in made(team).resources("AWS::IAM::Policy").items()
        if "EbsCsi" in name
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    }
    tagged = {"ec2:ResourceTag/ebs.csi.aws.com/cluster": "true"}

    for sid in ("RestoreOwnSnapshots", "SnapshotOwnVolumes", "DeleteOwnSnapshots", "UseOwnVolumes"):
        assert found[sid]["Condition"]["StringEquals"] == tagged
        (whose,) = found[sid]["Condition"]["StringEqualsIfExists"].items()
        assert whose == ("ec2:ResourceTag/ebs.csi.aws.com/cluster-name", cluster.cluster_name)
    for statement in found.values():
        if "ec2:AttachVolume" in statement["Action"] and ":instance/" in str(statement["Resource"]):
            ((_, name),) = statement["Condition"]["StringEquals"].items()
            assert name == cluster.cluster_name
    # a snapshot is of no account, in its ARN
    assert "::snapshot/*" in str(found["RestoreOwnSnapshots"]["Resource"])
    assert found["RestoreOwnSnapshots"]["Action"] == "ec2:CreateVolume"
