"""Documents of jobs: what is submitted, waits, runs and has ended."""

from __future__ import annotations

from typing import TypedDict

from ultracluster.jobs.queue.protocol import QueuedJob


class JobDocument(TypedDict):
    environment: str
    job: QueuedJob


class JobList(TypedDict):
    environment: str
    jobs: list[QueuedJob]


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
