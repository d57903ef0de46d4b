"""A model that is trained: its size in words, its checkpoint and its state."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.cli.plan_text import as_text, duration
from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.plan.environment_plan import Plan, parameters, plan, size_text

TODAY = dt.date(2026, 11, 21)


def environment(name: str, changes: dict[str, Any] | None = None) -> Environment:
    return loaded(changed(environment_data(name), changes or {})).environment


def planned(name: str, changes: dict[str, Any] | None = None, model: float | None = None) -> Plan:
    return plan(resolve(environment(name, changes)), model, TODAY)


MODELS: dict[str, tuple[str, dict[str, Any], float, tuple[float, float | None, str, int | None, bool]]] = {
    # parameters -> GB of a checkpoint (14 bytes each), seconds, limit, nodes for 16 bytes each, fits
    "prod, 70B": ("prod", {}, 70e9, (980, 51.0, "file system", 1, True)),
    "prod, 405B": ("prod", {}, 405e9, (5670, 295.3, "file system", 6, True)),
    "prod, 1.8T": ("prod", {}, 1.8e12, (25_200, 1312.5, "file system", 24, False)),
    "dev, 8B": ("dev", {}, 8e9, (112, 373.3, "file system", 1, True)),
    # scratch reads 200 MB/s per TiB and writes 100
    "scratch": (
        "dev",
        {"storage.lustre": {"deployment": "scratch-2", "capacity_gib": 1200}},
        8e9,
        (112, 933.3, "file system", 1, True),
    ),
    # one client over TCP: 100 Gbit/s, which is less than 48 TiB at 1000 MB/s per TiB
    "one client": (
        "dev",
        {
            "storage.lustre.capacity_gib": 48_000,
            "storage.lustre.throughput_mbps_per_tib": 1000,
            "node_groups.gpu.count": 1,
        },
        8e9,
        (112, 9.0, "clients", 1, True),
    ),
    "existing": (
        "dev",
        {
            "storage.lustre": {
                "deployment": "existing",
                "id": "fs-0123456789abcdef0",
                "dns_name": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
                "mount_name": "fsx",
                "security_group_id": "sg-0123456789abcdef0",
            }
        },
        8e9,
        (112, None, "", 1, True),
    ),
    "no Lustre": ("dev", {"storage.lustre": None}, 8e9, (112, None, "", 1, True)),
    "no accelerators": (
        "dev",
        {"node_groups.gpu.instance_type": "m5.24xlarge"},
        8e9,
        (112, 373.3, "file system", None, False),
    ),
}


@pytest.mark.parametrize("case", MODELS)
def test_checkpoint_and_training_state(case: str) -> None:
    name, changes, size, expected = MODELS[case]
    model = planned(name, changes, size).model
    assert model is not None
    seconds = model.write_seconds and round(model.write_seconds, 1)
    assert (model.checkpoint_gb, seconds, model.write_limit, model.nodes, model.fits) == expected
    text = as_text(planned(name, changes, size), terminal=False)
    assert ("does NOT fit" in text) == (not model.fits and model.nodes is not None)


@pytest.mark.parametrize(
    ("text", "number"),
    [("70B", 70e9), ("70b", 70e9), (" 1.8T ", 1.8e12), ("350M", 350e6), ("8 B", 8e9), ("0.5B", 5e8)],
)
def test_model_sizes(text: str, number: float) -> None:
    assert parameters(text) == number
    assert parameters(size_text(number)) == number


@pytest.mark.parametrize("text", ["", "70", "B", "70X", "-8B", "1e9", "0B", "9999T", "0.1M", "seventy"])
def test_what_is_no_model_size(text: str) -> None:
    with pytest.raises(ValueError, match="model size"):
        parameters(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.04 s"), (9.96, "10.0 s"), (51, "51 s"), (600, "10 min"), (36_000, "10.0 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
