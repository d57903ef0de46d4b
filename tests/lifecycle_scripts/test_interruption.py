"""EC2's notice that it takes an instance back: what is done about it, once, and what is not."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from health_modules import health_module
from instance_metadata import server

NOW = 1_800_000_000.0
interruption = health_module("interruption")
jobs = health_module("jobs")
known = health_module("known")
slurm_module = health_module("slurm")


class Slurm:
    """slurmctld, with two jobs on the node; keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.reason, self.states, self.away = "", frozenset({"IDLE"}), False

    def update(self, name: str, *settings: str) -> None:
        if self.away:
            raise slurm_module.SlurmError("Unable to contact slurm controller")
        self.said.append(" ".join([name, *settings]))
        for one in settings:
            if one.startswith("Reason="):
                self.reason = one.removeprefix("Reason=")
                power = {"POWER_DOWN"} if "POWER_DOWN_ASAP" in settings[0] else set[str]()
                self.states = frozenset({"IDLE", "DRAIN", *power})

    def run(self, *command: str) -> str:
        self.said.append(" ".join(command))
        return ""

    def node(self, name: str) -> Any:
        return known.Node(name=name, states=self.states, reason=self.reason)

    def jobs(self, name: str) -> list[str]:
        return ["7", "8"]

    def job_comment(self, job: str) -> str:
        return "ultracluster:signal=USR1" if job == "7" else ""


class Instance:
    """An instance whose metadata a test writes."""

    def __init__(self, folder: Path, orchestrator: str) -> None:
        self.folder, self.slurm = folder, Slurm()
        self.one = interruption.Interruption(self.slurm, orchestrator)
        # PCS replaces what is powered down, whatever becomes of the notice
        self.given_back = [] if orchestrator == "pcs" else ["n1 State=RESUME"]

    def tell(self, seconds: float, action: str = "terminate") -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW + seconds))
        (self.folder / "spot.instance-action").write_text(json.dumps({"action": action, "time": at}))

    def withdraw(self) -> None:
        (self.folder / "spot.instance-action").unlink()

    def look(self, after: float = 0) -> list[str]:
        """What is told to Slurm by one look."""
        before = len(self.slurm.said)
        self.one.step("n1", NOW + after)
        return self.slurm.said[before:]


@pytest.fixture
def metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "metadata"
    folder.mkdir()
    made = server(folder)
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setattr(interruption, "METADATA", f"http://127.0.0.1:{made.server_port}")
    monkeypatch.setattr(interruption, "STATE", tmp_path / "interruption.json")
    for name in (interruption, jobs):
        monkeypatch.setattr(name, "say", lambda *_: None)
    yield folder
    made.shutdown()
    made.server_close()


@pytest.fixture(params=["parallelcluster", "pcs"])
def instance(metadata: Path, request: pytest.FixtureRequest) -> Instance:
    return Instance(metadata, request.param)


def test_jobs_are_told_at_once_and_queued_again_before_the_end(instance: Instance) -> None:
    assert instance.look() == []
    instance.tell(120)
    state = "POWER_DOWN_ASAP" if instance.one.orchestrator == "pcs" else "DRAIN"
    closed, told = instance.look()
    assert (
        closed == f"n1 State={state} Reason=EC2 takes this instance back at {interruption._clock(NOW + 120)}"
    )
    assert told == "scancel --batch --signal=USR1 7"
    assert instance.look(60) == []
    assert instance.look(91) == ["scontrol requeue 7", "scontrol requeue 8"]
    assert instance.look(92) == []


def test_a_notice_that_comes_twice_or_to_a_new_service_is_one(instance: Instance) -> None:
    instance.tell(120)
    assert len(instance.look()) == 2
    instance.tell(121)
    assert instance.look(5) == []
    again = interruption.Interruption(instance.slurm, instance.one.orchestrator)
    again.step("n1", NOW + 10)
    assert len(instance.slurm.said) == 2


def test_a_notice_that_is_withdrawn_gives_the_node_back(instance: Instance) -> None:
    instance.tell(120)
    instance.look()
    instance.withdraw()
    assert instance.look(20) == instance.given_back
    assert instance.look(25) == []


def test_a_node_that_someone_else_holds_is_not_given_back(instance: Instance) -> None:
    instance.tell(120)
    instance.look()
    instance.slurm.reason = "maintenance"
    instance.withdraw()
    assert instance.look(20) == []


def test_an_instance_that_is_still_there_after_the_time_works_again(instance: Instance) -> None:
    instance.tell(120)
    instance.look()
    instance.look(100)
    assert instance.look(200) == instance.given_back


def test_silence_is_neither_a_notice_nor_the_end_of_one(instance: Instance) -> None:
    instance.tell(120)
    instance.look()
    (instance.folder / "broken").touch()
    with pytest.raises(OSError, match="503"):
        instance.look(95)
    (instance.folder / "broken").unlink()
    assert instance.look(96) == ["scontrol requeue 7", "scontrol requeue 8"]


def test_a_slurmctld_that_is_away_is_told_later(instance: Instance) -> None:
    instance.tell(120)
    instance.slurm.away = True
    with pytest.raises(slurm_module.SlurmError):
        instance.look()
    instance.slurm.away = False
    assert len(instance.look(5)) == 2


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"action": "terminate"}', '{"action": "terminate", "time": 7}', "<html>no</html>",
     '{"action": "terminate", "time": "2001-01-01T00:00:00Z"}',
     '{"action": "terminate", "time": "2099-01-01T00:00:00Z"}'],
)  # fmt: skip
def test_what_is_no_notice_does_nothing(instance: Instance, text: str) -> None:
    (instance.folder / "spot.instance-action").write_text(text)
    assert instance.look() == []


@pytest.mark.parametrize("cycle", ["on-demand", "capacity-block"])
def test_instances_that_get_no_notice_are_not_asked_again(metadata: Path, cycle: str) -> None:
    (metadata / "instance-life-cycle").write_text(cycle)
    interruption.follow(Slurm(), lambda: pytest.fail("its name is not asked for"), "pcs")


def test_a_mistake_in_one_look_ends_no_other(metadata: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (metadata / "instance-life-cycle").write_text("spot")
    looks: list[str] = []

    def step(_: Any, name: str, now: float) -> None:
        looks.append(name)
        if len(looks) == 1:
            raise KeyError("a mistake")
        raise SystemExit

    monkeypatch.setattr(interruption.Interruption, "step", step)
    monkeypatch.setattr(interruption, "_SECONDS", 0)
    with pytest.raises(SystemExit):
        interruption.follow(Slurm(), lambda: "n1", "pcs")
    assert looks == ["n1", "n1"]
