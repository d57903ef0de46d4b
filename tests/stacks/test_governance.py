"""Environments in a company's account: every role is bounded, placed and named, every stack is named, every
purpose has its key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from governed import BASES, BOUNDARY, PATHS, PREFIX, PURPOSES, governed
from rules_support import loaded
from templates import Synthesised, app_in, assembly, finish

from ultracluster.clusters.training_cluster import TrainingCluster
from ultracluster.config import Environment
from ultracluster.config.governance import CDK_QUALIFIER, Governance
from ultracluster.rules import check
from ultracluster.security.governance import LONGEST_NAME, NAMES, prepare
from ultracluster.stacks import build

KINDS = sorted(BASES)


@cache
def environment(kind: str) -> Environment:
    return loaded(governed(kind)).environment


@cache
def made(kind: str) -> Synthesised:
    return assembly(environment(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_refuses_it(kind: str) -> None:
    assert not [finding for finding in check(loaded(governed(kind))) if finding.blocks]


@pytest.mark.parametrize("kind", KINDS)
def test_strict_validation_and_cdk_nag_find_nothing(kind: str) -> None:
    assert made(kind).findings == set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_role_is_bounded_placed_and_named(kind: str) -> None:
    path = PATHS.get(kind, "/teams/training/")
    seen: list[str] = []
    for type_, named in NAMES.items():
        for place, resource in made(kind).resources(type_).items():
            properties = resource["Properties"]
            assert properties["Path"] == path, place
            assert properties[named].startswith(PREFIX), place
            assert len(properties[named]) <= LONGEST_NAME, place
            assert re.fullmatch(r"[\w+=,.@-]+", properties[named]), place
            if type_ == "AWS::IAM::Role":
                assert properties["PermissionsBoundary"] == BOUNDARY, place
            seen.append(properties[named])
    assert len(seen) > 1
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("kind", KINDS)
def test_every_stack_is_named_and_finds_the_others(kind: str) -> None:
    templates = made(kind).templates
    assert set(templates) == set(environment(kind).stack_names)
    assert all(name.startswith(f"{PREFIX}{environment(kind).name}-") for name in templates)
    exported = {
        output["Export"]["Name"]
        for template in templates.values()
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }
    read = set(_imports(templates))
    assert read and read <= exported


@pytest.mark.parametrize("kind", KINDS)
def test_the_bootstrap_is_the_accounts_own(kind: str) -> None:
    text = json.dumps(made(kind).templates) + (made(kind).folder / "manifest.json").read_text()
    assert CDK_QUALIFIER not in text
    assert "/cdk-bootstrap/train/version" in text


BY_ID = {key: name for name, key in PURPOSES.items()}
ENCRYPTED = {
    "AWS::FSx::FileSystem": ("KmsKeyId", "file_systems"),
    "AWS::RDS::DBInstance": ("KmsKeyId", "secrets"),
    "AWS::SecretsManager::Secret": ("KmsKeyId", "secrets"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_purpose_has_its_key(kind: str) -> None:
    found = made(kind)
    for type_, (key, purpose) in ENCRYPTED.items():
        for place, resource in found.resources(type_).items():
            assert _purpose(resource["Properties"][key]) == purpose, place
    for place, resource in found.resources("AWS::S3::Bucket").items():
        rules = resource["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        for rule in rules:
            arn = rule["ServerSideEncryptionByDefault"].get("KMSMasterKeyID")
            assert arn is None or _purpose(arn) == "buckets", place
    for place, resource in found.resources("AWS::EC2::LaunchTemplate").items():
        for volume in resource["Properties"]["LaunchTemplateData"].get("BlockDeviceMappings", []):
            assert _purpose(volume["Ebs"]["KmsKeyId"]) == "volumes", place
    _the_control_planes_and_logs_keys(found)
    used = {BY_ID[one] for one in re.findall(r"111122223333:key/([\w-]+)", json.dumps(found.templates))}
    assert used >= {"volumes", "file_systems", "buckets", "logs"} - (
        {"volumes"} if kind == "parallelcluster" else {"buckets"} if kind == "eks" else set()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_each_purpose_has_its_key_in_one_stack_too(kind: str, tmp_path: Path) -> None:
    asked, app = environment(kind), app_in(tmp_path, validate=False)
    stack = cdk.Stack(app, "One", env=cdk.Environment(account=asked.account, region=asked.region))
    TrainingCluster(stack, "Training", environment=asked)
    _the_control_planes_and_logs_keys(finish(app, tmp_path))


def _the_control_planes_and_logs_keys(found: Synthesised) -> None:
    """No policy of a key for another purpose lets CloudWatch Logs use it."""
    for place, resource in found.resources("AWS::EKS::Cluster").items():
        (one,) = resource["Properties"]["EncryptionConfig"]
        assert _purpose(one["Provider"]["KeyArn"]) == "secrets", place
    for place, resource in found.resources("AWS::Logs::LogGroup").items():
        told = {_purpose(arn) for arn in [resource["Properties"].get("KmsKeyId")] if arn}
        assert told <= ({"file_systems"} if "Lustre" in place else {"logs"}), place


def _purpose(arn: Any) -> str:
    assert isinstance(arn, str), arn
    return BY_ID[arn.rpartition("/")[2]]


@pytest.mark.parametrize("kind", ["hyperpod-slurm", "hyperpod-eks", "pcs", "parallelcluster"])
def test_nodes_may_read_scripts_that_another_key_encrypts(kind: str) -> None:
    key = f"arn:aws:kms:{environment(kind).region}:111122223333:key/{PURPOSES['buckets']}"
    template = made(kind).templates[environment(kind).stack_name("cluster")]
    policies = [
        one["Properties"]["PolicyDocument"]["Statement"]
        for one in template["Resources"].values()
        if one["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
    ]
    reading = [one for one in policies if any(row.get("Sid") == "ReadScripts" for row in one)]
    assert reading
    for statements in reading:
        allowed = [
            row for row in statements if "kms:Decrypt" in row["Action"] and key in str(row["Resource"])
        ]
        assert allowed, statements


def test_nothing_changes_where_nothing_is_asked(synthesised: Callable[[str], Synthesised]) -> None:
    for _, resource in synthesised("prod").resources("AWS::IAM::Role").items():
        assert not {"RoleName", "PermissionsBoundary"} & set(resource["Properties"])


def test_a_role_of_another_path_has_another_name() -> None:
    data = governed("hyperpod-slurm")
    data["governance"]["role_path"] = "/others/"
    other = assembly(loaded(data).environment, checked=False)
    names = {one["Properties"]["RoleName"] for one in other.resources("AWS::IAM::Role").values()}
    before = {
        one["Properties"]["RoleName"] for one in made("hyperpod-slurm").resources("AWS::IAM::Role").values()
    }
    assert names and not names & before


def test_a_qualifier_that_comes_too_late_is_refused() -> None:
    app = cdk.App()
    build(app, loaded(governed("pcs")).environment)
    prepare(app, Governance(bootstrap_qualifier="train"))  # the same is no other
    with pytest.raises(ValueError, match="'other' comes too late: 'train-pcs-p6-b200-"):
        prepare(app, Governance(bootstrap_qualifier="other"))


def _imports(value: Any) -> list[str]:
    if isinstance(value, dict):
        here = [value["Fn::ImportValue"]] if "Fn::ImportValue" in value else []
        return here + [name for one in value.values() for name in _imports(one)]
    if isinstance(value, list):
        return [name for one in value for name in _imports(one)]
    return []
