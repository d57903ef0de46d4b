"""`ultracluster export`: files for other tools."""

from __future__ import annotations

import sys
from enum import StrEnum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.cli.accepted import load_accepted
from ultracluster.cli.environments import EnvironmentArgument, ProfileOption, refuse
from ultracluster.cli.job_options import typed_options
from ultracluster.cli.prometheus_files import write_rules_and_boards
from ultracluster.cli.team_files import slurm_accounts, task_governance, team_namespaces
from ultracluster.cli.terminal import remark
from ultracluster.config import Environment
from ultracluster.config.file_write import write
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import resolve
from ultracluster.parallelcluster.configuration_file import (
    WHY_NO_ROLLBACK,
    cluster_configuration,
    create_command,
    settings_of,
    update_command,
)
from ultracluster.parallelcluster.deployed_values import value_sources

if TYPE_CHECKING:
    from ultracluster.parallelcluster.deployed_values import DeployedValues


class What(StrEnum):
    """Kinds of export."""

    parallelcluster = auto()
    prometheus = auto()
    slurm_accounts = "slurm-accounts"
    task_governance = "task-governance"
    team_namespaces = "team-namespaces"


_OPTIONS = {What.parallelcluster: ("offline", "output", "profile"), What.prometheus: ("to", "runbooks")}


def export(
    context: typer.Context,
    what: Annotated[
        What,
        typer.Argument(
            help="ParallelCluster's configuration file; rules and boards for a Prometheus and a Grafana of "
            "your own; or what keeps teams apart in Slurm, in HyperPod's task governance, in namespaces."
        ),
    ],
    environment: EnvironmentArgument,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="parallelcluster: write named placeholders instead of asking AWS."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="parallelcluster: write to this file; standard output by default."
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="prometheus: folder to write to; made where it is not there."),
    ] = None,
    runbooks: Annotated[
        str,
        typer.Option(
            help="prometheus: what stands before `/<alert>.md` in alerts: a folder, or the URL of a copy."
        ),
    ] = "docs/runbooks",
    profile: ProfileOption = None,
) -> None:
    """Print a file or script for another tool; for Prometheus, write a folder.

    parallelcluster: the command that takes the file is printed on standard error; ids come from the outputs
    of the deployed stacks. prometheus: files of these names are replaced, others stay. slurm-accounts: a
    script with sacctmgr. task-governance: a script with the AWS CLI, for what no deploy can make.
    team-namespaces: for `kubectl apply -f -`, in namespaces of task governance, which HyperPod makes after a
    deploy. Exit code 2 if there is nothing to print, or an id is missing.
    """
    others = {one for kind, options in _OPTIONS.items() if kind != what for one in options}
    if given := [option for one, option in typed_options(context).items() if one in others]:
        refuse(f"{', '.join(given)}: not for {what.value}")
    match what:
        case What.parallelcluster:
            _parallelcluster(environment, offline, output, profile)
        case What.prometheus:
            if to is None:
                refuse("the option --to is missing: the folder to write to")
            write_rules_and_boards(environment, to, runbooks)
        case What.slurm_accounts:
            slurm_accounts(environment)
        case What.task_governance:
            task_governance(environment)
        case What.team_namespaces:
            team_namespaces(environment)
        case _ as never:
            assert_never(never)


def _parallelcluster(environment: Path, offline: bool, output: Path | None, profile: str | None) -> None:
    config = load_accepted(environment)
    try:
        orchestrator = settings_of(config)
        values = _values(config, offline, profile)
        configuration = cluster_configuration(resolve(config), values)
    except ValueError as error:
        refuse(f"{environment}: {error}")
    text = (
        f"# AWS ParallelCluster {orchestrator.version}, cluster {config.cluster_name}. Generated: change the "
        f"environment {config.name} instead.\n{yaml_text(configuration)}"
    )
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        try:
            write(output, text)
        except OSError as error:
            refuse(f"{output} cannot be written: {error.strerror}")
    _explain(config, str(output or f"{config.cluster_name}.pcluster.yaml"), orchestrator.version)
    if orchestrator.deploy_with == "cloudformation":
        typer.echo(
            "Careful: orchestrator.deploy_with is cloudformation, so `cdk deploy` makes this cluster. Use "
            "the command only where it did not.",
            err=True,
        )


def _values(config: Environment, offline: bool, profile: str | None) -> DeployedValues:
    sources = value_sources(config)
    if offline:
        return sources.placeholders()
    from ultracluster.cli.accounts import open_outputs  # 0.3 s: the SDK

    _, deployed = open_outputs(config, profile, sources.stacks)
    if missing := sources.missing(deployed):
        for one in missing:
            why = "it has no such output" if one.stack in deployed else "the stack is not deployed"
            typer.echo(f"missing  {one.stack}.{one.name}: {why}", err=True)
        stacks = " ".join(dict.fromkeys(one.stack for one in missing))
        refuse(
            f"deploy first (cdk deploy {stacks}, in {config.region}), or look at the file with placeholders: "
            "--offline"
        )
    return sources.filled(deployed)


def _not_installable(version: str) -> list[str]:
    """Where to have the command of a release from that is on no package index."""
    limits = parallelcluster()
    if version not in limits.same_configuration:
        return []
    newest = limits.checked_versions[-1]
    text = (
        f"{version} is not on the package index, whose newest is {newest}: take the command from AWS's own "
    )
    return [f"{text}installer, or set version: {newest}."]


def _explain(config: Environment, file: str, version: str) -> None:
    for line in (
        f"Make the cluster with the pcluster command of release {version}:",
        f"  {create_command(config, file)}",
        *_not_installable(version),
        WHY_NO_ROLLBACK,
        "Change it later with:",
        f"  {update_command(config, file)}",
    ):
        remark(line)
