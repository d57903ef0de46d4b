"""Text of a job for `ultracluster job write` and `job submit`, or exit code 2."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ultracluster.cli.environments import load_file, refuse
from ultracluster.cli.terminal import remark
from ultracluster.config import InvalidEnvironmentError
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.jobs.request import Wishes, job_text, preload_text
from ultracluster.model import resolve
from ultracluster.rules import enforce

if TYPE_CHECKING:
    from ultracluster.model import Cluster


def wishes_of(context: typer.Context, **changed: object) -> Wishes:
    """The job that the options of a command describe, by the names that both have.

    Args:
        changed: values that stand for those of the command line.
    """
    names = {field.name for field in fields(Wishes)}
    options: dict[str, Any] = {**context.params, **changed}
    return Wishes(**{name: value for name, value in options.items() if name in names})


def written(
    environment: Path, wishes: Wishes, *, program: str = "", preload: str = "", workdir: bool = False
) -> tuple[Cluster, str]:
    """The cluster and the text of the job; what to know about it is said.

    Args:
        program: name of a file that travels with the job.
        workdir: a folder travels with the job.
        preload: folder whose files the job loads from S3, and nothing else.
    """
    cluster = _accepted(environment, wishes.scheduler)
    try:
        made = (
            preload_text(cluster, preload, wishes)
            if preload
            else job_text(cluster, wishes, program=program, workdir=workdir)
        )
    except ValueError as error:
        refuse(f"{environment}: {error}")
    for note in made.notes:
        remark(note)
    return cluster, made.text


def _accepted(path: Path, scheduler: str | None) -> Cluster:
    """The environment, which breaks no rule, perhaps as if it had another scheduler."""
    try:
        loaded = load_file(path)
        config = loaded.environment
        if scheduler:
            orchestrator = config.kubernetes
            if orchestrator is None:
                kind = config.orchestrator.kind
                refuse(f"{path}: --scheduler {scheduler} is for Kubernetes, and this is {kind}")
            changed: dict[str, object] = {"scheduler": scheduler}
            if isinstance(orchestrator, HyperPodEks):
                changed["task_governance"] = False
            other = orchestrator.model_copy(update=changed)
            loaded = type(loaded)(config.model_copy(update={"orchestrator": other}), loaded.source)
        enforce(loaded)
    except InvalidEnvironmentError as error:
        refuse(str(error))
    return resolve(loaded.environment)


__all__ = ["wishes_of", "written"]
