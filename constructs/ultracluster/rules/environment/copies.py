"""Rules on: an environment that was copied, and points at what another uses, or at what is not there yet.

What is looked at are the environment files beside it; an environment that was not read from a file has none.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ultracluster.config import Environment, InvalidEnvironmentError, load
from ultracluster.config.capacity import STAND_IN, CapacityBlock, Reservation, TrainingPlan
from ultracluster.config.remedy import ask
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import CPY

_NAME_IT = "or say why it is right in an `acknowledge:` entry of one of the files"


@CPY.error(
    1,
    "SageMaker Developer Guide: Training plans; EC2 User Guide: Capacity Reservations (an instance is "
    "launched only while there is room)",
    "2026-11-22",
    by_hand="aws ec2 describe-capacity-reservations --capacity-reservation-ids <id>",
    until_acknowledged=True,
)
def capacity_used_once(environment: Environment) -> Breaches:
    """Capacity that is named once is used by one environment."""
    for capacity, group in capacities(environment).items():
        if capacity == STAND_IN:
            continue
        others = [one for one in beside(environment, "CPY001", capacity) if capacity in capacities(one)]
        if others:
            names = ", ".join(f"{other.file.name} ({other.name})" for other in others)
            yield at("node_groups", group, "capacity").breach(
                f"{capacity} is named by {names}, too: the nodes of all of them have to fit into "
                "it, and where it is used fully, none of these starts.",
                ask("fact", "the capacity that is meant for this environment").noting(_NAME_IT),
            )


@CPY.error(
    2,
    "this package: a data repository without `bucket` is linked with the environment's own",
    "2026-11-22",
    by_hand="aws s3 ls",
    until_acknowledged=True,
)
def bucket_of_a_copy(environment: Environment) -> Breaches:
    """A copied environment says where its objects in S3 are."""
    folders = own_folders(environment)
    if not folders or environment.storage.lustre is None:
        return
    every_folder = (folder for own in environment.all_data_repositories.values() for folder in own)
    for other in beside(environment, "CPY002", *every_folder):
        shared = [folder for folder in folders if folder in own_folders(other)]
        if shared and other.storage == environment.storage:
            yield at("storage", "lustre", "data_repositories", shared[0]).breach(
                f"the storage is that of {other.file.name} ({other.name}), but {', '.join(shared)} of "
                f"{environment.name} is linked with a bucket of its own: where there is none yet it is made "
                f"new and empty, and what {other.name} keeps is not in it.",
                ask("decision", f"`bucket:` with the bucket that holds the objects of {other.name}").noting(
                    _NAME_IT
                ),
            )
            return


def capacities(environment: Environment) -> dict[str, str]:
    """Training plans, blocks and reservations that an environment names, each with its first group."""
    found: dict[str, str] = {}
    for name, group in environment.node_groups.items():
        match group.capacity:
            case TrainingPlan(arn=capacity) | CapacityBlock(id=capacity):
                found.setdefault(capacity, name)
            case Reservation(id=reservation, resource_group_arn=of_group):
                for capacity in filter(None, (reservation, of_group)):
                    found.setdefault(capacity, name)
            case _:
                pass
    return found


def own_folders(environment: Environment) -> list[str]:
    """Folders that are linked with the bucket that the environment makes."""
    links = (link for own in environment.all_data_repositories.values() for link in own.items())
    return [folder for folder, repository in links if repository.bucket is None]


def beside(environment: Environment, rule: str, *texts: str) -> list[Environment]:
    """The other environments in the folder of its file, but for those that acknowledge the rule: named in one
    of two files it is named. Files that are no environments are left out.

    Args:
        texts: only files that may have all of them as values are read as environments, which takes time.
    """
    own = environment.file
    if not own.is_file():
        return []
    files = sorted(one for one in own.parent.iterdir() if one.suffix in (".yaml", ".yml") and one.is_file())
    others = (
        _read(one, one.stat().st_mtime_ns)
        for one in files
        if one.absolute() != own.absolute() and _may_have(one, texts)
    )
    found = [one for one in others if one and one.name != environment.name]
    return [one for one in found if all(entry.rule != rule for entry in one.acknowledge)]


def _may_have(file: Path, texts: tuple[str, ...]) -> bool:
    """Return whether a file may have all of the texts; it may if it extends another or escapes characters."""
    try:
        content = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return True
    return "extends:" in content or "\\" in content or all(text in content for text in texts)


@lru_cache(maxsize=256)
def _read(file: Path, _changed: int) -> Environment | None:
    try:
        return load(file).environment
    except InvalidEnvironmentError:
        return None
