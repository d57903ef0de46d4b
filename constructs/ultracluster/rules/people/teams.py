"""Rules on: users and the teams that their jobs count for."""

from __future__ import annotations

import difflib

from ultracluster.config import Environment
from ultracluster.config.remedy import ask, drop, write
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.people.accounts import DATE
from ultracluster.rules.sets import SLURM, USR

SACCTMGR = "sacctmgr manual (associations, DefaultAccount)"


@USR.error(6, SACCTMGR, DATE)
def team_exists(environment: Environment) -> Breaches:
    """A user's team exists."""
    for name, user in environment.users.items():
        if user.team is not None and user.team not in environment.teams:
            near = difflib.get_close_matches(user.team, environment.teams, 1) or list(environment.teams)[:1]
            yield at("users", name, "team").breach(
                f"there is no team `{user.team}`: the user's jobs would have no account.",
                write(near[0]) if near else drop().noting("or write the team below teams"),
            )


@USR.warning(7, SACCTMGR, DATE, kinds=SLURM)
def user_in_one_team(environment: Environment) -> Breaches:
    """A user is in one team."""
    for name, user in environment.users.items():
        listed = [team for team, one in environment.teams.items() if name in one.users]
        first = user.team or (listed[0] if listed else None)
        for team in listed:
            if team == first:
                continue
            yield at("teams", team, "users", environment.teams[team].users.index(name)).breach(
                f"`{name}` is in `{first}` as well: jobs without --account count for `{first}`, and the user "
                "has the shares of both.",
                drop(),
            )


@USR.warning(8, SACCTMGR, DATE, kinds=SLURM)
def team_users_have_accounts(environment: Environment) -> Breaches:
    """Users of teams have an account on the nodes."""
    if not environment.users:
        return  # accounts are made in another way
    for team_name, team in environment.teams.items():
        for number, name in enumerate(team.users):
            if name not in environment.users:
                near = difflib.get_close_matches(name, environment.users, 1, 0.8)
                yield at("teams", team_name, "users", number).breach(
                    f"`{name}` is not among the users: nodes have no account of that name, unless a "
                    "directory has.",
                    write(near[0]) if near else ask("fact", f"users: {name}: {{uid: ...}}"),
                )
