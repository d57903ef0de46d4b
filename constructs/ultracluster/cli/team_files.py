"""`ultracluster export slurm-accounts|task-governance|team-namespaces`: teams for other tools."""

from __future__ import annotations

from pathlib import Path

import typer

from ultracluster.cli.accepted import load_accepted
from ultracluster.cli.report import refuse
from ultracluster.kubernetes.task_governance import governance_script
from ultracluster.kubernetes.team_admission import team_objects
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import resolve
from ultracluster.model.team_shares import scheduler_of
from ultracluster.slurm.accounts import slurm_accounts as script


def slurm_accounts(environment: Path) -> None:
    """Print a script that makes the teams' accounts in Slurm with sacctmgr.

    Exit code 2 if there can be none.
    """
    config = load_accepted(environment)
    if scheduler_of(resolve(config)) != "slurm":
        refuse(f"{environment}: {config.orchestrator.kind} has no Slurm: a deploy creates the teams")
    try:
        text = script(resolve(config))
    except ValueError as error:
        refuse(f"{environment}: {error}")
    typer.echo(text, nl=False)


def task_governance(environment: Path) -> None:
    """Print a script that makes what no deploy can of HyperPod's task governance, with the AWS CLI.

    A deploy makes policy and quotas where CloudFormation has their types. Exit code 2 if nothing is left.
    """
    config = load_accepted(environment)
    if scheduler_of(resolve(config)) != "task-governance":
        refuse(f"{environment}: task governance requires HyperPod on EKS with `task_governance: true`")
    if not config.teams:
        refuse(f"{environment}: the environment has no `teams`: there are no quotas to make")
    try:
        text = governance_script(resolve(config))
    except ValueError as error:
        refuse(f"{environment}: {error}")
    if not text:
        refuse(f"{environment}: a deploy makes policy and quotas in {config.region}: no script is needed")
    typer.echo(text, nl=False)


def team_namespaces(environment: Path) -> None:
    """Print what keeps the teams' Kubernetes namespaces apart, for `kubectl apply -f -`.

    A deploy makes it itself, but not in namespaces of task governance, which HyperPod makes later. Exit code
    2 if there are none.
    """
    config = load_accepted(environment)
    try:
        objects = team_objects(resolve(config))
    except ValueError as error:
        refuse(f"{environment}: {error}")
    typer.echo("---\n".join(yaml_text(one) for one in objects), nl=False)
