"""Templates of deployed stacks: what is read, what is not there, and what cannot be read."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from ultracluster.account.aws import Account
from ultracluster.change.deployed_templates import as_given_back, deployed_templates

TEMPLATE = {"Resources": {"R": {"Type": "AWS::SNS::Topic"}}}
DENIED = ("AccessDenied", "User: x is not authorized to perform: cloudformation:GetTemplate")
ABSENT = ("ValidationError", "Stack with id s does not exist")
CASES: list[tuple[str, Any, bool, Any, list[str], str]] = [
    # what, the answer, whether the stack is expected, its template, absent stacks, words of why it is unread
    ("JSON", json.dumps(TEMPLATE), True, TEMPLATE, [], ""),
    ("YAML", "Resources: {R: {Type: 'AWS::SNS::Topic'}}", True, TEMPLATE, [], ""),
    ("no longer expected", json.dumps(TEMPLATE), False, TEMPLATE, [], ""),
    ("absent", ABSENT, True, None, ["s"], ""),
    ("absent, not expected", ABSENT, False, None, [], ""),
    ("denied", DENIED, True, None, [], "access denied: cloudformation:GetTemplate"),
    ("denied, not expected", DENIED, False, None, [], ""),  # doubtful: below
    ("no template", "[1]", True, None, [], "its template cannot be read: it has no Resources"),
    ("no template, not expected", "{", False, None, [], "its template cannot be read: "),
]


@pytest.mark.parametrize(
    ("what", "answer", "expected", "template", "absent", "unread"), CASES, ids=[row[0] for row in CASES]
)
def test_each_answer(
    what: str,
    answer: Any,
    expected: bool,
    template: Any,
    absent: list[str],
    unread: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = boto3.client(
        "cloudformation",
        region_name="us-west-2",
        aws_access_key_id="x",
        aws_secret_access_key="x",  # noqa: S106
    )
    asked = {"StackName": "s", "TemplateStage": "Original"}
    stubber = Stubber(client)
    if isinstance(answer, tuple):
        stubber.add_client_error("get_template", answer[0], answer[1], expected_params=asked)
    else:
        stubber.add_response("get_template", {"TemplateBody": answer}, asked)
    monkeypatch.setattr(Account, "client", lambda self, service, region=None: client)

    with stubber:
        found = deployed_templates(Account("us-west-2"), ["s"] * expected, ["s"] * (not expected))

    assert found.templates == ({"s": template} if template else {})
    assert found.absent == absent
    assert list(found.unread) == (["s"] if unread else [])
    assert found.unread.get("s", "").startswith(unread)
    doubtful = answer is DENIED and not expected
    assert list(found.doubtful.values()) == ([["s"]] if doubtful else [])
    assert all(why.startswith("access denied: cloudformation:GetTemplate") for why in found.doubtful)


def test_text_as_cloudformation_gives_it_back() -> None:
    assert as_given_back({"ü": ["Jürgen – ☃", 1, None]}) == {"?": ["J?rgen ? ?", 1, None]}
