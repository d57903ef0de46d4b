"""Rows of the two tables, and the calls that they come to in one environment."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import yaml
from project import ROOT

from iam_proof.calls import Call
from iam_proof.people import people
from iam_proof.world import OF_AWS, STRANGER, World
from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.model.job_access import workdir_place
from ultracluster.model.slurm_topology import head_writes_topology

TABLES = ROOT / "tests" / "security" / "evaluator"
OWNERS = {None: None, "aws": OF_AWS, "stranger": STRANGER}
Table = Literal["allowed", "denied"]
FEATURES = ("checkpoint-tier", "inference", "mountpoint-s3", "spaces", "training-operator")
"""Settings of an orchestrator that rows ask for by these names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of `allowed.yaml` or `denied.yaml`; their head comments explain the fields."""

    row: str
    table: Table
    who: str
    calls: tuple[str, ...]
    resource: tuple[str, ...]
    when: str = ""
    through: str | None = None
    at: str | None = None
    owner: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    by: str | None = None
    why: str = ""

    def holds(self, facts: frozenset[str]) -> bool:
        """Whether the row is about an environment: each word of `when` holds."""
        return all(
            any(one in facts for one in word.split("|")) if word[0] != "-" else word[1:] not in facts
            for word in self.when.split()
        )


@cache
def rows(table: Table) -> tuple[Row, ...]:
    """Those of a table, in their order."""
    text = (TABLES / f"{table}.yaml").read_text(encoding="utf-8")
    found = tuple(
        Row(**{**one, "table": table, "calls": _many(one["calls"]), "resource": _many(one["resource"])})
        for one in yaml.load(text, Loader=yaml.CSafeLoader)["rows"]
    )
    assert len({one.row for one in found}) == len(found), f"{table}.yaml has two rows of one name"
    return found


def rows_of(facts: frozenset[str]) -> tuple[Row, ...]:
    """Rows of both tables that are about an environment."""
    return tuple(one for one in (*rows("allowed"), *rows("denied")) if one.holds(facts))


def facts_of(config: Environment) -> frozenset[str]:
    """Words with which rows say `when`: what runs the cluster, its network, storage and roles of nodes."""
    kind, storage = config.orchestrator.kind, config.storage
    repositories = getattr(storage.lustre, "data_repositories", None) or {}
    features = {word: getattr(config.orchestrator, word.replace("-", "_"), None) for word in FEATURES}
    tier, spaces, serving = features["checkpoint-tier"], features["spaces"], features["inference"]
    buckets, watched = storage.job_buckets, config.observability
    words = {
        **{word: bool(one) for word, one in features.items()},
        kind: True,
        config.network.egress: True,
        "hyperpod": kind.startswith("hyperpod"),
        "slurm": not kind.endswith("eks"),
        "kubernetes": kind.endswith("eks"),
        # the cluster is in no template: the command `pcluster` makes it from a file
        "pcluster-command": getattr(config.orchestrator, "deploy_with", None) == "pcluster",
        "database": config.makes_database,
        "mirror": bool(config.software.mirror),
        "lustre-efa": bool(getattr(storage.lustre, "efa", False)),
        "own-data": any(not one.bucket for one in repositories.values()),
        "imports": any(one.bucket for one in repositories.values()),
        "protect": config.protect,
        "lustre": storage.lustre is not None,
        "restricted": any(one.restricted for one in config.node_groups.values()),
        "own-vpc": config.network.vpc is None,
        "job-buckets": bool(buckets),
        "job-writes": any(one.write for one in buckets),
        "job-whole-bucket": not all(one.prefix for one in buckets),
        "job-folder": any(one.prefix for one in buckets),
        "job-bounds": any(one.prefix or not one.write for one in buckets),
        "workdirs": (place := workdir_place(resolve(config))) is not None,
        "workdir-key": bool(place and place.bucket.key),
        "job-key": any(one.key for one in buckets),
        "checkpoint-key": bool(tier and tier.key),
        "checkpoint-metrics": bool(tier and tier.metrics_namespace),
        "gateway": bool(serving and serving.gateway),
        "model-buckets": bool(serving and serving.model_buckets),
        "head-topology": head_writes_topology(resolve(config)),
        "directory": config.directory is not None,
        "spaces-web-ui": bool(spaces and spaces.web_ui),
        "remote-ide": bool(spaces and spaces.remote_ide),
        "observability": watched is not None,
        "own-workspace": watched is not None and watched.makes_workspace,
        "collector": watched is not None and watched.kind == "hyperpod",
        "grafana": watched is not None and watched.makes_grafana,
        **{one.role: True for one in config.node_groups.values()},
        **{one.capacity.kind: True for one in config.node_groups.values()},
    }
    return frozenset(word for word, holds in words.items() if holds)


def calls_of(row: Row, world: World, names: Mapping[str, Sequence[str]]) -> Iterator[Call]:
    """Every call of a row in one environment: callers times actions times resources."""
    context = {_value(key, names): _value(value, names) for key, value in row.context.items()}
    for who in people(row.who, world, row.at):
        for action, form in itertools.product(row.calls, row.resource):
            for resource in filled(form, {**names, **who.own}):
                yield Call(
                    who=who,
                    action=action,
                    resource=resource,
                    owner=OWNERS[row.owner],
                    through=row.through,
                    context=context,
                )


def filled(form: str, names: Mapping[str, Sequence[str]]) -> list[str]:
    """A text with its `{names}` filled in: one for each combination of their values."""
    wanted = list(dict.fromkeys(re.findall(r"\{(\w+)\}", form)))
    made: list[str] = []
    for values in itertools.product(*(names[one] for one in wanted)):
        text = form
        for name, value in zip(wanted, values, strict=True):
            text = text.replace(f"{{{name}}}", value)
        made.append(text)
    return made


def _value(value: Any, names: Mapping[str, Sequence[str]]) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return [made for one in value for made in filled(str(one), names)]
    return filled(str(value), names)[0]


def _many(value: str | list[str]) -> tuple[str, ...]:
    return tuple(value.split()) if isinstance(value, str) else tuple(value)
