"""What becomes of each part of an environment that moves: taken along, copied, bought again, made again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ultracluster.config.capacity import STAND_IN, CapacityBlock, Reservation, TrainingPlan
from ultracluster.config.storage import FIRST_LUSTRE, DataRepository
from ultracluster.model import Cluster, Group
from ultracluster.moving.second import bought_before
from ultracluster.plan.storage import (
    FileSystemPlan,
    accounting_place,
    further_lustre_plans,
    home_plan,
    lustre_plan,
)
from ultracluster.software.environment_lock import lock_file_of

Becomes = Literal["carries over", "copied", "bought again", "made again", "to decide"]
ORDER: tuple[Becomes, ...] = ("carries over", "copied", "bought again", "made again", "to decide")
_BYTES_PER_GIB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the environment and what becomes of it."""

    what: str
    becomes: Becomes
    """`carries over`, `copied`, `bought again`, `made again` or `to decide`."""
    how: str
    least_hours: float | None = None
    """Copying it when it is full; null: nothing is copied, or how long it takes is unknown."""
    early: bool = False
    """It is copied before the second environment is deployed, which reads it then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """The environment before and after."""

    first: Cluster
    second: Cluster

    @property
    def away(self) -> bool:
        """Return whether the Region is another one."""
        return self.first.region != self.second.region

    @property
    def slurm(self) -> bool:
        return self.first.traits.slurm


def parts(both: Both) -> tuple[Part, ...]:
    """Every part, in the order of `ORDER`."""
    found = [
        *_data(both), *_homes(both), *_accounting(both), *_people(both), *_nodes(both), *_software(both),
        *_keys(both), *_around(both), *_kubernetes(both),
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda part: ORDER.index(part.becomes)))


def hours_text(hours: float) -> str:
    """`34 minutes`, `5.2 hours`, `3.1 days`."""
    if hours < 1:
        minutes = math.ceil(hours * 60)
        return f"{minutes} minute{'s' * (minutes != 1)}"
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"


def _nodes(both: Both) -> Iterator[Part]:
    for name, group in both.first.groups.items():
        what = f"{group.most_nodes} x {group.settings.instance_type} ({name})"
        after = both.second.groups[name]
        if bought_before(group.settings):
            yield Part(what=what, becomes="bought again", how=_bought(both, name, group, after))
        else:
            quota = f"; quotas of {both.second.region} are its own" if both.away else ""
            yield Part(what=what, becomes="made again", how=f"new nodes from {_source(after)}{quota}")


def _bought(both: Both, name: str, group: Group, after: Group) -> str:
    zone = both.first.environment.network.zone_id
    stays = f"{_capacity_id(group)} is in {zone} and cannot be moved"
    if not isinstance(group.settings.capacity, Reservation):
        stays += "; its fee is paid and not given back"
    taken = _capacity_id(after)
    # what stands in for the id of a plan ends in the names of environment and group
    stands_in = (
        taken in (_capacity_id(group), f"the training plan {both.second.name}-{name}") or STAND_IN in taken
    )
    return f"{stays}; {'one in the new zone' if stands_in else taken} takes its place"


def _capacity_id(group: Group) -> str:
    match group.settings.capacity:
        case TrainingPlan(arn=arn):
            return f"the training plan {arn.rpartition('/')[2]}"
        case CapacityBlock(id=id_):
            return f"the Capacity Block {id_}"
        case Reservation(id=id_, resource_group_arn=arn):
            return f"the reservation {id_ or arn}"
        case other:
            return f"capacity {other.kind}"


def _source(group: Group) -> str:
    return (
        "the zone's free instances"
        if group.settings.capacity.kind == "on-demand"
        else group.settings.capacity.kind
    )


def _data(both: Both) -> Iterator[Part]:
    before = _file_systems(both.first)
    after = _file_systems(both.second)
    for name, lustre in both.first.environment.lustres.items():
        system = before[name]
        what = f"Lustre at {system.mount_path}"
        if lustre.new is None:
            yield _existing(
                both, what, system.id, "reached over EFA only from its own zone" if lustre.efa else ""
            )
            continue
        for folder, link in lustre.data_repositories.items():
            yield _link(both, f"{system.mount_path}{folder.rstrip('/')}", link)
        links = ", ".join(lustre.data_repositories)
        yield Part(
            what=f"{what}, files outside {links}" if links else what,
            becomes="copied",
            how="the second file system is new and empty; AWS DataSync copies from one to the "
            "other, again and "
            "again until the last run finds little, or let the files be: caches and environments "
            "are made again",
            least_hours=_hours(system, after[name]),
        )


def _link(both: Both, folder: str, link: DataRepository) -> Part:
    bucket = link.bucket or f"the data bucket of {both.first.name}"
    exports = (
        "changes are exported by themselves: wait for the last (metric AgeOfOldestQueuedMessage of "
        "AutoExport is 0)"
        if {"new", "changed"} <= set(link.export_events)
        else "export what is not in S3 yet: aws fsx create-data-repository-task --type EXPORT_TO_REPOSITORY"
    )
    listed = (
        "lists the objects when it is linked, with their owners and modes where FSx exported them, and reads "
        "each at its first use"
        if link.import_existing
        else "lists nothing by itself (`import_existing: false`): import it by a data repository task"
    )
    if both.away:
        return Part(
            what=folder,
            becomes="copied",
            how=f"{exports}; then copy {bucket} to {both.second.region} (S3 Batch Replication, or "
            "aws s3 sync): "
            "automatic import requires a bucket of the file system's Region. The second file "
            f"system {listed}",
            early=True,
        )
    once = (
        f". Jobs of {both.first.name} have ended before those of {both.second.name} begin: both "
        "would write the "
        "same objects"
        if link.export_events
        else ""
    )
    if "deleted" in link.export_events:
        once += f". What is deleted in {both.second.name} is deleted in S3, and so for {both.first.name}, too"
    why = f"{exports}; the" if link.export_events or not link.import_events else "the"
    return Part(
        what=folder,
        becomes="carries over",
        how=f"in S3 ({bucket}): {why} second file system {listed}{once}",
    )


def _homes(both: Both) -> Iterator[Part]:
    home, after = home_plan(both.first), home_plan(both.second)
    if home is None or after is None:
        return
    what = f"homes at {home.mount_path} (OpenZFS)"
    if home.id:
        yield _existing(both, what, home.id, "")
        return
    yield Part(
        what=what,
        becomes="copied",
        how="AWS DataSync, or rsync on a node that mounts both, keeps owners and modes; a backup "
        f"({'copied to ' + both.second.region + ', ' if both.away else ''}restored as a file "
        "system of its own) "
        "is the way back",
        least_hours=_hours(home, after),
    )


def _existing(both: Both, what: str, id_: str, note: str) -> Part:
    if both.away:
        how = f"{id_} is in {both.first.region}: name one of {both.second.region}, and copy by AWS DataSync"
        return Part(what=what, becomes="to decide", how=how)
    how = f"{id_} stays where it is and is mounted across zones, which is slower and billed by the GB"
    if note:
        return Part(what=what, becomes="to decide", how=f"{how}; {note}")
    return Part(what=what, becomes="carries over", how=how)


def _accounting(both: Both) -> Iterator[Part]:
    place = accounting_place(both.first)
    if not place or place == "none":
        return
    first, second = both.first.environment.cluster_name, both.second.environment.cluster_name
    what = f"Slurm's accounting ({place})"
    database = both.first.environment.storage.accounting_database
    if database is not None and database.kind == "existing":
        yield _existing(both, what, database.endpoint, "")
        return
    if place == "kept by PCS":
        how = (
            f"accounts and limits by `sacctmgr dump {first}` there and `sacctmgr load` here; PCS "
            "gives out no "
            "records of jobs: keep `sacct --parsable2 --allusers --starttime ...` as a file"
        )
    else:
        how = (
            f"accounts and limits by `sacctmgr dump {first}`, the name changed to {second}, and "
            "`sacctmgr load`; "
            "records of jobs by mysqldump of the database while slurmdbd is stopped, only where "
            "they are needed"
        )
    yield Part(what=what, becomes="copied", how=how)


def _people(both: Both) -> Iterator[Part]:
    environment = both.first.environment
    if environment.users:
        count = len(environment.users)
        how = "from the file, with the same ids, groups and keys: owners of files stay right"
        yield Part(what=f"{count} user{'s' * (count != 1)}", becomes="carries over", how=how)
    elif both.slurm and not environment.directory:
        how = (
            "made by hand or by a step of your own: with other ids they own none of the copied "
            "files, so give "
            "them the same ids (`getent passwd` there), best in `users:`"
        )
        yield Part(what="people's accounts on the nodes, if there are any", becomes="to decide", how=how)
    if environment.directory:
        how = "the directory keeps the ids; the new network must reach it, and its secret be readable there"
        yield Part(what="accounts of the directory", becomes="carries over", how=how)
    if environment.teams:
        yield Part(what=f"teams {', '.join(environment.teams)}", becomes="carries over", how="from the file")


def _software(both: Both) -> Iterator[Part]:
    environment = both.first.environment
    release = environment.software.release
    yield Part(
        what=f"software release {release}", becomes="carries over", how="the same versions, from its lock"
    )
    lock = lock_file_of(environment.file)
    if lock.is_file():
        how = (
            "a lock is of one environment: `ultracluster software lock --for` makes the second one's; "
            "compare the images and files of both"
        )
        yield Part(what=f"lock {lock.name}", becomes="made again", how=how)
    if mirror := environment.software.mirror:
        if both.away:
            how = (
                f"`ultracluster software mirror --for` fills the mirror of {both.second.region}; "
                "an endpoint for S3 reaches buckets of its own Region only"
            )
            yield Part(what=f"software mirror {mirror}", becomes="copied", how=how, early=True)
        else:
            yield Part(what=f"software mirror {mirror}", becomes="carries over", how="the same bucket")
    images = {group.image for group in environment.node_groups.values() if group.image}
    for image in sorted(images):
        named = image.startswith("/aws/")
        if named or not both.away:
            how = "AWS has it in every Region" if named and both.away else "the same image"
            yield Part(what=f"image {image}", becomes="carries over", how=how)
        else:
            how = (
                f"aws ec2 copy-image --source-region {both.first.region} --region "
                f"{both.second.region}; it gets an id of its own"
            )
            yield Part(what=f"image {image}", becomes="copied", how=how, early=True)


def _keys(both: Both) -> Iterator[Part]:
    environment = both.first.environment
    if environment.storage.key or environment.storage.keys != type(environment.storage.keys)():
        if both.away:
            how = (
                "a key is of one Region, but for replicas of multi-Region keys (mrk-...): name "
                "keys of the new one"
            )
            yield Part(what="keys made elsewhere", becomes="to decide", how=how)
        else:
            yield Part(what="keys made elsewhere", becomes="carries over", how="the same keys")
    else:
        yield Part(
            what="KMS key",
            becomes="made again",
            how=f"the key of {both.first.name} stays with what it encrypts, and is kept when its "
            "stacks go; where "
            f"its bucket is used on, its policy must let FSx and the nodes of {both.second.name} use it",
        )


def _around(both: Both) -> Iterator[Part]:
    first, second = both.first.environment.network, both.second.environment.network
    if first.vpc is None:
        how = (
            f"{second.cidr} in place of {first.cidr}, so that both can be joined: firewalls, "
            "peerings and routes that name the old one need the new one"
        )
        yield Part(what="network", becomes="made again", how=how)
    else:
        how = f"a subnet in {second.zone_id}" + (
            f", and a VPC in {both.second.region}" if both.away else " of the same VPC"
        )
        yield Part(what="network", becomes="to decide", how=how)
    yield Part(
        what="roles and their names",
        becomes="made again",
        how="policies of buckets, keys and registries elsewhere that name roles of "
        f"{both.first.name} must name "
        f"those of {both.second.name} as well",
    )
    if both.first.environment.observability:
        how = (
            "alerts, boards and budget from the file; what was measured stays in the old "
            "workspace for as long as that is kept"
        )
        yield Part(what="metrics and dashboards", becomes="made again", how=how)


def _kubernetes(both: Both) -> Iterator[Part]:
    if both.slurm:
        return
    yield Part(
        what="Kubernetes objects of your own",
        becomes="made again",
        how="from their Git repository: `kubectl apply` to the new cluster; namespaces and "
        "queues of teams come "
        "from the file. Secrets that are in no store outside are read from the old cluster",
    )
    yield Part(
        what="block volumes (EBS) of pods, if there are any",
        becomes="copied",
        how=f"by snapshot{' copied to ' + both.second.region if both.away else ''}: a volume is in one zone",
    )


def _file_systems(cluster: Cluster) -> dict[str, FileSystemPlan]:
    first = lustre_plan(cluster)
    found = {FIRST_LUSTRE: first} if first else {}
    return found | {plan.name: plan for plan in further_lustre_plans(cluster)}


def _hours(before: FileSystemPlan, after: FileSystemPlan) -> float | None:
    if not (before.capacity_gib and before.read_mbps and after.write_mbps):
        return None
    return before.capacity_gib * _BYTES_PER_GIB / 1e6 / min(before.read_mbps, after.write_mbps) / 3600
