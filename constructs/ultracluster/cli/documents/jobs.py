"""Documents of jobs: what is submitted, waits, runs and has ended."""

from __future__ import annotations

from typing import Literal, TypedDict


class JobRow(TypedDict):
    """One job."""

    id: str
    """Slurm's number; on Kubernetes `namespace/name`."""
    name: str
    user: str
    team: str
    state: Literal["waiting", "running", "completed", "failed", "cancelled", "unknown"]
    detail: str
    """The scheduler's own word for the state."""
    why: str
    """Why it waits, or how it ended."""
    nodes: list[str]
    """Those that it has, or had."""
    wanted_nodes: int | None
    submitted: str | None
    started: str | None
    ended: str | None
    exit_code: int | None
    """Of a job that ended by itself."""
    restarts: int
    log: str | None
    """Where its output is, if that is a file."""


class JobDocument(TypedDict):
    environment: str
    job: JobRow


class JobList(TypedDict):
    environment: str
    jobs: list[JobRow]


class JobPlan(TypedDict):
    """What `job submit --dry-run` would send."""

    environment: str
    where: str
    name: str
    text: str
    program: str | None
    """Name of the file that travels with it."""
    program_bytes: int | None
    arguments: list[str]
