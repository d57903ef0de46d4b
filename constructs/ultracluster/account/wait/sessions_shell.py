"""Commands on HyperPod's nodes: one session for each, as `aws ssm start-session` opens it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import time
import tty
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from ultracluster.account.aws import Account, AccountError
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.shell import Answer, command, unpack
from ultracluster.model.login import hyperpod_target, start_session

DOCUMENT = "AWS-StartNonInteractiveCommand"
PROGRAMS = ("aws", "session-manager-plugin")
WORKERS = 3
"""Sessions at once: an account may start about three in a second."""
ATTEMPTS = 3
"""Of one session: the plugin now and then ends before it has passed on what the node said."""


class Sessions:
    """Sessions with nodes of a HyperPod cluster."""

    def __init__(self, account: Account, cluster_id: str) -> None:
        """Nothing is asked yet.

        Args:
            cluster_id: last part of the cluster's ARN.
        """
        self._account, self._cluster = account, cluster_id

    def run(self, nodes: Sequence[Node], script: str, *, seconds: int = 90) -> Mapping[str, Answer]:
        if missing := missing_programs(PROGRAMS):
            raise AccountError(
                f"{missing}, and HyperPod's nodes are reached through sessions only: install the AWS CLI and "
                "its Session Manager plugin"
            )
        line = command(script)
        stop = Event()
        with ThreadPoolExecutor(WORKERS) as pool:
            try:
                begun = {node.id: pool.submit(self._run, node, line, seconds, stop) for node in nodes}
                return {node: answer.result() for node, answer in begun.items()}
            except BaseException:
                stop.set()  # else an interrupt waits for every session
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def words(self, node: Node, line: str) -> list[str]:
        """The command of one session, one argument each."""
        # the document takes an argument vector: what is for a shell goes through one
        parameters = json.dumps({"command": [f"bash -c '{line}'"]})
        return start_session(
            hyperpod_target(self._cluster, node.group, node.id),
            region=self._account.region,
            document=DOCUMENT,
            parameters=parameters,
            profile=self._account.profile,
        )

    def _run(self, node: Node, line: str, seconds: int, stop: Event) -> Answer:
        answer = Answer()
        for _ in range(ATTEMPTS):
            answer = unpack(in_terminal(self.words(node, line), seconds, stop))
            if answer.status is not None or stop.is_set():
                break
        return answer


def in_terminal(words: Sequence[str], seconds: float, stop: Event) -> str:
    """Return what a program prints to a terminal of its own.

    It is ended, with what it started, after so many seconds or when `stop` is set.
    """
    try:
        child, ours = open_terminal(words)
    except AccountError as error:
        return str(error)
    text, end = b"", time.monotonic() + seconds
    try:
        while time.monotonic() < end and not stop.is_set():
            if not select.select([ours], [], [], 0.5)[0]:
                continue
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux says so when the other side has closed
                break
            if not part:
                break
            text += part
    finally:
        os.close(ours)
        end_group(child)
    return text.decode(errors="replace")


def missing_programs(names: Sequence[str]) -> str:
    """`aws and kubectl are not on this machine`; empty where all of them are."""
    missing = [name for name in names if shutil.which(name) is None]
    verb = "is" if len(missing) == 1 else "are"
    return f"{' and '.join(missing)} {verb} not on this machine" if missing else ""


def open_terminal(words: Sequence[str], *, raw: bool = False) -> tuple[subprocess.Popen[bytes], int]:
    """Start a program in a terminal of its own: into a pipe the plugin may write nothing at all.

    Args:
        raw: the terminal changes no byte.

    Returns:
        The program, and our side of the terminal.

    Raises:
        AccountError: it cannot be started.
    """
    ours, theirs = pty.openpty()
    if raw:
        tty.setraw(theirs)
    try:
        child = subprocess.Popen(  # noqa: S603, no shell; the words are ours
            list(words), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
    except OSError as error:
        os.close(ours)
        raise AccountError(f"{words[0]}: {error.strerror}") from None
    finally:
        os.close(theirs)
    return child, ours


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Let a program and what it started end, at last by force."""
    for number in (signal.SIGHUP, signal.SIGKILL):
        try:
            child.wait(1)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
    child.wait()
