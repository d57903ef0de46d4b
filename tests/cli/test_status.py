"""`ultracluster list` and `ultracluster status` as commands: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from json_contract import check_document
from live_environment import DEV, Live, drifted, rule
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.account import aws
from ultracluster.account.status import BUDGET
from ultracluster.cli import status as command
from ultracluster.cli.main import app

SLURM = "1 running, 1 waiting"


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Live:
    """The account of the command; its scheduler has two jobs."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    made = Live()
    made.detections = ["DETECTION_COMPLETE"]
    monkeypatch.setattr(aws, "Account", lambda *_, **__: made.account)
    monkeypatch.setattr(command, "_job_states", lambda *_: ["running", "waiting"])
    return made


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_a_screen_with_the_source_of_each_line(live: Live) -> None:
    shown = run("status", str(DEV))

    assert shown.exit_code == 0, shown.output
    head, *lines, last = shown.stdout.splitlines()
    assert head.startswith("dev: hyperpod-slurm in us-west-2, account 111122223333, ")
    assert last.startswith("every source answered")
    assert all(line.rstrip().endswith("]") and "[" in line for line in lines), lines
    text = "\n".join(lines)
    assert SLURM in text and "50% full of 1.2 TiB" in text and "2 of 2 running; image 1.3.0 (2)" in text
    assert (
        "`ultracluster diff dev --deployed`" in text and "6 in sync" in text and "not asked: --spent" in text
    )
    assert len(shown.stdout.splitlines()) < 24, "one screen"


def test_what_was_changed_by_hand_and_what_is_silent(live: Live) -> None:
    live.rules.append(rule(9, port=8443, CidrIpv4="0.0.0.0/0"))
    live.drifts["dev-network"] = [drifted("Nodes", "AWS::EC2::SecurityGroup", "/GroupDescription")]
    live.refused["DescribeFileSystems"] = aws.known.ClientError(
        {"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeFileSystems"
    )

    shown = run("status", str(DEV))

    assert shown.exit_code == 1
    assert "tcp 8443 from 0.0.0.0/0" in shown.stdout and "1 differs (dev-network)" in shown.stdout
    assert "/GroupDescription: b (a)" in shown.stdout
    assert "? storage: access denied" in shown.stdout and "nothing was changed" not in shown.stdout


def test_the_document_of_a_status(live: Live) -> None:
    live.service.cluster["InstanceGroups"][2] |= {"TargetCount": 5}

    shown = run("status", str(DEV), "--json", "--no-drift")

    document = check_document(shown.stdout)
    assert (document["schema"], document["quiet"], document["jobs"]["running"]) == (
        "ultracluster.status/1", False, 1,
    )  # fmt: skip
    assert [one["kind"] for one in document["differences"]] == ["count"]
    assert document["storage"][0]["fill"] == 0.5 and "DetectStackDrift" not in live.asked


def test_watch_looks_again_and_detects_drift_seldom(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(command.time, "sleep", pause)

    shown = run("status", str(DEV), "--watch")

    assert shown.exit_code == command.INTERRUPTED and pauses == [command.EVERY] * 3
    assert shown.stdout.count("dev: hyperpod-slurm") == 3
    assert live.asked.count("DetectStackDrift") == 6, "once for each stack, at the first look"


def test_money_is_asked_for_once(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    from ultracluster.account import status as module
    from ultracluster.account.spending import Spending, Spent

    asked: list[Any] = []

    def spending(account: Any, name: str, since: Any, until: Any) -> Spending:
        asked.append((since, until))
        row = Spent(service="EC2", usage="BoxUsage", usd=1234.5)
        return Spending(since=since, until=until, rows=(row,), estimated=True, requests=1)

    looks: list[float] = []

    def pause(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "spending", spending)
    monkeypatch.setattr(command.time, "sleep", pause)

    shown = run("status", str(DEV), "--spent", "--watch", "--no-drift")

    assert len(asked) == 1 and asked[0][0].day == 1
    assert shown.stdout.count("1,234.50 USD") == 2, "each look shows it"


def test_list_shows_files_and_what_only_the_account_has(
    live: Live, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "environments"
    folder.mkdir()
    (folder / "dev.yaml").write_text(DEV.read_text())
    monkeypatch.chdir(tmp_path)
    assert run("list").exit_code == 0

    (folder / "bad.yaml").write_text("name: Bad\n")
    live.stacks["old-cluster"] = "CREATE_COMPLETE"
    live.tags["old-cluster"] = "old"
    shown = run("list")

    assert shown.exit_code == 1
    lines = {line.split()[0]: line for line in shown.stdout.splitlines()}
    assert "deployed" in lines["dev"] and "6/6" in lines["dev"] and "4/4" in lines["dev"]
    assert "ultracluster validate bad" in lines["bad"] and "no file" in lines["(old)"]
    assert lines["sources:"].startswith("sources: CloudFormation DescribeStacks")

    document = check_document(run("list", "--json").stdout)
    assert [one["name"] for one in document["environments"]] == ["bad", "dev", "old"]


def test_a_folder_without_environments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    shown = run("list", "--json")

    assert shown.exit_code == 2 and json.loads(shown.stdout)["schema"] == "ultracluster.error/1"


def test_the_limit_is_what_the_help_says() -> None:
    assert f"after {BUDGET:g} seconds" in " ".join((command.status.__doc__ or "").split())
    assert f"after {BUDGET:g} seconds" in " ".join((command.list_environments.__doc__ or "").split())
    assert (ROOT / "docs" / "exit-codes.md").read_text().count("| `status` |") == 1
    assert isinstance(app, typer.Typer)
