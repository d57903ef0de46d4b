"""What a change of ParallelCluster's configuration takes: which nodes must be stopped before the update.

Compute and login nodes count as running: whether they do, no template says. The custom resource cannot stop
them; where that is needed, the reason holds the command.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from ultracluster.change.changes import MISSING, Pair, Ruling, Steps, Verdict
from ultracluster.change.parallelcluster_keys import (
    CONFIGURATION,
    Changed,
    changed_key,
    chef_attributes,
    source,
)
from ultracluster.change.template import Json, as_mapping, as_text
from ultracluster.config.file_text import json_of

CLUSTER: Final = "Custom::PclusterCluster"
_SLURM: Final = "Slurm is configured again; nodes go on"
_IN_PLACE: Final = {
    "CustomSlurmSettings": _SLURM,
    "JobExclusiveAllocation": _SLURM,
    "StaticNodePriority": _SLURM,
    "DynamicNodePriority": _SLURM,
    "HealthChecks": "jobs from now on are checked so",
    "Iam": "permissions change at once",
    "OnNodeUpdated": "runs on these nodes when the update has reached them",
    "QueueUpdateStrategy": "counts for this update already",
    "Count": "login nodes are added, or end when the people on them were told",
    "Networking": "nodes from now on have it",
}
"""What happens where nothing must be stopped, by a name in the key."""
_EXTERNAL: Final = ("VolumeId", "FileSystemId", "FileCacheId")
_LIVE: Final = ("Efs", "FsxLustre", "FsxOntap", "FsxOpenZfs", "FileCache")
"""Storage that running nodes mount and unmount, where it is not ParallelCluster's own."""
_MOST_NODES: Final = 10
"""MaxCount where there is none (pcluster/constants.py, DEFAULT_MAX_COUNT)."""


def judge_configuration(pair: Pair, steps: Steps) -> Ruling | None:
    """The verdict on a change of the cluster's configuration; None for any other.

    Args:
        pair: the custom resource before and after.
        steps: where it changes.
    """
    if pair.type != CLUSTER or steps[:1] != (CONFIGURATION,):
        return None
    old, new = (as_mapping(as_mapping(one.get("Properties"))) for one in (pair.before, pair.after))
    before, after = as_mapping(old.get(CONFIGURATION)), as_mapping(new.get(CONFIGURATION))
    return _Update(before, after, as_text(new.get("ClusterName"))).ruling(
        changed_key(steps[1:], before, after)
    )


class _Update:
    """One update of one cluster."""

    def __init__(self, before: Json, after: Json, name: str) -> None:
        self._before, self._after, self._name = before, after, name
        settings = as_mapping(as_mapping(after.get("Scheduling")).get("SlurmSettings"))
        self._strategy = as_text(settings.get("QueueUpdateStrategy")) or "COMPUTE_FLEET_STOP"

    def ruling(self, changed: Changed) -> Ruling:
        """What the policy of the changed key makes of it."""
        match changed.policy:
            case "SUPPORTED" | "IGNORED":
                return _in_place(changed)
            case "SUPPORTED_UNLESS_ADC":
                return _refused(changed) if self._region.startswith("us-iso") else _in_place(changed)
            case "QUEUE_UPDATE_STRATEGY":
                return self._by_strategy(changed)
            case "MANAGED_FSX":
                return self._subnets(changed)
            case "MANAGED_PLACEMENT_GROUP":
                return self._placement(changed)
            case "RESIZE_UPDATE_STRATEGY_ON_REMOVE":
                return self._resized(changed)
            case "COMPUTE_FLEET_STOP_ON_REMOVE":
                return _added(changed) if changed.before is None else self._stopped(changed)
            case "COMPUTE_FLEET_STOP":
                return self._stopped(changed)
            case "SHARED_STORAGE_UPDATE_POLICY":
                return self._shared(changed)
            case "LOGIN_NODES_POOLS_UPDATE_POLICY":
                return _added(changed) if changed.before is None else self._without_login(changed)
            case "LOGIN_NODES_STOP" | "LOGIN_NODES_POOL_STOP":
                return self._without_login(changed)
            case "COMPUTE_AND_LOGIN_NODES_STOP":
                return self._stopped(changed, login=self._pools_with_nodes())
            case "EXTRA_CHEF_ATTRIBUTES" if _only(changed, chef_attributes()):
                return _in_place(changed)
            case _:  # UNSUPPORTED, READ_ONLY_RESOURCE_BUCKET, and what no release had yet
                return _refused(changed)

    @property
    def _region(self) -> str:
        return as_text(self._after.get("Region"))

    def _by_strategy(self, changed: Changed) -> Ruling:
        if changed.in_queue and self._strategy != "COMPUTE_FLEET_STOP":
            text = "QueueUpdateStrategy renews the nodes of the queue: " + (
                "TERMINATE at once" if self._strategy == "TERMINATE" else "DRAIN after their jobs"
            )
            return Ruling(Verdict.ROLLING, text, source())
        return self._stopped(changed, instead="or QueueUpdateStrategy be set" if changed.in_queue else "")

    def _subnets(self, changed: Changed) -> Ruling:
        old, new = _list(changed.before), _list(changed.after)
        if old and all(one in new for one in old):
            return _in_place(changed)
        return self._by_strategy(changed)

    def _placement(self, changed: Changed) -> Ruling:
        if self._managed(self._before, changed.names) and not self._managed(self._after, changed.names):
            text = "a placement group of ParallelCluster's goes: "
            return self._stopped(changed, because=text)
        return self._by_strategy(changed)

    def _managed(self, configuration: Json, names: tuple[str, ...]) -> bool:
        """Whether ParallelCluster makes a placement group for the queue's, or the resource's, nodes."""
        queue = _called(as_mapping(configuration.get("Scheduling")).get("SlurmQueues"), names[:1])
        resource = _called(queue.get("ComputeResources"), names[1:2])
        own = as_mapping(as_mapping(resource.get("Networking")).get("PlacementGroup"))
        group = own or as_mapping(as_mapping(queue.get("Networking")).get("PlacementGroup"))
        return _yes(group.get("Enabled")) and not (group.get("Name") or group.get("Id"))

    def _resized(self, changed: Changed) -> Ruling:
        what = "compute resource" if "ComputeResources" in changed.key else "queue"
        if changed.element and changed.before is None:
            return Ruling(Verdict.IN_PLACE, f"a new {what}; the others go on", source())
        if not changed.element and self._grows(changed):
            is_less = changed.key.endswith("MinCount") and not _more(changed)
            text = _FEWER if is_less else _GROWTH[changed.key.rpartition(".")[2]]
            return Ruling(Verdict.IN_PLACE, text, source())
        if self._strategy == "TERMINATE":
            text = f"the {what} ends with its nodes" if changed.element else "nodes that are left over end"
            return Ruling(
                Verdict.ROLLING, f"{text}, and so do their jobs, at once", source(), part=changed.element
            )
        because = f"the {what} ends with its nodes: " if changed.element else "shrinking: "
        if changed.key.endswith("MinCount") and _more(changed):
            because = "nodes that were launched for jobs may be in the way of those that always run: "
        return self._stopped(changed, because=because, instead="or QueueUpdateStrategy be TERMINATE")

    def _grows(self, changed: Changed) -> bool:
        """Whether there are no fewer nodes for jobs: the rule of ParallelCluster's checker."""
        if changed.key.endswith("MaxCount"):
            return _count(changed.after, _MOST_NODES) >= _count(changed.before, _MOST_NODES)
        old, new = (self._resource(one, changed.names) for one in (self._before, self._after))
        if old.get("MaxCount") == new.get("MaxCount"):
            return False
        most = _count(new.get("MaxCount"), _MOST_NODES) - _count(old.get("MaxCount"), _MOST_NODES)
        return most >= _count(changed.after, 0) - _count(changed.before, 0)

    def _resource(self, configuration: Json, names: tuple[str, ...]) -> Json:
        queue = _called(as_mapping(configuration.get("Scheduling")).get("SlurmQueues"), names[:1])
        return _called(queue.get("ComputeResources"), names[1:2])

    def _shared(self, changed: Changed) -> Ruling:
        one = as_mapping(changed.after if changed.before is None else changed.before)
        if changed.element and _at_home((changed.before, changed.after)):
            return _refused(changed, "what is mounted at /home stays: ")
        kind = as_text(one.get("StorageType"))
        external = any(name in as_mapping(one.get(f"{kind}Settings")) for name in _EXTERNAL)
        if changed.element and external and kind in _LIVE:
            if changed.before is None:
                return Ruling(Verdict.IN_PLACE, "running nodes mount it, too", source())
            text = "running nodes unmount it: jobs that use it fail"
            return Ruling(Verdict.AT_RISK, text, source(), part=True)
        login = self._pools_with_nodes()
        if changed.element and self._strategy != "COMPUTE_FLEET_STOP":
            if login:
                return self._without_login(changed, login)
            return Ruling(Verdict.ROLLING, "QueueUpdateStrategy renews the nodes", source(), part=True)
        return self._stopped(changed, login=login)

    def _without_login(self, changed: Changed, pools: list[str] | None = None) -> Ruling:
        """Login nodes must be gone before: those of the pool, or all."""
        with_nodes = self._pools_with_nodes()
        if changed.policy == "LOGIN_NODES_POOL_STOP":
            with_nodes = [name for name in with_nodes if name == changed.names[0]]
        if not (pools or with_nodes):
            return _added(changed)
        text = f"login nodes must end first: {_count_of(pools or with_nodes)}, deployed before this"
        return Ruling(Verdict.SCALE_TO_ZERO, text, source(), part=changed.element)

    def _pools_with_nodes(self) -> list[str]:
        pools = _list(as_mapping(self._before.get("LoginNodes")).get("Pools"))
        rows = [as_mapping(pool) for pool in pools]
        return [as_text(row.get("Name")) for row in rows if _count(row.get("Count"), 1)]

    def _stopped(
        self, changed: Changed, *, because: str = "", instead: str = "", login: list[str] | None = None
    ) -> Ruling:
        """The compute fleet must be stopped before, and login nodes be gone."""
        wishes = f"the fleet must be stopped, {instead}" if instead else "the fleet must be stopped"
        command = f"pcluster update-compute-fleet --cluster-name {self._name or 'NAME'}"
        if self._region:
            command += f" --region {self._region}"
        text = f"{because}{wishes}: `{command} --status STOP_REQUESTED` before, START_REQUESTED afterwards"
        if login:
            text += f"; and {_count_of(login)}, deployed before this"
        return Ruling(Verdict.SCALE_TO_ZERO, text, source(), part=changed.element)


_GROWTH: Final = {"MaxCount": "more nodes may be launched", "MinCount": "nodes are added"}
_FEWER: Final = "fewer nodes always run; as many as before may be launched for jobs"


def _in_place(changed: Changed) -> Ruling:
    text = next((words for name, words in _IN_PLACE.items() if name in changed.key), "")
    return Ruling(Verdict.IN_PLACE, text or "ParallelCluster changes it where it is", source())


def _added(changed: Changed) -> Ruling:
    where = "a login pool" if "Pools" in changed.key else "it"
    return Ruling(Verdict.IN_PLACE, f"ParallelCluster makes {where}; what runs goes on", source())


_NEW_CLUSTER: Final = (
    "the environment under another name, beside this one, with what is shared mounted from outside",
    "when nothing runs on this one, take it away",
)
_KEPT: Final = {
    "HeadNode.InstanceType": "the head node keeps its instance type",
    "HeadNode.LocalStorage": "the head node keeps its disks",
    "HeadNode.Networking": "the head node keeps its network",
    "HeadNode.CustomActions": "the head node keeps what runs when it is made",
    "Image": "a cluster keeps its operating system",
}


def _refused(changed: Changed, because: str = "") -> Ruling:
    kept = next((words for key, words in _KEPT.items() if changed.key.startswith(key)), "")
    text = because or f"{kept or f'ParallelCluster does not change {changed.key}'}: "
    return Ruling(Verdict.REFUSED, f"{text}this needs a new cluster", source(), order=_NEW_CLUSTER)


def _count_of(pools: list[str]) -> str:
    each = " and ".join(f"`{pool}`" for pool in pools)
    return f"`count: 0` for the login group{'s' if len(pools) > 1 else ''} {each}"


def _called(elements: Any, names: tuple[str, ...]) -> Json:
    for row in map(as_mapping, _list(elements)):
        if names and row.get("Name") == names[0]:
            return row
    return {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _count(value: Any, default: int) -> int:
    if value is None or value is MISSING:
        return default
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdigit()) else default


def _more(changed: Changed) -> bool:
    return _count(changed.after, 0) > _count(changed.before, 0)


def _yes(value: Any) -> bool:
    return value is True or value == "true"


def _at_home(elements: tuple[Any, ...]) -> bool:
    return any(as_mapping(element).get("MountDir") in ("home", "/home") for element in elements)


def _only(changed: Changed, allowed: list[str]) -> bool:
    """Whether nothing but these of Chef's attributes, which are JSON, differs."""
    old, new = (dict(_flat(_json(one), "")) for one in (changed.before, changed.after))
    different = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    return different <= set(allowed)


def _json(value: Any) -> Any:
    try:
        return json_of(value) if isinstance(value, str) else {}
    except ValueError:
        return {}


def _flat(value: Any, above: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _flat(inner, f"{above}.{name}" if above else name)
    elif above:
        yield above, value


__all__ = ["CLUSTER", "judge_configuration"]
