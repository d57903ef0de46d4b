"""Whether a node did what the plan says: component by component, and in its last line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from first_boot.contents import Contents
from first_boot.rehearsal import Boot, Outcome, found_on

from ultracluster.catalog.images import Fact, Image
from ultracluster.config.orchestrator import KUBERNETES
from ultracluster.software.first_boot import node_of
from ultracluster.software.fit import Fit, fit, in_matrix

_NOT_OURS = frozenset({"slurm"})
"""What the orchestrator starts and stops: no step of ours reports it."""
_SAID = {
    "not-needed": "nothing",
    "kept": "kept",
    "installs": "installed",
    "degraded": "degraded",
    "refuses": "refused",
}


def decided(image: Image, found: Contents) -> Image:
    """The record with every value as the sandbox has it."""
    values: dict[str, Fact | None] = {}
    for field, value in found.items():
        said = image.values[field]
        mark = said.mark if said else "confirmed"
        values[field] = Fact(value if value else False, mark, said.source if said else "rehearsal", "", "")
    return replace(image, values=values)


def differences(boot: Boot, outcome: Outcome, predicted: tuple[Fit, ...]) -> Iterator[str]:
    """A line for each component that the node treated otherwise than predicted."""
    said = outcome.components
    for one in predicted:
        if one.component in _NOT_OURS:
            continue
        told = said.get(one.component, {}).get("outcome", "nothing")
        if one.outcome == "not-needed" and told in ("nothing", "not-needed"):
            continue
        if told != (_in_vain(boot, one) or _SAID[one.outcome]):
            yield (
                f"{boot.title}: {one.component}: plan says {one.outcome} ({one.detail}), the node {told} "
                f"({said.get(one.component, {}).get('detail', '')})"
            )


def _in_vain(boot: Boot, one: Fit) -> str:
    """What the node says where the plan says "is tried" and no repository has a module; else nothing."""
    kernel = found_on(boot)["kernel"]
    if one.component != "lustre-client" or one.outcome != "installs" or boot.variant.repositories == "offer":
        return ""
    if kernel is None or in_matrix(boot.image.os, kernel):
        return ""
    assert "is tried" in one.detail, one
    # On Kubernetes a node without Lustre still takes pods that need none.
    return "degraded" if boot.node.orchestrator in KUBERNETES else "refused"


def prediction(boot: Boot) -> tuple[Fit, ...]:
    """What `plan` would say if the record knew all that the sandbox has."""
    return fit(
        decided(boot.image, found_on(boot)),
        boot.release,
        node_of(boot.config, boot.config.node_groups[boot.group]),
    )
