"""What collectors write, served by a real node_exporter: it refuses nothing; a broken file costs itself."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from expositions import series
from metrics_node import COLLECTORS, METRICS, Node
from needs import path_of

from ultracluster.catalog.metrics import series_names

pytestmark = pytest.mark.slow

Scrape = Callable[[], dict[str, float]]
COLLECTED = ("loadavg", "meminfo", "diskstats", "filesystem", "netdev", "netstat", "filefd", "stat", "time",
             "timex", "uname", "vmstat", "pressure", "textfile")  # fmt: skip


@pytest.fixture
def scrape(tmp_path: Path) -> Iterator[Scrape]:
    """Values by series, of a node_exporter that reads `to`."""
    program = path_of("prometheus-node-exporter", "node_exporter")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [program, f"--web.listen-address=127.0.0.1:{port}", "--collector.disable-defaults",
         f"--collector.textfile.directory={tmp_path / 'to'}", *(f"--collector.{name}" for name in COLLECTED)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip

    def get() -> dict[str, float]:
        until = time.monotonic() + 600
        while True:
            try:
                with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=600) as answer:
                    text = answer.read().decode()
                break
            except URLError:
                assert time.monotonic() < until, "node_exporter does not answer"
                time.sleep(0.05)
        return {f"{name}{json.dumps(labels, sort_keys=True)}": value for name, labels, value in series(text)}

    try:
        yield get
    finally:
        process.kill()
        process.wait()


def run(node: Node, to: Path) -> None:
    command = [
        sys.executable,
        "-ISB",
        METRICS / "main.py",
        "--root",
        node.root,
        "--state",
        node.state,
        "--to",
        to,
    ]
    settings = node.document("settings.json", node.settings)
    done = subprocess.run(
        [*command, "--settings", settings],
        env={"PATH": f"{node.bin}:/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    assert not done.stdout


def test_every_file_is_served_and_one_that_is_broken_costs_itself(tmp_path: Path, scrape: Scrape) -> None:
    node, to = Node(tmp_path), tmp_path / "to"
    node.everything()
    now = time.time()
    for file in (node.root / "run/ultracluster/training").iterdir():
        os.utime(file, (now, now))
    garbage = {
        "version": 1,
        "training": {"loss": "NaN", "step": '1"} 7\nx 1'},
        "inference": {'a"\n': {}, "b": 1},
    }
    node.document("run/ultracluster/training/4711.9.json", garbage, at=int(now))

    run(node, to)
    served = scrape()

    assert served["node_textfile_scrape_error{}"] == 0
    files = {name for name in served if name.startswith("node_textfile_mtime_seconds")}
    assert len(files) == len(COLLECTORS) + 1
    ours = {line.partition("{")[0] for line in served} & set(series_names("node"))
    written = {name for file in to.glob("*.prom") for name, _, _ in series(file.read_text(encoding="utf-8"))}
    assert written <= ours and len(written) > 60
    # what a node_exporter of ours has of its own
    recorded = {
        "node_load1",
        "node_memory_MemAvailable_bytes",
        "node_boot_time_seconds",
        "node_timex_sync_status",
    }
    assert recorded <= ours
    assert not [name for name in served if name.startswith("node_cpu_seconds_total")]

    (to / "lustre.prom").write_text(
        'ultracluster_lustre_stalled{fs="/fsx"} 1\nultracluster_lustre_stalled{fs="/fsx} 2\n'
    )
    served = scrape()
    assert served["node_textfile_scrape_error{}"] == 1
    assert not [name for name in served if name.startswith("ultracluster_lustre")]
    assert "ultracluster_efa_devices{}" in served

    run(node, to)
    assert scrape()["node_textfile_scrape_error{}"] == 0, "the next round mends it"
