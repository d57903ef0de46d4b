"""Whether a draft could be deployed, and the nearest one that could where it could not."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

from ultracluster.catalog import instance_type, instance_types, nearest_instance_types, region, regions
from ultracluster.catalog.accelerators import types_with
from ultracluster.config import Finding, InvalidEnvironmentError, parse
from ultracluster.config.source import Source
from ultracluster.plan.draft import ORCHESTRATORS, Commands, Wishes, draft
from ultracluster.plan.draft_place import NoZoneError, local_zones_for, regions_for
from ultracluster.rules import check

UNSOLD = frozenset({"ENV002", "FSX017", "GRP023", "GRP025", "GRP026", "GRP034", "HYP026", "HYP041", "NET006"})
"""Warnings that AWS is not known to sell what is asked for, or that the last nodes will fail. A file may
acknowledge one; a first draft is written with it only with `--anyway`."""
_TRIES = 8
"""Candidates that are judged for one thing; each takes some hundredths of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A draft and what the rules say of it."""

    text: str
    findings: tuple[Finding, ...]

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """What cannot be acknowledged."""
        return tuple(finding for finding in self.findings if finding.blocks)

    @property
    def unsold(self) -> tuple[Finding, ...]:
        """Warnings that AWS does not sell it, or that it does not fit."""
        return tuple(finding for finding in self.findings if not finding.blocks and finding.code in UNSOLD)


def judged(wishes: Wishes, commands: Commands | None = None, file: Path | None = None) -> Judgement:
    """The draft with its findings.

    Args:
        file: where it is written; commands in findings name it.

    Raises:
        NoZoneError: no zone can be chosen.
    """
    text = draft(wishes, commands)
    data: Any = cast("Any", YAML(typ="safe")).load(text)
    try:
        found = parse(Source("the new file", data=data))
        if file:
            found = replace(found, environment=found.environment.at(file))
        return Judgement(text=text, findings=tuple(check(found)))
    except InvalidEnvironmentError as error:
        return Judgement(text=text, findings=error.findings)


def deployable(wishes: Wishes) -> bool:
    """Whether a draft could be deployed, as far as is known."""
    try:
        found = judged(wishes)
    except NoZoneError:
        return False
    return not found.wrong and not found.unsold


def nearest(wishes: Wishes) -> tuple[Wishes, ...]:
    """What differs from the wishes in one thing and could be deployed, one for each thing; else in two.

    Empty where nothing is found. The things: zone, capacity, Lustre, number, Region, orchestrator, type.
    """
    if (name := _plain_name(wishes.name)) != wishes.name:
        return tuple(filter(deployable, [replace(wishes, name=name)]))
    found = [one for options in _one_thing(wishes) if (one := _first(options))]
    if found:
        return tuple(found)
    for changed in islice(_places(wishes), _TRIES):
        for options in _one_thing(changed):
            if other := _first(options):
                return (other,)
    return ()


def _first(options: Iterable[Wishes]) -> Wishes | None:
    return next(filter(deployable, islice(options, _TRIES)), None)


def _plain_name(name: str) -> str:
    """As the configuration takes it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789")[:30].rstrip("-") or "train"


def _one_thing(wishes: Wishes) -> Iterator[Iterable[Wishes]]:
    if wishes.zone_id:
        yield [replace(wishes, zone_id="", zone_reason="")]
    elif region(wishes.region):
        yield _zones(wishes)
    if wishes.capacity:
        yield [replace(wishes, capacity="", capacity_reason="")]
    if wishes.lustre_tib:
        yield [replace(wishes, lustre_tib=None)]
    yield _fewer(wishes)
    yield _places(wishes)
    yield _orchestrators(wishes)
    yield _types(wishes)


def _orchestrators(wishes: Wishes) -> Iterator[Wishes]:
    for kind in ORCHESTRATORS:
        if kind != wishes.orchestrator:
            changed = replace(wishes, orchestrator=kind)
            yield changed
            if not wishes.zone_id:
                yield from islice(_zones(changed), 1)


def _zones(wishes: Wishes) -> Iterator[Wishes]:
    """For what only the user chooses: Local Zones, and a zone of a Region without known ones."""
    found = region(wishes.region)
    for zone in local_zones_for(wishes.region, wishes.instance_type):
        yield replace(wishes, zone_id=zone)
    if found and found.zone_prefix and not found.zone_ids:
        yield replace(wishes, zone_id=f"{found.zone_prefix}-az1")


def _fewer(wishes: Wishes) -> Iterator[Wishes]:
    """The most nodes that could be deployed: found by halving, for what is too much stays so for more."""
    if not deployable(replace(wishes, nodes=1)):
        return
    works, fails = 1, wishes.nodes
    while fails - works > max(1, works // 64):
        middle = min((works + fails) // 2, works * 8)
        if deployable(replace(wishes, nodes=middle)):
            works = middle
        else:
            fails = middle
    if works < wishes.nodes:
        yield replace(wishes, nodes=works)


def _places(wishes: Wishes) -> Iterator[Wishes]:
    """In other Regions: those of the same partition and continent first, then by how alike the names are."""
    here = wishes.region
    home = region(here)

    def unlike(name: str) -> tuple[bool, bool, float]:
        return (
            home is not None and regions()[name].partition != home.partition,
            name.partition("-")[0] != here.partition("-")[0],
            -difflib.SequenceMatcher(None, name, here).ratio(),
        )

    sold = regions_for(wishes.instance_type, wishes.orchestrator)
    for name in sorted((one for one in sold if one != here and regions()[one].zone_ids), key=unlike):
        yield replace(wishes, region=name, zone_id="", zone_reason="")


def _types(wishes: Wishes) -> Iterator[Wishes]:
    """Types with the same accelerators, then those with names alike."""
    type_ = instance_type(wishes.instance_type)
    alike = [one.name for one in types_with(type_.accelerator.name)] if type_ and type_.accelerator else []
    candidates = [
        name
        for name, one in instance_types().items()
        if type_ is None or bool(one.accelerator) == bool(type_.accelerator)
    ]
    near = nearest_instance_types(wishes.instance_type, candidates=candidates, count=_TRIES)
    for name in dict.fromkeys((*alike, *near)):
        if name != wishes.instance_type:
            yield replace(wishes, instance_type=name, type_reason="")
