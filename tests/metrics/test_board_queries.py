"""Every query of every board against a real Prometheus that has an hour of the recorded expositions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import board_prometheus
import pytest
from board_prometheus import CLUSTER, JOB, Prometheus, lines, prometheus
from metrics_stand import VERSIONS, NoPrometheusError, tools
from project import ROOT

from ultracluster.catalog.metrics import metrics

pytestmark = pytest.mark.slow

FOLDER = ROOT / "constructs" / "ultracluster" / "metrics" / "dashboards"
BOARDS = sorted(one.stem for one in FOLDER.glob("*.json") if one.stem != "index")
SUBSTITUTES = {
    "$cluster": CLUSTER, "$node_group": ".*", "$node": ".*", "$job": JOB,
    "$__rate_interval": "2m", "$__range_s": "3600", "$__range": "1h", "$__interval": "30s",
}  # fmt: skip
OF_PROMETHEUS = {"ALERTS"}
"""Series that Prometheus makes itself."""
EMPTY: dict[str, str] = {}
"""Expressions that the recording rightly has no answer to, and why."""


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", ())


def expressions(name: str) -> list[str]:
    """The expressions of a board's panels, variables as Grafana would have them."""
    board = json.loads((FOLDER / f"{name}.json").read_text())
    exprs = [
        target["expr"]
        for panel in panels(board)
        for target in panel.get("targets", ())
        if target["datasource"]["type"] == "prometheus"
    ]
    return [substituted(expr) for expr in exprs]


def substituted(text: str) -> str:
    for variable in sorted(SUBSTITUTES, key=len, reverse=True):
        text = re.sub(rf"{re.escape(variable)}\b", SUBSTITUTES[variable], text)
    return text


@pytest.fixture(scope="module", params=VERSIONS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    try:
        programs = tools(request.param)
    except NoPrometheusError as error:
        pytest.skip(str(error))
    with prometheus(tmp_path_factory.mktemp("prometheus"), programs, lines()) as one:
        yield one


@pytest.mark.parametrize("name", BOARDS)
def test_boards_name_only_metrics_that_nodes_send(name: str) -> None:
    known = {series for metric in metrics().values() for series in metric.series_names} | OF_PROMETHEUS
    for expression in expressions(name):
        used = set(re.findall(r"[a-zA-Z_:][\w:]*(?=\{)", expression))
        assert used, expression
        assert used <= known, f"{used - known} in {expression}"


@pytest.mark.parametrize("name", BOARDS)
def test_no_variable_is_left_over(name: str) -> None:
    for expression in expressions(name):
        assert not re.findall(r"\$(?!1\b)\w+", expression), expression


@pytest.mark.parametrize("name", BOARDS)
def test_prometheus_answers_every_query(name: str, server: Prometheus) -> None:
    silent: list[str] = []
    for expression in expressions(name):
        server.query_range(expression)
        asked = expression.replace(" or vector(0)", "")
        if not (server.query(asked) or server.query_range(asked)):
            silent.append(asked)
    assert [one for one in silent if one not in EMPTY] == []
    assert all(one in silent for one in EMPTY if one in expressions(name)), "has an answer by now"


@pytest.mark.parametrize(("board", "title", "expected"), [
    ("health", "Nodes that report", 2),
    ("health", "Nodes that fell silent", 1),
    ("health", "Missing GPUs", 14),
    ("health", "XIDs", 2),
    ("money", "Per hour, now", 100),
    ("money", "In the time that is shown", 100),
    ("money", "Idle, per hour", 50),
    ("money", "Idle GPUs", 8),
    ("money", "Next lease ends in", 7200),
    ("money", "Useful share of paid node time", 0.8),
    ("queues", "Running jobs", 1),
    ("queues", "Nodes at work", 2),
])  # fmt: skip
def test_figures_are_what_they_say(board: str, title: str, expected: float, server: Prometheus) -> None:
    panel = next(
        panel
        for panel in panels(json.loads((FOLDER / f"{board}.json").read_text()))
        if panel["title"] == title and "targets" in panel
    )
    [answer] = server.query(substituted(panel["targets"][0]["expr"]))
    assert float(answer["value"][1]) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("name", BOARDS)
def test_variables_offer_what_there_is(name: str, server: Prometheus) -> None:
    board = json.loads((FOLDER / f"{name}.json").read_text())
    for variable in board["templating"]["list"]:
        if variable["type"] != "query" or variable["datasource"]["type"] != "prometheus":
            continue
        match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        assert match, variable
        offered = server.ask(
            f"label/{match[2]}/values",
            **{
                "match[]": substituted(match[1]),
                "start": board_prometheus.START,
                "end": board_prometheus.END,
            },
        )
        expected = {"cluster": CLUSTER, "node_group": "gpu", "node": "ip-10-1-0-1", "job": JOB}
        assert expected[variable["name"]] in offered


def test_a_metric_that_is_gone_is_noticed(server: Prometheus) -> None:
    assert server.query('DCGM_FI_DEV_GPU_TEMPERATURE{cluster="train"}') == []
    with pytest.raises(ValueError, match="parse error"):
        server.query("sum(up{")
