"""`ultracluster wait` as a user sees it: bars or lines, JSON, exit codes; and what `make deploy` runs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account
from project import ROOT
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account import wait as waiting
from ultracluster.account.doctor import Examination, Fact, Source
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait import GroupSeen, Look, NodeSeen, diagnosis, smoke_slurm
from ultracluster.account.wait.smoke import Smoke
from ultracluster.cli.main import app
from ultracluster.cli.wait_display import Display

DEV = ROOT / "environments" / "dev.yaml"


class Scripted:
    """A source with prepared looks."""

    def __init__(self, *looks: Look | BaseException) -> None:
        self.looks = list(looks)
        self.nodes = [
            Node("i-1", "controller", "Running", "m5.2xlarge", controller=True),
            Node("i-16", "gpu", "Running", "g6e.12xlarge"), Node("i-17", "gpu", "Running", "g6e.12xlarge"),
        ]  # fmt: skip
        self.entrance, self.shell, self.slurm_nodes = self.nodes[0], object(), list[Any]()

    def look(self) -> Look:
        step = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(step, BaseException):
            raise step
        return step


def seen(state: str = "ready", why: str = "", *, unproven: tuple[str, ...] = ()) -> Look:
    lost = ("gdrcopy",) if state == "degraded" else ()
    nodes = NodeSeen("i-16", "gpu", "ready"), NodeSeen("i-17", "gpu", state, why, lost)  # type: ignore[arg-type]
    controller = GroupSeen("controller", 1, (NodeSeen("i-1", "controller", "ready"),))
    return Look((controller, GroupSeen("gpu", 2, nodes)), unproven)


PASS = Smoke("gpu", "pass", "right results, over EFA", nodes=("i-16", "i-17"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs the command against a source; waiting takes no time."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    wait = waiting.wait
    asked: list[tuple[str, str]] = []

    def invoke(source: Scripted, *words: str, smoke: Smoke = PASS, file: Path = DEV) -> Any:
        made = account()
        monkeypatch.setattr(aws, "Account", lambda **_: made)
        monkeypatch.setattr(waiting, "source_of", lambda *_: source)
        ticks = iter(range(0, 10_000_000, 60))
        monkeypatch.setattr(
            waiting, "wait",
            lambda *a, **k: wait(*a, **k, sleep=lambda _: None, clock=lambda: float(next(ticks))),
        )  # fmt: skip
        monkeypatch.setattr(smoke_slurm, "run_on_slurm", lambda *a, **k: smoke)

        def examine(_: Any, __: Any, ___: Any, result: Any) -> Examination:
            asked.append((result.group, result.node))
            facts = [Fact("nodes", "gpu i-17", "Failure")]
            return Examination([Source("nodes", "read")], facts, {"LifecycleConfig/gpu/i-17": ["E: no lock"]})

        monkeypatch.setattr(diagnosis, "examine_after", examine)
        return CliRunner().invoke(app, ["wait", str(file), *words])

    invoke.asked = asked  # type: ignore[attr-defined]
    return invoke


def test_ready_with_a_line_for_each_change(run: Callable[..., Any]) -> None:
    source = Scripted(seen("starting", "Pending"), seen("starting", "Pending"), seen())
    result = run(source)
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == [
        "controller: 1 of 1 ready",
        "gpu: 1 of 2 ready; i-17: Pending",
        "gpu: 2 of 2 ready",
        "collective over two nodes of gpu: i-16, i-17",
    ]
    assert result.stdout.splitlines() == [
        "controller: 1 of 1 ready",
        "gpu: 2 of 2 ready",
        "collective on gpu: pass: right results, over EFA",
        "dev: ready, 3 of 3 nodes ready",
    ]


def test_json_at_the_end_and_nothing_else_on_standard_output(run: Callable[..., Any]) -> None:
    result = run(Scripted(seen("degraded", "no source")), "--json")
    assert result.exit_code == 0
    made = json.loads(result.stdout)
    assert (made["schema"], made["environment"], made["outcome"], made["exit_code"]) == (
        "ultracluster.wait/1",
        "dev",
        "ready",
        0,
    )
    assert made["reason"] is None and made["doctor"] is None and made["not_judged"] == []
    assert made["groups"][1] == {
        "name": "gpu", "wanted": 2, "ready": 2, "note": None, "failed": None,
        "nodes": [
            {"id": "i-16", "state": "ready", "why": None, "degraded": [], "gone": False},
            {"id": "i-17", "state": "degraded", "why": "no source", "degraded": ["gdrcopy"], "gone": False},
        ],
    }  # fmt: skip
    assert made["collectives"] == [
        {
            "group": "gpu", "verdict": "pass", "reason": "right results, over EFA", "command": None,
            "nodes": ["i-16", "i-17"], "logs": None, "report": None,
        }
    ]  # fmt: skip


def test_degraded_nodes_are_listed_and_fail_only_if_strict(run: Callable[..., Any]) -> None:
    source = Scripted(seen("degraded", "no source"))
    result = run(source)
    assert result.exit_code == 0 and "degraded: gpu i-17 lacks gdrcopy (no source)" in result.stdout
    result = run(source, "--strict")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == (
        "dev: failed, 3 of 3 nodes ready: 1 node degraded, and --strict is given"
    )


def test_a_failure_asks_the_doctor_about_the_node(run: Callable[..., Any]) -> None:
    result = run(Scripted(seen("failed", "efa: no device")))
    assert result.exit_code == 1
    assert run.asked == [("gpu", "i-17")]  # type: ignore[attr-defined]
    assert "asking what is wrong with i-17" in result.stderr
    assert "LifecycleConfig/gpu/i-17 ends with:" in result.stdout and "| E: no lock" in result.stdout
    assert result.stdout.splitlines()[-1] == "dev: failed, 2 of 3 nodes ready: gpu i-17: efa: no device"
    assert json.loads(run(Scripted(seen("failed", "x")), "--json").stdout)["doctor"]["healthy"] is False


def test_time_is_up(run: Callable[..., Any]) -> None:
    result = run(Scripted(seen("starting", "Pending: no capacity")), "--timeout", "10")
    assert result.exit_code == 3 and run.asked  # type: ignore[attr-defined]
    assert "dev: late, 2 of 3 nodes ready: 10 minutes have passed" in result.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("verdict", "code"), [("pass", 0), ("fail", 1), ("not judged", 3), ("not applicable", 0)]
)
def test_the_collective_decides(run: Callable[..., Any], verdict: Any, code: int) -> None:
    smoke = Smoke("gpu", verdict, "the reason", "the command" if verdict == "not judged" else "")
    result = run(Scripted(seen()), smoke=smoke)
    assert result.exit_code == code
    assert ("run it yourself: the command" in result.stdout) == (verdict == "not judged")
    assert run(Scripted(seen()), "--no-smoke", smoke=smoke).exit_code == 0


def test_what_could_not_be_asked_is_no_green(run: Callable[..., Any]) -> None:
    result = run(
        Scripted(seen(unproven=("whether Slurm has registered the nodes: no plugin",))), "--no-smoke"
    )
    assert result.exit_code == 3
    assert "not judged: whether Slurm has registered" in result.stdout


def test_not_deployed_yet_is_one_line(run: Callable[..., Any]) -> None:
    result = run(Scripted(aws.AccountError("there is no HyperPod cluster dev in us-west-2 of this account")))
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr.strip() == "there is no HyperPod cluster dev in us-west-2 of this account"


def test_an_interrupt_is_said(run: Callable[..., Any]) -> None:
    result = run(Scripted(seen("starting"), KeyboardInterrupt()))
    assert result.exit_code == 130 and "Run the same command again" in result.stderr
    assert result.stdout == "" and "Traceback" not in result.output


def test_bad_input(run: Callable[..., Any], tmp_path: Path) -> None:
    assert run(Scripted(seen()), file=tmp_path / "nope").exit_code == 2
    assert run(Scripted(seen()), "--timeout", "0").exit_code == 2


def test_exit_codes_are_in_the_help() -> None:
    text = " ".join(CliRunner().invoke(app, ["wait", "--help"]).output.split())
    for code in ("0 = ready", "1 = something failed", "2 = bad input", "3 = time is up", "130 = interrupted"):
        assert code in text


def test_a_terminal_gets_bars() -> None:
    """In a real pseudo-terminal."""
    import pty

    program = (
        "from tests.cli.test_wait import seen\n"
        "from ultracluster.cli.wait_display import Display\n"
        "with Display() as display:\n"
        "    display.show(seen('starting', '[red]Pending'))\n"
        "    display.say('a [bold]line')\n"
        "    display.show(seen())\n"
    )
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests/support'}:{os.environ.get('PYTHONPATH', '')}",
    }
    environment |= {"COLUMNS": "120", "TERM": "xterm"}
    done = subprocess.run(
        ["python", "-c", program], stderr=theirs, stdout=theirs, env=environment, cwd=ROOT, check=False
    )
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 65536):
            text += part
    except OSError:
        pass
    os.close(ours)
    shown = text.decode()
    assert done.returncode == 0, shown
    assert "━" in shown and "gpu" in shown and "2/2" in shown
    assert "a [bold]line" in shown and "i-17: [red]Pending" in shown, "what AWS says is no markup"


def test_without_a_terminal_no_bars(capsys: pytest.CaptureFixture[str]) -> None:
    with Display() as display:
        display.show(seen())
    assert capsys.readouterr().err == "controller: 1 of 1 ready\ngpu: 2 of 2 ready\n"
