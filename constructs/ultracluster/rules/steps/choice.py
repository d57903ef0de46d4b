"""Rules on: which nodes run a team's own steps."""

from __future__ import annotations

import difflib

from ultracluster.config.remedy import ask, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.model.own_steps import own_steps, steps_of_group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import STP
from ultracluster.software.first_boot import scripts_run

_FIELD = "lifecycle_steps"


@STP.error(7, "this package: docs/own-steps.md", "2026-11-22")
def chosen_steps_exist(group: Group, cluster: Cluster) -> Breaches:
    """A group chooses among the environment's own steps."""
    known = [step.name for step in own_steps(cluster.environment) if step.name]
    for number, name in enumerate(group.settings.lifecycle_steps or ()):
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        there = f"it has {', '.join(known)}" if known else "it has none"
        yield at(_FIELD, number).breach(
            f"the environment has no step `{name}` of its own in `{_FIELD}` at the top: {there}.",
            write(*near) | drop() if near else drop(),
        )


@STP.warning(9, "this package: docs/own-steps.md", "2026-11-22")
def steps_run_somewhere(cluster: Cluster) -> Breaches:
    """Steps of your own run on some node."""
    environment = cluster.environment
    reached = {
        step.path
        for name, group in environment.node_groups.items()
        if scripts_run(environment, group)
        for step in steps_of_group(environment, name)
    }
    for number, path in enumerate(environment.lifecycle_steps):
        if path not in reached:
            yield at(_FIELD, number).breach(
                f"no node runs {path}: no group with scripts chooses it, or `lifecycle` is none.",
                drop() | ask("decision", f"a group with its name in {_FIELD}"),
            )
