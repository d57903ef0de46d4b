"""`ultracluster teams`: what a change of the teams is, and how it reaches the document that nodes pull."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_contract import check_document
from kubernetes_support import environment
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from state_bucket import Bucket
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.team_differences import team_differences
from ultracluster.cli.main import app
from ultracluster.model import resolve
from ultracluster.model.state_documents import state_documents, teams_document

TEAMS: dict[str, Any] = {
    "product": {"quota": 4, "users": ["carol"]},
    "research": {"quota": 4, "limit": 4, "users": ["alice", "bob"]},
}
Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    def invoke(
        teams: dict[str, Any], *words: str, bucket: Bucket | None = None, base: str = "dev", **more: Any
    ) -> Any:
        file = tmp_path / f"{base}.yaml"
        with file.open("w") as out:
            YAML(typ="safe").dump(changed(environment_data(base), {"teams": teams, **more}), out)
        made = bucket or Bucket(base)
        monkeypatch.setattr(aws, "Account", lambda **_: made.account)
        return CliRunner().invoke(app, ["apply", "teams", str(file), "--account", "111122223333", *words])

    return invoke


def test_the_document_is_what_a_deploy_uploads(run: Run) -> None:
    bucket = Bucket("dev")
    result = run(TEAMS, bucket=bucket)
    assert result.exit_code == 0, result.output
    assert "account research: new; shares: 4; limits: gres/gpu=4; alice joins; bob joins" in result.stdout
    assert "qos low: new; priority: 10" in result.stdout
    assert (
        "wrote s3://dev-buckets-scripts-1/dev/state/teams.json; the controller has it within" in result.stdout
    )
    assert "sudo /opt/ultracluster/state.d/40_teams --dry-run" in result.stdout
    cluster = resolve(environment({"teams": TEAMS}, base="dev"))
    assert bucket.objects == {"dev/state/teams.json": state_documents(cluster)["teams.json"]}

    again = run(TEAMS, bucket=bucket)
    assert again.stdout.startswith("nothing to do: ")
    assert len(bucket.writes) == 1


def test_a_dry_run_shows_the_difference_and_writes_nothing(run: Run) -> None:
    bucket = Bucket("dev")
    run(TEAMS, bucket=bucket)
    later = {"research": {"quota": 8, "users": ["alice", "dora"]}}
    result = run(later, "--dry-run", bucket=bucket)

    assert (
        "account research: changed; shares: 4 -> 8; limits: gres/gpu=4 -> none; dora joins; bob leaves"
        in result.stdout
    )
    assert "account product: removed" in result.stdout
    assert "accounts of product are closed, not deleted (--remove does)" in result.stdout
    assert "dry run: nothing written" in result.stdout
    assert len(bucket.writes) == 1

    assert "are deleted" in run(later, "--remove", bucket=bucket).stdout
    assert bucket.document["remove"] is True


def test_users_who_name_a_team_are_its_members(run: Run) -> None:
    bucket = Bucket("dev")
    users = {"alice": {"uid": 2001, "team": "product"}, "erin": {"uid": 2002, "team": "research"}}
    run(TEAMS, bucket=bucket, users=users)
    accounts = {account["name"]: account["users"] for account in bucket.document["accounts"]}
    assert accounts == {"research": ["alice", "bob", "erin"], "product": ["carol", "alice"]}
    defaults = {user["name"]: user["default_account"] for user in bucket.document["users"]}
    assert defaults == {"alice": "product", "bob": "research", "carol": "product", "erin": "research"}

    moved = run(
        TEAMS, "--dry-run", bucket=bucket, users={**users, "alice": {"uid": 2001, "team": "research"}}
    )
    assert "default of alice, instead of product" in moved.stdout


@pytest.mark.parametrize("text", [b"", b"[]", b'{"accounts": 7, "qos": [1, {}], "users": [{"name": 3}]}'])
def test_a_broken_document_is_replaced(run: Run, text: bytes) -> None:
    bucket = Bucket("dev")
    bucket.objects["dev/state/teams.json"] = text
    assert run(TEAMS, bucket=bucket).exit_code == 0
    assert [account["name"] for account in bucket.document["accounts"]] == ["product", "research"]


@pytest.mark.parametrize(
    ("base", "more", "why"),
    [
        ("eks-p5en", {}, "eks has no Slurm"),
        ("dev", {"orchestrator.lifecycle": "none"}, "export slurm-accounts"),
    ],
)
def test_where_there_is_nothing_to_do_it_says_why(
    run: Run, base: str, more: dict[str, Any], why: str
) -> None:
    result = run({}, base=base, **more)
    assert result.exit_code == 2
    assert why in " ".join(result.output.split())


def test_what_the_account_refuses_is_told_in_a_line(run: Run) -> None:
    result = run(TEAMS, bucket=Bucket("dev", deployed=False))
    assert result.exit_code == 2
    assert "dev-buckets is not deployed" in result.output


def test_json(run: Run, json_keeps_its_schema: list[str]) -> None:
    document = check_document(run(TEAMS, "--json").stdout)
    assert {change["name"] for change in document["changes"]} == {
        "low",
        "normal",
        "high",
        "research",
        "product",
    }
    assert document["uploaded"]
    assert json_keeps_its_schema


def test_differences_of_the_same_are_none() -> None:
    document = teams_document(resolve(environment({"teams": TEAMS}, base="dev")))
    assert {difference.kind for difference in team_differences(document, document)} == {"same"}
    assert {difference.kind for difference in team_differences(None, document)} == {"new"}
