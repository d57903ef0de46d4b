"""Reports of neuron-monitor, added up; and the program that follows it."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from depth import examples
from expositions import series
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metrics_node import METRICS, NOW, REPORT, module

neuron: Any = module("neuron")


def values(sums: Any) -> dict[str, float]:
    text, refused = module("exposition").render(neuron.METRICS, sums.samples())
    assert refused == 0
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line[0] != "#"
    }


def test_what_happened_between_reports_is_added_up_and_the_rest_is_of_the_last_one() -> None:
    sums = neuron.Sums()
    second = copy.deepcopy(REPORT)
    second["neuron_runtime_data"][0]["report"]["execution_stats"]["error_summary"]["hardware"] = 2
    second["system_data"]["neuron_hw_counters"]["neuron_devices"][0]["mem_ecc_uncorrected"] = 1
    second["neuron_runtime_data"][0]["report"]["neuroncore_counters"]["neuroncores_in_use"] = {
        "0": {"neuroncore_utilization": 7}
    }
    for report in (REPORT, second, second):
        sums.take(report, NOW)

    told = values(sums)

    assert told['execution_status_total{status_type="completed"}'] == 3 * 123
    assert told['execution_errors_total{error_type="hardware"}'] == 4
    assert told['hardware_ecc_events_total{event_type="mem_ecc_uncorrected",neuron_device_index="0"}'] == 2
    assert told['neuroncore_utilization_ratio{neuroncore="0"}'] == 0.07
    assert 'neuroncore_utilization_ratio{neuroncore="1"}' not in told


def test_applications_share_a_node() -> None:
    report = copy.deepcopy(REPORT)
    other = copy.deepcopy(report["neuron_runtime_data"][0])
    other["report"]["execution_stats"]["latency_stats"]["total_latency"]["p99"] = 9.5
    report["neuron_runtime_data"].append(other)
    sums = neuron.Sums()
    sums.take(report, NOW)

    told = values(sums)

    assert told['execution_latency_seconds{percentile="p99"}'] == 9.5
    assert told['neuron_runtime_memory_used_bytes{memory_location="host"}'] == 2 * 9_043_968
    assert told['execution_status_total{status_type="completed"}'] == 246


def mutated(report: Any, path: list[int], value: object) -> Any:
    """With another value somewhere; the path chooses by its numbers."""
    copied = at = copy.deepcopy(report)
    for number in path:
        if isinstance(at, list | dict) and at:
            keys = list(at) if isinstance(at, dict) else range(len(at))
            key: Any = keys[number % len(keys)]
            if number == path[-1] or not isinstance(at[key], list | dict):
                at[key] = value
                return copied
            at = at[key]
    return copied


ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.none(), max_size=2)
)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 20), min_size=2, max_size=7), ANYTHING)
def test_a_report_of_another_shape_breaks_nothing(path: list[int], value: object) -> None:
    sums = neuron.Sums()
    sums.take(mutated(REPORT, path, value), NOW)
    sums.take(REPORT, NOW)

    text, _ = module("exposition").render(neuron.METRICS, sums.samples())
    list(series(text))


@pytest.fixture
def monitor(tmp_path: Path) -> Path:
    """A neuron-monitor that prints what lies in `said`, and waits."""
    program = tmp_path / "bin/neuron-monitor"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/bash\necho "$@" >{tmp_path}/called\ncat {tmp_path}/said\nexec sleep ${{WAIT:-3600}}\n'
    )
    program.chmod(0o755)
    return tmp_path


def follow(folder: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-ISB", METRICS / "neuron.py", "--to", folder / "to", "--settings", "/x"],
        env={"PATH": f"{folder}/bin:/usr/bin:/bin"} | environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_it_follows_neuron_monitor(monitor: Path) -> None:
    (monitor / "said").write_text(f"no report\n[]\n{json.dumps(REPORT)}\n{json.dumps(REPORT)}\n{{")
    process = follow(monitor)
    try:
        until = time.monotonic() + 300
        while "246" not in (text := read(monitor / "to/neuron.prom")):
            assert time.monotonic() < until, text
            time.sleep(0.02)
        assert (monitor / "called").read_text().split()[0] == "--config-file"
        json.loads(Path((monitor / "called").read_text().split()[1]).read_text())
    finally:
        process.terminate()
        assert process.communicate(timeout=300)[0] == "" and process.returncode == 0
    assert not (monitor / "to/neuron.prom").exists()


def test_when_neuron_monitor_ends_its_figures_go_and_systemd_starts_both_again(monitor: Path) -> None:
    (monitor / "said").write_text(json.dumps(REPORT) + "\n")
    process = follow(monitor, WAIT="0")

    said, _ = process.communicate(timeout=300)

    assert process.returncode == 1 and "has ended with 0" in said
    assert not (monitor / "to/neuron.prom").exists()


def test_a_node_without_neuron_monitor_is_told(tmp_path: Path) -> None:
    process = follow(tmp_path)

    said, _ = process.communicate(timeout=300)

    assert process.returncode == 1 and said.startswith("neuron-monitor: ")


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
