"""HyperPod's software update: a new image under every node of a group, one group at a time.

UpdateClusterSoftware wipes root volumes, the controller's too, and runs the lifecycle scripts again
(SageMaker Developer Guide, "Update the SageMaker HyperPod platform software of a cluster").
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, explain
from ultracluster.account.nodes.hyperpod import LiveCluster, LiveGroup, read_cluster
from ultracluster.account.nodes.node import Outcome, result_of

BACKUP = (
    "root volumes are wiped, the controller's too. Before you go on, copy to the shared file system or S3: "
    "hand-made changes under /opt/slurm/etc, home directories that are not on a shared file system, and the "
    "accounting database if it runs on the controller (mysqldump slurm_acct_db)"
)
"""What to save first."""
EVERY = 30.0
"""Seconds between two looks; an update takes half an hour to an hour."""
MOST_ALARMS = 10
"""Alarms that can roll back an update (SageMaker API reference, DeploymentConfiguration)."""
_ORDER = {"controller": 0, "login": 1}
_BUSY = ("Pending", "InProgress", "RollbackInProgress")
_FAILED = ("Failed", "RollbackComplete")


@dataclass(frozen=True, slots=True)
class Rollout:
    """How many nodes of a group are updated at once."""

    batch_count: int | None = None
    """Nodes at once."""
    batch_percent: int | None = None
    """Percent of the group at once."""
    wait_seconds: int = 0
    """Pause before an old node is ended, 0-3600."""
    alarms: tuple[str, ...] = ()
    """CloudWatch alarms; one in alarm rolls back. At most 10."""

    @property
    def request(self) -> dict[str, Any]:
        """DeploymentConfig; empty updates a whole group at once."""
        config: dict[str, Any] = {}
        if self.batch_count is not None or self.batch_percent is not None:
            size = (
                {"Type": "INSTANCE_COUNT", "Value": self.batch_count}
                if self.batch_count is not None
                else {"Type": "CAPACITY_PERCENTAGE", "Value": self.batch_percent}
            )
            config["RollingUpdatePolicy"] = {"MaximumBatchSize": size}
        if self.wait_seconds:
            config["WaitIntervalInSeconds"] = self.wait_seconds
        if self.alarms:
            config["AutoRollbackConfiguration"] = [{"AlarmName": name} for name in self.alarms]
        return config


def check_forms(*, release: str | None, image: str | None, alarms: Sequence[str]) -> None:
    """What UpdateClusterSoftware takes (SageMaker API reference).

    Raises:
        ValueError: it would refuse the request; the message names the option.
    """
    if release and image:
        raise ValueError("Pass either --release or --image, not both.")
    if release and not re.fullmatch(r"\d+\.\d+\.\d+", release):
        raise ValueError(f"--release {release}: pass a version with three numbers, as 1.3.0")
    if image and not re.fullmatch(r"ami-[0-9a-f]{8,17}|default", image):
        raise ValueError(f"--image {image}: pass the id of an AMI, or `default`")
    if len(alarms) > MOST_ALARMS:
        raise ValueError(f"--rollback-alarm: pass at most {MOST_ALARMS} alarms, not {len(alarms)}")


def order(groups: Sequence[LiveGroup], roles: Mapping[str, str] = {}) -> list[LiveGroup]:
    """Controller, login, then compute: Slurm's daemons may be older than its controller, never newer
    (Slurm, "Upgrade Guide").

    Args:
        roles: roles of groups by name, for clusters whose roles the API does not know.
    """
    return sorted(
        groups,
        key=lambda group: (_ORDER.get(roles.get(group.name) or group.role.lower(), 2), group.name),
    )


def judge(
    cluster: LiveCluster,
    names: Sequence[str],
    *,
    release: str | None = None,
    image: str | None = None,
    force: bool = False,
    custom: Collection[str] = (),
    roles: Mapping[str, str] = {},
) -> list[Outcome]:
    """What would be updated, in order; `already` where a group has the image, `refused` with the reason.

    Args:
        names: groups; every one by default.
        release: wanted release of HyperPod's image, `major.minor.patch`; the newest by default.
        image: a custom AMI, or `default` to come back from one.
        force: update groups that are up to date, too.
        custom: groups that run a custom image, for which AWS requires the name of the next image.
        roles: roles of groups by name, for clusters whose roles the API does not know.
    """
    outcomes = [
        Outcome(
            name,
            "refused",
            f"no such group; there are {', '.join(group.name for group in cluster.groups)}",
            name,
        )
        for name in dict.fromkeys(names)
        if cluster.group(name) is None
    ]
    chosen = [group for group in cluster.groups if not names or group.name in names]
    for group in order(chosen, roles):
        outcomes.append(_judge_one(cluster, group, release, image, force, group.name in custom))
    return outcomes


def update(
    account: Account,
    cluster: LiveCluster,
    groups: Sequence[str],
    *,
    release: str | None = None,
    image: str | None = None,
    rollout: Rollout | None = None,
    timeout: float = 4 * 3600.0,
    report: Callable[[LiveGroup], None] = lambda group: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> list[Outcome]:
    """Update groups that `judge` lets through, each after the one before has succeeded.

    The cluster is read again before each request. A group that fails ends the run: the rest is not asked.

    Raises:
        AccountError: the cluster cannot be read any more; what was asked goes on all the same.
    """
    sagemaker = account.client("sagemaker")
    outcomes: list[Outcome] = []
    for number, name in enumerate(groups):
        now = read_cluster(account, cluster.name)
        stop, result = _cluster_stop(now), "failed"
        if not stop:
            specification = {"InstanceGroupName": name}
            if release:
                specification["ImageReleaseVersion"] = release
            request: dict[str, Any] = {"ClusterName": cluster.name, "InstanceGroups": [specification]}
            if image:
                request["ImageId"] = image
            if rollout and rollout.request:
                request["DeploymentConfig"] = rollout.request
            try:
                sagemaker.update_cluster_software(**request)
            except AWS_ERRORS as error:
                stop, result = explain(error), result_of(error)
        if stop:
            outcomes.append(Outcome(name, result, stop, name))
        else:
            outcomes.append(_wait(account, cluster, name, timeout, report, sleep, clock))
        if outcomes[-1].bad:
            known = outcomes[-1].result != "unknown"
            why = f"{name} failed" if known else f"it is not known whether {name} is"
            rest = [
                Outcome(group, "refused", f"not updated, because {why}", group)
                for group in groups[number + 1 :]
            ]
            return outcomes + rest
    return outcomes


def _wait(
    account: Account,
    cluster: LiveCluster,
    name: str,
    timeout: float,
    report: Callable[[LiveGroup], None],
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> Outcome:
    start = clock()
    begun = False
    while True:
        state = read_cluster(account, cluster.name)
        group = state.group(name)
        if group is None:
            return Outcome(name, "failed", "the group is no longer in the cluster", name)
        report(group)
        busy = group.update in _BUSY or state.status != "InService"
        # the status of the update before may still be there in the first minute
        begun = begun or busy or clock() - start >= 2 * EVERY
        if begun and not busy:
            if group.update in _FAILED:
                return Outcome(
                    name, "failed", f"{group.update}; run `ultracluster doctor` for the cause", name
                )
            return Outcome(name, "accepted", f"{group.update or 'updated'} {group.image}".strip(), name)
        if state.status in ("Failed", "Deleting"):
            return Outcome(name, "failed", f"the cluster is {state.status}: {state.failure}", name)
        if clock() - start >= timeout:
            return Outcome(
                name,
                "unknown",
                f"still {group.update or state.status}; the update is still running in AWS",
                name,
            )
        sleep(EVERY)


def _cluster_stop(cluster: LiveCluster) -> str:
    if cluster.status == "InService":
        return ""
    return f"the cluster is {cluster.status}; software is updated when it is InService"


def _judge_one(
    cluster: LiveCluster, group: LiveGroup, release: str | None, image: str | None, force: bool, custom: bool
) -> Outcome:
    def say(result: Any, why: str) -> Outcome:
        return Outcome(group.name, result, why, group.name)

    stop = _cluster_stop(cluster)
    if stop:
        return say("refused", stop)
    if group.update in _BUSY:
        return say("already", f"an update is under way ({group.update})")
    if group.status != "InService" and group.minimum:
        return say("refused", f"is {group.status} towards its minimum count; wait until it is InService")
    if custom and not image:
        return say("refused", "runs a custom image: name the next one with --image, or `default`")
    if not force and image and image == group.image_id:
        return say("already", f"runs {image}")
    if not force and release and release == group.image:
        return say("already", f"runs {release}")
    if not force and not release and not image and group.image_status == "UpToDate":
        return say("already", f"runs the newest image {group.image}".strip())
    wanted = image or release or "the newest image"
    have = group.image or group.image_id
    return say("would", f"{have} -> {wanted}" if have else f"-> {wanted}")
