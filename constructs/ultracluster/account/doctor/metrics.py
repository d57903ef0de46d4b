"""What the cluster's own metrics say: is it a GPU, the fabric, the file system, one node or the program?

The questions are those of docs/observability.md, as data in `metrics_questions.json`. Each is a source of its
own: one that is refused or does not answer takes nothing from the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from ultracluster.account.aws import Account, AccountError
from ultracluster.account.doctor.examination import Fact, Inquiry, Level, Source
from ultracluster.account.metrics_query import MetricsQuery, Sample
from ultracluster.account.stack_outputs import stack_outputs
from ultracluster.metrics.expressions import scoped
from ultracluster.model import Cluster
from ultracluster.model.observability import assumed_role, collects, observability_of

SOURCE = "metrics"
OUTPUT = "WorkspaceArn"
"""Of the stack `observability`."""
ROWS = 20
"""Findings of one expression that are told; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Row:
    """One expression, and what each series of its answer means."""

    level: Level
    where: str
    says: str
    expr: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked by several expressions."""

    name: str
    asks: str
    rows: tuple[Row, ...]


@cache
def questions() -> tuple[Question, ...]:
    """All of them in the order in which a person would ask, then what alerts say."""
    document = _document()
    found = [
        Question(question["question"], question["asks"], tuple(Row(**row) for row in question["rows"]))
        for question in document["questions"]
    ]
    return (*found, Question("alerts", "What has been told?", (Row(**document["alerts"]),)))


def alive() -> str:
    """PromQL: how many nodes have told anything lately."""
    return str(_document()["alive"]["expr"])


def examine_metrics(account: Account, cluster: Cluster, inquiry: Inquiry) -> None:
    """Ask the workspace of the cluster's metrics, where our agents write to one."""
    if not collects(cluster):
        return
    matcher = f'cluster="{cluster.environment.cluster_name}"'
    workspaces: list[MetricsQuery] = []

    def reached() -> list[Fact] | Source:
        arn = _workspace(account, cluster)
        if not arn:
            return Source(SOURCE, "nothing there", "the stack of its Prometheus workspace is not there")
        workspace = MetricsQuery(account, arn, role_arn=assumed_role(cluster))
        answer = workspace.ask(scoped(alive(), matcher))
        nodes = int(answer.samples[0].value) if answer.samples else 0
        if not nodes:
            why = "the workspace has nothing of this cluster since ten minutes: see docs/metrics-nodes.md"
            return Source(SOURCE, "nothing there", why)
        workspaces.append(workspace)
        return [Fact(SOURCE, arn.rpartition("/")[2], f"{nodes:,} nodes tell their metrics", "info")]

    first = inquiry.ask(SOURCE, reached)
    for question in questions():
        name = f"{SOURCE}: {question.name}"
        inquiry.ask(
            name,
            lambda asked=question, source=name: _answers(workspaces[0], asked, source, matcher),
            needs=[first],
            when=lambda: bool(workspaces),
        )


def _workspace(account: Account, cluster: Cluster) -> str:
    """ARN of the workspace; empty where its stack is not there."""
    wanted = observability_of(cluster)
    if wanted and wanted.workspace:
        return wanted.workspace.arn
    stack = cluster.environment.stack_name("observability")
    return stack_outputs(account, [stack]).get(stack, {}).get(OUTPUT, "")


def _answers(workspace: MetricsQuery, question: Question, source: str, matcher: str) -> list[Fact]:
    """Return what the expressions of a question find. One that is refused is a row, unless all are.

    Raises:
        AccountError: none was answered.
    """
    facts: list[Fact] = []
    refused: list[str] = []
    said: list[str] = []
    for row in question.rows:
        try:
            answer = workspace.ask(scoped(row.expr, matcher))
        except AccountError as error:
            refused.append(str(error))
            continue
        samples = sorted(answer.samples, key=lambda sample: -sample.value)
        facts += [_fact(source, row, sample) for sample in samples[:ROWS]]
        if (more := len(samples) - ROWS) > 0:
            facts.append(Fact(source, question.asks, f"and {more:,} more of the last", row.level))
        said += answer.warnings
    if len(refused) == len(question.rows):
        raise AccountError(refused[0])
    facts += [Fact(source, question.asks, f"Prometheus: {text}", "info") for text in dict.fromkeys(said)]
    return [*facts, *(Fact(source, question.asks, text, "warning") for text in dict.fromkeys(refused))]


def _fact(source: str, row: Row, sample: Sample) -> Fact:
    words = _Words({**sample.labels, "value": sample.value})
    return Fact(source, row.where.format_map(words), row.says.format_map(words), row.level)


class _Words(dict[str, Any]):
    """A label that a series lacks is named, and stops nothing."""

    def __missing__(self, key: str) -> str:
        return f"(no {key})"


@cache
def _document() -> Mapping[str, Any]:
    text = resources.files("ultracluster.account.doctor").joinpath("metrics_questions.json")
    return json.loads(text.read_text("utf-8"))


def expressions() -> Iterator[str]:
    """Every expression that may be asked."""
    yield alive()
    for question in questions():
        yield from (row.expr for row in question.rows)


__all__ = ["Question", "Row", "alive", "examine_metrics", "expressions", "questions"]
