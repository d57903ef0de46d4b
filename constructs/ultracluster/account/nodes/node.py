"""One node of any kind: how it is named and found, and what came of a request for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Literal, TypeVar

from ultracluster.account.aws import certainly_refused

T = TypeVar("T")

Action = Literal["reboot", "replace", "delete", "health-check"]
Result = Literal["accepted", "already", "would", "refused", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Node:
    """One node, as its service describes it."""

    id: str
    """EC2 or HyperPod instance id (`i-...`); empty while HyperPod still waits for an instance."""
    group: str
    status: str
    """As the service says it: HyperPod's `Running`, EC2's `running`, or a word newer than this release."""
    instance_type: str = ""
    """As EC2 writes it, without `ml.`."""
    logical_id: str = ""
    """HyperPod's name of the place that the instance fills; it survives a replacement."""
    dns: str = ""
    """Private host name, `ip-10-1-0-21.us-west-2.compute.internal`."""
    message: str = ""
    launched: datetime | None = None
    image: str = ""
    """Release of HyperPod's image, or AMI id."""
    image_status: str = ""
    controller: bool = False
    """Whether it runs the cluster: Slurm's controller or ParallelCluster's head node."""
    reserved: bool = False
    """Whether it fills a place in a Capacity Block or a capacity reservation."""
    patched: datetime | None = None
    """Last software update through HyperPod."""

    @property
    def name(self) -> str:
        return self.id or self.logical_id

    def answers_to(self, name: str) -> bool:
        """Return whether an operator may mean this node: instance id, logical id, `<group>-<instance id>`,
        private host name with or without its domain (Slurm's node name on HyperPod), or address."""
        host = self.dns.split(".")[0]
        return bool(name) and name in {
            self.id, self.logical_id, self.dns, host, host.removeprefix("ip-").replace("-", "."),
            f"{self.group}-{self.id}",
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request for one node."""

    node: str
    """Id of the node; the group, where the request is for one."""
    result: Result
    """`accepted` by AWS, `already` so (nothing to do), `would` be asked (dry run), `refused` before AWS was
    asked, `failed` in AWS, `unknown`: no answer came, and it may have been accepted."""
    why: str = ""
    group: str = ""

    @property
    def bad(self) -> bool:
        return self.result in ("refused", "failed", "unknown")


def result_of(error: BaseException) -> Result:
    """Return `failed` where AWS certainly refused a request, else `unknown`."""
    return "failed" if certainly_refused(error) else "unknown"


def chunks(items: Sequence[T], limit: int) -> Iterator[list[T]]:
    """The items in order, at most `limit` at a time, each exactly once."""
    for start in range(0, len(items), limit):
        yield list(items[start : start + limit])


def find(nodes: Iterable[Node], names: Iterable[str]) -> tuple[list[Node], list[str]]:
    """The nodes that are meant, each once and in the order asked, and the names that fit none."""
    listed = list(nodes)
    found: dict[str, Node] = {}
    missing: list[str] = []
    for name in dict.fromkeys(names):
        node = next((one for one in listed if one.answers_to(name)), None)
        if node is None:
            missing.append(name)
        else:
            found.setdefault(node.name, node)
    return list(found.values()), missing


def nearest(name: str, nodes: Iterable[Node]) -> str:
    """A clause that offers the closest name, or nothing."""
    names = [one for node in nodes for one in (node.id, node.logical_id, node.dns.split(".")[0]) if one]
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def entrance(nodes: Iterable[Node], logins: set[str]) -> Node | None:
    """Where people log in by default: a login node, else the controller, else any node that has come up.

    Args:
        logins: names of the groups that people log in to.
    """
    up = [node for node in nodes if node.id and node.status.lower() == "running"]
    ranked = sorted(up, key=lambda node: (node.group not in logins, not node.controller, node.name))
    return ranked[0] if ranked else None
