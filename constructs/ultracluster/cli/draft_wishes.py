"""From flags and answers to what `ultracluster init` drafts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from ultracluster.catalog import nearest_regions, region
from ultracluster.catalog.accelerators import read_accelerators
from ultracluster.catalog.instances import example_type
from ultracluster.cli.questions import Word, ask, ask_one_of
from ultracluster.cli.report import refuse
from ultracluster.config.nodes import MOST_NODES
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.plan.choice import CAPACITIES
from ultracluster.plan.draft import ORCHESTRATORS, Wishes
from ultracluster.plan.draft_place import (
    NoZoneError,
    capacities,
    capacity_for,
    regions_for,
    zone_for,
    zones_for,
)
from ultracluster.plan.draft_size import Sized, nodes_with, read_type, ultraserver_called

DEFAULT_ORCHESTRATOR: OrchestratorKind = "hyperpod-slurm"
DEFAULT_REGION = "us-east-2"
DEFAULT_NODES = 8


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
    usual_name: str = "train"
    """Default of the question for the name."""
    capacity: str | None
    capacity_id: str
    lustre_tib: float | None
    image: str
    admin: str


def wishes_of(given: Given, *, asks: bool, why: str = "") -> Wishes:
    """What to draft: by flags, else by answers, else by default. What is wrong ends with exit code 2.

    Args:
        given: the flags.
        asks: a person can answer questions.
        why: the flag that forbids questions.
    """
    _refuse_missing(given, asks, why)
    _refuse_wrong(given)
    answers = _Answers(asks)
    sized = _sized(given)
    if not sized.instance_type:
        question = "Instance type or accelerators of the compute nodes"
        sized = ask(question, example_type(), kind=read_type)
    kind = sized.instance_type
    nodes = sized.nodes or answers.of(given.nodes, "Compute nodes", DEFAULT_NODES, _count)
    orchestrator: OrchestratorKind = answers.one_of(
        cast("OrchestratorKind | None", given.orchestrator),
        "Orchestrator, which `ultracluster choose` helps with", ORCHESTRATORS, DEFAULT_ORCHESTRATOR,
    )  # fmt: skip
    place = answers.of(given.region, f"Region with {kind}", _regions(kind, orchestrator)[0], _region)
    wishes = Wishes(
        region=place, orchestrator=orchestrator, instance_type=kind, nodes=nodes,
        capacity_id=given.capacity_id, image=given.image, admin=given.admin, type_reason=sized.reason,
    )  # fmt: skip
    wishes = replace(
        wishes, zone_id=_zone(answers, given, wishes), capacity=_capacity(answers, given, wishes)
    )
    tib = given.lustre_tib
    if tib is None and asks:
        tib = ask("Lustre in TiB, 0 for none", "sized for checkpoints", kind=_tib)
    name = answers.of(given.name, "Name of the environment", given.usual_name)
    return replace(wishes, lustre_tib=tib, name=name)


def completed_given(given: Given) -> Given:
    """With defaults for what nobody is asked for: type and number, orchestrator, Region."""
    _refuse_wrong(given)
    orchestrator = cast("OrchestratorKind", given.orchestrator or DEFAULT_ORCHESTRATOR)
    kind, nodes = given.instance_type, given.nodes
    if given.accelerators is None:
        kind, nodes = kind or example_type(), DEFAULT_NODES if nodes is None else nodes
    near = _regions(kind, orchestrator) if kind else [DEFAULT_REGION]
    return replace(
        given, instance_type=kind, nodes=nodes, orchestrator=orchestrator, region=given.region or near[0]
    )


def _regions(kind: str, orchestrator: OrchestratorKind) -> list[str]:
    """Where the type is sold, the usual Region first."""
    return sorted(regions_for(kind, orchestrator), key=lambda one: one != DEFAULT_REGION) or [DEFAULT_REGION]


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
    elif ultraserver_called(given.instance_type or ""):
        del needed["--nodes"]  # it says how many
    missing = [
        flag
        for flag, value in (needed | {"--orchestrator": given.orchestrator, "--region": given.region}).items()
        if value is None
    ]
    if missing:
        refuse(
            f"Cannot prompt: {why or 'stdin is not a terminal'}. Pass {', '.join(missing)}"
            + (" (or --accelerators 64xH100 for type and number)" if "--instance-type" in missing else "")
            + "."
        )


def _refuse_wrong(given: Given) -> None:
    """Flags that no draft could be made of."""
    texts = {
        "--instance-type": given.instance_type, "--zone-id": given.zone_id, "--name": given.name,
        "--capacity-id": given.capacity_id, "--image": given.image, "--admin": given.admin,
    }  # fmt: skip
    for flag, value in texts.items():
        if value and not value.isprintable():
            refuse(f"{flag} {value!r}: write it on one line, without invisible characters")
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
            refuse("Pass either --accelerators, or --instance-type and --nodes: the first says both.")
        if read_accelerators(given.accelerators) is None:
            refuse(f"--accelerators {given.accelerators}: write a number and a name: 64xH100, 512xB200")


def _sized(given: Given) -> Sized:
    """What `--accelerators` or `--instance-type` means; without a type where neither is given."""
    orchestrator = cast("OrchestratorKind | None", given.orchestrator)
    try:
        if given.accelerators is not None and (asked := read_accelerators(given.accelerators)):
            return nodes_with(asked, orchestrator, given.region or "")
        if given.instance_type is not None:
            sized = read_type(given.instance_type, orchestrator, given.region or "")
            if read_accelerators(given.instance_type):
                refuse(f"--instance-type {given.instance_type}: write --accelerators {given.instance_type}")
            return sized if given.nodes is None else replace(sized, nodes=None)  # of an UltraServer
    except ValueError as error:
        flag = "--instance-type" if given.accelerators is None else f"--accelerators {given.accelerators}"
        refuse(f"{flag}: {error}")
    return Sized(instance_type="")


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
    capacity = ask_one_of("Capacity", sold or tuple(CAPACITIES), usual)
    return "" if capacity == usual else capacity


def _region(text: str) -> str:
    if region(text) is None:
        near = " or ".join(nearest_regions(text)) or "us-east-2"
        raise ValueError(f"Unknown Region {text!r}. Did you mean {near}?")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_NODES:
        raise ValueError(f"a number of nodes, 1 to {MOST_NODES}, the most of one group")
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
