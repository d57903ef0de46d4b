"""Slurm's topology: switches and UltraServers as `topology.yaml`.

What makes it is one file that head nodes run, too (`lifecycle_scripts/files/topology.py`); here it has types.

places = {"n1": place_of_instance(answer["Instances"][0])}
as_yaml(tree(["n1", "n2"], places))   # n2 is below the leaf `unplaced`
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from runpy import run_path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypedDict

from ultracluster.scripts_folder import scripts_folder


class Place(TypedDict):
    """Where a node is."""

    path: list[str]
    """Ids of its switches, from the root to the leaf; empty where only the block is known."""
    block: str | None
    """The domain that NVLink joins: id of a Capacity Block's UltraServer."""


class Tree(TypedDict):
    """Switches."""

    tree: list[dict[str, Any]]
    """With `children` or `nodes`, leaves first and the root last."""


class Blocks(TypedDict):
    """UltraServers."""

    blocks: list[dict[str, Any]]
    """With their `nodes`."""
    size: int
    """Nodes of a block."""


class Labelled(NamedTuple):
    """One node of HyperPod's resource_config.json."""

    names: frozenset[str]
    """Slurm's name (`ip-10-1-0-21`), instance id, address, and HyperPod's name of the instance."""
    group: str
    place: Place | None


def place_of_instance(instance: object) -> Place | None:
    """The place in an entry of DescribeInstanceTopology's `Instances`; None where it tells nothing."""
    return _program().place_of_instance(instance)


def tree(nodes: Collection[str], places: Mapping[str, Place]) -> Tree:
    """A tree of all nodes.

    Args:
        nodes: Slurm's names of all nodes of the cluster.
        places: by node; a node without one is below the leaf `unplaced`.

    Raises:
        ValueError: a name that Slurm would not read as one node, or no node at all.
    """
    return _program().tree(nodes, places)


def blocks(nodes: Collection[str], places: Mapping[str, Place], *, size: int) -> Blocks:
    """Blocks of all nodes; nodes without an UltraServer share blocks of their own.

    Args:
        nodes: as of `tree`.
        places: by node.
        size: instances of one UltraServer: 18 of u-p6e-gb200x72.

    Raises:
        ValueError: as `tree`, or no size.
    """
    return _program().blocks(nodes, places, size)


def faults(topology: Tree | Blocks, nodes: Collection[str]) -> Sequence[str]:
    """Why Slurm must not read it: a node not once, two of one name, not one root, too deep. None for what is
    made here."""
    return _program().faults(topology, nodes)


def as_yaml(topology: Tree | Blocks) -> str:
    """`topology.yaml`, which Slurm reads from 25.05 on."""
    return _program().as_yaml(topology)


def natural(name: str) -> list[tuple[int, str]]:
    """Sorts `node-2` before `node-10`."""
    return _program().natural(name)


def labelled_nodes(resource_config: object) -> list[Labelled]:
    """The nodes of HyperPod's `/opt/ml/config/resource_config.json`, in its order.

    What has another form than the service writes is left out: an answer without nodes is empty.
    """
    labelled: list[Labelled] = []
    for group in _rows(resource_config, "InstanceGroups"):
        for instance in _rows(group, "Instances"):
            address = str(instance.get("CustomerIpAddress") or "")
            names = {address, str(instance.get("InstanceId") or ""), str(instance.get("InstanceName") or "")}
            names |= {f"ip-{address.replace('.', '-')}"} if address else set()
            place: Place | None = _program().place_of_labels(instance.get("InstanceLabel"))
            labelled.append(Labelled(frozenset(names - {""}), str(group.get("Name") or ""), place))
    return [one for one in labelled if one.names]


def _rows(document: object, key: str) -> list[dict[str, Any]]:
    rows: object = document.get(key) if isinstance(document, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []  # pyright: ignore[reportUnknownVariableType]


@cache
def _program() -> Any:
    """The file of the nodes; Any, because they run it with a Python that has no such types."""
    # run, not imported: an import would leave compiled Python among the scripts
    return SimpleNamespace(**run_path(str(scripts_folder() / "files" / "topology.py")))
