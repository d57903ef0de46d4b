"""Settings on HyperPod's controller: a real slurmctld takes them, or runs on without them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from project import ROOT
from slurm_database import end, free_ports, munge, path, says, wait
from slurm_nodes import needed

PROGRAM = ROOT / "lifecycle_scripts" / "files" / "slurm_conf.py"
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
SYSTEMCTL = """#!/bin/sh
# runs slurmctld as systemd would
pid=$(cat {folder}/daemon.pid 2>/dev/null)
case $1 in
  is-active) [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null ;;
  restart)
    echo restart >>{folder}/calls
    [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
    setsid slurmctld -D >>{folder}/slurmctld.log 2>&1 &
    echo $! >{folder}/daemon.pid ;;
esac
"""
# What 26.05 was seen to do with a wrong value.
RECONFIGURE_KILLS = """#!/bin/sh
if [ "$1" = reconfigure ] && grep -q {word} {etc}/ultracluster.conf 2>/dev/null; then
  kill -9 "$(cat {folder}/daemon.pid)"; exit 0
fi
exec {scontrol} "$@"
"""


class Controller:
    """A root with slurm.conf as HyperPod writes it, and the slurmctld that runs with it."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.folder = folder
        self.etc = folder / "opt" / "slurm" / "etc"
        self.variables = variables
        self.conf = self.etc / "slurm.conf"
        self.ours = self.etc / "ultracluster.conf"

    def converge(self, *settings: dict[str, Any], partition: str = "") -> subprocess.CompletedProcess[str]:
        file = self.folder / "settings.json"
        file.write_text(json.dumps({"settings": settings, "default_partition": partition}))
        command = [PYTHON, "-IS", str(PROGRAM), str(file)]
        return subprocess.run(command, env=self.variables, capture_output=True, text=True, check=False)

    @property
    def state(self) -> dict[str, Any]:
        return json.loads((self.folder / "var/lib/ultracluster/slurm/state.json").read_text())

    @property
    def pid(self) -> int:
        return int((self.folder / "daemon.pid").read_text())

    def says(self, *command: str) -> str:
        done = subprocess.run(command, env=self.variables, capture_output=True, text=True, check=True)
        return done.stdout

    def config(self, name: str) -> str:
        lines = self.says("scontrol", "show", "config").splitlines()
        return next(line.partition("=")[2].strip() for line in lines if line.split("=")[0].strip() == name)

    def shim(self, name: str, text: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(text)
        file.chmod(0o755)

    def restarts(self) -> int:
        calls = self.folder / "calls"
        return calls.read_text().count("restart") if calls.exists() else 0


@contextlib.contextmanager
def controller_of(more: str = "") -> Iterator[Controller]:
    (port,) = free_ports(1)
    host = socket.gethostname()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        folder.chmod(0o755)
        etc = folder / "opt" / "slurm" / "etc"
        etc.mkdir(parents=True)
        (folder / "state").mkdir()
        (folder / "bin").mkdir()
        variables = {
            **os.environ,
            "PATH": f"{folder}/bin:{path()}",
            "SLURM_CONF": str(etc / "slurm.conf"),
            "ULTRACLUSTER_ROOT": str(folder),
            "ULTRACLUSTER_SLURM_WAIT": "3",
        }

        def start(label: str, *command: str | Path) -> None:
            log = (folder / f"{label}.log").open("wb")
            process = subprocess.Popen(command, stdout=log, stderr=log, env=variables, start_new_session=True)
            stack.callback(end, process)

        munge(folder, start, variables)
        (etc / "slurm.conf").write_text(
            f"ClusterName=jobs\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n"
            f"AuthType=auth/munge\nAuthInfo=socket={folder / 'munge' / 'socket'}\n"
            f"SlurmctldPort={port}\nStateSaveLocation={folder / 'state'}\n"
            f"SlurmctldPidFile={folder / 'slurmctld.pid'}\nMpiDefault=none\n"
            "SlurmctldParameters=enable_configless\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
            "SchedulerParameters=permit_job_expansion,max_switch_wait=600  # of the agent\nKillWait=30\n"
            f"{more}"
            "NodeName=n[1-2] NodeAddr=127.0.0.2 CPUs=8 State=DOWN\n"
            "PartitionName=dev Nodes=ALL Default=YES\nPartitionName=gpu Nodes=n1\n"
        )
        controller = Controller(folder, variables)
        controller.shim("systemctl", SYSTEMCTL.format(folder=folder))
        stack.callback(_stop, controller)
        controller.says("systemctl", "restart", "slurmctld.service")
        (folder / "calls").unlink()
        wait(lambda: says(["scontrol", "ping"], variables), folder / "slurmctld.log")
        yield controller


def _stop(controller: Controller) -> None:
    with contextlib.suppress(OSError, ValueError):
        os.kill(controller.pid, 9)


@pytest.fixture(scope="module")
def shared() -> Iterator[Controller]:
    needed()
    with controller_of() as controller:
        yield controller


@pytest.fixture
def controller(shared: Controller) -> Iterator[Controller]:
    """As HyperPod's agent left it."""
    conf = shared.conf.read_text()
    yield shared
    for name in ("scontrol", "unshare"):
        (shared.folder / "bin" / name).unlink(missing_ok=True)
    shared.conf.write_text(conf)
    shared.ours.unlink(missing_ok=True)
    shutil.rmtree(shared.folder / "var", ignore_errors=True)
    (shared.folder / "calls").unlink(missing_ok=True)
    shared.says("scontrol", "reconfigure")


SCHEDULER = {"name": "SchedulerParameters", "value": "bf_continue,max_switch_wait=300", "words": True}
KILL_WAIT = {"name": "KillWait", "value": "60"}


def test_settings_reach_slurmctld_and_the_agents_own_words_stay(controller: Controller) -> None:
    before, pid = controller.conf.read_text(), controller.pid

    done = controller.converge(SCHEDULER, KILL_WAIT)

    assert (done.returncode, done.stdout) == (0, "Slurm's settings: applied\n"), done
    assert controller.config("KillWait") == "60 sec"
    # of ours first, and of theirs what ours does not say otherwise
    assert controller.config("SchedulerParameters") == "bf_continue,max_switch_wait=300,permit_job_expansion"
    assert controller.config("TaskPlugin") == "task/none"
    assert controller.conf.read_text() == f"{before}Include ultracluster.conf\n"
    assert (controller.pid, controller.restarts()) == (pid, 0)


def test_what_holds_is_not_written_again(controller: Controller) -> None:
    controller.converge(KILL_WAIT)
    times = [file.stat().st_mtime_ns for file in (controller.conf, controller.ours)]

    done = controller.converge(KILL_WAIT)

    assert (done.returncode, controller.state["result"]) == (0, "holds")
    assert [file.stat().st_mtime_ns for file in (controller.conf, controller.ours)] == times


def test_the_agent_may_write_slurm_conf_again(controller: Controller) -> None:
    before = controller.conf.read_text()
    controller.converge(KILL_WAIT)
    controller.conf.write_text(before.replace("# of the agent", "# of its next version"))

    assert controller.converge(KILL_WAIT).returncode == 0

    assert "# of its next version" in controller.conf.read_text()
    assert controller.conf.read_text().splitlines()[-1] == "Include ultracluster.conf"
    assert controller.config("KillWait") == "60 sec"


def test_a_partition_below_our_line_moves_nothing_and_a_setting_does(controller: Controller) -> None:
    controller.converge(KILL_WAIT)
    controller.conf.write_text(f"{controller.conf.read_text()}PartitionName=late Nodes=n2\n")
    controller.converge(KILL_WAIT)
    assert controller.conf.read_text().splitlines()[-1] == "PartitionName=late Nodes=n2"

    controller.conf.write_text(f"{controller.conf.read_text()}KillWait=31\n")
    controller.converge(KILL_WAIT)
    assert controller.conf.read_text().splitlines()[-1] == "Include ultracluster.conf"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("KillWait", "soon", 'KillWait value "soon" is not a valid number'),
        ("NoSuchSetting", "1", "NoSuchSetting"),
        ("PrologFlags", "Contain,NoHold", "NoHold cannot be combined with Contain"),
        ("PreemptType", "preempt/none_such", "preempt"),
        ("PreemptMode", "REQUEUE", "PreemptType and PreemptMode values incompatible"),
    ],
)
def test_what_slurm_refuses_never_reaches_the_running_slurmctld(
    controller: Controller, name: str, value: str, reason: str
) -> None:
    before, pid = controller.conf.read_text(), controller.pid

    done = controller.converge(KILL_WAIT, {"name": name, "value": value})

    assert done.returncode == 1, done
    assert (controller.state["result"], reason in controller.state["why"]) == ("refused", True), done.stdout
    assert controller.conf.read_text() == before
    assert not controller.ours.exists()
    assert (controller.pid, controller.restarts()) == (pid, 0)
    assert controller.config("KillWait") == "30 sec"


def test_what_was_refused_is_not_tried_again_for_a_day(controller: Controller) -> None:
    bad = {"name": "KillWait", "value": "soon"}
    controller.converge(bad)
    first = controller.state
    controller.shim("unshare", "#!/bin/sh\nexit 99\n")  # a further try would end otherwise

    assert controller.converge(bad).returncode == 1
    assert controller.state == first

    file = controller.folder / "var/lib/ultracluster/slurm/state.json"
    file.write_text(json.dumps({**first, "time": first["time"] - 25 * 3600}))
    assert controller.converge(bad).returncode == 75


def test_a_slurmctld_that_ends_with_them_gets_its_old_file_back(controller: Controller) -> None:
    controller.converge(KILL_WAIT)
    conf, ours = controller.conf.read_text(), controller.ours.read_text()
    controller.shim(
        "scontrol",
        RECONFIGURE_KILLS.format(
            word="BatchStartTimeout=99", etc=controller.etc, folder=controller.folder,
            scontrol=shutil.which("scontrol", path=path()),
        ),
    )  # fmt: skip

    done = controller.converge(KILL_WAIT, {"name": "BatchStartTimeout", "value": "99"})

    assert done.returncode == 1, done
    assert controller.state["result"] == "rolled-back"
    assert controller.state["why"].endswith("slurmctld runs without them")
    assert (controller.conf.read_text(), controller.ours.read_text()) == (conf, ours)
    assert controller.restarts() == 1
    assert controller.config("KillWait") == "60 sec"


def test_the_first_settings_are_taken_back_whole(controller: Controller) -> None:
    before = controller.conf.read_text()
    controller.shim(
        "scontrol",
        RECONFIGURE_KILLS.format(
            word="KillWait", etc=controller.etc, folder=controller.folder,
            scontrol=shutil.which("scontrol", path=path()),
        ),
    )  # fmt: skip

    assert controller.converge(KILL_WAIT).returncode == 1

    assert controller.conf.read_text() == before
    assert controller.config("KillWait") == "30 sec"


def test_nothing_is_written_where_nothing_can_be_tried(controller: Controller) -> None:
    before = controller.conf.read_text()
    controller.shim("unshare", "#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2; exit 1\n")

    done = controller.converge(KILL_WAIT)

    assert done.returncode == 75
    assert "cannot be tried here: unshare failed" in controller.state["why"]
    assert controller.conf.read_text() == before
    assert not controller.ours.exists()


def test_what_the_nodes_slurm_or_accounting_lacks_is_left_out(controller: Controller) -> None:
    done = controller.converge(
        {"name": "MetricsType", "value": "metrics/openmetrics", "since": "99.11"},
        {"name": "AccountingStorageTRES", "value": "gres/gpu", "accounting": True},
        {"name": "TaskPlugin", "value": "task/cgroup", "unless_set": True},
        {"name": "ReturnToService", "value": "1", "unless_set": True},
        KILL_WAIT,
    )

    assert done.returncode == 0, done
    assert list(controller.state["left_out"]) == ["MetricsType", "AccountingStorageTRES", "TaskPlugin"]
    written = [line for line in controller.ours.read_text().splitlines() if not line.startswith("#")]
    assert written == ["ReturnToService=1", "KillWait=60"]


def test_jobs_go_to_a_partition_without_login_nodes(controller: Controller) -> None:
    assert controller.converge(KILL_WAIT, partition="gpu").returncode == 0
    assert "Default=YES" in controller.says("scontrol", "-o", "show", "partition", "gpu")

    # reading slurm.conf again makes it the service's once more
    controller.says("scontrol", "reconfigure")
    assert controller.converge(KILL_WAIT, partition="gpu").returncode == 0
    assert "Default=YES" in controller.says("scontrol", "-o", "show", "partition", "gpu")
    assert controller.converge(KILL_WAIT, partition="not-there-yet").returncode == 0


def test_it_waits_for_slurm_conf(tmp_path: Path) -> None:
    controller = Controller(tmp_path, {**os.environ, "ULTRACLUSTER_ROOT": str(tmp_path)})

    done = controller.converge(KILL_WAIT)

    assert done.returncode == 75
    assert "slurm.conf is not there yet" in done.stdout
