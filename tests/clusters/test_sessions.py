"""Sessions: people's user may not sudo, administrators have a document of their own, and both are logged."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes_support import environment
from templates import Synthesised, assembly

Get = Callable[[str], Synthesised]
WITH_SESSIONS = {
    "dev": "ubuntu",
    "hyperpod-eks-p5": "ec2-user",
    "parallelcluster-p5": "ubuntu",
    "pcs-p6-b200": "ubuntu",
}
"""The image's own user by environment."""


def inputs(made: Synthesised) -> dict[str, dict[str, Any]]:
    """Inputs of each session document, by the beginning of its logical id."""
    documents = made.resources("AWS::SSM::Document")
    return {
        "admin" if "AdminSession" in place else "people": one["Properties"]["Content"]["inputs"]
        for place, one in documents.items()
        if one["Properties"]["DocumentType"] == "Session"
    }


@pytest.mark.parametrize("name", WITH_SESSIONS)
def test_people_may_not_sudo_and_administrators_ask_for_it(name: str, synthesised: Get) -> None:
    found = inputs(synthesised(name))

    assert found.keys() == {"people", "admin"}
    assert found["people"]["runAsDefaultUser"] == "ultracluster"
    assert found["admin"]["runAsDefaultUser"] == WITH_SESSIONS[name]
    assert all(one["runAsEnabled"] for one in found.values())


@pytest.mark.parametrize("name", WITH_SESSIONS)
def test_both_are_logged_in_a_group_with_a_key(name: str, synthesised: Get) -> None:
    made = synthesised(name)
    groups = {
        place: one for place, one in made.resources("AWS::Logs::LogGroup").items() if "/SessionLogs" in place
    }
    (group,) = groups.values()

    assert group["Properties"]["KmsKeyId"]
    assert group["Properties"]["RetentionInDays"] == 365
    for one in inputs(made).values():
        assert one["cloudWatchLogGroupName"] == {"Ref": next(iter(groups)).partition("/")[2]}
        assert one["cloudWatchEncryptionEnabled"] and one["cloudWatchStreamingEnabled"]


def test_kubernetes_nodes_of_eks_have_none(synthesised: Get) -> None:
    """People come in with kubectl there."""
    assert inputs(synthesised("eks-p5en")) == {}


def test_no_log_and_another_user() -> None:
    access = {"session_user": "alice", "session_logs": "none"}
    made = assembly(environment({"access": access}, base="dev"), checked=False)

    assert not [place for place in made.resources("AWS::Logs::LogGroup") if "/SessionLogs" in place]
    assert inputs(made)["people"]["runAsDefaultUser"] == "alice"
    assert "cloudWatchLogGroupName" not in inputs(made)["people"]
    assert not [
        statement
        for policy in made.resources("AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "SessionLogs" in statement.get("Sid", "")
    ]


KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"
USERS = {
    "alice": {"uid": 2001, "principals": ["arn:aws:iam::111122223333:role/alice"]},
    "al": {"uid": 2002, "principals": ["arn:aws:iam::111122223333:role/al"]},
    "bob": {"uid": 2003, "keys": [f"ssh-ed25519 {KEY}"]},
}


def without_upload(template: dict[str, Any]) -> dict[str, Any]:
    """What of a template does not follow from the archive of the scripts, in which the documents are."""
    return {
        place: {key: value for key, value in one.items() if key != "DependsOn"}
        for place, one in template["Resources"].items()
        if one["Type"] != "Custom::CDKBucketDeployment"
    }


@pytest.mark.parametrize("base", ["dev", "pcs-p6-b200", "parallelcluster-p5"])
def test_users_have_documents_and_a_change_of_them_changes_no_node(base: str) -> None:
    """Only what uploads the document for nodes differs, and what opens sessions."""
    made = [
        assembly(environment({"users": users}, base=base), checked=False)
        for users in ({"bob": USERS["bob"]}, USERS)
    ]
    before, after = made
    old, new = (without_upload(one.templates[f"{base}-cluster"]) for one in made)
    added = {place: one for place, one in new.items() if place not in old}
    assert {place: one for place, one in new.items() if place in old} == old
    names = {one["Properties"]["Name"] for one in added.values()}
    assert names == {f"{base}-cluster-as-al", f"{base}-cluster-as-alice"}
    for one in added.values():
        content = one["Properties"]["Content"]["inputs"]
        assert one["Properties"]["Name"].endswith(f"-as-{content['runAsDefaultUser']}")
        assert content["runAsEnabled"] and content["cloudWatchEncryptionEnabled"]
    for stack in before.templates.keys() - {f"{base}-cluster"}:
        assert before.templates[stack] == after.templates[stack]
    # and the document is among what is uploaded, below a key that stays
    documents = [archived(one) for one in made]
    assert documents[0] != documents[1]
    assert [row["name"] for row in json.loads(documents[1])["users"]] == ["al", "alice", "bob"]


def archived(made: Synthesised) -> bytes:
    """`state/users.json` of what a deploy uploads."""
    found = [
        archive.read("state/users.json")
        for path in made.folder.glob("asset.*.zip")
        for archive in [zipfile.ZipFile(path)]
        if "state/users.json" in archive.namelist()
    ]
    (document,) = found
    return document


@pytest.mark.parametrize("base", ["dev", "pcs-p6-b200", "parallelcluster-p5"])
def test_nodes_are_told_where_the_documents_are(base: str, synthesised: Get) -> None:
    text = json.dumps(synthesised(base).templates[f"{base}-cluster"])
    assert f"/{environment({}, base=base).cluster_name}/state" in text
