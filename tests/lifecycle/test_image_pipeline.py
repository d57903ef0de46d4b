"""The pipeline that makes images: what every authority says of it, and what it may do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from botocore.session import get_session
from botocore.validate import ParamValidator
from cdk_nag import AwsSolutionsChecks
from iam_proof.allow_list import AllowList, names_of_file, rows
from iam_proof.environments import config_of
from iam_proof.escalation import accepted, ways
from iam_proof.rights import InWords, rights_of
from iam_proof.world import World
from project import ROOT
from templates import Synthesised, app_in, cfn_lint, finish, many, statements

from ultracluster import ImageBuilderPipeline
from ultracluster.catalog.image_bases import image_bases
from ultracluster.security import acknowledgements
from ultracluster.software import UnknownReleaseError

PARENT = "ami-0123456789abcdef0"
KEY = "arn:aws:kms:us-east-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
Make = Callable[[Stack], object]


def network(stack: Stack) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["us-east-1a"],
        private_subnet_ids=["subnet-0123456789abcdef0"],
        private_subnet_route_table_ids=["rtb-0123456789abcdef0"],
    )


def pipeline(stack: Stack, **more: Any) -> ImageBuilderPipeline:
    given: dict[str, Any] = {"name": "train", "release": "2026.11", "orchestrator": "pcs"}
    if "vpc" not in more:
        given["vpc"] = network(stack)
    return ImageBuilderPipeline(stack, "Image", **{**given, **more})


def synth(folder: Path, make: Callable[[Stack], object], *, nag: bool = True) -> Synthesised:
    app = app_in(folder)
    make(Stack(app, "images"))
    if nag:
        Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return finish(app, folder)


def with_all(stack: Stack) -> None:
    """Every option."""
    key = kms.Key.from_key_arn(stack, "Key", KEY)
    pipeline(
        stack,
        key=key,
        assets_key=key,
        architecture="arm64",
        mirror="s3://mirror/releases",
        schedule="cron(0 3 ? * sun)",
        root_volume_gib=300,
        log_bucket=s3.Bucket.from_bucket_name(stack, "Bucket", "some-logs"),
        topic=sns.Topic.from_topic_arn(stack, "Topic", "arn:aws:sns:us-east-1:111122223333:builds"),
        instance_types=["m7g.4xlarge", "m6g.4xlarge"],
        parent_image="ssm:/base/images/pcs",
        parameter_name="/own/image",
        tags={"team": "research"},
    )


def base(orchestrator: str) -> Make:
    return lambda stack: pipeline(stack, orchestrator=orchestrator, parent_image=PARENT)


# one base of each orchestrator; its systems differ in names only
CASES: dict[str, Make] = {"all": with_all} | {
    orchestrator: base(orchestrator)
    for orchestrator in dict.fromkeys(one.orchestrator for one in image_bases())
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Synthesised]:
    done: dict[str, Synthesised] = {}

    def get(case: str) -> Synthesised:
        if case not in done:
            done[case] = synth(tmp_path_factory.mktemp(case), CASES[case])
        return done[case]

    return get


def one(synthesised: Synthesised, kind: str) -> dict[str, Any]:
    (resource,) = synthesised.resources(f"AWS::ImageBuilder::{kind}").values()
    return resource["Properties"]


@pytest.mark.parametrize("case", CASES)
def test_strict_validation_and_cdk_nag_find_nothing(case: str, made: Callable[[str], Synthesised]) -> None:
    assert made(case).findings == set()


def test_cfn_lint_finds_nothing(made: Callable[[str], Synthesised]) -> None:
    files = [made(case).folder / "images.template.json" for case in CASES]
    assert cfn_lint(files, "us-east-1") == ""


def test_every_acknowledgement_is_needed(
    tmp_path: Path, made: Callable[[str], Synthesised], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Nobody:
        @staticmethod
        def of(_: object) -> Any:
            return type("Silent", (), {"acknowledge": lambda self, *_: None})()

    monkeypatch.setattr(acknowledgements, "Validations", Nobody)
    found = synth(tmp_path, with_all).findings
    stale = [
        f"{path}: {rule}"
        for path, reasons in made("all").acknowledged.items()
        for rule in reasons
        if not any(rule.endswith(hit) and place.startswith(path) for hit, place in found)
    ]
    assert stale == []


def test_the_id_goes_into_the_parameter_that_environments_read(made: Callable[[str], Synthesised]) -> None:
    (distribution,) = one(made("pcs"), "DistributionConfiguration")["Distributions"]
    assert distribution["SsmParameterConfigurations"] == [
        {"ParameterName": "/ultracluster/images/train", "DataType": "aws:ec2:image"}
    ]
    template = made("pcs").templates["images"]
    (writes,) = [one for _, one in statements(template) if one.get("Sid") == "PublishImage"]
    assert writes["Resource"]["Fn::Join"][1][-1] == ":parameter/ultracluster/images/train"


def as_the_service_writes(row: dict[str, Any]) -> dict[str, Any]:
    return {key[0].lower() + key[1:]: value for key, value in row.items()}


def test_the_service_takes_what_cloudformation_hands_on(made: Callable[[str], Synthesised]) -> None:
    """The distribution passes the CDK as it is: botocore's model knows its fields."""
    (distribution,) = one(made("all"), "DistributionConfiguration")["Distributions"]
    ami = as_the_service_writes(distribution["AmiDistributionConfiguration"])
    parameters = [as_the_service_writes(row) for row in distribution["SsmParameterConfigurations"]]
    shape = (
        get_session()
        .get_service_model("imagebuilder")
        .operation_model("CreateDistributionConfiguration")
        .input_shape
    )
    request = {
        "name": "train",
        "clientToken": "0",
        "distributions": [
            {
                "region": "us-east-1",
                "amiDistributionConfiguration": ami,
                "ssmParameterConfigurations": parameters,
            }
        ],
    }
    report: Any = ParamValidator().validate(request, shape)
    assert not report.has_errors(), report.generate_report()


def test_what_is_built_is_proven_on_an_instance_of_the_image(made: Callable[[str], Synthesised]) -> None:
    synthesised = made("pcs")
    components = {
        row["Properties"]["Name"]: json.dumps(row["Properties"]["Data"])
        for row in synthesised.resources("AWS::ImageBuilder::Component").values()
    }
    assert set(components) == {"train-build", "train-test"}
    assert "--verify yes" in components["train-test"]
    assert "python3 -m zipfile -e" in components["train-build"]  # the CDK's asset is an archive
    assert "python3 -m zipfile -e" in components["train-test"]
    assert one(synthesised, "ImagePipeline")["ImageTestsConfiguration"]["ImageTestsEnabled"] is True


def test_builds_are_reached_by_nobody(made: Callable[[str], Synthesised]) -> None:
    synthesised = made("pcs")
    infrastructure = one(synthesised, "InfrastructureConfiguration")
    assert infrastructure["InstanceMetadataOptions"]["HttpTokens"] == "required"
    assert infrastructure["TerminateInstanceOnFailure"] is True
    assert infrastructure["SubnetId"] == "subnet-0123456789abcdef0"
    assert "KeyPair" not in infrastructure
    (group,) = synthesised.resources("AWS::EC2::SecurityGroup").values()
    assert "SecurityGroupIngress" not in group["Properties"]
    assert [rule["FromPort"] for rule in group["Properties"]["SecurityGroupEgress"]] == [80, 443]


@pytest.mark.parametrize("case", CASES)
def test_only_what_is_tagged_is_changed_and_one_role_is_passed(
    case: str, made: Callable[[str], Synthesised]
) -> None:
    template = made(case).templates["images"]
    free = {"ec2:Describe", "ec2:CopyImage", "ec2:RunInstances", "ec2:CreateTags"}
    for logical_id, statement in statements(template):
        actions = many(statement["Action"])
        assert not any(action.endswith("*") for action in actions), statement
        if "iam:PassRole" in actions:
            assert statement["Resource"]["Fn::GetAtt"][0].startswith("ImageBuildRole")
        if not logical_id.startswith("ImageExecutionRole"):
            continue
        for action in actions:
            if action.startswith("ec2:") and not any(action.startswith(name) for name in free):
                assert "CreatedBy" in json.dumps(statement["Condition"]), statement
    roles = made(case).resources("AWS::IAM::Role").values()
    assert not any("ManagedPolicyArns" in role["Properties"] for role in roles)


def test_a_volume_is_as_the_base_and_the_orchestrator_take_it(made: Callable[[str], Synthesised]) -> None:
    def volumes(case: str) -> Any:
        return one(made(case), "ImageRecipe").get("BlockDeviceMappings")

    assert volumes("hyperpod-slurm") is None
    assert volumes("eks")[0]["DeviceName"] == "/dev/xvda"
    assert volumes("eks")[0]["Ebs"]["VolumeSize"] == 60
    assert volumes("parallelcluster")[0]["Ebs"]["Encrypted"] is True
    assert volumes("all")[0]["Ebs"]["VolumeSize"] == 300
    assert one(made("hyperpod-eks"), "ImageRecipe")["AmiTags"]["AllowSharing"] == "true"


def test_a_hyperpod_image_with_a_key_keeps_the_size_of_its_base(tmp_path: Path) -> None:
    def make(stack: Stack) -> None:
        pipeline(stack, orchestrator="hyperpod-slurm", key=kms.Key(stack, "Key"), parent_image=PARENT)

    (volume,) = one(synth(tmp_path, make, nag=False), "ImageRecipe")["BlockDeviceMappings"]
    assert volume["Ebs"]["VolumeSize"] == 100  # as in the guide's example
    assert volume["Ebs"]["KmsKeyId"]


def versions(folder: Path, **more: Any) -> tuple[str, str]:
    synthesised = synth(folder, lambda stack: pipeline(stack, **more), nag=False)
    build = next(
        row["Properties"]["Version"]
        for row in synthesised.resources("AWS::ImageBuilder::Component").values()
        if row["Properties"]["Name"] == "train-build"
    )
    return build, one(synthesised, "ImageRecipe")["Version"]


def test_a_version_changes_with_what_is_in_it_and_only_then(tmp_path: Path) -> None:
    build, recipe = versions(tmp_path / "a")
    assert versions(tmp_path / "b") == (build, recipe)
    assert versions(tmp_path / "c", root_volume_gib=250)[0] == build
    assert versions(tmp_path / "c2", root_volume_gib=250)[1] != recipe
    other = versions(tmp_path / "d", accelerator="neuron")
    assert other[0] != build
    assert other[1] != recipe
    for version in (build, recipe):
        assert all(int(part) < 2**30 for part in version.split("."))


def test_the_newest_base_is_looked_up_at_each_build(tmp_path: Path) -> None:
    made = synth(tmp_path, lambda stack: pipeline(stack, orchestrator="eks", kubernetes="1.34"), nag=False)
    parameter = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia/recommended/image_id"
    assert one(made, "ImageRecipe")["ParentImage"] == f"ssm:{parameter}"
    (reads,) = [s for _, s in statements(made.templates["images"]) if s.get("Sid") == "FindBase"]
    assert reads["Resource"]["Fn::Join"][1][-1] == f"::parameter{parameter}"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"orchestrator": "parallelcluster"},
            "give parent_image .pcluster list-official-images --os ubuntu2404",
        ),
        ({"orchestrator": "eks"}, "give kubernetes, or give parent_image"),
        ({"orchestrator": "hyperpod-slurm", "root_volume_gib": 200}, "hyperpod-slurm, which sets the size"),
        ({"os": "rhel9"}, "pcs has no image with os 'rhel9': write one of ubuntu24"),
        ({"release": "eks-2026.10"}, "is for images of eks-al2023, not for pcs: write one of 2026.11"),
        ({"name": "Train Image"}, "name has to be lower-case letters"),
    ],
)
def test_what_cannot_be_built_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        pipeline(Stack(App(), "images"), **given)


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(UnknownReleaseError):
        pipeline(Stack(App(), "images"), release="2030.01")


def test_a_vpc_without_private_subnets_needs_one_named() -> None:
    stack = Stack(App(), "images")
    vpc = ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-east-1a"]
    )
    with pytest.raises(ValueError, match="no private subnet: give subnet"):
        pipeline(stack, vpc=vpc)


def test_the_example_synthesises(tmp_path: Path) -> None:
    example = [sys.executable, str(ROOT / "examples" / "image" / "app.py")]
    subprocess.run(example, env={**os.environ, "CDK_OUTDIR": str(tmp_path)}, cwd=tmp_path, check=True)
    template = json.loads((tmp_path / "images.template.json").read_text())
    kinds = {row["Type"] for row in template["Resources"].values()}
    assert {"AWS::ImageBuilder::ImagePipeline", "AWS::ImageBuilder::DistributionConfiguration"} <= kinds


def test_others_may_be_let_start_it_and_read_what_it_made(tmp_path: Path) -> None:
    def grants(stack: Stack) -> None:
        made = pipeline(stack)
        role: Any = iam.Role(stack, "Role", assumed_by=iam.AccountRootPrincipal())  # type: ignore[arg-type]
        made.grant_start(role)
        made.grant_read_image_id(role)
        assert made.connections.security_groups == made.security_groups

    found = {
        action: statement["Resource"]
        for template in synth(tmp_path, grants, nag=False).templates.values()
        for name, statement in statements(template)
        if name.startswith("RoleDefaultPolicy")
        for action in many(statement["Action"])
    }
    assert set(found) == {"imagebuilder:StartImagePipelineExecution", "ssm:GetParameter"}
    assert "parameter/ultracluster/images/train" in json.dumps(found["ssm:GetParameter"])


def test_each_right_of_its_roles_has_a_row_and_each_row_is_used(tmp_path: Path) -> None:
    made = synth(tmp_path, with_all, nag=False)
    world = World("images", config_of("dev"), InWords(made.templates, "us-east-1", environment="images"))
    given = {
        "key": KEY,
        "mirror": "mirror/releases",
        "mirror_bucket": "mirror",
        "logs": "some-logs",
        "topic": "builds",
        "parameter": "own/image",
        "base": "base/images/pcs",
        "subnet": "subnet-0123456789abcdef0",
    }
    words = {
        "region": "us-east-1",
        "pipeline": "train",
        **{f"given_{key}": one for key, one in given.items()},
    }
    names = {**names_of_file(config_of("dev")), **{key: frozenset({one}) for key, one in words.items()}}
    asked = AllowList(rows())
    there = ways(rights_of(world), world.config)

    assert asked.findings(rights_of(world), names) == []
    assert asked.unused(one for one in rows() if one.file == "images.yaml") == []
    assert [one for one in there if not any(row.covers(one) for row in accepted())] == []
    mine = [row for row in accepted() if row.roles[0].startswith("images/")]
    assert mine and [left for row in mine if (left := row.unused(there))] == []
