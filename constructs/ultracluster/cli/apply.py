"""`ultracluster apply`: what reaches a deployed environment without a deploy."""

from __future__ import annotations

from typing import Annotated, Literal, assert_never

import typer

from ultracluster.cli import observability, teams, users_account
from ultracluster.cli.environments import EnvironmentArgument, JsonOption, ProfileOption, refuse
from ultracluster.cli.job_options import typed_options

_OPTIONS = {
    "users": ("remove", "remove_all"),
    "teams": ("remove",),
    "observability": ("yes", "overwrite", "runbooks"),
}


def apply(
    context: typer.Context,
    what: Annotated[
        Literal["users", "teams", "observability"],
        typer.Argument(
            help="People's accounts on nodes; teams in Slurm's accounting; boards, data sources and admins "
            "of Grafana with HyperPod's extension."
        ),
    ],
    environment: EnvironmentArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="observability: do not ask.")] = False,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove", help="Users who are no longer in the file lose their accounts, teams are deleted."
        ),
    ] = False,
    remove_all: Annotated[
        bool, typer.Option("--remove-all", help="users: required if more than half would be removed.")
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="observability: replace boards that a person has changed, too."),
    ] = False,
    runbooks: Annotated[
        str,
        typer.Option(
            help="observability: URL of a copy of docs/runbooks, for links from alerts; the same each time."
        ),
    ] = "",
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring users, teams or Grafana up to date with the file, without a deploy.

    Nodes pull users and teams within two minutes; files of users who are removed stay, teams that left the
    file are closed without --remove. observability shows what differs, then asks; looking makes a token in
    Grafana that is deleted at once. Exit code 1 if a part failed, 2 if nothing was written: ids would change
    hands, or users would be removed and --remove does not say so; 3 if HyperPod's extension is still on its
    way.
    """
    others = {one for options in _OPTIONS.values() for one in options} - set(_OPTIONS[what])
    if given := [option for one, option in typed_options(context).items() if one in others]:
        refuse(f"{', '.join(given)}: not for {what}")
    match what:
        case "users":
            users_account.apply(
                environment,
                dry_run=dry_run,
                remove=remove,
                remove_all=remove_all,
                profile=profile,
                as_json=as_json,
            )
        case "teams":
            teams.apply(environment, dry_run=dry_run, remove=remove, profile=profile, as_json=as_json)
        case "observability":
            observability.apply(
                environment,
                dry_run=dry_run,
                yes=yes,
                overwrite=overwrite,
                runbooks=runbooks,
                profile=profile,
                as_json=as_json,
            )
        case _ as never:
            assert_never(never)


__all__ = ["apply"]
