"""Nodes to wait for: each is a folder in which the very commands that a real node would get are run by bash.

SSM and sessions are what AWS documents of them: `Machines` runs what they are handed, in the node's folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hyperpod_service import answer, refusal

from ultracluster.account.aws import Account

MOUNTS = "10.0.0.1@tcp:/abc /fsx lustre rw 0 0\n"
READY: dict[str, Any] = {
    "time": "2026-11-22T08:00:00Z", "run": "ended", "entry": "hyperpod_on_init_complete", "state": "ready",
    "degraded": [], "seconds": 40.0, "group": "gpu", "role": "compute", "release": "2026.11", "reason": "",
}  # fmt: skip


class Machines:
    """Folders of nodes by instance id.

    Attributes:
        ran: scripts that were run, by instance id.
        silent: nodes whose agent has not registered.
        broken: text that comes back instead of an answer, by instance id.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[str] = []
        self.silent: set[str] = set()
        self.broken: dict[str, str] = {}
        self.common = folder / "bin"
        self.common.mkdir(parents=True)
        self.program("sudo", 'exec "$@"')

    def program(self, name: str, body: str) -> None:
        """A program that every node has."""
        file = self.common / name
        file.write_text(f"#!/bin/bash\n{body}\n")
        file.chmod(0o755)

    def root(self, node: str) -> Path:
        made = self.folder / node
        made.mkdir(exist_ok=True)
        return made

    def boot(
        self,
        node: str,
        *,
        run: dict[str, Any] | None = READY,
        mounts: str = MOUNTS,
        efa: int = 0,
        domains: int | None = None,
        kubelet: str | None = None,
    ) -> None:
        """Make a node's folder what a node of this kind looks like."""
        root = self.root(node)
        ready, report = root / "run/ultracluster/ready", root / "var/log/ultracluster/report.jsonl"
        for file in (ready, report, root / "proc/self/mounts"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
        lines = [json.dumps({"step": "efa", "state": "already"})]
        if run:
            lines.append(json.dumps(run))
            if run["state"] != "failed":
                ready.write_text(json.dumps(run))
        report.write_text("\n".join(lines) + "\n")
        (root / "proc/self/mounts").write_text(mounts)
        for line in mounts.splitlines():
            (root / line.split()[1].lstrip("/")).mkdir(parents=True, exist_ok=True)
        driver = root / "sys/drivers/efa"
        driver.mkdir(parents=True, exist_ok=True)
        for number in range(efa):
            device = root / f"sys/class/infiniband/rdmap{number}/device"
            device.mkdir(parents=True, exist_ok=True)
            if not (device / "driver").is_symlink():
                (device / "driver").symlink_to(driver)
        if domains is not None:
            program = root / "opt/amazon/efa/bin/fi_info"
            program.parent.mkdir(parents=True, exist_ok=True)
            rows = "".join(f"echo '    domain: rdmap{number}-rdm'\n" for number in range(domains))
            program.write_text(f"#!/bin/bash\n{rows}")
            program.chmod(0o755)
        if kubelet is not None:
            (root / "usr/bin").mkdir(parents=True, exist_ok=True)
            (root / "usr/bin/kubelet").touch()
            (root / "kubelet.log").write_text(kubelet)

    def execute(self, node: str, words: list[str]) -> str:
        """What a node prints for a command."""
        if node in self.broken:
            return self.broken[node]
        self.ran.append(node)
        environment = {
            "PATH": f"{self.common}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "ULTRACLUSTER_ROOT": str(self.root(node)),
            "HOME": str(self.root(node)),
            "MACHINES": str(self.folder),
            "NODE": node,
        }
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        return done.stdout

    def serve_ssm(self, account: Account) -> Ssm:
        return Ssm(self, account)

    def serve_sessions(self, bin_folder: Path) -> None:
        """Put an `aws` and a plugin on this machine that open sessions with these nodes."""
        bin_folder.mkdir(parents=True, exist_ok=True)
        (bin_folder / "session-manager-plugin").write_text("#!/bin/bash\n")
        program = f"""#!{sys.executable}
import json, os, shlex, subprocess, sys
words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
assert words[:2] == ["ssm", "start-session"], words
assert value("--document-name") == "AWS-StartNonInteractiveCommand"
target = value("--target")
assert target.startswith("sagemaker-cluster:abcdefghijkl_"), target
node = "i-" + target.rsplit("-", 1)[1]
folder = {str(self.folder)!r}
open(os.path.join(folder, "sessions"), "a").write(node + "\\n")
broken = os.path.join(folder, "broken-" + node)
if os.path.exists(broken):
    print(open(broken).read())
    sys.exit(255)
if not sys.stdout.isatty():
    sys.exit("Cannot perform start session: EOF")
[command] = json.loads(value("--parameters"))["command"]
print("\\nStarting session with SessionId: operator-0123456789abcdef0")
sys.stdout.flush()
root = os.path.join(folder, node)
path = ":".join([{str(self.common)!r}, {str(Path(sys.executable).parent)!r}, os.environ["PATH"]])
environment = {{"PATH": path, "ULTRACLUSTER_ROOT": root, "HOME": root, "MACHINES": folder, "NODE": node}}
subprocess.run(shlex.split(command), env=environment, stderr=subprocess.STDOUT)
print("\\nExiting session with sessionId: operator-0123456789abcdef0.\\n")
"""
        (bin_folder / "aws").write_text(program)
        for file in bin_folder.iterdir():
            file.chmod(0o755)


class Ssm:
    """Run Command as the SDK's model has it.

    Attributes:
        sent: instance ids of each command.
        refused: an error instead of an answer, by operation.
    """

    def __init__(self, machines: Machines, account: Account) -> None:
        self.machines = machines
        self.sent: list[list[str]] = []
        self.refused: dict[str, Exception] = {}
        self._output: dict[tuple[str, str], str] = {}
        self._late: dict[str, int] = {}
        client = account.client("ssm")
        for name in (
            "DescribeInstanceInformation", "SendCommand", "ListCommandInvocations", "GetCommandInvocation",
        ):  # fmt: skip
            answer(client, name, self._guard(name))

    def _guard(self, name: str) -> Any:
        def reply(asked: dict[str, Any]) -> dict[str, Any]:
            if name in self.refused:
                raise self.refused[name]
            return getattr(self, f"_{name}")(asked)

        return reply

    def _DescribeInstanceInformation(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        ids = asked["Filters"][0]["Values"]
        there = [one for one in ids if one not in self.machines.silent]
        return {"InstanceInformationList": [{"InstanceId": one, "PingStatus": "Online"} for one in there]}

    def _SendCommand(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        assert asked["DocumentName"] == "AWS-RunShellScript" and len(asked["InstanceIds"]) <= 50
        if silent := self.machines.silent & set(asked["InstanceIds"]):
            raise refusal("InvalidInstanceId", f"Instances {sorted(silent)} not in a valid state")
        number = f"00000000-0000-0000-0000-{len(self.sent):012d}"
        self.sent.append(asked["InstanceIds"])
        for node in asked["InstanceIds"]:
            text = "".join(
                self.machines.execute(node, ["sh", "-c", line]) for line in asked["Parameters"]["commands"]
            )
            self._output[number, node] = text[:24_000]  # as much as the service keeps
        self._late[number] = 1
        return {"Command": {"CommandId": number}}

    def _ListCommandInvocations(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        number = asked["CommandId"]
        status = "InProgress" if self._late[number] else "Success"
        self._late[number] = 0
        nodes = [node for one, node in self._output if one == number]
        return {"CommandInvocations": [{"InstanceId": node, "Status": status} for node in nodes]}

    def _GetCommandInvocation(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        text = self._output[asked["CommandId"], asked["InstanceId"]]
        return {"Status": "Success", "StatusDetails": "Success", "StandardOutputContent": text}


class Time:
    """A clock that only a sleep moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.naps: list[float] = []
        self.at: dict[float, Any] = {}
        """What happens once this time has come."""

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.naps.append(seconds)
        for when in sorted(self.at):
            if when <= self.now:
                self.at.pop(when)()

    def clock(self) -> float:
        return self.now
