"""Stack policies of a deploy over moto's CloudFormation: opened for what was accepted, and closed again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from project import ROOT

from ultracluster.account.aws import Account
from ultracluster.change.policy_openings import NotClosedError, Opening, opened, openings
from ultracluster.change.stack_policies import is_ours
from ultracluster.config import load
from ultracluster.model.stack_guards import GUARDED_PARTS, OPEN, closed
from ultracluster.project.place import Located

pytestmark = pytest.mark.slow

FILE = ROOT / "environments" / "dev.yaml"


def topic(**attributes: Any) -> dict[str, Any]:
    return {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": 7}, **attributes}


def template(*names: str, **attributes: Any) -> dict[str, Any]:
    kept = {"Topic": {"Type": "AWS::SNS::Topic"}}
    return {"Resources": {**kept, **{name: topic(**attributes) for name in names}}}


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with mock_aws():
        yield Account("us-west-2")


@pytest.fixture
def here() -> Located:
    return Located(name="dev", root=ROOT, file=FILE, environment=load(FILE).environment)


def deployed(name: str, body: dict[str, Any], policy: str = "") -> Any:
    client = boto3.client("cloudformation", "us-west-2")
    client.create_stack(StackName=name, TemplateBody=json.dumps(body))
    if policy:
        client.set_stack_policy(StackName=name, StackPolicyBody=policy)
    return client


def made(folder: Path, **templates: dict[str, Any]) -> Path:
    for name, body in templates.items():
        (folder / f"{name.replace('_', '-')}.template.json").write_text(json.dumps(body))
    return folder


def test_what_is_accepted_or_kept_is_let_go_and_nothing_else(
    account: Account, here: Located, tmp_path: Path
) -> None:
    deployed("dev-storage", template("Lost", "Other", "Stays"), closed())
    made(tmp_path, dev_storage=template("Stays"))

    assert openings(here, account, tmp_path, set())[0] == {}
    needed, notes = openings(here, account, tmp_path, {"dev-storage/Lost"})
    assert notes == [] and needed["dev-storage"].going == {"Lost"}
    refusal = json.loads(needed["dev-storage"].policy)["Statement"][1]
    assert refusal["Resource"] == ["LogicalResourceId/Other", "LogicalResourceId/Stays"]


def test_what_is_retained_needs_no_acceptance(account: Account, here: Located, tmp_path: Path) -> None:
    deployed("dev-storage", template("Kept", DeletionPolicy="Retain"), closed())
    made(tmp_path, dev_storage=template())

    assert openings(here, account, tmp_path, set())[0] == {
        "dev-storage": Opening(going=frozenset({"Kept"}), policy=OPEN)
    }


def test_stacks_without_a_policy_of_ours_are_left_alone(
    account: Account, here: Located, tmp_path: Path
) -> None:
    own = json.dumps(
        {"Statement": [{"Effect": "Deny", "Action": "Update:*", "Principal": "*", "Resource": "*"}]}
    )
    deployed("dev-storage", template("Lost"))
    deployed("dev-buckets", template("Lost"), own)
    made(tmp_path, dev_storage=template(), dev_buckets=template())

    needed, notes = openings(here, account, tmp_path, {"dev-storage/Lost", "dev-buckets/Lost"})
    assert needed == {}
    assert notes == ["dev-buckets has a stack policy of your own: it is left as it is"]


class StopError(Exception):
    """What ends a deploy."""


@pytest.mark.parametrize("ends", [None, StopError])
def test_policies_are_closed_again_however_the_deploy_ends(
    account: Account, ends: type[Exception] | None
) -> None:
    client = deployed("dev-storage", template("Lost"), closed())
    needed = {"dev-storage": Opening(going=frozenset({"Lost"}), policy=OPEN)}

    def policy() -> str:
        return client.get_stack_policy(StackName="dev-storage")["StackPolicyBody"]

    try:
        with opened(account, needed):
            assert policy() == OPEN
            if ends:
                raise ends
    except StopError:
        pass
    assert policy() == closed() and is_ours(policy())


def test_one_that_cannot_be_closed_is_named_with_the_command(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def set_stack_policy(self, *, StackName: str, StackPolicyBody: str) -> None:  # noqa: N803
            if StackPolicyBody == closed():
                raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "SetStackPolicy")

    monkeypatch.setattr(Account, "client", lambda self, service, region=None: Refusing())
    needed = {name: Opening(going=frozenset(), policy=OPEN) for name in ("a", "b")}

    with pytest.raises(NotClosedError) as caught, opened(account, needed):
        pass
    text = str(caught.value)
    assert "the policy of a is still open" in text and "--stack-name b --stack-policy-body '" in text


def test_a_policy_that_cannot_be_read_is_told(
    account: Account, here: Located, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Denying:
        def get_stack_policy(self, *, StackName: str) -> None:  # noqa: N803
            raise ClientError(
                {"Error": {"Code": "AccessDenied", "Message": f"no {StackName}"}}, "GetStackPolicy"
            )

    monkeypatch.setattr(Account, "client", lambda self, service, region=None: Denying())
    needed, notes = openings(here, account, tmp_path, set())

    assert needed == {} and len(notes) == len(GUARDED_PARTS)
    assert notes[0].startswith("the stack policy of dev-foundation is unknown: ")
