"""What is meant by accelerators and types that people name: which instance type, how many nodes, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ultracluster.catalog import (
    InstanceType,
    instance_type,
    instance_types,
    nearest_instance_types,
    ultraserver,
)
from ultracluster.catalog.accelerators import (
    Accelerators,
    most_in_one,
    nearest_accelerators,
    read_accelerators,
    types_with,
)
from ultracluster.catalog.instance_facts import UltraServer
from ultracluster.catalog.instances import example_type, families
from ultracluster.config.nodes import MOST_NODES
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.plan.draft_place import type_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A type and a number of nodes."""

    instance_type: str
    nodes: int | None = None
    """None where nothing says how many."""
    reason: str = ""
    """Why it is this type and so many; empty where they were asked for as such."""


def nodes_with(
    accelerators: Accelerators, orchestrator: OrchestratorKind | None = None, region: str = ""
) -> Sized:
    """The type and the number of nodes for so many accelerators.

    Raises:
        ValueError: no type has them, or there are none or too many of them.
    """
    alike = types_with(accelerators.name)
    found = type_for(accelerators, orchestrator, region)
    if found is None or found.accelerator is None:
        _refuse_announced(accelerators.name)
        near = " or ".join(nearest_accelerators(accelerators.name))
        raise ValueError(f"No instance type has {accelerators.name}. Did you mean {near}?")
    each = found.accelerator.count
    if not 1 <= accelerators.count <= each * MOST_NODES:
        raise ValueError(f"1 to {each * MOST_NODES:,} of them, which {MOST_NODES} nodes of {found.name} have")
    nodes = math.ceil(accelerators.count / each)
    more = nodes * each - accelerators.count
    name = found.accelerator.name
    reason = f"{accelerators.count} x {name} asked for, and {found.name} has {each} of them"
    if len(alike) > 1:
        reason += f"; also in {', '.join(one.name for one in alike if one is not found)}"
    reason += f". The nodes have {more} more than asked for" if more else ""
    return Sized(instance_type=found.name, nodes=nodes, reason=reason)


def type_called(
    text: str, orchestrator: OrchestratorKind | None = None, region: str = ""
) -> InstanceType | None:
    """A type by its own name, or the usual one with the accelerators of this name: `h100`."""
    if types_with(text):
        return type_for(Accelerators(count=most_in_one(text), name=text), orchestrator, region)
    return instance_type(text)


def ultraserver_called(text: str) -> UltraServer | None:
    """The UltraServer of a name as EC2 or HyperPod writes it, if AWS has published it."""
    server = ultraserver(text.strip().lower().removeprefix("ml."))
    return server if server and server.published else None


def read_type(text: str, orchestrator: OrchestratorKind | None = None, region: str = "") -> Sized:
    """Meaning of a name of EC2, `h100`, `64xH100` or an UltraServer; the last two give the number of nodes.

    Raises:
        ValueError: nothing that is known, or only announced; the message names the nearest.
    """
    accelerators = read_accelerators(text)
    if accelerators and types_with(accelerators.name):
        return nodes_with(accelerators, orchestrator, region)
    if (server := ultraserver_called(text)) and server.member:
        reason = f"{text} is asked for, which is {server.instances} x {server.member}"
        return Sized(instance_type=server.member, nodes=server.instances, reason=reason)
    found = type_called(text, orchestrator, region)
    if found is None:
        _refuse_announced(text)
        near = " or ".join(nearest_instance_types(text)) or example_type()
        raise ValueError(f"Unknown instance type {text!r}. Did you mean {near}?")
    if found.name == text:
        return Sized(instance_type=text)
    return Sized(instance_type=found.name, reason=f"{text} is asked for, which {found.name} has")


def _refuse_announced(text: str) -> None:
    """Say how to plan with what AWS has announced and not published.

    Raises:
        ValueError: the name means such a type.
    """
    if name := _announced(text):
        raise ValueError(
            f"{text!r} is announced, and EC2's API does not have its name ({name}). Declare it: "
            "`instance_types:` of the environment file, as environments/announced/types.yaml does "
            "(docs/wishes/announced-types.md)"
        )


def _announced(text: str) -> str:
    """The family or UltraServer that AWS has announced and not published, which a name means; or none.

    `trn3.48xlarge`, `p6e-gb300`, `u-p6e-gb300x72`, `GB300` and `72xTrainium3` are such names.
    """
    accelerators = read_accelerators(text)
    name = (accelerators.name if accelerators else text).strip().lower().removeprefix("ml.")
    family = name.removeprefix("nvidia ").replace("trainium", "trn").partition(".")[0].removeprefix("u-")
    published = {one.family for one in instance_types().values()}
    names = sorted({one for one in families() if one not in published}, key=len, reverse=True)
    found = next((one for one in names if family.startswith(one)), "")
    return found or next((one for one in names if len(family) > 3 and one.endswith(f"-{family}")), "")
