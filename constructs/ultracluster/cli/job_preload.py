"""`ultracluster job preload`: files from S3 on the file system, before a job reads them."""

from __future__ import annotations

from typing import Annotated

import typer

from ultracluster.cli.environments import EnvironmentArgument, refuse
from ultracluster.cli.job_options import GroupOption, NameOption, TeamOption
from ultracluster.cli.terminal import remark


def preload(
    environment: EnvironmentArgument,
    path: Annotated[str, typer.Argument(help="Folder of a data repository association, as nodes see it.")],
    nodes: Annotated[int, typer.Option(min=1, help="Over how many nodes the files are spread.")] = 1,
    team: TeamOption = None,
    image: Annotated[
        str | None,
        typer.Option(help="Container image with bash, find and xargs, on Kubernetes.", show_default=False),
    ] = None,
    name: NameOption = "preload",
    group: GroupOption = None,
) -> None:
    """Print one job that loads a folder's files from S3: for `job submit ENV -`, kubectl or `sbatch`.

    Exit code 2 if there can be none.
    """
    from ultracluster.cli.job_text import Wishes, accepted, wanted_job
    from ultracluster.jobs.preload import check_preload
    from ultracluster.model import resolve

    cluster = resolve(accepted(environment, None))
    try:
        job = wanted_job(cluster, Wishes(nodes=nodes, team=team, image=image, name=name, group=group))
        note = check_preload(cluster, job.pool.group, path)
        if cluster.kubernetes:
            from ultracluster.jobs.manifests.preload_job import preload_job
            from ultracluster.kubernetes.yaml_text import yaml_text

            if not image:
                raise ValueError("a pod needs an image: --image, with bash, find and xargs")
            text = yaml_text(
                preload_job(cluster, job.pool, path, nodes=nodes, name=name, team=team, image=image)
            )
        else:
            from ultracluster.jobs.scripts.preload_sbatch import preload_sbatch

            if image:
                raise ValueError(f"--image is for Kubernetes, and this is {cluster.settings.kind}")
            text = preload_sbatch(job.pool, path, nodes=nodes, name=name, team=team)
    except ValueError as error:
        refuse(f"{environment}: {error}")
    if note:
        remark(note)
    typer.echo(text, nl=False)


__all__ = ["preload"]
