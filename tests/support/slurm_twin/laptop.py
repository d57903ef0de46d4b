"""A laptop beside a twin: the real command in a process of its own, an account, and `aws ssm start-session`.

    with Laptop(twin, folder, environment) as laptop:
        done = laptop.run("job", "list", "first")

The account is moto's on 127.0.0.1, with one instance: the node where people log in. In the place of the AWS
CLI stands a program that takes the one command that we use, word for word, and opens a login shell of that
user on the controller, in a terminal there, as the agent of Systems Manager does. `fault` ends it early.
"""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import boto3
from moto.server import ThreadedMotoServer
from project import ROOT
from slurm_twin.configuration import CONTROLLER
from slurm_twin.twin import Twin

REGION = "us-west-2"
Fault = Literal["lost", "unsent"]
STAND_IN = Path(__file__).with_name("aws_session.py")


def login_shell(twin: Twin, user: str) -> list[str]:
    """The command of a login shell in a terminal of its own, where people log in."""
    return twin.enter(CONTROLLER, user, "script", "--quiet", "--command", "exec bash --login", "/dev/null")


class Laptop:
    """See the module; a context manager.

    Args:
        folder: an empty one, in which commands run.
        environment: an environment file of ParallelCluster, which is `environments/<its name>.yaml` there.
        users: by name of the session document that opens their sessions.
    """

    def __init__(self, twin: Twin, folder: Path, environment: Path, users: Mapping[str, str]) -> None:
        self.twin, self.folder, self._users = twin, folder, users
        self._environment = environment
        self._started: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        self._server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self._url = f"http://{host}:{port}"
        tools = self.folder / "bin"
        tools.mkdir()
        self._state = self.folder / "state"
        self._state.mkdir()
        (self.folder / "environments").mkdir()
        (self.folder / "environments" / self._environment.name).write_text(self._environment.read_text())
        (tools / "aws").write_text(
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {STAND_IN} {shlex.quote(str(self._state))} "$@"\n'
        )
        (tools / "session-manager-plugin").write_text("#!/bin/sh\nexit 1\n")
        for program in tools.iterdir():
            program.chmod(0o755)
        enter = {user: login_shell(self.twin, user) for user in self._users.values()}
        self._write(
            {"documents": dict(self._users), "enter": enter, "target": self._login_node(), "region": REGION}
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for one in self._started:
            if one.poll() is None:
                one.kill()
            one.communicate()
        self._server.stop()

    def _write(self, sessions: Mapping[str, Any]) -> None:
        (self._state / "sessions.json").write_text(json.dumps(sessions))

    def _login_node(self) -> str:
        """An instance that ParallelCluster would have tagged."""
        keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing", "region_name": REGION}
        ec2: Any = boto3.client("ec2", endpoint_url=self._url, **keys)
        name = self._environment.stem
        tags = {"parallelcluster:cluster-name": name, "parallelcluster:node-type": "LoginNode"}
        started = ec2.run_instances(
            ImageId=ec2.describe_images()["Images"][0]["ImageId"], MinCount=1, MaxCount=1,
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}
            ],
        )  # fmt: skip
        return started["Instances"][0]["InstanceId"]

    # ---- what is done on it

    def fault(self, fault: Fault) -> None:
        """What goes wrong when the next job is submitted: its answer is `lost`, or it is `unsent`."""
        (self._state / "fault").write_text(fault)

    @property
    def asked(self) -> list[list[str]]:
        """The words of each session that was asked for."""
        return [json.loads(line) for line in (self._state / "asked").read_text().splitlines()]

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a command here."""
        keep = {"HOME": str(self.folder), "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "200"}
        path = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        return keep | {
            "PATH": path, "PYTHONPATH": str(ROOT / "constructs"), "AWS_ENDPOINT_URL": self._url,
            "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "ultracluster", *words]

    def run(
        self, *words: str, code: int | None = 0, stdin: str = "", seconds: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """`ultracluster WORDS`; AssertionError where it ends with another code."""
        return self.shell(self.command(*words), code=code, stdin=stdin, seconds=seconds)

    def shell(
        self, words: Sequence[str], *, code: int | None = 0, stdin: str = "", seconds: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """Any command, as above."""
        done = subprocess.run(
            words, input=stdin, capture_output=True, text=True, check=False, timeout=seconds,
            cwd=self.folder, env=self.environment,
        )  # fmt: skip
        told = f"{words}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert code is None or done.returncode == code, told
        assert "Traceback" not in done.stderr, told
        return done

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`ultracluster WORDS`, which goes on; it ends with the laptop."""
        started = subprocess.Popen(
            self.command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=self.folder, env=self.environment,
        )  # fmt: skip
        self._started.append(started)
        return started

    def type_into(self, *words: str) -> tuple[int, int]:
        """`ultracluster WORDS` in a terminal of its own: its process, and our side of the terminal."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execve(sys.executable, self.command(*words), self.environment)  # noqa: S606, no shell is wanted
        return child, terminal

    def hears(self, started: subprocess.Popen[str], words: str, seconds: float = 600) -> str:
        """What it says on standard error until that has these words; `interrupt` gives the rest."""
        assert started.stderr
        said, end = "", time.monotonic() + seconds
        while words not in said:
            ready, _, _ = select.select([started.stderr], [], [], max(end - time.monotonic(), 0))
            piece = os.read(started.stderr.fileno(), 65536).decode() if ready else ""
            assert piece, f"within {seconds:g} s no {words!r} in {said!r}"
            said += piece
        return said

    def interrupt(self, started: subprocess.Popen[str], seconds: float = 600) -> tuple[str, str]:
        """Ctrl-C, and what it had said."""
        started.send_signal(signal.SIGINT)
        return started.communicate(timeout=seconds)


__all__ = ["REGION", "Laptop", "login_shell"]
