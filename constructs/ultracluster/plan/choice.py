"""Which orchestrator suits: ranked by what is asked for, each with its reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ultracluster.catalog import InstanceType
from ultracluster.catalog.combinations import pairs
from ultracluster.catalog.wishes import wishes
from ultracluster.config.capacity import (
    STAND_IN,
    Capacity,
    CapacityBlock,
    OnDemand,
    Reservation,
    Spot,
    TrainingPlan,
)
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.model import TRAITS
from ultracluster.model.capacity import decide

Answer = Literal["yes", "partly", "no"]
_LACKS: Mapping[Answer, int] = {"yes": 0, "partly": 1, "no": 3}

_PLAN = "arn:aws:sagemaker:us-east-2:111122223333:training-plan/any"
CAPACITIES: Mapping[str, Capacity] = {
    "on-demand": OnDemand(),
    "spot": Spot(kind="spot"),
    "reservation": Reservation(kind="reservation", id=STAND_IN),
    "capacity-block": CapacityBlock(kind="capacity-block", id=STAND_IN),
    "training-plan": TrainingPlan(kind="training-plan", arn=_PLAN),
}
"""A sample of each kind, to be judged."""

# A type that everything is sold for: what is refused then, the orchestrator refuses.
_ANY_TYPE = InstanceType(
    name="any type", efa_interfaces=1, spot=True, training_plan=True, capacity_block_regions=("any",)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for; what is left out does not matter."""

    features: tuple[str, ...] = ()
    """Names of features in `orchestrators.json`, and of wishes."""
    capacity: str = ""
    """One of `CAPACITIES`."""
    instance_type: InstanceType | None = None
    """Of the compute nodes; UltraServers among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """How an orchestrator answers to one wish."""

    title: str
    answer: Answer
    words: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """An orchestrator and how it suits."""

    orchestrator: OrchestratorKind
    title: str
    reasons: tuple[Reason, ...]

    @property
    def possible(self) -> bool:
        """Whether nothing that is asked for is refused."""
        return all(reason.answer != "no" for reason in self.reasons)

    @property
    def lacks(self) -> int:
        """How much of what is asked for it lacks; the least suits best."""
        return sum(_LACKS[reason.answer] for reason in self.reasons)


def questions() -> Mapping[str, str]:
    """The question of each feature, by its name. Wishes have questions of their own."""
    return {name: row["question"] for name, row in _document()["features"].items()}


def ranking(wanted: Wanted) -> list[Rank]:
    """Every orchestrator, the one that suits best first; between equals the order of the table decides."""
    found = [
        Rank(orchestrator=kind, title=_orchestrators()[kind]["title"], reasons=tuple(_reasons(kind, wanted)))
        for kind in _orchestrators()
    ]
    return sorted(found, key=lambda rank: (not rank.possible, rank.lacks))


def comparison() -> dict[str, dict[OrchestratorKind, Reason]]:
    """Every feature and every kind of capacity by title, with the answer of each orchestrator."""
    names = (*_document()["features"], *wishes())
    rows = [[_feature(kind, name) for kind in _orchestrators()] for name in names]
    rows += [[_takes(kind, name, _ANY_TYPE) for kind in _orchestrators()] for name in CAPACITIES]
    return {row[0].title: dict(zip(_orchestrators(), row, strict=True)) for row in rows}


def _reasons(kind: OrchestratorKind, wanted: Wanted) -> Iterator[Reason]:
    for name in wanted.features:
        yield _feature(kind, name)
    yield from _together(kind, {*wanted.features, wanted.capacity})
    if wanted.instance_type:
        yield _runs(kind, wanted.instance_type)
    if wanted.capacity:
        yield _takes(kind, wanted.capacity, wanted.instance_type or _ANY_TYPE)


def _feature(kind: OrchestratorKind, name: str) -> Reason:
    if wish := wishes().get(name):
        answer, words, source = wish.answers[kind]
        return Reason(title=wish.title, answer=answer, words=words, source=source)
    answer, words, source = _orchestrators()[kind][name]
    return Reason(title=_document()["features"][name]["title"], answer=answer, words=words, source=source)


def _together(kind: OrchestratorKind, wanted: set[str]) -> Iterator[Reason]:
    """Reasons of AWS's pages against two requested features in one cluster."""
    for pair in pairs():
        if kind not in pair.on or pair.verdict == "allowed":
            continue
        if wanted.intersection(pair.at.choose) and wanted.intersection(pair.other.choose):
            title = f"{pair.at.title} with {pair.other.title}"
            refused = pair.verdict == "refused" and not pair.in_one_group
            words = "not in one group" if pair.in_one_group else "not in one cluster"
            if pair.verdict == "discouraged":
                words = "AWS advises against both in one cluster"
            yield Reason(title=title, answer="no" if refused else "partly", words=words, source=pair.source)


def _takes(kind: OrchestratorKind, capacity: str, instance_type: InstanceType) -> Reason:
    if TRAITS[kind].hyperpod and instance_type.ultraserver and capacity in ("on-demand", "spot"):
        # its API would take the request, and there is nothing to fill it with
        words = f"{instance_type.name} is sold inside UltraServers, to HyperPod as training plans"
        source = "SageMaker Developer Guide, UltraServers in Amazon SageMaker HyperPod"
        return Reason(title=capacity, answer="no", words=words, source=source)
    found = decide(CAPACITIES[capacity], orchestrator=kind, placement="none", instance_type=instance_type)
    answer: Answer = "yes" if found.legal else "partly" if found.severity == "warning" else "no"
    words = found.reason.replace(STAND_IN, "cr-...")
    return Reason(title=capacity, answer=answer, words=words, source=found.source)


def _runs(kind: OrchestratorKind, instance_type: InstanceType) -> Reason:
    """Whether the type can be had at all, by any kind of capacity."""
    title = f"{instance_type.name} in UltraServers" if instance_type.ultraserver else instance_type.name
    if TRAITS[kind].hyperpod and not instance_type.hyperpod:
        source = "SageMaker API reference, ClusterInstanceType"
        unknown = instance_type.hyperpod is None
        words = f"whether HyperPod has {instance_type.hyperpod_name} is unknown"
        return Reason(
            title=title,
            answer="partly" if unknown else "no",
            words=words if unknown else f"HyperPod has no {instance_type.hyperpod_name}",
            source=source,
        )
    by = [name for name in CAPACITIES if _takes(kind, name, instance_type).answer == "yes"]
    words = f"by {', '.join(by)}" if by else "by no kind of capacity"
    return Reason(title=title, answer="yes" if by else "no", words=words, source="model/capacity.json")


def obtainable(instance_type: InstanceType) -> tuple[str, ...]:
    """The kinds of capacity by which some orchestrator has the type."""
    kinds: list[OrchestratorKind] = [
        kind for kind in TRAITS if not TRAITS[kind].hyperpod or instance_type.hyperpod
    ]
    return tuple(
        name
        for name in CAPACITIES
        if any(_takes(kind, name, instance_type).answer == "yes" for kind in kinds)
    )


def _orchestrators() -> Mapping[OrchestratorKind, Any]:
    return _document()["orchestrators"]


@cache
def _document() -> dict[str, Any]:
    file = Path(__file__).parents[1] / "catalog" / "orchestrators.json"
    return json.loads(file.read_text(encoding="utf-8"))
