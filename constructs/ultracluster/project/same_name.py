"""Environments that would be the same stacks: the second deploy would replace the first one's cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ultracluster.config import Environment, Finding, InvalidEnvironmentError, load
from ultracluster.config.loader import Loaded
from ultracluster.config.remedy import ask
from ultracluster.project.place import Located

CODE = "CPY000"
"""Among the rules on environments beside each other, but only for files that are checked together: both sides
of a `diff` may share a name."""


def share_stacks(one: Environment, other: Environment) -> bool:
    """Return whether their stacks are the same: name and Region are, and no account is known to differ."""
    accounts = {one.account, other.account} - {None}
    return one.name == other.name and one.region == other.region and len(accounts) < 2


def same_name(files: Iterable[Loaded]) -> Iterator[tuple[Loaded, Finding]]:
    """A finding for each file that has the stacks of one before it."""
    before: list[Loaded] = []
    for loaded in files:
        environment = loaded.environment
        twin = next((one for one in before if share_stacks(one.environment, environment)), None)
        before.append(loaded)
        if twin:
            yield (
                loaded,
                Finding(
                    code=CODE,
                    severity="error",
                    path=("name",),
                    message=f"{twin.environment.file.name} is `{environment.name}`, too: both are the same "
                    "stacks, and to deploy the second deletes the cluster of the first.",
                    remedy=ask("decision", f"another name, as `{environment.file.stem}`"),
                    location=loaded.source.locate(("name",)),
                ),
            )


def twin_of(here: Located) -> Environment | None:
    """Another environment file of the project whose stacks are the same."""
    for file in sorted((here.root / "environments").glob("*.yaml")):
        if file.resolve() == here.file.resolve():
            continue
        try:
            other = load(file).environment
        except InvalidEnvironmentError:
            continue
        if share_stacks(here.environment, other):
            return other
    return None
