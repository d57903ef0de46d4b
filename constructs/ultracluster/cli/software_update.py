"""`ultracluster software update`: the image under HyperPod's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ultracluster.account import software_update
from ultracluster.account.aws import AccountError
from ultracluster.account.nodes import hyperpod as hyperpod_nodes
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    confirm,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import working
from ultracluster.cli.terminal import remark
from ultracluster.config.plain_text import one_line
from ultracluster.model import resolve

if TYPE_CHECKING:
    from ultracluster.account.aws import Account
    from ultracluster.account.nodes.hyperpod import LiveCluster, LiveGroup
    from ultracluster.account.nodes.node import Outcome
    from ultracluster.account.software_update import Rollout


def update(
    environment: EnvironmentArgument,
    group: Annotated[
        list[str] | None, typer.Option(help="Only this group; may be repeated.", show_default=False)
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            help="Release of HyperPod's image on EKS, e.g. 1.3.0; else the newest.", show_default=False
        ),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(help="A custom AMI, or `default` to come back from one.", show_default=False),
    ] = None,
    batch_count: Annotated[
        int | None, typer.Option(min=1, help="Nodes at once; else a whole group.", show_default=False)
    ] = None,
    batch_percent: Annotated[
        int | None, typer.Option(min=1, max=100, help="Percent of a group at once.", show_default=False)
    ] = None,
    wait_seconds: Annotated[int, typer.Option(min=0, max=3600, help="Pause before an old node ends.")] = 0,
    rollback_alarm: Annotated[
        list[str] | None, typer.Option(help="CloudWatch alarm that rolls back.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Also groups that are up to date.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be updated.")] = False,
    timeout: Annotated[int, typer.Option(min=1, help="Minutes for each group at most.")] = 240,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Update one group after the other: controller, login, compute. Wipes root volumes.

    Exit code 0 = done or nothing to do, 1 = a group was refused or failed, 2 = could not be asked or was
    not confirmed, 3 = still under way when the time was up, or no answer came.
    """

    def finish(outcomes: list[Outcome]) -> NoReturn:
        if as_json:
            write_json("outcomes", {"outcomes": outcomes})
        else:
            for one in outcomes:
                typer.echo(one_line(f"{one.group}: {one.result}" + (f": {one.why}" if one.why else "")))
        if any(one.result == "unknown" for one in outcomes):
            raise typer.Exit(3)
        raise typer.Exit(1 if any(one.bad for one in outcomes) else 0)

    if batch_count is not None and batch_percent is not None:
        refuse("Pass either --batch-count or --batch-percent, not both.")
    try:
        software_update.check_forms(release=release, image=image, alarms=rollback_alarm or [])
    except ValueError as error:
        refuse(str(error))
    config = load_environment(environment)
    if not resolve(config).traits.hyperpod:
        refuse("only HyperPod has this update: elsewhere name a new image in the environment file and deploy")
    account = open_account(config, profile)
    try:
        cluster = hyperpod_nodes.read_cluster(account, config.cluster_name)
        judged = software_update.judge(
            cluster,
            group or [],
            release=release,
            image=image,
            force=force,
            custom={name for name, one in config.node_groups.items() if one.image},
            roles={name: one.role for name, one in config.node_groups.items()},
        )
        names = [one.node for one in judged if one.result == "would"]
        if dry_run or not names:
            finish(judged)
        remark(software_update.BACKUP)
        remark("Deploy changed lifecycle scripts first: they run again on every node.")
        for one in judged:
            typer.echo(one_line(f"  {one.group}: {one.result}: {one.why}"), err=True)
        confirm(f"Update {', '.join(names)}, one after the other?", yes)
        outcomes = _update(account, cluster, names, release, image, timeout, software_update.Rollout(
            batch_count, batch_percent, wait_seconds, tuple(rollback_alarm or ())
        ))  # fmt: skip
    except AccountError as error:
        refuse(str(error))
    except KeyboardInterrupt:
        refuse(
            "Stopped waiting; the update of the current group is still running in AWS, no other starts.",
            code=130,
        )
    finish([one for one in judged if one.result != "would"] + outcomes)


def _update(
    account: Account,
    cluster: LiveCluster,
    names: list[str],
    release: str | None,
    image: str | None,
    timeout: int,
    rollout: Rollout,
) -> list[Outcome]:
    """Update with a line on standard error that says where it stands."""
    with working("starting") as say:

        def report(group: LiveGroup) -> None:
            say(f"{group.name}: {group.update or group.status}, {group.current} of {group.target} nodes")

        return software_update.update(
            account,
            cluster,
            names,
            release=release,
            image=image,
            rollout=rollout,
            timeout=timeout * 60,
            report=report,
        )
