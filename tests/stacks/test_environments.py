"""The shipped environments: what they synthesise to, and that every authority accepts it."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from aws_cdk import CfnResource, Stack, Validations
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks
from project import ENVIRONMENTS, ROOT, SHIPPED
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension
from templates import Synthesised, app_in, cfn_lint, finish, synthesise

from ultracluster.config import load, render
from ultracluster.rules import enforce
from ultracluster.security import acknowledgements

Get = Callable[[str], Synthesised]


def reviewed(name: str, request: pytest.FixtureRequest) -> bool:
    """Whether the templates are to be compared: an own environment without a snapshot is only reported."""
    node: pytest.Item = request.node
    folder = node.path.parent / "__snapshots__" / node.path.stem
    takes_it = request.config.getoption("update_snapshots")
    if name in SHIPPED or takes_it or (folder / f"{node.name}.json").exists():
        return True
    warnings.warn(
        f"environments/{name}.yaml is not one of the examples and has no snapshot; to take it: "
        f"pytest {node.path.relative_to(ROOT)} -k {name} --snapshot-update -n 0",
        stacklevel=2,
    )
    return False


@pytest.fixture
def snapshot_json(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(JSONSnapshotExtension)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environment_breaks_no_rule_and_warns_of_nothing_unexplained(name: str) -> None:
    found = enforce(load(ROOT / "environments" / f"{name}.yaml"))
    unread = [warning for warning in found if not warning.acknowledged]

    if unread and name not in SHIPPED:
        warnings.warn(render(unread), stacklevel=1)
    else:
        assert [warning.code for warning in unread] == []


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_templates_are_as_reviewed(
    name: str, synthesised: Get, snapshot_json: SnapshotAssertion, request: pytest.FixtureRequest
) -> None:
    if not reviewed(name, request):
        return
    assert {
        stack: masked(template) for stack, template in synthesised(name).templates.items()
    } == snapshot_json


def test_every_example_is_there() -> None:
    """Else its snapshots would be compared with nothing."""
    assert set(SHIPPED) <= set(ENVIRONMENTS)


def test_an_own_environment_without_a_snapshot_is_reported(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("update_snapshots"):
        pytest.skip("snapshots are taken, not compared")
    with pytest.warns(UserWarning, match=r"environments/acme\.yaml .* -k acme --snapshot-update"):
        assert not reviewed("acme", request)
    assert reviewed("dev", request)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_strict_validation_and_cdk_nag_find_nothing(name: str, synthesised: Get) -> None:
    assert synthesised(name).findings == set()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_acknowledgement_gives_a_real_reason(name: str, synthesised: Get) -> None:
    acknowledged = synthesised(name).acknowledged

    assert acknowledged
    for path, reasons in acknowledged.items():
        for rule, reason in reasons.items():
            assert len(reason.split()) >= 5, f"{path} {rule}: {reason!r} says too little"
            assert not re.search(r"(F|E)\d{4}$", rule), f"{path} silences the template error {rule}"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_acknowledgement_is_still_needed(
    name: str, synthesised: Get, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its acknowledgements an app has exactly the findings that were acknowledged."""
    monkeypatch.setattr(acknowledgements, "Validations", NothingAcknowledged)
    config = load(ROOT / "environments" / f"{name}.yaml").environment
    bare = synthesise(config, tmp_path, validate=False)
    assert not any(bare.acknowledged.values())
    stale = [
        f"{path}: {rule}"
        for path, reasons in synthesised(name).acknowledged.items()
        for rule in reasons
        if not any(rule.endswith(hit) and place.startswith(path) for hit, place in bare.findings)
    ]

    assert stale == []


class NothingAcknowledged:
    """Stands in for the CDK's `Validations`."""

    @staticmethod
    def of(construct: object) -> NothingAcknowledged:
        del construct
        return NothingAcknowledged()

    def acknowledge(self, *rules: object) -> None:
        """Says nothing."""


def test_the_checks_can_fail(tmp_path: Path) -> None:
    """A misspelt property and an open bucket are found: the two tests above prove something."""
    app = app_in(tmp_path)
    stack = Stack(app, "bad")
    s3.CfnBucket(stack, "Open")
    CfnResource(stack, "Misspelt", type="AWS::S3::Bucket", properties={"BucketNam": "x"})
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))

    rules = {rule for rule, _ in finish(app, tmp_path).findings}

    assert "F3002" in rules
    assert "AwsSolutions-S10" in rules


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_cfn_lint_accepts_every_template(name: str, synthesised: Get) -> None:
    files = synthesised(name).files
    config = load(ROOT / "environments" / f"{name}.yaml").environment

    assert len(files) == len(config.stack_names)
    assert cfn_lint(files, config.region) == ""


def test_cfn_lint_is_asked_indeed(tmp_path: Path) -> None:
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"Nme": "x"}}
    file = tmp_path / "one.template.json"
    file.write_text(json.dumps({"Resources": {"Bucket": bucket}}))
    assert "E3002" in cfn_lint([file], "us-east-1")
    file.write_text(json.dumps({"Resources": {"Bucket": {"Type": "AWS::S3::Bucket"}}}))
    assert cfn_lint([file], "us-east-1") == ""


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_synth_looks_nothing_up(name: str, synthesised: Get) -> None:
    manifest = json.loads((synthesised(name).folder / "manifest.json").read_text())

    assert not manifest.get("missing")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_logical_ids_of_what_holds_data_are_pinned(
    name: str, synthesised: Get, snapshot_json: SnapshotAssertion, request: pytest.FixtureRequest
) -> None:
    """A moved logical id is a deleted and remade resource: keep the id, do not update the snapshot."""
    if not reviewed(name, request):
        return
    stateful = {
        "AWS::EC2::Subnet",
        "AWS::EC2::VPC",
        "AWS::EC2::SecurityGroup",
        "AWS::EKS::Cluster",
        "AWS::FSx::FileSystem",
        "AWS::KMS::Key",
        "AWS::PCS::Cluster",
        "AWS::FSx::DataRepositoryAssociation",
        "AWS::RDS::DBInstance",
        "AWS::S3::Bucket",
        "AWS::SageMaker::Cluster",
        "AWS::SecretsManager::Secret",
    }
    ids = {
        f"{stack}/{logical_id}": resource["Type"]
        for stack, template in synthesised(name).templates.items()
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] in stateful
    }

    assert ids == snapshot_json


def test_the_pinned_cli_can_read_what_the_library_writes(synthesised: Get) -> None:
    manifest = json.loads((synthesised("dev").folder / "manifest.json").read_text())
    pinned = json.loads((ROOT / "package.json").read_text())["dependencies"]["aws-cdk"]

    assert _version(pinned) >= _version(manifest["minimumCliVersion"])


def masked(template: object) -> object:
    """A template without content hashes, which change with every script."""
    text = json.dumps(template)
    text = re.sub(r"[0-9a-f]{64}", "<asset-hash>", text)
    names = "|".join(ENVIRONMENTS)
    text = re.sub(rf"(/(?:{names})/|\"(?:{names})/)[0-9a-f]{{12}}", r"\1<content-hash>", text)
    return json.loads(text)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
