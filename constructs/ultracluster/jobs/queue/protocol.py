"""Jobs of a scheduler as a person sees them: what is submitted, what waits and runs, what it prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from ultracluster.jobs.workdir.bucket import Workdir
from ultracluster.model import Cluster
from ultracluster.plan.usage import Records

PROGRAM = "@program@"
"""Stands in a job's text where its program is named: becomes its path there, with its arguments."""
PROGRAM_LIMIT = 900 * 1024
"""Bytes of a program that travels with a job: what a ConfigMap holds (1 MiB), with room for the rest."""
TEXT_LIMIT = 1024 * 1024
"""Bytes of a job's own text."""

State = Literal["waiting", "running", "completed", "failed", "cancelled", "unknown"]
ENDED: tuple[State, ...] = ("completed", "failed", "cancelled")


class NotSubmittedError(Exception):
    """The scheduler refused a job, or it never got there; nothing of it runs. The message says why."""


class UnansweredError(Exception):
    """A request was sent and no answer came: it may have been done. Look before it is sent again."""


class NoSuchJobError(Exception):
    """The scheduler does not know the job; the message says so, and what it does know."""


@dataclass(frozen=True, slots=True)
class Program:
    """A small file that travels with a job."""

    name: str
    """Of the file, without a folder."""
    content: bytes
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Submission:
    """A job on its way."""

    text: str
    """A batch script, or manifests."""
    name: str
    """Of the job's folder or label: what the job is called, as far as that is known here."""
    token: str
    """Letters and digits that no other submission has: by them it is found again where no answer came."""
    program: Program | None = None
    workdir: Workdir | None = None
    """A folder in which the job starts; it is in the bucket before the job is submitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """One job as its scheduler tells it; all text is from outside."""

    id: str
    """Slurm's number; on Kubernetes `namespace/name`."""
    name: str
    user: str
    team: str
    state: State
    detail: str = ""
    """The scheduler's own word for the state, such as `PENDING`."""
    why: str = ""
    """Why it waits, or how it ended."""
    nodes: tuple[str, ...] = ()
    """Those that it has, or had."""
    wanted_nodes: int | None = None
    submitted: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    """Of a job that ended by itself."""
    restarts: int = 0
    log: str = ""
    """Where its output is, if that is a file."""
    notes: tuple[str, ...] = ()
    """What whoever submitted it should know, in sentences."""

    @property
    def over(self) -> bool:
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class LogPart:
    """A piece of what a job prints."""

    data: bytes
    cursor: str
    """What to pass as `after` for what comes next."""
    more: bool = False
    """There is more already, which was too much for one answer."""
    note: str = ""
    """Why there is nothing (yet)."""


class Queue(Protocol):
    """The jobs of one cluster, as one person may see and change them.

    Every method raises AccountError where the cluster cannot be asked.
    """

    @property
    def place(self) -> str:
        """Return where and as whom it asks, in a few words."""
        ...

    def submit(self, submission: Submission) -> QueuedJob:
        """Submit a job, once.

        Raises:
            NotSubmittedError: it was refused, or never arrived.
            UnansweredError: no answer came, and it could not be found out whether it arrived.
        """
        ...

    def jobs(self, *, everyone: bool = False) -> Sequence[QueuedJob]:
        """Jobs that wait, run, or ended not long ago, in the order in which they were submitted.

        Args:
            everyone: those of other people, too.
        """
        ...

    def job(self, job_id: str) -> QueuedJob:
        """One job.

        Raises:
            NoSuchJobError: there is none of this id (any more).
        """
        ...

    def log(self, job_id: str, after: str = "", *, lines: int | None = None, part: str = "") -> LogPart:
        """Return what a job printed.

        Args:
            after: cursor of the piece before; empty to begin.
            lines: where it begins, so many lines before the end; from the first on by default.
            part: node or rank, where each has a log of its own.

        Raises:
            NoSuchJobError: there is none of this id (any more).
        """
        ...

    def cancel(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Ask for the end of jobs: for each id why that was refused, or nothing."""
        ...

    def records(self, cluster: Cluster, since: datetime, until: datetime) -> Records:
        """Records of the jobs that ran between two times; those of other people, too."""
        ...

    def close(self) -> None:
        """End what was opened."""
        ...


__all__ = [
    "ENDED",
    "PROGRAM",
    "PROGRAM_LIMIT",
    "TEXT_LIMIT",
    "LogPart",
    "NoSuchJobError",
    "NotSubmittedError",
    "Program",
    "Queue",
    "QueuedJob",
    "State",
    "Submission",
    "UnansweredError",
]
