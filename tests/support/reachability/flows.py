"""The two lists of `tests/security/reachability.yaml`, and what an environment's network says to them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import yaml
from iam_proof.resolved import Resolved
from project import ROOT

from reachability.groups import Traffic
from reachability.network import DIRECTORY, OUTSIDE, NetworkOf, Opening
from reachability.places import Place
from reachability.reading import noted
from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.model.endpoints import closed_endpoints

TABLE = ROOT / "tests" / "security" / "reachability.yaml"
EFA = "efa"
List = Literal["needed", "accepted"]
LISTS: tuple[List, List] = ("needed", "accepted")


@dataclass(frozen=True)
class Row:
    """A line of a list; the head of the file explains the fields."""

    flow: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    traffic: tuple[Traffic, ...]
    efa: bool
    when: str
    why: str

    def holds(self, facts: frozenset[str]) -> bool:
        """Whether the row is about an environment: each word of `when` holds."""
        return all(
            any(one in facts for one in word.split("|")) if word[0] != "-" else word[1:] not in facts
            for word in self.when.split()
        )

    def explains(self, one: Opening) -> bool:
        """Whether all of an opening is what the row is about."""
        return (
            _kind(one.source) in self.sources
            and _kind(one.target) in self.targets
            and any(traffic.covers(one.traffic) for traffic in self.traffic)
        )


@cache
def rows(which: List) -> tuple[Row, ...]:
    """Those of a list."""
    document = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    found = tuple(_row(one, document["names"]) for one in document[which])
    assert len({one.flow for one in found}) == len(found), f"{which}: two rows of one name"
    return found


def network_of(templates: Mapping[str, Any], environment: Environment) -> NetworkOf:
    """The network of an environment's templates."""
    return NetworkOf(Resolved(templates, environment.region), environment)


def facts_of(environment: Environment) -> frozenset[str]:
    """Words of `when` that hold of an environment."""
    cluster, storage = resolve(environment), environment.storage
    facts = {cluster.traits.kind, cluster.traits.scheduler, environment.network.egress}
    if cluster.lustre:
        facts.add("lustre-efa" if cluster.lustre.efa else "lustre-tcp")
    if storage.openzfs:
        facts.add("openzfs")
    if storage.accounting_database:
        facts.add("database")
    if environment.directory:
        facts.add("directory")
    return frozenset(facts)


def rows_for(which: List, environment: Environment) -> list[Row]:
    """Those of a list that are about an environment."""
    facts = facts_of(environment)
    return [row for row in rows(which) if row.holds(facts)]


def findings(network: NetworkOf) -> list[str]:
    """Each flow that is needed and closed, each opening that nobody needs or accepts, and what is wrong in
    any case; empty if all is well."""
    found: list[str] = []
    # the judge's own error is a finding, too: what could not be read to the end proves nothing
    with noted(found, "the network"):
        for row in rows_for("needed", network.environment):
            found.extend(shut(row, network))
        found.extend(surplus(network))
    return found


def surplus(network: NetworkOf) -> Iterator[str]:
    """What is open and in neither list, and what is wrong in any case."""
    both = [row for which in LISTS for row in rows_for(which, network.environment)]
    for one in network.openings():
        if not any(row.explains(one) for row in both):
            yield f"nobody needs {one}"
    yield from network.faults()


def accepted_in(network: NetworkOf) -> set[str]:
    """The accepted rows that an opening belongs to, and no needed one."""
    needed, accepted = (rows_for(which, network.environment) for which in LISTS)
    return {
        row.flow
        for one in network.openings()
        if not any(row.explains(one) for row in needed)
        for row in accepted
        if row.explains(one)
    }


def shut(row: Row, network: NetworkOf) -> Iterator[str]:
    """Why a flow that is needed is closed."""
    sources = [one for one in network.places if one.kind in row.sources]
    if not sources:
        yield f"{row.flow}: there is no {' or '.join(row.sources)}"
    if row.targets == ("endpoint",):
        there = {one.name for one in network.places if one.kind == "endpoint"}
        for one in closed_endpoints(resolve(network.environment)):
            if one.kind == "interface" and one.service not in there:
                yield f"{row.flow}: there is no endpoint {one.service} that answers to the service's own name"
    for name in row.targets:
        targets: list[Place | str] = [one for one in network.places if one.kind == name]
        if name in (*OUTSIDE, DIRECTORY):
            targets = [name]
        elif not targets and len(row.targets) == 1:
            yield f"{row.flow}: there is no {name}"
        for target in targets:
            for source in sources:
                for traffic in row.traffic:
                    for why in _why(row, network, source, target, traffic):
                        yield f"{row.flow}: {source} cannot reach {target}, {traffic}: {why}"


def _why(row: Row, network: NetworkOf, source: Place, target: Place | str, traffic: Traffic) -> list[str]:
    if isinstance(target, str):
        return network.no_way_out(source, target, traffic)
    return network.closed(source, target, traffic, efa=row.efa)


def _kind(end: Place | str) -> str:
    return end.kind if isinstance(end, Place) else end


def _row(told: Mapping[str, Any], names: Mapping[str, list[str]]) -> Row:
    def ends(text: str) -> tuple[str, ...]:
        return tuple(one for word in text.split() for one in names.get(word, [word]))

    return Row(
        flow=told["flow"],
        sources=ends(told["from"]),
        targets=ends(told["to"]),
        traffic=tuple(_traffic(one.strip()) for one in told["traffic"].split(",")),
        efa=told["traffic"] == EFA,
        when=told.get("when", ""),
        why=told["why"],
    )


def _traffic(text: str) -> Traffic:
    if text in (EFA, "all"):
        return Traffic()
    match = re.fullmatch(r"(tcp|udp) ([0-9]+)(?:-([0-9]+))?", text)
    assert match, f"no traffic: {text}"
    return Traffic(match[1], int(match[2]), int(match[3] or match[2]))
