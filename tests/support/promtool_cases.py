"""Tests of alerts as data: `tests/metrics/alerts/<Alert>.yaml` as what promtool runs.

A file is a list of cases: `says`, `series` (values by series, one a minute, in promtool's notation) and `at`:
for each time the alerts that fire then, each by some of its labels.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from project import ROOT
from ruamel.yaml import YAML

from ultracluster.metrics.expressions import names, scoped
from ultracluster.metrics.facts import HAVES, Facts
from ultracluster.metrics.rules import all_groups, rule_file

FOLDER = ROOT / "tests" / "metrics" / "alerts"
CLUSTER = "test"
EVERYTHING = Facts(
    cluster=CLUSTER,
    environment=CLUSTER,
    haves=frozenset(HAVES),
    scrape_seconds=30,
    accelerators=("H100",),
    most_drained_percent=10,
    series_budgets={"gpu": 2000},
    runbooks="docs/runbooks",
)
"""Of a cluster that has everything an alert may need."""


def cases(alert: str) -> list[dict[str, Any]]:
    return YAML(typ="safe").load((FOLDER / f"{alert}.yaml").read_text(encoding="utf-8"))


def run(promtool: str, folder: Path, alerts: Iterable[str]) -> str:
    """What promtool says of the cases of these alerts where it is not content; "" where it is."""
    groups: Any = all_groups(EVERYTHING)
    records, *others = groups
    rules = {rule["alert"]: (group, rule) for group in others for rule in group["rules"]}
    tests: list[Path] = []
    for alert in alerts:
        group, rule = rules[alert]
        read = _read_by(rule["expr"], records["rules"])
        before = [{**records, "rules": read}] if read else []
        (folder / f"{alert}.rules.yml").write_text(rule_file([*before, {**group, "rules": [rule]}]))
        tests.append(folder / f"{alert}.yml")
        tests[-1].write_text(json.dumps(_test_file(alert, [records["name"], group["name"]])))
    done = subprocess.run(
        [promtool, "test", "rules", *tests], capture_output=True, text=True, check=False,
        env=os.environ | {"GOGC": "400"},  # it is short: memory costs less than its collection
    )  # fmt: skip
    return done.stdout + done.stderr if done.returncode else ""


def _read_by(expression: str, records: Any) -> list[dict[str, Any]]:
    """The recording rules that an expression reads, and those that they read."""
    wanted = names(expression)
    for record in reversed(records):
        if record["record"] in wanted:
            wanted |= names(record["expr"])
    return [record for record in records if record["record"] in wanted]


def _test_file(alert: str, order: list[object]) -> dict[str, Any]:
    return {
        "rule_files": [f"{alert}.rules.yml"],
        "evaluation_interval": "1m",
        "group_eval_order": order,
        "tests": [
            {
                "name": case["says"],
                "interval": "1m",
                "input_series": [
                    {"series": scoped(name, f'cluster="{CLUSTER}"'), "values": values}
                    for name, values in case["series"].items()
                ],
                "promql_expr_test": [
                    one for at, firing in case["at"].items() for one in _expected(alert, at, firing)
                ],
            }
            for case in cases(alert)
        ],
    }


def _expected(alert: str, at: str, firing: list[dict[str, str]]) -> Iterable[dict[str, Any]]:
    """As many alerts as are listed, and each of these once."""
    fires = f'alertname="{alert}", alertstate="firing", cluster="{CLUSTER}"'
    yield _one(f"count(ALERTS{{{fires}}}) or vector(0)", at, len(firing))
    for labels in firing:
        more = "".join(f', {name}="{value}"' for name, value in labels.items())
        yield _one(f"count(ALERTS{{{fires}{more}}})", at, 1)


def _one(expression: str, at: str, value: int) -> dict[str, Any]:
    return {"expr": expression, "eval_time": at, "exp_samples": [{"labels": "{}", "value": value}]}
