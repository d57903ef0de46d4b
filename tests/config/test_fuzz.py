"""Broken environments, two thousand in a deep run: each ends in findings or is valid, never in a traceback.

The cases are the same in every run (`derandomize`). The clock is that of the processor, and the bound is for
the file that takes minutes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from mutations import broken_data, broken_text

from ultracluster.config import Finding, InvalidEnvironmentError, load, parse, render
from ultracluster.config.loader import Loaded
from ultracluster.config.source import Source
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.parallelcluster.configuration_file import cluster_configuration
from ultracluster.parallelcluster.deployed_values import value_sources
from ultracluster.plan.environment_plan import plan
from ultracluster.rules import check, judge_rest

pytestmark = pytest.mark.slow

BOUND = 2.0
"""Seconds of the processor for one file."""
CASES = examples(100)
"""Of each of the two kinds."""
same = settings(
    max_examples=CASES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, and what came of it."""
    begun = time.process_time()
    made = work()
    return time.process_time() - begun, made


def found(make: Any) -> tuple[list[Finding], Loaded | None, str]:
    """What is found, the environment if it has the shape of one, and what is printed."""
    loaded: Loaded | None = None
    try:
        loaded = make()
        findings = list(check(loaded))
    except InvalidEnvironmentError as error:
        findings = list(judge_rest(error))
    return findings, loaded, render(findings)


def judged(make: Any) -> tuple[list[Finding], Loaded | None]:
    """What is found, and the environment where nothing stops it; within the bound."""
    took, (findings, loaded, shown) = timed(lambda: found(make))
    if took >= BOUND:  # a process that holds much collects its garbage at some time: not twice
        took, _ = timed(lambda: found(make))
    assert took < BOUND, f"{took:.1f} s"
    for character in ("\x1b", "\x07", "\0", "\r", "\u202e", "\u200b", "\x85"):
        assert character not in shown
    for one in findings:
        assert one.code
        assert one.message
        assert one.severity == "warning" or one.instead, one
        assert one.location is not None or not one.blocks
    if loaded and any(one.blocks for one in findings):
        loaded = None
    assert loaded or any(one.blocks for one in findings)
    return findings, loaded


def used(loaded: Loaded) -> None:
    """A valid one is planned, and written for nodes, within the same bound."""
    took, _ = timed(lambda: written(loaded))
    if took >= BOUND:
        took, _ = timed(lambda: written(loaded))
    assert took < BOUND, f"{took:.1f} s"


def written(loaded: Loaded) -> None:
    """Its plan, and what its nodes read."""
    cluster = resolve(loaded.environment)
    assert plan(cluster).document()
    made = script_configurations(cluster)
    for one in (made.of_all, *made.by_group.values()):
        assert json.loads(json.dumps(one, allow_nan=False)) == one
    if cluster.traits.kind == "parallelcluster":
        yaml_text(cluster_configuration(cluster, value_sources(loaded.environment).placeholders()))


@same
@given(data=broken_data())
def test_data_with_parts_exchanged(data: dict[str, Any]) -> None:
    _, loaded = judged(lambda: parse(Source("environments/fuzz.yaml", data=data)))
    if loaded:
        used(loaded)


@same
@given(text=broken_text())
def test_text_with_bytes_changed(text: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    file: Path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    file.write_bytes(text)
    _, loaded = judged(lambda: load(file))
    if loaded:
        used(loaded)
