"""How a command runs on a node without SSH, and its output comes back.

Instances of the account take Run Command; their roles need no more for it than for sessions (Systems Manager
User Guide, "Reference: ec2messages, ssmmessages, and other API operations"). HyperPod's nodes live in an
account of the service and take sessions only (SageMaker Developer Guide, "Access your SageMaker HyperPod
cluster nodes"), for which the AWS CLI and its Session Manager plugin must be on this machine.
"""

from __future__ import annotations

import base64
import gzip
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ultracluster.account.aws import Account, plain_errors
from ultracluster.account.nodes.node import Node, chunks

DOCUMENT = "AWS-RunShellScript"
AT_ONCE = 50
"""Instance ids of one command (Systems Manager API, SendCommand)."""
EVERY = 3.0
"""Seconds between two looks at a command."""
_FINAL = {"Success", "Cancelled", "TimedOut", "Failed"}
_BEGIN, _END = "ultracluster-output-begins", "ultracluster-output-ends"
SLURM_FOLDERS = "/opt/slurm/bin /opt/aws/pcs/scheduler/slurm-*/bin"
"""Where Slurm's programs are, besides the usual folders; for a shell to expand."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a command on one node."""

    text: str = ""
    """What it printed."""
    status: int | None = None
    """Its exit status; none if it did not run to its end."""
    why: str = ""
    """Why there is no answer."""

    @property
    def good(self) -> bool:
        return self.status == 0


class Shell(Protocol):
    """A way to run commands as root."""

    def run(self, nodes: Sequence[Node], script: str, *, seconds: int = 90) -> Mapping[str, Answer]:
        """Run a bash script on nodes; an answer for each, by instance id.

        Args:
            seconds: how long it may take.

        Raises:
            AccountError: no node can be asked at all.
        """
        ...


def command(script: str) -> str:
    """One line without quotes in it that runs a script as root and marks its output."""
    marked = f"PATH=$PATH:/usr/sbin:/sbin\nfor f in {SLURM_FOLDERS}; do PATH=$PATH:$f; done\n"
    marked += f"echo {_BEGIN}\n(\n{script}\n)\nSTATUS=$?\necho; echo {_END} $STATUS\n"
    packed = base64.b64encode(gzip.compress(marked.encode(), mtime=0)).decode()
    return f"S=sudo; [ $(id -u) != 0 ] || S=; echo {packed} | base64 -d | gunzip | $S bash"


def unpack(output: str) -> Answer:
    """Return what the script printed, out of all that came back."""
    text = output.replace("\r", "")
    match = re.search(rf"{_BEGIN}\n(?P<text>.*?)\n?\n{_END} (?P<status>\d+)", text, re.DOTALL)
    if match is None:
        last = " ".join(text.split())[-200:]
        return Answer(why=f"the command did not run to its end{': ' + last if last else ''}")
    return Answer(match["text"], int(match["status"]))


class RunCommand:
    """Run Command, for instances of the account whose agent is registered."""

    def __init__(
        self,
        account: Account,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is asked yet.

        Args:
            sleep: takes seconds; exchanged in tests.
            clock: seconds of a clock that never goes back.
        """
        self._account, self._sleep, self._clock = account, sleep, clock

    def run(self, nodes: Sequence[Node], script: str, *, seconds: int = 90) -> Mapping[str, Answer]:
        answers: dict[str, Answer] = {}
        for chunk in chunks(list(nodes), AT_ONCE):
            with plain_errors():
                answers |= self._run([node.id for node in chunk], command(script), seconds)
        return answers

    def _run(self, ids: list[str], line: str, seconds: int) -> dict[str, Answer]:
        ssm = self._account.client("ssm")
        pages = ssm.get_paginator("describe_instance_information").paginate(
            Filters=[{"Key": "InstanceIds", "Values": ids}]
        )
        online = {
            row["InstanceId"]
            for page in pages
            for row in page["InstanceInformationList"]
            if row.get("PingStatus") == "Online"
        }
        silent = "its SSM Agent has not registered: it still boots, or has no way to Systems Manager"
        answers = {identifier: Answer(why=silent) for identifier in ids if identifier not in online}
        reachable = [identifier for identifier in ids if identifier in online]
        if not reachable:
            return answers
        sent: dict[str, Any] = ssm.send_command(
            InstanceIds=reachable, DocumentName=DOCUMENT, TimeoutSeconds=60, Comment="ultracluster wait",
            Parameters={"commands": [line], "executionTimeout": [str(seconds)]},
        )  # fmt: skip
        number = str(sent["Command"]["CommandId"])
        return answers | self._collect(number, reachable, seconds + 60)

    def _collect(self, number: str, sent_to: list[str], patience: float) -> dict[str, Answer]:
        ssm = self._account.client("ssm")
        start = self._clock()
        ended: set[str] = set()
        while True:
            pages = ssm.get_paginator("list_command_invocations").paginate(CommandId=number)
            for page in pages:
                rows = page["CommandInvocations"]
                ended |= {row["InstanceId"] for row in rows if row["Status"] in _FINAL}
            if ended >= set(sent_to) or self._clock() - start > patience:
                break
            self._sleep(EVERY)
        answers = {
            instance_id: Answer(why="its agent did not answer in time")
            for instance_id in sent_to
            if instance_id not in ended
        }
        for instance_id in sorted(ended):
            got: dict[str, Any] = ssm.get_command_invocation(CommandId=number, InstanceId=instance_id)
            answer = unpack(got.get("StandardOutputContent", ""))
            details = got.get("StatusDetails", got["Status"])
            answers[instance_id] = (
                answer if answer.status is not None else Answer(why=f"{details}: {answer.why}")
            )
        return answers
