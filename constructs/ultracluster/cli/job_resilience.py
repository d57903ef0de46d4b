"""What `ultracluster job pytorch` is told of failures and of checkpoints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from ultracluster.jobs.training_job import Resilience
    from ultracluster.model import Cluster

ResilienceOption = Annotated[
    Literal["restart", "checkpointless", "elastic"] | None,
    typer.Option(
        help="A job of HyperPod's training operator: restart processes, recover in them, or go on with fewer "
        "and more nodes."
    ),
]
SparesOption = Annotated[
    int, typer.Option(min=0, help="With --resilience: nodes that are kept for the job, and wait.")
]
MostNodesOption = Annotated[
    int | None,
    typer.Option(min=1, help="With --resilience elastic: nodes at the most. --nodes is the least."),
]
StepOption = Annotated[
    int, typer.Option(min=1, help="With --resilience elastic: by how many nodes it grows and shrinks.")
]
SizesOption = Annotated[
    str | None,
    typer.Option(help="With --resilience elastic, in place of --step: numbers of nodes, e.g. `2,4,8`."),
]
LogLineOption = Annotated[
    str | None,
    typer.Option(help="With --resilience: regular expression of a line that each step prints."),
]
LogSecondsOption = Annotated[
    int, typer.Option(min=1, help="With --log-line: the job hangs, and is restarted, without it for so long.")
]
CheckpointsToOption = Annotated[
    Literal["memory", "s3"] | None,
    typer.Option(help="On HyperPod EKS: tiered checkpoints, in memory alone or in S3, too."),
]
_SIZES = re.compile(r"[1-9]\d{0,3}(,[1-9]\d{0,3}){1,31}")


def resilience_of(
    kind: Literal["restart", "checkpointless", "elastic"] | None,
    *,
    spares: int,
    most_nodes: int | None,
    step: int,
    sizes: str | None,
    log_line: str | None,
    log_seconds: int,
) -> Resilience | None:
    """What is asked for; None without --resilience.

    Raises:
        ValueError: a part of it without --resilience, or in another form.
    """
    from ultracluster.jobs.training_job import Resilience

    if kind is None:
        for name, value in (
            ("--spares", spares),
            ("--most-nodes", most_nodes),
            ("--step", step != 1),
            ("--sizes", sizes),
            ("--log-line", log_line),
        ):
            if value:
                raise ValueError(f"{name} is for jobs of HyperPod's training operator: --resilience")
        return None
    if sizes is not None and not _SIZES.fullmatch(sizes):
        raise ValueError(f"--sizes {sizes!r} has another form than 2,4,8")
    if log_line is not None:
        _check_pattern(log_line)
    return Resilience(
        kind=kind,
        spares=spares,
        most_nodes=most_nodes,
        step=step,
        sizes=tuple(int(size) for size in sizes.split(",")) if sizes else (),
        log_line=log_line,
        log_seconds=log_seconds,
    )


def _check_pattern(log_line: str) -> None:
    try:
        re.compile(log_line)
    except re.error as error:
        raise ValueError(f"--log-line {log_line!r} is no regular expression: {error}") from None
    if any(ord(character) < 32 for character in log_line):
        raise ValueError("--log-line is one line")


def check_room(
    cluster: Cluster, group: str | None, nodes: int, team: str | None, asked: Resilience | None
) -> None:
    """Refuse a job whose nodes and spares are never there together.

    Raises:
        ValueError: the group, or the limit of the team, is too small.
    """
    from ultracluster.jobs.training_job import reserved_nodes
    from ultracluster.model.job_fit import check_job, job_pool

    if asked:
        check_job(cluster, job_pool(cluster, group), reserved_nodes(nodes, asked), team)


__all__ = [
    "CheckpointsToOption",
    "LogLineOption",
    "LogSecondsOption",
    "MostNodesOption",
    "ResilienceOption",
    "SizesOption",
    "SparesOption",
    "StepOption",
    "check_room",
    "resilience_of",
]
