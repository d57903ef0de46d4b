"""The instance types of a node group: from the catalogue, or declared in the environment file."""

from __future__ import annotations

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.config import Environment
from ultracluster.config.instance_types import instance_type_of, made_from
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.remedy import Remedy, ask, write

__all__ = ["alike", "every_type_of", "instance_type_of", "made_from"]


def known_type_of(environment: Environment, group: NodeGroup) -> InstanceType:
    """The type of `group` in an environment that passed the rules: they let no unknown one pass."""
    known = instance_type_of(environment, group)
    assert known, f"{group.instance_type}: the rules let no unknown type pass"
    return known


def every_type_of(environment: Environment, group: NodeGroup) -> tuple[InstanceType | None, ...]:
    """What is known of the type of `group`, and of its further types; None for an unknown one."""
    return (
        instance_type_of(environment, group),
        *(
            instance_type_of(environment, group.model_copy(update={"instance_type": name}))
            for name in group.instance_types
        ),
    )


def alike(known: InstanceType, architecture: str, role: str) -> Remedy:
    """A type of `architecture` and about this size for a node that runs no jobs.

    For compute there is no simple exchange.
    """
    if role == "compute":
        return ask("decision", f"a second environment for these nodes, or a type that is {architecture}")
    prefix = "m7g." if architecture == "arm64" else "m7i."
    sizes = [one for one in instance_types().values() if one.name.startswith(prefix)]
    return write(min(sizes, key=lambda one: (abs(one.vcpu - known.vcpu), one.name)).name)
