"""What an update of a ParallelCluster takes: our verdict on each change, and that of its own package.

Every key of the schema is changed, and every section and element taken away and added, under each strategy:
the package's `ConfigPatch`, with compute and login nodes that run, lets through what we let through.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from parallelcluster.harness import package_updates
from parallelcluster.rendered import deployed
from rules_support import changed as changed_data
from rules_support import environment_data, loaded

from tools import parallelcluster_updates as tool
from ultracluster.change import Change, Verdict, blast_radius
from ultracluster.change.parallelcluster_keys import lists, policies
from ultracluster.change.parallelcluster_updates import CLUSTER
from ultracluster.model import resolve
from ultracluster.parallelcluster.configuration_file import cluster_configuration

pytestmark = pytest.mark.slow

STRATEGIES = ("COMPUTE_FLEET_STOP", "DRAIN", "TERMINATE")
NUMBERS = ("MinCount", "MaxCount", "Count")
Configuration = dict[str, Any]
SHIPPED = environment_data("parallelcluster-p5")


@cache
def whole() -> str:
    """A configuration that has every key; each list has the elements `a` and `b`. As JSON: it is changed."""
    made: Configuration = {}
    for key in policies():
        for names in ("a", "b"):
            place(made, key, names, 4 if key.endswith(NUMBERS) else "old")
    for pool in made["LoginNodes"]["Pools"]:
        pool["Count"] = 1
    return json.dumps(made)


def place(made: Configuration, key: str, name: str, value: Any) -> None:
    """Put a value where a key is, in the elements called `name` of the lists on the way."""
    at: Any = made
    path, steps = "", key.split(".")
    for number, step in enumerate(steps):
        path = f"{path}.{step}" if path else step
        last = number == len(steps) - 1
        if step.endswith("[]"):
            rows = at.setdefault(step[:-2], [])
            by = lists()[path]
            found = [row for row in rows if row.get(by) == name]
            at = found[0] if found else rows.append({by: name}) or rows[-1]
        elif last:
            if step not in at and not section(path):
                at[step] = value
            elif section(path):
                at.setdefault(step, {})
        else:
            at = at.setdefault(step, {})


def section(key: str) -> bool:
    return any(other.startswith(f"{key}.") for other in policies())


def at(configuration: Configuration, key: str) -> tuple[Any, str]:
    """What holds a key (in the first elements of lists), and its last step."""
    *above, last = key.split(".")
    here: Any = configuration
    for step in above:
        here = here[step.removesuffix("[]")]
        here = here[0] if step.endswith("[]") else here
    return here, last


def changed(key: str) -> Iterator[tuple[str, Configuration, Configuration]]:
    """(what, before, after): another value, or without it and with it again."""
    old, new = json.loads(whole()), json.loads(whole())
    holder, last = at(new, key)
    if last.endswith("[]"):
        del holder[last[:-2]][0]
    elif section(key):
        del holder[last]
    elif last in NUMBERS:
        holder[last] = 2
    elif key.rpartition(".")[0] in lists() and lists()[key.rpartition(".")[0]] == last:
        return  # another name is another element
    else:
        holder[last] = "new"
    yield f"{key} goes, shrinks or differs", old, new
    yield f"{key} comes, grows or differs", new, old


def strategy(configuration: Configuration, name: str) -> Configuration:
    made = copy.deepcopy(configuration)
    made["Scheduling"]["SlurmSettings"]["QueueUpdateStrategy"] = name
    return made


def ours(before: Configuration, after: Configuration) -> list[Change]:
    def stack(configuration: Configuration) -> dict[str, Any]:
        properties = {"ClusterName": "parallelcluster-p5", "ClusterConfiguration": configuration}
        return {"s": {"Resources": {"C": {"Type": CLUSTER, "Properties": properties}}}}

    return blast_radius(stack(before), stack(after))


def goes_through(changes: list[Change]) -> bool:
    return not any(one.refused or one.verdict is Verdict.SCALE_TO_ZERO for one in changes)


def running(before: Configuration) -> list[str]:
    return [pool["Name"] for pool in before.get("LoginNodes", {}).get("Pools", ()) if pool["Count"]]


OF_STRATEGY = ("Scheduling.SlurmQueues", "SharedStorage", "DevSettings.EfaInterfaceType")
"""Keys to whose policy the strategy matters."""
NOT_COMPARED = ("SlurmQueues[].Name", "Scheduling", "Scheduling.SlurmQueues[].ComputeResources[].Name")
"""`Scheduling` has the strategy itself in it; without it the package's checker ends with an error."""


ENDS = {"SharedStorage[].MountDir", "SharedStorage[].FsxLustreSettings"}
"""Keys of which the package's own checker ends with an error while nodes run."""


def test_each_key_is_judged_as_by_the_package() -> None:
    cases = [
        (f"{what}, {name}", strategy(old, name), strategy(new, name))
        for key in policies()
        if key not in NOT_COMPARED and not key.startswith("Scheduling.SlurmSettings.QueueUpdateStrategy")
        and key != "Scheduling.SlurmSettings"
        for what, old, new in changed(key)
        for name in (STRATEGIES if key.startswith(OF_STRATEGY) else STRATEGIES[1:2])
    ]  # fmt: skip
    asked = [
        {"before": old, "after": new, "compute": True, "login": running(old), "region": "us-east-1"}
        for _, old, new in cases
    ]
    answers = package_updates(asked)
    ended = {
        what.split()[0] for (what, *_), said in zip(cases, answers, strict=True) if said["allowed"] is None
    }
    assert ended == ENDS
    judged = [ours(old, new) for _, old, new in cases]
    wrong = [
        f"{what}: the package says {'yes' if said['allowed'] else said['refused']}, we "
        f"{[(one.path, one.verdict.value, one.reason) for one in mine][:3]}"
        for (what, *_), said, mine in zip(cases, answers, judged, strict=True)
        if said["allowed"] is not None and goes_through(mine) is not said["allowed"]
    ]
    assert wrong == []
    assert len(cases) > 900
    assert {said["allowed"] for said in answers} == {True, False, None}


DATABASE = {"kind": "rds-mysql", "second_zone_id": "usw2-az1"}
OPENZFS = {"deployment": "single-az-2", "capacity_gib": 512, "throughput_mbps": 160}
GROUP = {"role": "compute", "instance_type": "p5.48xlarge", "count": 1, "partition": "train"}
POOL = {"role": "login", "instance_type": "m7i.xlarge", "count": 1}
DIRECTORY = {
    "domain_name": "corp.example.com",
    "domain_address": "ldaps://corp.example.com",
    "password_secret_arn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:reader-AbCdEf",
    "read_only_user": "cn=reader,dc=corp,dc=example,dc=com",
}
Q = "orchestrator.queue_update"
STOP = "update-compute-fleet --cluster-name parallelcluster-p5 --region us-west-2 --status STOP_REQUESTED"
ASKED: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    # what the environment had, what it has now, the worst verdict, words
    ({}, {"node_groups.more.max_count": 8}, "in place", "more nodes may be launched"),
    ({}, {"node_groups.more.max_count": 2}, "needs scale-to-zero", STOP),
    ({Q: "terminate"}, {"node_groups.more.max_count": 2}, "rolling", "at once"),
    ({}, {"node_groups.more.count": 2}, "needs scale-to-zero", "in the way"),
    ({}, {"node_groups.more.count": 2, "node_groups.more.max_count": 6}, "in place", "nodes are added"),
    ({}, {"node_groups.extra": GROUP}, "in place", "a new compute resource"),
    ({"node_groups.extra": GROUP}, {"node_groups.extra": ...}, "needs scale-to-zero", "ends with its nodes"),
    ({}, {"node_groups.more.placement_group": "none"}, "needs scale-to-zero", "placement group of Para"),
    ({"node_groups.more.placement_group": "none"}, {"node_groups.more.placement_group": ...}, "rolling",
     "after their jobs"),
    ({}, {"node_groups.reserved.root_volume_gib": 300, "node_groups.more.root_volume_gib": 300}, "rolling",
     "after their jobs"),
    ({Q: "terminate"}, {"node_groups.reserved.root_volume_gib": 300, "node_groups.more.root_volume_gib": 300},
     "rolling", "at once"),
    ({}, {"node_groups.more.instance_type": "p5en.48xlarge"}, "needs scale-to-zero", STOP),
    ({}, {"node_groups.head.instance_type": "m7i.8xlarge"}, "refused", "keeps its instance type"),
    ({}, {"node_groups.head.root_volume_gib": 400}, "refused", "keeps its disks"),
    ({}, {"node_groups.login.count": 3}, "in place", "login nodes"),
    ({}, {"node_groups.login.instance_type": "m7i.2xlarge"}, "needs scale-to-zero", "login group `login`"),
    ({"node_groups.login.count": 0}, {"node_groups.login.instance_type": "m7i.2xlarge"}, "in place", "makes"),
    ({}, {"node_groups.data": POOL}, "in place", "a login pool"),
    ({"node_groups.data": POOL}, {"node_groups.data": ...}, "needs scale-to-zero",
     "groups `login` and `data`"),
    ({}, {"orchestrator.scaledown_minutes": 5}, "needs scale-to-zero", STOP),
    ({}, {"orchestrator.monitoring.detailed": False}, "needs scale-to-zero", STOP),
    ({}, {"orchestrator.monitoring.dashboard": False}, "in place", "where it is"),
    ({}, {"orchestrator.slurm_settings.KillWait": 90}, "in place", "nodes go on"),
    ({}, {"orchestrator.partitions.train.gpu_health_checks": True}, "in place", "from now on"),
    ({}, {"orchestrator.bootstrap_timeout_minutes": 20}, "refused", "HeadNodeBootstrapTimeout"),
    ({}, {"orchestrator.default_user_home": "shared"}, "refused", "DefaultUserHome"),
    ({}, {"orchestrator.head_storage": "efs"}, "refused", "SharedStorage"),
    ({}, {"orchestrator.efa_interface": "efa"}, "needs scale-to-zero", STOP),
    ({}, {"orchestrator.directory_service": DIRECTORY}, "needs scale-to-zero", "`count: 0` for the login"),
    ({}, {"orchestrator.queue_update": "terminate"}, "in place", "counts for this update"),
    ({}, {"storage.openzfs": ...}, "refused", "/home stays"),
    ({"storage.openzfs.mount_path": "/scratch2"}, {"storage.openzfs": ...}, "jobs at risk", "unmount"),
    ({"storage.openzfs": ...}, {"storage.openzfs": {**OPENZFS, "mount_path": "/scratch2"}}, "in place",
     "mount it, too"),
    ({"storage.accounting_database": ...}, {"storage.accounting_database": DATABASE},
     "needs scale-to-zero", STOP),
    ({}, {"tags.team": "a"}, "in place", "where it is"),
]  # fmt: skip


def rendered(changes: dict[str, Any]) -> Configuration:
    environment = loaded(changed_data(SHIPPED, changes)).environment
    return cluster_configuration(resolve(environment), deployed(environment))


def test_environments_that_change_take_what_the_package_says() -> None:
    pairs = [(rendered(old), rendered({**old, **new})) for old, new, *_ in ASKED]
    asked = [
        {"before": old, "after": new, "compute": True, "login": running(old), "region": "us-west-2"}
        for old, new in pairs
    ]
    answers = package_updates(asked)
    for (was, now, verdict, words), (old, new), said in zip(ASKED, pairs, answers, strict=True):
        changes = ours(old, new)
        assert changes[0].verdict.value == verdict, (was, now, changes)
        assert any(words in one.reason for one in changes if one.verdict == verdict), (now, changes)
        assert goes_through(changes) is said["allowed"], (was, now, said)


def test_the_table_is_what_the_package_says() -> None:
    made = tool.document()
    assert json.loads(tool.TABLE.read_text(encoding="utf-8")) == made, "run tools/parallelcluster_updates.py"
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(made)


def test_every_policy_has_words() -> None:
    assert set(policies().values()) <= set(tool.WORDS)
