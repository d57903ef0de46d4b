"""`ultracluster import --cluster`: running clusters of each service, in each state, as environments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import refusal
from import_samples import FOLDER, assert_validates
from moto_account import aws_account
from running_clusters import HOMES, LUSTRE, REGION, Clusters
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.cli.main import app

CONFIGURATION = f"""
Region: {REGION}
Image: {{Os: ubuntu2204}}
HeadNode: {{InstanceType: m5.2xlarge, Networking: {{SubnetId: SUBNET}}}}
Scheduling:
  Scheduler: slurm
  SlurmQueues:
    - Name: train
      Networking: {{SubnetIds: [SUBNET], SecurityGroups: [GROUP]}}
      ComputeResources:
        - {{Name: gpu, InstanceType: p5.48xlarge, MinCount: 4, MaxCount: 4, Efa: {{Enabled: true}}}}
SharedStorage:
  - {{Name: data, MountDir: /fsx, StorageType: FsxLustre, FsxLustreSettings: {{StorageCapacity: 1200}}}}
  - Name: homes
    MountDir: /home
    StorageType: FsxOpenZfs
    FsxOpenZfsSettings: {{VolumeId: fsvol-0123456789abcdef0}}
"""
Run = Callable[..., Any]
__all__ = ["aws_account"]


@pytest.fixture
def world(aws_account: None) -> Clusters:
    return Clusters()


@pytest.fixture
def run(world: Clusters, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(aws, "Account", lambda **_: world.account)
    return lambda *words: CliRunner().invoke(app, ["import", "--cluster", *map(str, words)])


def furnish(world: Clusters, kind: str) -> None:
    """A cluster `train` of this kind."""
    if kind == "hyperpod":
        world.hyperpod_cluster()
    elif kind == "hyperpod-eks":
        cluster = world.hyperpod_cluster()
        arn = world.eks_cluster("control")["arn"]
        cluster["Orchestrator"] = {"Eks": {"ClusterArn": arn}}
        cluster["InstanceGroups"] = [
            {key: value for key, value in group.items() if key != "SlurmConfig"}
            for group in cluster["InstanceGroups"][1:]
        ]
        world.nodegroup("addons", "m5.2xlarge")
    elif kind == "eks":
        world.eks_cluster()
        world.nodegroup("addons", "m5.2xlarge")
        template = world.template(
            "gpu",
            NetworkInterfaces=[{"DeviceIndex": 0, "InterfaceType": "efa", "Groups": [world.group]}],
            CapacityReservationSpecification={
                "CapacityReservationTarget": {"CapacityReservationId": "cr-0a1b2c3d4e5f60718"}
            },
        )
        world.nodegroup(
            "gpu", "p5.48xlarge", 4, launchTemplate=template, labels={"pool": "train"},
            taints=[{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}],
        )  # fmt: skip
    elif kind == "pcs":
        world.pcs_cluster()
    else:
        tags = [
            {"Key": "parallelcluster:cluster-name", "Value": "train"},
            {"Key": "Name", "Value": "data"},
        ]
        world.systems[0]["Tags"] = tags
        world.stack("train", CONFIGURATION.replace("SUBNET", world.subnet).replace("GROUP", world.group))


@pytest.mark.parametrize("kind", ["hyperpod", "hyperpod-eks", "eks", "pcs", "parallelcluster"])
def test_a_running_cluster_is_named_by_its_ids_with_every_loss(
    kind: str, world: Clusters, run: Run, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    furnish(world, kind)
    words = ("--kind", "hyperpod") if kind == "hyperpod-eks" else ()
    result = run("train", *words)

    assert result.exit_code == 0, result.stderr
    text = result.stdout
    assert_validates(text, tmp_path / "new.yaml")
    assert f"id: {world.vpc}" in text and f"id: {world.subnet}" in text
    assert f"id: {LUSTRE}" in text or kind in ("hyperpod-eks",)
    expected = FOLDER / "expected" / f"running-{kind}.yaml"
    release = re.findall(r"^  release: (\S+)$", text, re.MULTILINE)[0]
    shown = world.plain(text).replace(release, "RELEASE")
    if request.config.option.update_snapshots:
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text(encoding="utf-8")


def test_what_parallelcluster_made_is_kept_and_its_end_is_told(world: Clusters, run: Run) -> None:
    furnish(world, "parallelcluster")
    document = json.loads(run("train", "--json").stdout)

    assert f"id: {HOMES}" in document["text"]
    row = next(row for row in document["rows"] if row["where"].endswith("DeletionPolicy"))
    assert LUSTRE in row["why"] and "Retain" in row["todo"]


def test_two_clusters_of_one_name_are_a_choice(world: Clusters, run: Run) -> None:
    furnish(world, "hyperpod")
    furnish(world, "pcs")
    result = run("train")

    assert result.exit_code == 2
    assert "--kind hyperpod or --kind pcs" in result.stderr
    assert run("train", "--kind", "pcs").exit_code == 0
    assert "--kind slurm is none of hyperpod" in run("train", "--kind", "slurm").stderr


ABSENT: list[tuple[str, dict[str, Exception], str]] = [
    ("none", {}, "there is no cluster none"),
    (
        "none",
        {"GetCluster": refusal("AccessDeniedException", "no", "GetCluster")},
        "AWS PCS could not be asked",
    ),
    ("none", {"DescribeCluster": refusal("ExpiredTokenException", "old")}, "the credentials have expired"),
    ("../../etc", {}, "is no name of a cluster"),
    ("a\x1b[31mb", {}, "is no name of a cluster"),
    ("", {}, "Nothing to import"),
]


@pytest.mark.parametrize(("name", "refused", "telling"), ABSENT)
def test_no_cluster_is_one_line(
    name: str, refused: dict[str, Exception], telling: str, world: Clusters, run: Run, tmp_path: Path
) -> None:
    world.refused = refused
    result = run(name, "--to", tmp_path / "new.yaml")

    assert (result.exit_code, telling in result.stderr) == (2, True), result.stderr
    assert "\x1b" not in result.stderr and "Traceback" not in result.stderr
    assert not (tmp_path / "new.yaml").exists()


STATES: list[tuple[str, dict[str, Any], str]] = [
    ("hyperpod", {"ClusterStatus": "Failed", "FailureMessage": "no\x1b[31m capacity"}, "it may lack parts"),
    ("hyperpod", {"ClusterStatus": "Deleting"}, "what was there of it"),
    ("hyperpod", {"ClusterStatus": "Creating"}, "it is changing while it is read"),
    ("eks", {"status": "UPDATING"}, "it is changing while it is read"),
    ("eks", {"status": "FAILED", "health": {"issues": [{"code": "AccessDenied", "message": "a\nb"}]}},
     "AccessDenied: a b"),
    ("pcs", {"status": "CREATE_FAILED", "errorInfo": [{"code": "Quota", "message": "no"}]}, "Quota: no"),
    ("pcs", {"status": "SUSPENDED"}, "it may lack parts"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "changes", "telling"), STATES)
def test_what_is_not_in_order_is_a_row(
    kind: str, changes: dict[str, Any], telling: str, world: Clusters, run: Run
) -> None:
    furnish(world, kind)
    getattr(world, kind)["train"].update(changes)
    result = run("train", "--json")

    assert result.exit_code == 0, result.stderr
    assert any(telling in row["why"] for row in json.loads(result.stdout)["rows"])
    assert "\x1b" not in json.loads(result.stdout)["text"]


def test_public_subnets_of_a_control_plane_are_left_out(world: Clusters, run: Run) -> None:
    furnish(world, "eks")
    public = world.ec2.create_subnet(
        VpcId=world.vpc, CidrBlock="10.4.128.0/24", AvailabilityZone=f"{REGION}a"
    )["Subnet"]["SubnetId"]
    world.ec2.modify_subnet_attribute(SubnetId=public, MapPublicIpOnLaunch={"Value": True})
    world.eks["train"]["resourcesVpcConfig"]["subnetIds"].append(public)
    document = json.loads(run("train", "--json").stdout)

    assert public not in document["text"].split("orchestrator:")[1]
    assert any(public in row["why"] for row in document["rows"])


def test_a_database_that_slurm_names_is_kept(world: Clusters, run: Run) -> None:
    cluster = world.hyperpod_cluster()
    database = world.account.client("rds").create_db_instance(
        DBInstanceIdentifier="accounts", DBInstanceClass="db.m7g.large", Engine="mysql",
        VpcSecurityGroupIds=[world.storage_group],
    )["DBInstance"]  # fmt: skip
    secret = f"arn:aws:secretsmanager:{REGION}:111122223333:secret:accounts-a1b2c3"
    cluster["Orchestrator"]["Slurm"]["AccountingDatabase"] = {
        "Endpoint": database["Endpoint"]["Address"], "Port": 3306, "Name": "accounts", "SecretArn": secret,
    }  # fmt: skip
    text = run("train").stdout

    assert f"security_group_id: {world.storage_group}" in text.split("accounting_database:")[1]
    assert database["Endpoint"]["Address"] in text and "kind: rds-mysql" not in text


def test_groups_that_go_are_left_out(world: Clusters, run: Run) -> None:
    furnish(world, "eks")
    world.nodegroup("old", "p4d.24xlarge", status="DELETING")
    document = json.loads(run("train", "--json").stdout)

    assert "old:" not in document["text"].split("node_groups:")[1]
    assert any("old is being deleted" in row["why"] for row in document["rows"])


def test_an_open_reservation_is_told(world: Clusters, run: Run) -> None:
    furnish(world, "parallelcluster")
    zone = world.ec2.describe_subnets(SubnetIds=[world.subnet])["Subnets"][0]["AvailabilityZoneId"]
    world.reservation("p5.48xlarge", zone)
    rows = {row["where"]: row["why"] for row in json.loads(run("train", "--json").stdout)["rows"]}

    assert "cr-0f1e2d3c4b5a69788 (4 x p5.48xlarge)" in rows["node_groups.gpu.capacity"]


PARAMETERS = {
    "workload_manager": "slurm",
    "controller_group": "controller",
    "worker_groups": [{"instance_group_name": "worker", "partition_name": "train"}],
    "fsx_openzfs_dns_name": f"{HOMES}.fsx.{REGION}.amazonaws.com",
}


def _without_roles(world: Clusters) -> None:
    for group in world.hyperpod_cluster()["InstanceGroups"]:
        del group["SlurmConfig"]


def test_roles_of_groups_are_read_from_beside_the_scripts(world: Clusters, run: Run) -> None:
    _without_roles(world)
    world.scripts(provisioning_parameters=json.dumps(PARAMETERS).encode())
    result = run("train")

    assert result.exit_code == 0, result.stderr
    assert "role: controller" in result.stdout and f"id: {HOMES}" in result.stdout


@pytest.mark.parametrize("body", [b"[]", b"{", b"\xff", b"[" * 100_000, b'{"worker_groups": 7}'])
def test_scripts_that_say_nothing_are_told_with_a_way_out(
    body: bytes, world: Clusters, run: Run, tmp_path: Path
) -> None:
    _without_roles(world)
    world.scripts(provisioning_parameters=body)
    result = run("train")
    assert result.exit_code == 2
    assert "provisioning_parameters.json" in result.stderr and "Traceback" not in result.stderr

    file = tmp_path / "provisioning_parameters.json"
    file.write_text(json.dumps(PARAMETERS))
    assert run("train", file).exit_code == 0


def test_what_may_not_be_read_is_a_row_and_not_the_end(world: Clusters, run: Run) -> None:
    furnish(world, "hyperpod")
    world.refused["DescribeFileSystems"] = refusal("AccessDeniedException", "no", "DescribeFileSystems")
    world.refused["ListTags"] = refusal("AccessDeniedException", "no", "ListTags")
    result = run("train", "--json")

    assert result.exit_code == 0, result.stderr
    rows = {row["where"]: row for row in json.loads(result.stdout)["rows"]}
    assert "access denied" in rows["file systems"]["why"]
    assert "access denied" in rows["tags"]["why"]


WRONG: list[tuple[str, str, dict[str, str], str]] = [
    ("2.11.9", CONFIGURATION, {}, "pcluster3-config-converter"),
    ("3.14.0", CONFIGURATION, {"ResourcesS3Bucket": ""}, "does not say where its configuration is"),
    ("3.14.0", "HeadNode: [", {}, "not YAML"),
    ("3.14.0", "a: 1", {}, "no configuration of ParallelCluster"),
]


@pytest.mark.parametrize(("version", "text", "parameters", "telling"), WRONG)
def test_a_stack_without_a_configuration_is_one_line(
    version: str, text: str, parameters: dict[str, str], telling: str, world: Clusters, run: Run
) -> None:
    world.stack("train", text, version, **parameters)
    result = run("train")

    assert (result.exit_code, telling in result.stderr) == (2, True), result.stderr


def test_a_configuration_that_may_not_be_read_says_what_else_to_do(world: Clusters, run: Run) -> None:
    world.stack("train", CONFIGURATION, ConfigVersion="null-and-void")
    result = run("train")

    assert (result.exit_code, "download it" in result.stderr) == (2, True), result.stderr


def test_a_file_system_that_is_being_made_is_a_row(world: Clusters, run: Run) -> None:
    furnish(world, "pcs")
    world.systems = [world.lustre(Lifecycle="CREATING", LustreConfiguration={})]
    rows = json.loads(run("train", "--json").stdout)["rows"]

    assert any("has no address yet" in row["why"] for row in rows)


def test_a_stack_of_somebody_else_is_no_cluster(world: Clusters, run: Run) -> None:
    topic = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
    world.account.client("cloudformation").create_stack(StackName="train", TemplateBody=topic)

    assert "there is no cluster train" in run("train").stderr


def test_options_of_a_cluster_are_refused_without_one() -> None:
    result = CliRunner().invoke(app, ["import", "x.yaml", "--kind", "eks"])
    assert (result.exit_code, "--cluster NAME" in result.stderr) == (2, True)
