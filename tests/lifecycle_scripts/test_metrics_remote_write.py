"""A real agent with a node's own configuration, a real node_exporter, and a workspace that goes away.

Scrapes are faster than on a node, and retries closer together; all else is what a node writes and what its
unit says.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from metrics_stand.versions import NoPrometheusError, tools
from node_agent.agent import FILES, Agent, Node, exposition, free_port, running, tool
from node_agent.receiver import Receiver, until
from project import ROOT

SERIES, SCRAPES = 6000, 40
"""As many samples as a node with 2,000 series, a p5.48xlarge at its budget, has in an hour."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def node_with(folder: Path, receiver: Receiver, **more: Any) -> Node:
    told = {
        "scrape_seconds": 15,
        "max_series_per_node": 10_000,
        "region": "us-east-1",
        "labels": {"cluster": "dev", "node_group": "gpu"},
        "instance_type": "p5.48xlarge",
        "role": "compute",
        "remote_write_url": receiver.url,
    }
    node = Node(folder, told | more, keep=more.pop("keep", None))
    node.has("opt/ultracluster/node-exporter/node_exporter")
    done = node.configure()
    assert done.returncode == 0, done.stderr
    return node


def faster(node: Node, port: int, *, every: str) -> dict[str, Any]:
    """The node's configuration with node_exporter at `port`."""
    document = node.configuration
    document["global"] |= {"scrape_interval": every, "scrape_timeout": every}
    document["remote_write"][0]["queue_config"] |= {
        "batch_send_deadline": "200ms",
        "min_backoff": "100ms",
        "max_backoff": "500ms",
    }
    (scrape,) = (one for one in document["scrape_configs"] if one["job_name"] == "node")
    scrape["static_configs"][0]["targets"] = [f"127.0.0.1:{port}"]
    return document


class Scrapes:
    """What an exporter says that counts how often it is asked; the scrape of that number takes a second."""

    def __init__(self, slow: int = 0) -> None:
        self.count = 0
        self._slow = slow

    def __call__(self, _: str) -> str:
        self.count += 1
        if self.count == self._slow:
            time.sleep(1)
        return f"scrapes {self.count}\n"


@contextmanager
def node_exporter(node: Node) -> Iterator[int]:
    """The real one with the options of its unit; the port that it listens at."""
    text = (FILES / "metrics_node_exporter.service").read_text().replace("\\\n", " ").replace("$$", "$")
    found = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert found
    port = free_port()
    words = shlex.split(found[1].replace("127.0.0.1:9100", f"127.0.0.1:{port}"))
    words[0] = tool("prometheus-node-exporter")
    words = [word.replace("/var/lib/ultracluster/metrics", str(node.written)) for word in words]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield port
        assert process.poll() is None, "node_exporter refused the options of its unit"
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("release", ["installed", "forky"])
def test_a_node_is_seen_with_all_its_labels(tmp_path: Path, receiver: Receiver, release: str) -> None:
    """Machine and collectors' files by one exporter, metrics of the catalogue only, and signed."""
    node = node_with(tmp_path, receiver)
    (node.written / "efa.prom").write_text(
        'node_amazonefa_rx_drops{device="rdmap0s6",port="1"} 7\nunknown_metric 1\n'
    )
    with node_exporter(node) as port, running(node, faster(node, port, every="500ms"), release=release):
        until(lambda: receiver.named("node_amazonefa_rx_drops") and receiver.named("node_load1"))
        until(lambda: receiver.named("up", job="agent"))
    labels = {
        "cluster": "dev",
        "node_group": "gpu",
        "instance_type": "p5.48xlarge",
        "node": node.settings["node"],
    }
    ((series, samples),) = receiver.named(
        "node_amazonefa_rx_drops", job="node", device="rdmap0s6", **labels
    ).items()
    assert set(samples.values()) == {7.0}
    assert dict(series)["instance"] == node.settings["node"]
    assert "unknown_metric" not in receiver.names()
    assert "node_uname_info" in receiver.names() or "node_time_seconds" in receiver.names()
    assert not {name for name in receiver.names() if name.startswith(("go_", "node_cpu_"))}
    if release == "installed":  # Debian 12 builds Prometheus without SigV4
        return
    (signature,) = receiver.authorizations
    today = time.strftime("%Y%m%d", time.gmtime())
    assert re.fullmatch(
        rf"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{today}/us-east-1/aps/aws4_request", signature
    )


def test_an_hour_of_a_node_outlives_a_workspace_that_is_away(tmp_path: Path, receiver: Receiver) -> None:
    """Nothing is lost, nothing comes out of order; memory and disk stay far below the unit's bounds."""
    node = node_with(tmp_path, receiver, keep={})
    count = 0
    load = [f'load{{number="{number}"}} ' for number in range(SERIES)]

    def text(_: str) -> str:
        nonlocal count
        count += 1
        return f"scrapes {count}\n" + "".join(f"{one}{count}.5\n" for one in load)

    with (
        exposition(text) as port,
        running(node, faster(node, port, every="200ms"), release=newest()) as agent,
    ):
        until(lambda: receiver.named("scrapes"))
        receiver.status = 503
        away = count
        until(lambda: count >= away + SCRAPES)
        disk = node.log_bytes()
        receiver.status = 200
        back = count
        until(lambda: _newest(receiver) >= back + 3)
        peak = agent.peak_bytes
        assert agent.metric("prometheus_remote_storage_samples_dropped_total") == 0
        assert agent.metric("prometheus_remote_storage_samples_failed_total") == 0
    ((_, scrapes),) = receiver.named("scrapes").items()
    numbers = [int(value) for value in scrapes.values()]
    assert numbers[0] <= away and numbers[-1] >= back
    # a scrape that takes longer than 200 ms here is told as one that failed
    (up,) = (one for one in receiver.named("up", job="node").values())
    failed = sum(value == 0 for value in up.values())
    assert len(set(range(numbers[0], numbers[-1] + 1)) - set(numbers)) <= failed, "a scrape is missing"
    assert len(up) >= SCRAPES
    whole = [one for one in receiver.named("load").values() if len(one) >= len(numbers) - 2]
    assert len(whole) == SERIES, "a series has gaps"
    assert receiver.late == 0
    assert receiver.answers[503] > 1
    assert peak < 448 << 20, f"{peak >> 20} MiB"
    assert disk < 64 << 20, f"{disk >> 20} MiB"


def newest() -> str:
    """The newest Prometheus that this machine has or gets."""
    try:
        tools("forky")
    except NoPrometheusError:
        return "installed"
    return "forky"


def _newest(receiver: Receiver) -> float:
    return max((max(one.values()) for one in receiver.named("scrapes").values()), default=0)


def test_after_a_power_cut_the_agent_goes_on_with_the_log_of_before(
    tmp_path: Path, receiver: Receiver
) -> None:
    """What was not sent before is given up: Prometheus sends what is younger than its own start."""
    node = node_with(tmp_path, receiver, keep={})
    text = Scrapes()
    with exposition(text) as port:
        document = faster(node, port, every="200ms")
        with running(node, document) as agent:
            until(lambda: receiver.named("scrapes"))
            receiver.status = 503
            unsent = text.count + 1
            until(lambda: text.count >= unsent + 5)
            agent.power_cut()
        assert node.log_bytes() > 0
        receiver.status = 200
        started = text.count
        with running(node, document):
            until(lambda: _newest(receiver) > started + 3)
    ((_, scrapes),) = receiver.named("scrapes").items()
    assert receiver.late == 0
    assert max(scrapes.values()) > started
    assert not {unsent + 1, unsent + 2} & {int(value) for value in scrapes.values()}, (
        "better than the docs say"
    )


def test_throttling_loses_nothing_and_a_refusal_only_what_it_refuses(
    tmp_path: Path, receiver: Receiver
) -> None:
    """429 is asked again. 400, as for a clock that is far off, costs those samples; the next ones arrive."""
    node = node_with(tmp_path, receiver, keep={})
    text = Scrapes()
    with exposition(text) as port, running(node, faster(node, port, every="100ms")) as agent:
        until(lambda: receiver.named("scrapes"))
        receiver.status = 429
        until(lambda: receiver.answers[429] >= 3)
        receiver.status = 200
        reached = text.count
        until(lambda: _newest(receiver) > reached)
        assert agent.metric("prometheus_remote_storage_samples_failed_total") == 0
        receiver.status = 400
        until(lambda: receiver.answers[400] >= 3)
        receiver.status = 200
        reached = text.count
        until(lambda: _newest(receiver) > reached)
        assert agent.metric("prometheus_remote_storage_samples_failed_total") > 0
    ((_, scrapes),) = receiver.named("scrapes").items()
    numbers = [int(value) for value in scrapes.values()]
    first_gap = next(number for number, after in pairwise(numbers) if after > number + 1)
    assert first_gap > 3, "what was throttled is there"


def test_an_exporter_that_dies_or_grows_is_seen_and_harms_nothing(tmp_path: Path, receiver: Receiver) -> None:
    """`up` falls, the agent goes on; more series than the budget are not taken in at all."""
    node = node_with(tmp_path, receiver, keep={}, max_series_per_node=100)
    size = 50

    def text(_: str) -> str:
        return "".join(f'load{{number="{number}"}} 1\n' for number in range(size))

    def up() -> float:
        found = [one for one in receiver.named("up", job="node").values() if one]
        return list(found[0].values())[-1] if found else -1

    with ExitStack() as stack:
        agent: Agent
        with exposition(text) as port:
            agent = stack.enter_context(running(node, faster(node, port, every="200ms")))
            until(lambda: up() == 1 and len(receiver.named("load")) == size)
            size = 5000
            until(lambda: up() == 0)
            assert agent.metric("prometheus_target_scrapes_exceeded_sample_limit_total") > 0
            assert len(receiver.named("load")) == 50
            size = 50
            until(lambda: up() == 1)
        until(lambda: up() == 0)
        assert agent.process.poll() is None
        until(
            lambda: all(receiver.ended.get(one, 0) >= max(at) for one, at in receiver.named("load").items())
        )


def test_an_exporter_that_is_slow_once_ends_its_series_and_they_go_on(
    tmp_path: Path, receiver: Receiver
) -> None:
    """A gap is told as an end, not as a value: what is shown never holds a number that nobody measured."""
    node = node_with(tmp_path, receiver, keep={})
    text = Scrapes(slow=3)
    with exposition(text) as port, running(node, faster(node, port, every="200ms")):
        until(lambda: receiver.named("scrapes"))
        until(lambda: _newest(receiver) > 5)
    ((series, scrapes),) = receiver.named("scrapes").items()
    assert receiver.ended[series] > min(scrapes)
    assert not {3.0} & set(scrapes.values()) and not any(value != value for value in scrapes.values())
    assert receiver.late == 0


def test_the_controller_sends_what_slurmctld_says(tmp_path: Path, receiver: Receiver) -> None:
    """Slurm answers as `text/plain` without a version, which Prometheus 3 does not take from everybody."""
    recorded = ROOT / "tests/metrics/recorded"
    node = node_with(tmp_path, receiver, role="controller", slurm=True, address="10.1.0.10")
    config = (
        "MetricsType = metrics/openmetrics\nSlurmctldHost[0] = head(10.1.0.10)\nSLURM_VERSION = 25.11.8\n"
    )
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\n[ "$1" = show ] && echo "{config}"\n')
    (tmp_path / "scontrol").chmod(0o755)
    assert node.configure(path=f"{tmp_path}:/usr/bin:/bin").returncode == 0

    def text(path: str) -> str:
        return (recorded / f"slurm_{path.rpartition('/')[2]}.prom").read_text()

    with exposition(text, "text/plain") as port:
        document = faster(node, port, every="500ms")
        for one in document["scrape_configs"]:
            if one["job_name"].startswith("slurm"):
                one["static_configs"][0]["targets"] = [f"127.0.0.1:{port}"]
        document["scrape_configs"] = [one for one in document["scrape_configs"] if one["job_name"] != "node"]
        with running(node, document, release=newest()):
            until(lambda: len(receiver.named("up", job="slurm")) == 4 and receiver.named("slurm_bf_active"))
            until(lambda: receiver.named("slurm_node_cpus") and receiver.named("slurm_partition_nodes"))
            until(lambda: all(1.0 in one.values() for one in receiver.named("up", job="slurm").values()))
    ups = receiver.named("up", job="slurm")
    assert all(1.0 in one.values() for one in ups.values())
    name = node.settings["node"]
    assert {dict(one)["instance"] for one in ups} == {
        f"{name}/{part}" for part in ("jobs", "nodes", "partitions", "scheduler")
    }
    kept = set(json.loads((node.metrics / "keep.json").read_text())["slurm"])
    found = {name for name in receiver.names() if name.startswith("slurm_")}
    assert found and found <= kept
    asked_about = {dict(one)["node"] for one in receiver.named("slurm_node_cpus", job="slurm")}
    assert node.settings["node"] not in asked_about, "the label is that of the node which Slurm speaks of"
