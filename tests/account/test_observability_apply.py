"""`ultracluster observability`: what it does to Grafana, and what of it is done when a part fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from fake_grafana import Aws, Grafana
from grafana_fixtures import ADMIN, FAILURES, Run
from json_contract import check_document

from ultracluster.account.grafana import client


def test_a_new_workspace_is_filled_and_a_second_run_has_nothing_to_do(
    fill: Run, there: Grafana, side: Aws
) -> None:
    result = fill("--yes")
    assert result.exit_code == 0, result.output
    assert "create data source Ultracluster eks-p5en: metrics" in result.stdout
    assert "create board Cluster health (eks-p5en)" in result.stdout
    assert f"create administrator user {ADMIN}" in result.stdout
    assert set(there.sources) == {"eks-p5en-uc-metrics", "eks-p5en-uc-aws"}
    source = there.sources["eks-p5en-uc-metrics"]
    assert source["type"] == "grafana-amazonprometheus-datasource"
    assert source["url"] == (
        "https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-12345678-90ab-cdef-1234-567890abcdef/"
    )
    assert source["jsonData"]["sigV4Auth"] is True and source["jsonData"]["timeInterval"] == "30s"
    assert {board["folder"] for board in there.boards.values()} == {"eks-p5en-uc-boards"}
    assert len(there.boards) == 6
    assert side.admins == [("SSO_USER", ADMIN)]
    assert side.tokens == {} and there.tokens == set(), "no token is left"
    assert side.made == 2, "one to look, one to do"

    there.asked.clear()
    again = fill("--yes")
    assert again.exit_code == 0 and "nothing to do" in again.stdout
    assert there.changes == []
    assert len(side.accounts) == 1, "one service account, which is billed as one user"


def test_a_dry_run_changes_nothing(fill: Run, there: Grafana, side: Aws) -> None:
    result = fill("--dry-run")
    assert result.exit_code == 0 and "dry run: nothing changed" in result.stdout
    assert there.changes == [] and side.admins == [] and side.tokens == {}


def test_without_a_yes_nothing_is_changed(fill: Run, there: Grafana) -> None:
    result = fill()
    assert result.exit_code == 2 and "Pass --yes" in result.stderr
    assert there.changes == []


def test_the_url_of_runbooks_is_part_of_the_boards(fill: Run, there: Grafana) -> None:
    assert fill("--yes", "--runbooks", "https://wiki.example.com").exit_code == 0
    assert "https://wiki.example.com/${__value.raw}.md" in json.dumps(there.boards["eks-p5en-uc-health"])
    assert "nothing to do" in fill("--yes", "--runbooks", "https://wiki.example.com").stdout


def test_json_tells_what_was_done(fill: Run, side: Aws) -> None:
    document = check_document(fill("--yes", "--json").stdout)
    assert document["grafana"] == {"id": "g-0123456789", "url": side.grafana.url, "version": "12.4"}
    assert document["applied"] is True
    assert {row["state"] for row in document["rows"]} == {"done"}
    assert [row["kind"] for row in document["rows"]] == [
        "data source", "data source", "folder", *["board"] * 6, "administrator",
    ]  # fmt: skip
    assert check_document(fill("--yes", "--json").stdout)["applied"] is False


def test_an_environment_that_is_not_watched_has_nothing_to_fill(fill: Run, there: Grafana) -> None:
    result = fill("--yes", watched=False)
    assert result.exit_code == 2 and "no `observability:`" in result.stderr
    assert there.asked == []


@pytest.mark.parametrize("name", [failure for failure in FAILURES if failure != "a redirect"])
def test_what_fails_on_the_way_leaves_whole_things_and_can_be_repeated(
    name: str, fill: Run, there: Grafana, side: Aws
) -> None:
    failure, said = FAILURES[name]
    there.fail = lambda method, path: failure if (method, path) == ("POST", "/api/dashboards/db") else None
    with pytest.MonkeyPatch.context() as patch:
        if name == "silence":
            patch.setattr(client, "TIMEOUT", 2)  # what is answered has to be answered within it
        document = check_document(fill("--yes", "--json").stdout)
    states = {(row["kind"], row["state"]) for row in document["rows"]}
    assert states == {
        ("data source", "done"), ("folder", "done"), ("board", "failed"), ("board", "not tried"),
        ("administrator", "done"),
    }  # fmt: skip
    assert said in next(row["details"][0] for row in document["rows"] if row["state"] == "failed")
    assert side.tokens == {} and not there.boards

    there.fail = lambda method, path: None
    assert fill("--yes").exit_code == 0
    assert len(there.boards) == 6


def test_rendered_files_are_what_a_deploy_gives(fill: Run, tmp_path: Path) -> None:
    result = fill(
        "--to", str(tmp_path / "out"), "--runbooks", "https://example.com/runbooks", verb="export prometheus"
    )
    assert result.exit_code == 0, result.output
    files = {str(one.relative_to(tmp_path / "out")) for one in (tmp_path / "out").rglob("*.*")}
    assert {
        f"dashboards/{one}.json" for one in ("health", "job", "fabric", "lustre", "queues", "money")
    } < files
    assert {"rules/eks-p5en-alerts.yaml", "rules/eks-p5en-records.yaml", "alertmanager.yaml"} < files
    rules = yaml.safe_load((tmp_path / "out/rules/eks-p5en-alerts.yaml").read_text())
    assert rules["groups"]
    board = json.loads((tmp_path / "out/dashboards/health.json").read_text())
    assert board["templating"]["list"][0]["query"] == "prometheus", "its own Grafana chooses the data source"


def test_nothing_is_rendered_where_nothing_of_ours_is_collected(fill: Run, tmp_path: Path) -> None:
    result = fill("--to", str(tmp_path / "out"), settings={"kind": "cloudwatch"}, verb="export prometheus")
    assert result.exit_code == 2 and "`observability.kind: prometheus`" in result.stderr
    assert not (tmp_path / "out").exists()
