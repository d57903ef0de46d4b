"""`ultracluster users`: what a change of the file is, and how it reaches the document that nodes pull."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import refusal
from json_contract import check_document
from kubernetes_support import environment
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from state_bucket import Bucket
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.cli.main import app
from ultracluster.model import resolve
from ultracluster.model.state_documents import state_documents

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g alice@example.com"
ROLE = "arn:aws:iam::111122223333:role/"
ALICE = {"uid": 2001, "keys": [KEY], "groups": [{"vision": 3000}]}
BOB = {"uid": 2002, "principals": [f"{ROLE}bob"]}
CAROL = {"uid": 2003, "principals": [f"{ROLE}carol"]}


Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    def invoke(users: dict[str, Any], *words: str, bucket: Bucket | None = None, base: str = "dev") -> Any:
        data = changed(environment_data(base), {"users": users})
        file = tmp_path / f"{base}.yaml"
        with file.open("w") as out:
            YAML(typ="safe").dump(data, out)
        made = bucket or Bucket()
        monkeypatch.setattr(aws, "Account", lambda **_: made.account)
        verb, *rest = words
        called = (
            ["users", str(file)]
            if verb == "list"
            else [verb, "users", str(file), "--account", "111122223333"]
        )
        return CliRunner().invoke(app, [*called, *rest])

    return invoke


def test_the_first_document_is_what_a_deploy_uploads(run: Run) -> None:
    bucket = Bucket()
    result = run({"alice": ALICE}, "apply", bucket=bucket)
    assert result.exit_code == 0, result.output
    assert "alice: new, 2001" in result.stdout
    assert (
        "wrote s3://dev-buckets-scripts-1/dev/state/users.json; nodes have it within two minutes"
        in result.stdout
    )
    cluster = resolve(environment({"users": {"alice": ALICE}}, base="dev"))
    assert bucket.objects == {"dev/state/users.json": state_documents(cluster)["users.json"]}
    assert run({"alice": ALICE}, "apply", bucket=bucket).stdout.startswith("nothing to do: ")
    assert len(bucket.writes) == 1


def test_a_dry_run_shows_the_difference_and_writes_nothing(run: Run) -> None:
    bucket = Bucket()
    run({"alice": ALICE, "bob": BOB, "carol": CAROL}, "apply", bucket=bucket)
    asked = {"alice": ALICE | {"groups": [{"data": 3001}], "keys": [KEY, KEY[:-9]]}, "bob": BOB}
    result = run(asked, "apply", "--dry-run", bucket=bucket)
    assert result.exit_code == 0
    assert "alice: groups: vision -> data; keys: 1 -> 2" in result.stdout
    assert "carol: removed; files of 2003 stay, as /fsx/home/carol" in result.stdout
    assert "bob:" not in result.stdout and "dry run: nothing written" in result.stdout
    assert len(bucket.writes) == 1


def test_removals_are_said_and_most_of_all_are_said_twice(run: Run) -> None:
    bucket = Bucket()
    three = {"alice": ALICE, "bob": BOB, "carol": CAROL}
    run(three, "apply", bucket=bucket)
    two = {"alice": ALICE, "bob": BOB}
    refused = run(two, "apply", bucket=bucket)
    assert refused.exit_code == 2 and "carol would lose their accounts: say so" in refused.output
    assert len(bucket.document["users"]) == 3
    assert run(two, "apply", "--remove", bucket=bucket).exit_code == 0
    assert bucket.document["removals"] == "few"
    nobody = run({}, "apply", "--remove", bucket=bucket)
    assert nobody.exit_code == 2 and "more than half of the users: say so with --remove-all" in nobody.output
    assert run({}, "apply", "--remove-all", bucket=bucket).exit_code == 0
    assert bucket.document["removals"] == "any" and bucket.document["users"] == []


def test_ids_never_change_hands(run: Run) -> None:
    bucket = Bucket()
    run({"alice": ALICE, "bob": BOB, "carol": CAROL}, "apply", bucket=bucket)
    other = run({"alice": ALICE | {"uid": 2009}, "bob": BOB, "carol": CAROL}, "apply", bucket=bucket)
    assert other.exit_code == 2 and "alice: the id 2001 cannot become 2009" in other.output
    heir = {"alice": ALICE, "bob": BOB, "dave": CAROL}
    reused = run(heir, "apply", "--remove", bucket=bucket)
    assert reused.exit_code == 2 and "dave: the id 2003 is carol's, whose files stay" in reused.output
    assert len(bucket.writes) == 1


def test_what_somebody_else_wrote_meanwhile_is_not_lost(run: Run) -> None:
    bucket = Bucket()
    run({"alice": ALICE}, "apply", bucket=bucket)
    bucket.before_write = lambda: bucket.objects.update({"dev/state/users.json": b"{}"})
    result = run({"alice": ALICE, "bob": BOB}, "apply", bucket=bucket)
    assert result.exit_code == 2 and "was written by somebody else meanwhile" in result.output
    assert bucket.objects == {"dev/state/users.json": b"{}"}


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"users": 7, "groups": [1, {}]}'])
def test_a_broken_document_is_replaced(run: Run, text: bytes) -> None:
    bucket = Bucket()
    bucket.objects["dev/state/users.json"] = text
    assert run({"alice": ALICE}, "apply", bucket=bucket).exit_code == 0
    assert [user["name"] for user in bucket.document["users"]] == ["alice"]


def test_what_the_account_refuses_is_told_in_a_line(run: Run) -> None:
    bucket = Bucket()
    bucket.refused = refusal("AccessDenied")
    result = run({"alice": ALICE}, "apply", bucket=bucket)
    assert result.exit_code == 2 and "access denied" in result.output and "Traceback" not in result.output
    result = run({"alice": ALICE}, "apply", bucket=Bucket(deployed=False))
    assert result.exit_code == 2 and "dev-buckets is not deployed" in result.output


def test_new_principals_wait_for_a_deploy(run: Run) -> None:
    result = run({"alice": ALICE, "bob": BOB}, "apply")
    assert "session documents of bob come with the next `ultracluster deploy`" in result.stdout


def test_json(run: Run, json_keeps_its_schema: list[str]) -> None:
    bucket = Bucket()
    run({"alice": ALICE, "carol": CAROL}, "apply", bucket=bucket)
    result = run({"alice": ALICE, "bob": BOB}, "apply", "--remove", "--json", bucket=bucket)
    document = check_document(result.stdout)
    rows = {row["name"]: row for row in document["users"]}
    assert {name: row["change"] for name, row in rows.items()} == {
        "alice": "same",
        "bob": "new",
        "carol": "removed",
    }
    assert document["uploaded"] and document["document"] == "s3://dev-buckets-scripts-1/dev/state/users.json"
    listed = check_document(run({"alice": ALICE}, "list", "--json").stdout)
    assert listed["users"][0]["groups"] == ["vision"] and listed["users"][0]["change"] is None
    assert json_keeps_its_schema


def test_the_list_asks_nothing_of_aws(run: Run) -> None:
    assert run({}, "list").stdout == "no users\n"
    assert run({"alice": ALICE}, "list").stdout.splitlines() == [
        "user    uid   gid  home             team  groups",
        "alice  2001  2001  /fsx/home/alice  -     vision",
    ]


def test_kubernetes_and_a_broken_rule_are_refused(run: Run) -> None:
    result = run({}, "apply", base="eks-p5en")
    assert result.exit_code == 2 and "people are members of teams" in result.output
    result = run({"alice": ALICE | {"uid": 1000}}, "apply")
    assert result.exit_code == 2 and "USR005" in result.output
