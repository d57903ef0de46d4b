"""Follow a job: one line of progress, its log beside it, and how it ends."""

from __future__ import annotations

import codecs
import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from ultracluster.account.aws import AccountError
from ultracluster.cli.console import Console
from ultracluster.cli.progress import LINE
from ultracluster.cli.terminal import is_dumb, quiet, remark
from ultracluster.config.plain_text import clipped, one_line
from ultracluster.jobs.queue.protocol import LogPart, Queue, QueuedJob

if TYPE_CHECKING:
    from rich.progress import TaskID

EVERY = 3.0
"""Seconds between two looks."""
PARTS = 8
"""Pieces of a log between two looks: who prints without end is still looked at."""
PATIENCE = 5
"""Looks in a row that may fail."""
LONGEST_LINE = 4000
_STEP = re.compile(r"\b(?:global_)?step\b[\s:=#\"']*(\d{1,12})(?:\s*(?:/|of)\s*(\d{1,12}))?", re.IGNORECASE)
_LOSS = re.compile(
    r"\bloss\b[\s:=\"']*([-+]?\d{1,12}(?:\.\d{1,12})?(?:e[-+]?\d{1,3})?|nan|inf)\b", re.IGNORECASE
)


class Lines:
    """Whole lines out of pieces of a log, which may break a letter in two."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""

    def of(self, data: bytes, *, last: bool = False) -> list[str]:
        """The lines that are whole now; a line that is drawn over itself is its last state.

        Args:
            last: nothing comes any more, so that what is left is a line.
        """
        *whole, rest = (self._rest + self._decoder.decode(data, final=last)).split("\n")
        if rest and (last or len(rest) > LONGEST_LINE):
            whole, rest = [*whole, rest], ""
        self._rest = rest
        return [line.rstrip("\r").rpartition("\r")[2] for line in whole]


class Progressed:
    """What lines tell of a training: the last step and loss, else the last line."""

    def __init__(self) -> None:
        self.step = self.of = self.loss = self.line = ""

    def hear(self, line: str) -> None:
        head = line[:LONGEST_LINE]
        if found := _STEP.search(head):
            self.step, self.of = found[1], found[2] or self.of
        if found := _LOSS.search(head):
            self.loss = found[1]
        if head.strip():
            self.line = head.strip()

    @property
    def text(self) -> str:
        """`step 40 of 200, loss 2.345678`."""
        parts = [f"step {self.step}{' of ' + self.of if self.of else ''}" if self.step else ""]
        parts += [f"loss {self.loss}" if self.loss else ""]
        told = ", ".join(part for part in parts if part)
        return told or clipped(one_line(self.line), 60)


class Watch:
    """What is shown of a job; a context manager.

    On a terminal a line of progress stays below the log. Elsewhere each change of the job is a line on
    standard error, and the log goes to standard output.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        """
        Args:
            quiet: standard output is for something else, so that the log goes to standard error, too.
        """
        self._quiet = quiet
        self._drawn: tuple[Progress, TaskID] | None = None
        self._held = ExitStack()
        self._told: tuple[str, ...] = ()
        self.progressed = Progressed()

    def __enter__(self) -> Watch:
        on_terminal = sys.stdout.isatty() and not self._quiet
        wanted = not quiet() and not is_dumb()
        if wanted and (on_terminal or sys.stderr.isatty()):
            progress = Progress(
                SpinnerColumn(), TextColumn("{task.description}", markup=False),
                console=Console(stderr=not on_terminal),
            )  # fmt: skip
            self._drawn = (progress, progress.add_task("", total=None))
            self._held.enter_context(LINE.held())  # one line is enough
            self._into_terminal = on_terminal
            progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            self._drawn[0].stop()
        self._held.close()

    def say(self, line: str) -> None:
        """One line about the job."""
        if self._drawn:
            self._drawn[0].console.print(one_line(line), markup=False, highlight=False, soft_wrap=True)
        else:
            remark(one_line(line))

    def log(self, line: str) -> None:
        """One line of the job's."""
        self.progressed.hear(line)
        if self._drawn and self._into_terminal:
            self._drawn[0].console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            typer.echo(line, err=self._quiet)

    def show(self, job: QueuedJob) -> None:
        """A look at it."""
        if self._drawn:
            progress, task = self._drawn
            progress.update(task, description=one_line(summary(job, self.progressed.text)))
            progress.refresh()  # the last one stays on the screen
            return
        told = (job.state, job.why, *job.nodes, str(job.restarts))
        if told != self._told:
            self._told = told
            trained = self.progressed.step or self.progressed.loss
            self.say(summary(job, self.progressed.text if job.over and trained else ""))


def follow(
    queue: Queue,
    job: QueuedJob,
    watch: Watch,
    *,
    after: str = "",
    lines: int | None = None,
    part: str = "",
    sleep: Callable[[float], None] = time.sleep,
) -> QueuedJob:
    """Show a job and its log until it is over, and then the rest of its log.

    Args:
        after: cursor of what was shown of the log.
        lines: of the log, with which to begin; all by default.
        part: node or rank whose log it is.

    Raises:
        AccountError: it cannot be asked any more.
    """
    text, failed, noted = Lines(), 0, ""
    while True:
        try:
            job = queue.job(job.id)
            if not job.over:  # how it ends is said below the end of its log
                watch.show(job)
            for _ in range(PARTS):
                piece = queue.log(job.id, after, lines=lines if not after else None, part=part)
                noted = _take(piece, text, watch, noted, begun=job.started is not None)
                after = piece.cursor
                if not piece.more:
                    break
            else:
                piece = LogPart(b"", after, more=True)
            failed = 0
        except AccountError as error:
            failed += 1
            if failed >= PATIENCE:
                raise
            watch.say(f"{error}; asking again")
            sleep(EVERY)
            continue
        if job.over and not piece.more:
            for line in text.of(b"", last=True):
                watch.log(line)
            watch.show(job)
            return job
        if not job.over:
            watch.show(job)
        sleep(0.0 if piece.more else EVERY)


def _take(piece: LogPart, text: Lines, watch: Watch, noted: str, *, begun: bool) -> str:
    """Show a piece; what was said about the log last."""
    if piece.note and begun and piece.note != noted:
        watch.say(piece.note)
    for line in text.of(piece.data):
        watch.log(line)
    return piece.note or noted


def summary(job: QueuedJob, progress: str) -> str:
    """One line about a job: `job 42 (train): running on 4 nodes for 0:12:31; step 40, loss 2.3`."""
    count = len(job.nodes) or job.wanted_nodes or 0
    nodes = f"{count} node{'s' if count != 1 else ''}" if count else ""
    if job.state == "running":
        where = f" on {nodes}" if nodes else ""
        where += f" ({', '.join(job.nodes)})" if 0 < len(job.nodes) <= 4 else ""
        told = f"running{where}{_for(job.started, None)}"
    elif job.state == "waiting":
        told = f"waiting{' for ' + nodes if nodes else ''}{_for(job.submitted, None)}"
    else:
        told = f"{job.state}{_after(job)}"
    why = f": {job.why}" if job.why and job.state != "running" else ""
    again = f", started again {job.restarts} time{'s' if job.restarts != 1 else ''}" if job.restarts else ""
    told += f"{why}{again}"
    return f"job {job.id}{f' ({job.name})' if job.name else ''}: {told}{'; ' + progress if progress else ''}"


def _after(job: QueuedJob) -> str:
    code = f" with exit code {job.exit_code}" if job.state == "failed" and job.exit_code is not None else ""
    return code + (f" after {elapsed(job.started, job.ended)}" if job.started and job.ended else "")


def _for(since: datetime | None, until: datetime | None) -> str:
    return f" for {elapsed(since, until)}" if since else ""


def elapsed(since: datetime | None, until: datetime | None) -> str:
    """`0:12:31`, `3 days, 0:00:10`; empty where it is not known."""
    if since is None:
        return ""
    return str(timedelta(seconds=max(0, int(((until or datetime.now(UTC)) - since).total_seconds()))))


__all__ = ["Lines", "Progressed", "Watch", "elapsed", "follow", "summary"]
