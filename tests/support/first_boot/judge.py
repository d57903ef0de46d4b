"""Whether a node did what the plan says: component by component, step by step, and in its last line.

A rehearsal has none but the plan's reasons to end with another word than READY. What the sandbox itself
gets wrong is a difference, too: so a node can be told from a sandbox that is not like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from first_boot.contents import Contents
from first_boot.rehearsal import Boot, Outcome, found_on

from ultracluster.catalog.images import Fact, Image
from ultracluster.config.orchestrator import KUBERNETES
from ultracluster.model.own_steps import steps_of_group
from ultracluster.software.first_boot import node_of
from ultracluster.software.fit import Fit, fit, in_matrix
from ultracluster.software.last_word import last_word

_NOT_OURS = frozenset({"slurm"})
"""What the orchestrator starts and stops: no step of ours reports it."""
WELL = frozenset({"installed", "already", "skipped"})
"""States of a step that did what it is for."""
_OLDER = re.compile(r"([a-z0-9-]+) \S+ \(the release has [^)]+\)")
_NUMBERS = re.compile(r"\d+(\.\d+)*")
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
    """A line for each thing that the node did or said otherwise than predicted."""
    yield from _of_components(boot, outcome, predicted)
    yield from of_newer(boot.title, outcome)
    if outcome.status == 0:
        yield from _of_the_end(boot, outcome, predicted)
        yield from _of_devices(boot, outcome)


def lacking(boot: Boot, predicted: tuple[Fit, ...]) -> set[str]:
    """The components without which the node joins, as the plan says; empty where it is to be READY."""
    return {one.component for one in predicted if (_in_vain(boot, one) or one.outcome) == "degraded"}


def _of_the_end(boot: Boot, outcome: Outcome, predicted: tuple[Fit, ...]) -> Iterator[str]:
    """Word and reasons of the last line, and the state of each step."""
    word = last_word(outcome.last_line)
    if word is None:
        yield f"{boot.title}: the last line has no word: {outcome.last_line!r}"
        return
    planned = lacking(boot, predicted)
    state = "degraded" if planned else "ready"
    if word.state != state or set(word.degraded) != planned:
        reasons = ", ".join(sorted(planned)) or "nothing"
        yield f"{boot.title}: plan says {state} without {reasons}, the node: {outcome.last_line}"
    older = set(_OLDER.findall(outcome.last_line))
    if older != (kept := {one.component for one in predicted if one.older}):
        reasons = ", ".join(sorted(kept)) or "nothing"
        yield f"{boot.title}: plan says that {reasons} stays older, the node: {outcome.last_line}"
    end = outcome.report[-1]
    if (end.get("state"), list(end.get("degraded", ()))) != (word.state, list(word.degraded)):
        yield f"{boot.title}: the report ends with {end}, the last line is {outcome.last_line}"
    own = {step.name for step in steps_of_group(boot.config, boot.group)}
    lost = {name.replace("-", "_") for name in planned}
    for line in outcome.report:
        if "step" not in line or line["step"] in own or line["state"] in WELL:
            continue
        if not lost & {name.replace("-", "_") for name in (line.get("components") or {line["step"]: ""})}:
            yield f"{boot.title}: {line['step']}: {line['state']}: {line['message']}"


def _of_devices(boot: Boot, outcome: Outcome) -> Iterator[str]:
    """What the health checks of the boot found, and what the last step counted: all of it is there."""
    for name, line in outcome.checks.items():
        if line["result"] != "ok":
            code = line.get("code", "")
            yield f"{boot.title}: health check {name}: {line['result']} {code}: {line.get('detail', '')}"
    _, message = outcome.said.get("proof", ("", ""))
    for name, found, expected in re.findall(r"(\w+)=(\d+)/(\d+)", message):
        if found != expected:
            yield f"{boot.title}: proof: {name} is {found}, {expected} should be there"


def _of_components(boot: Boot, outcome: Outcome, predicted: tuple[Fit, ...]) -> Iterator[str]:
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


def of_newer(title: str, outcome: Outcome) -> Iterator[str]:
    """Kept components that are newer than the release, where the node's report does not say so."""
    for name, entry in outcome.components.items():
        found, preferred = (_NUMBERS.match(entry[key]) for key in ("found", "preferred"))
        if entry["outcome"] != "kept" or not found or not preferred:
            continue
        newer = [*map(int, found[0].split("."))] > [*map(int, preferred[0].split("."))]
        # `13.2.1` of a release that names the series `13.2` is that version
        newer = newer and not found[0].startswith(f"{preferred[0]}.")
        if newer is not entry["detail"].startswith(f"kept-newer: the release has {entry['preferred']}"):
            yield f"{title}: {name} is {entry['found']}, newer than the release, the node: {entry['detail']}"


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
