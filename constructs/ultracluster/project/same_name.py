"""Environments that would be the same stacks: the second deploy would replace the first one's cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ultracluster.config import Environment, Finding, InvalidEnvironmentError, load
from ultracluster.config.loader import Loaded
from ultracluster.config.remedy import ask
from ultracluster.model import TRAITS
from ultracluster.project.place import Located

CODE = "CPY000"
"""Among the rules on environments beside each other, but only for files that are checked together: both sides
of a `diff` may share a name."""


def shared_name(one: Environment, other: Environment) -> str:
    """Return a name that both give to themselves, a stack or a cluster; empty where there is none.

    In two Regions, or two accounts that both files name, the same name is another stack.
    """
    if one.region != other.region or len({one.account, other.account} - {None}) > 1:
        return ""
    if one.name == other.name:
        return one.name
    stacks = sorted(_stacks(one) & _stacks(other))
    clusters = {(each.orchestrator.kind, each.cluster_name) for each in (one, other)}
    return one.cluster_name if len(clusters) == 1 else next(iter(stacks), "")


def _stacks(environment: Environment) -> set[str]:
    """Every stack that it can have; ParallelCluster's own is called like its cluster."""
    own = {environment.cluster_name} if TRAITS[environment.orchestrator.kind].own_stack else set[str]()
    return own | set(environment.possible_stack_names)


def same_name(files: Iterable[Loaded]) -> Iterator[tuple[Loaded, Finding]]:
    """A finding for each file that has the stacks of one before it."""
    before: list[Loaded] = []
    for loaded in files:
        environment = loaded.environment
        twin = next((one for one in before if shared_name(one.environment, environment)), None)
        before.append(loaded)
        if twin:
            name = shared_name(twin.environment, environment)
            yield (
                loaded,
                Finding(
                    code=CODE,
                    severity="error",
                    path=("name",),
                    message=f"{twin.environment.file.name} is `{name}`, too: both are the same stacks, and "
                    "to deploy the second deletes the cluster of the first.",
                    remedy=ask("decision", f"another name, as `{environment.file.stem}`"),
                    location=loaded.source.locate(("name",)),
                ),
            )


def environment_files(folder: Path) -> list[Path]:
    """Return what may be environment files of a folder, in order."""
    return sorted(file for suffix in ("yaml", "yml") for file in folder.glob(f"*.{suffix}"))


def twin_of(here: Located) -> Environment | None:
    """Another environment file of the project whose stacks are the same."""
    folders = {here.root / "environments", here.file.parent}
    for file in sorted(file for folder in folders for file in environment_files(folder)):
        if file.resolve() == here.file.resolve():
            continue
        try:
            other = load(file).environment
        except InvalidEnvironmentError:
            continue
        if shared_name(here.environment, other):
            return other
    return None
