"""Parts of `ultracluster render`: what teams are outside of a deployment."""

from __future__ import annotations

import typer

from ultracluster.cli.environments import EnvironmentArgument, load_accepted, refuse


def slurm_accounts(environment: EnvironmentArgument) -> None:
    """Print a script that makes the teams' accounts in Slurm with sacctmgr.

    Exit code 2 if there can be none.
    """
    from ultracluster.model import resolve
    from ultracluster.model.team_shares import scheduler_of
    from ultracluster.slurm.accounts import slurm_accounts as script

    config = load_accepted(environment)
    if scheduler_of(resolve(config)) != "slurm":
        refuse(f"{environment}: {config.orchestrator.kind} has no Slurm: a deploy creates the teams")
    try:
        text = script(resolve(config))
    except ValueError as error:
        refuse(f"{environment}: {error}")
    typer.echo(text, nl=False)


def task_governance(environment: EnvironmentArgument) -> None:
    """Print a script that makes the policy and quotas of HyperPod's task governance with the AWS CLI.

    CloudFormation cannot. Exit code 2 if there can be none.
    """
    from ultracluster.kubernetes.task_governance import governance_script
    from ultracluster.model import resolve
    from ultracluster.model.team_shares import scheduler_of

    config = load_accepted(environment)
    if scheduler_of(resolve(config)) != "task-governance":
        refuse(f"{environment}: task governance requires HyperPod on EKS with `task_governance: true`")
    if not config.teams:
        refuse(f"{environment}: the environment has no `teams`: there are no quotas to make")
    try:
        text = governance_script(resolve(config))
    except ValueError as error:
        refuse(f"{environment}: {error}")
    typer.echo(text, nl=False)
