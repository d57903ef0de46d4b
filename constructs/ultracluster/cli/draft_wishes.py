"""From flags and answers to what `ultracluster init` drafts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from ultracluster.catalog import instance_type, nearest_instance_types, nearest_regions, region
from ultracluster.catalog.accelerators import (
    Accelerators,
    most_in_one,
    nearest_accelerators,
    read_accelerators,
    types_with,
)
from ultracluster.cli.questions import Word, ask, ask_one_of
from ultracluster.cli.report import refuse
from ultracluster.config.nodes import MOST_NODES
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.plan.draft import ORCHESTRATORS, Wishes
from ultracluster.plan.draft_place import (
    CAPACITIES,
    NoZoneError,
    capacities,
    capacity_for,
    regions_for,
    type_for,
    zone_for,
    zones_for,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What stands on the command line; None or empty is left out."""

    instance_type: str | None
    nodes: int | None
    accelerators: str | None
    orchestrator: str | None
    region: str | None
    zone_id: str | None
    name: str | None
    capacity: str | None
    capacity_id: str
    lustre_tib: float | None
    image: str
    admin: str


def wishes_of(given: Given, *, asks: bool, why: str = "") -> Wishes:
    """What is wanted: by flags, else by answers, else by default. What is wrong ends with exit code 2.

    Args:
        given: the flags.
        asks: somebody can answer.
        why: the flag because of which nobody is asked.
    """
    _refuse_missing(given, asks, why)
    _refuse_wrong(given)
    answers = _Answers(asks)
    asked = _sized(given)
    kind = asked[0] or answers.of(
        given.instance_type,
        "Instance type or accelerators of the compute nodes",
        "p5en.48xlarge",
        _type_or_sum,
    )
    nodes = asked[1]
    if isinstance(kind, Accelerators):
        asked = _chosen(kind, None, "")
        kind, nodes = asked[0], asked[1]
    nodes = nodes or answers.of(given.nodes, "Compute nodes", 8, _count)
    orchestrator: OrchestratorKind = answers.one_of(
        cast("OrchestratorKind | None", given.orchestrator),
        "Orchestrator, which `ultracluster choose` helps with", ORCHESTRATORS, "hyperpod-slurm",
    )  # fmt: skip
    offered = sorted(regions_for(kind, orchestrator), key=lambda one: one != "us-east-2") or ["us-east-2"]
    place = answers.of(given.region, f"Region with {kind}", offered[0], _region)
    wishes = Wishes(
        region=place, orchestrator=orchestrator, instance_type=kind, nodes=nodes,
        capacity_id=given.capacity_id, image=given.image, admin=given.admin, type_reason=asked[2],
    )  # fmt: skip
    wishes = replace(
        wishes, zone_id=_zone(answers, given, wishes), capacity=_capacity(answers, given, wishes)
    )
    tib = given.lustre_tib
    if tib is None and asks:
        tib = ask("Lustre in TiB, 0 for none", "sized for checkpoints", kind=_tib)
    return replace(wishes, lustre_tib=tib, name=answers.of(given.name, "Name of the environment", "train"))


class _Answers:
    """What was given by flags, asked for, or left to the defaults."""

    def __init__(self, asks: bool) -> None:
        self.asks = asks

    def of(self, given: Any, question: str, default: Any, kind: Callable[[str], Any] = str) -> Any:
        """What was given, else the answer, else the default."""
        if given is not None or not self.asks:
            return default if given is None else given
        return ask(question, default, kind=kind)

    def one_of(self, given: Word | None, question: str, choices: tuple[Word, ...], default: Word) -> Word:
        """The same, of some choices; of any, where none is known."""
        if given is not None or not self.asks or not choices:
            return self.of(given, question, default)
        return ask_one_of(question, choices, default)


def _refuse_missing(given: Given, asks: bool, why: str) -> None:
    if asks:
        return
    needed = {"--instance-type": given.instance_type, "--nodes": given.nodes}
    if given.accelerators is not None:
        needed = {}
    missing = [
        flag
        for flag, value in (needed | {"--orchestrator": given.orchestrator, "--region": given.region}).items()
        if value is None
    ]
    if missing:
        refuse(
            f"missing: {', '.join(missing)}. Nobody can be asked ({why or 'standard input is no terminal'}), "
            "so these flags are needed"
            + ("; --accelerators 64xH100 says type and number" if "--instance-type" in missing else "")
        )


def _refuse_wrong(given: Given) -> None:
    """Flags that no draft could be made of."""
    texts = {
        "--instance-type": given.instance_type, "--zone-id": given.zone_id, "--name": given.name,
        "--capacity-id": given.capacity_id, "--image": given.image, "--admin": given.admin,
    }  # fmt: skip
    for flag, value in texts.items():
        if value and not value.isprintable():
            refuse(f"{flag} {value!r}: write it in one line, without characters that cannot be seen")
    for flag, value, known in (
        ("--orchestrator", given.orchestrator, ORCHESTRATORS),
        ("--capacity", given.capacity, CAPACITIES),
    ):
        if value is not None and value not in known:
            refuse(f"{flag} {value}: write one of {', '.join(known)}")
    checks: tuple[tuple[str, Any, Callable[[str], Any]], ...] = (
        ("--nodes", given.nodes, _count),
        ("--region", given.region, _region),
        ("--lustre-tib", given.lustre_tib, _tib),
    )
    for flag, value, check in checks:
        if value is not None:
            try:
                check(str(value))
            except ValueError as error:
                refuse(f"{flag} {value}: {error}")
    if given.accelerators is not None:
        if given.instance_type is not None or given.nodes is not None:
            refuse(
                "--accelerators says type and number of nodes: leave out --instance-type and --nodes, or it"
            )
        if read_accelerators(given.accelerators) is None:
            refuse(f"--accelerators {given.accelerators}: write a number and a name: 64xH100, 512xB200")


def _sized(given: Given) -> tuple[str, int | None, str]:
    """Type, number of nodes and the reason, of `--accelerators` or of an accelerator's name for a type."""
    orchestrator = cast("OrchestratorKind | None", given.orchestrator)
    if given.accelerators is not None and (asked := read_accelerators(given.accelerators)):
        try:
            return _chosen(asked, orchestrator, given.region or "")
        except ValueError as error:
            refuse(f"--accelerators {given.accelerators}: {error}")
    if given.instance_type is not None and instance_type(given.instance_type) is None:
        asked = read_accelerators(given.instance_type)
        if asked and types_with(asked.name):
            refuse(f"--instance-type {given.instance_type}: write --accelerators {given.instance_type}")
        if types_with(given.instance_type):
            kind = _type_with(given.instance_type, orchestrator, given.region or "")
            return kind, None, f"{given.instance_type} is asked for, which {kind} has"
    return given.instance_type or "", None, ""


def _chosen(asked: Accelerators, orchestrator: OrchestratorKind | None, place: str) -> tuple[str, int, str]:
    """The type and the number of nodes for so many accelerators.

    Raises:
        ValueError: no type has them, or there are none or too many of them.
    """
    alike = types_with(asked.name)
    found = type_for(asked, orchestrator, place)
    if found is None or found.accelerator is None:
        raise ValueError(
            f"no type with {asked.name} is known; like it: {', '.join(nearest_accelerators(asked.name))}"
        )
    each = found.accelerator.count
    if not 1 <= asked.count <= each * MOST_NODES:
        raise ValueError(f"1 to {each * MOST_NODES:,} of them, which {MOST_NODES} nodes of {found.name} have")
    nodes = math.ceil(asked.count / each)
    more = nodes * each - asked.count
    name = found.accelerator.name
    reason = f"{asked.count} x {name} asked for, and {found.name} has {each} of them"
    if len(alike) > 1:
        reason += f"; also in {', '.join(one.name for one in alike if one is not found)}"
    return found.name, nodes, reason + (f". The nodes have {more} more than asked for" if more else "")


def _type_with(name: str, orchestrator: OrchestratorKind | None, place: str) -> str:
    """The type with most accelerators of a name."""
    found = type_for(Accelerators(count=most_in_one(name), name=name), orchestrator, place)
    return found.name if found else name


def _zone(answers: _Answers, given: Given, wishes: Wishes) -> str:
    """Empty where the default is taken."""
    if given.zone_id is not None or not answers.asks:
        return given.zone_id or ""
    zones = zones_for(wishes.region, wishes.instance_type, wishes.orchestrator)
    try:
        usual = zone_for(wishes.region, wishes.instance_type, wishes.orchestrator).value
    except NoZoneError:
        usual = None
    zone = ask(f"Zone id ({', '.join(zones) or 'none is known'})", usual)
    return "" if zone == usual else zone


def _capacity(answers: _Answers, given: Given, wishes: Wishes) -> str:
    """Empty where the default is taken."""
    if given.capacity is not None or not answers.asks:
        return given.capacity or ""
    usual = capacity_for(wishes.orchestrator, wishes.instance_type, wishes.nodes, wishes.region).value
    sold = capacities(wishes.orchestrator, wishes.instance_type)
    capacity = ask_one_of("Capacity", sold or CAPACITIES, usual)
    return "" if capacity == usual else capacity


def _type_or_sum(text: str) -> str | Accelerators:
    """`p5.48xlarge`, `h100`, or `64xH100`."""
    if instance_type(text) is not None:
        return text
    asked = read_accelerators(text)
    if asked and types_with(asked.name):
        _chosen(asked, None, "")
        return asked
    if types_with(text):
        return _type_with(text, None, "")
    near = ", ".join(nearest_instance_types(text)) or "p5en.48xlarge"
    raise ValueError(f"no type {text!r} is known; like it: {near}")


def _region(text: str) -> str:
    if region(text) is None:
        near = ", ".join(nearest_regions(text)) or "us-east-2"
        raise ValueError(f"there is no Region {text!r}; like it: {near}")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_NODES:
        raise ValueError(f"a number of nodes, 1 to {MOST_NODES}")
    return int(text)


def _tib(text: str) -> float | None:
    if text.startswith("sized"):
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 100_000:
        raise ValueError("a number of TiB below 100,000, or 0 for none")
    return number
