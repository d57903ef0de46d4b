"""A job that runs on nodes, and what is known of the jobs of some nodes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """One job that would end with a node."""

    id: str
    """Slurm's number; on Kubernetes `namespace/name` of what the pods belong to."""
    user: str
    """Who submitted it; on Kubernetes its namespace, as pods name no user."""
    name: str
    nodes: tuple[str, ...]
    """Those of the nodes asked about on which it runs, as `nodes list` names them."""

    def __str__(self) -> str:
        """`job 42 (train-llama) of ada on i-..., i-...`."""
        name = f" ({self.name})" if self.name and self.name not in self.id else ""
        return f"job {self.id}{name} of {self.user or 'nobody'} on {', '.join(self.nodes)}"


@dataclass(frozen=True, slots=True)
class Running:
    """What runs on some nodes."""

    jobs: tuple[Job, ...] = ()
    unknown: str = ""
    """Why it could not be asked, or not of every node; empty where `jobs` is all there is."""


def together(found: list[tuple[str, str, str, str]]) -> tuple[Job, ...]:
    """Jobs by number, each with all of its nodes.

    Args:
        found: id, user, name and node of each place where a job runs.
    """
    jobs: dict[str, Job] = {}
    for job_id, user, name, node in found:
        seen = jobs.get(job_id)
        nodes = (*(seen.nodes if seen else ()), node)
        jobs[job_id] = Job(job_id, user, name, tuple(dict.fromkeys(nodes)))
    return tuple(jobs.values())
