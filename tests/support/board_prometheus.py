"""A real Prometheus over an hour of the recorded expositions of nodes, written as blocks by promtool.

No scrape has to be waited for: rates, and everything that looks back, have an hour at once.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import expositions
from metrics_stand.versions import Tools
from project import ROOT

from ultracluster.catalog.metrics import metrics

RECORDED = ROOT / "tests" / "metrics" / "recorded"
CLUSTER = "train"
NODES = ("ip-10-1-0-1", "ip-10-1-0-2")
IDLE_NODE = NODES[1]
"""Its GPUs do nothing."""
JOB = "4711"
STEP = 30
END = expositions.HOUR + 600
START = END - 3600
USEFUL_SECONDS = 24
"""Of each step of 30."""
FAULTS: Mapping[str, float] = {
    "ultracluster_health_result": 2,
    "ultracluster_gpu_count": 1,
    "ultracluster_gpu_count_expected": 8,
    "ultracluster_collector_up": 0,
    "ultracluster_lustre_targets_not_connected": 1,
    "ultracluster_lease_end_timestamp_seconds": END + 7200,
    "ultracluster_xid_last_timestamp_seconds": END - 300,
    "ultracluster_xid_total": 2,
    "kube_node_status_condition": 1,
    "ultracluster_node_usd_per_hour": 50,
}
"""What is wrong in this hour, so that boards have something to show."""
GPU_FAULTS = {
    "XID_ERRORS": 79, "CLOCKS_EVENT_REASONS": 64 + 32 + 128, "UNCORRECTABLE_REMAPPED_ROWS": 1,
    "CORRECTABLE_REMAPPED_ROWS": 2, "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 5,
}  # fmt: skip
_LABEL = re.compile(r'\w+="(?:[^"\\]|\\.)*"')
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")


@contextmanager
def prometheus(folder: Path, programs: Tools, hour: Iterable[str]) -> Iterator[Prometheus]:
    """A Prometheus with the hour, OpenMetrics text as `lines` gives it, on a free port of this machine."""
    text = folder / "hour.om"
    text.write_text("".join(hour))
    blocks = folder / "blocks"
    subprocess.run(
        [programs.promtool, "tsdb", "create-blocks-from", "openmetrics", str(text), str(blocks)],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "prometheus.yml").write_text("{}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [
                programs.prometheus, f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={blocks}", "--storage.tsdb.retention.time=100y",
                f"--web.listen-address={address}",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            one = Prometheus(f"http://{address}")
            one.wait(server)
            yield one
        finally:
            server.kill()
            server.wait()


class Prometheus:
    """Its HTTP API, as of the end of the hour."""

    def __init__(self, url: str) -> None:
        self.url = url

    def wait(self, server: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + 600
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5):  # noqa: S310 # ours
                    return
            except (urllib.error.URLError, OSError):
                if server.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def ask(self, path: str, **arguments: Any) -> Any:
        """The data of an answer.

        Raises:
            ValueError: it refused, with what it said.
        """
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(arguments, doseq=True)}"
        try:
            with urllib.request.urlopen(url, timeout=300) as answer:  # noqa: S310 # ours
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from None

    def query(self, expression: str) -> list[dict[str, Any]]:
        answer = self.ask("query", query=expression, time=END)
        return answer["result"] if answer["resultType"] == "vector" else [{"value": answer["result"]}]

    def query_range(self, expression: str) -> list[dict[str, Any]]:
        return self.ask("query_range", query=expression, start=END - 600, end=END, step=60)["result"]


def lines() -> Iterator[str]:
    """OpenMetrics text of the hour. A third node falls silent in its middle."""
    series = list(_series())
    for name, labels, value, growth in series:
        for moment in range(START, END + 1, STEP):
            grown = value + growth * (moment - START) / STEP
            yield f"{name}{{{labels}}} {grown!r} {moment}\n"
    for moment in range(START, START + 1800, STEP):
        yield f'up{{job="node",node="ip-10-1-0-3",cluster="{CLUSTER}",node_group="gpu"}} 1 {moment}\n'
    yield "# EOF\n"


def _series() -> Iterator[tuple[str, str, float, float]]:
    """Name, labels, first value and growth in a step, of every series."""
    own = {name: one for one in metrics().values() for name in one.series_names}
    seen: set[tuple[str, frozenset[str]]] = set()
    for node in NODES:
        shared = (
            f'cluster="{CLUSTER}",node_group="gpu",instance_type="p5.48xlarge",instance_id="i-{node[-1]}"'
        )
        for job in ("node", "dcgm", "neuron", "slurm"):
            yield "up", f'job="{job}",node="{node}",{shared}', 1, 0
        for text in _texts(node):
            for line in text.splitlines():
                found = _SAMPLE.match(line)
                if not found or found[1] not in own:
                    continue
                name, labels, told = found[1], found[2] or "", float(found[3])
                has_node = re.search(r'(^|,)node="', labels)
                every = ",".join(one for one in (labels, shared, "" if has_node else f'node="{node}"') if one)
                # several versions of an exporter were recorded: another order, and labels without a value
                series = (name, frozenset(one for one in _LABEL.findall(every) if not one.endswith('=""')))
                if series in seen:
                    continue
                seen.add(series)
                value = FAULTS.get(name, told)
                yield name, every, value, _growth(name, own[name].type)
    alert = 'alertname="GpuMissing",alertstate="firing",severity="page"'
    yield "ALERTS", f'{alert},cluster="{CLUSTER}",node="{NODES[0]}",node_group="gpu"', 1, 0


def _texts(node: str) -> Iterator[str]:
    idle = {"GPU_UTIL": 0} if node == IDLE_NODE else {}
    yield expositions.dcgm(8, job=JOB, host=node, values=GPU_FAULTS | idle)
    yield 'ultracluster_node_release_info{release="2026.12",state="degraded"} 1'
    for file in sorted(RECORDED.glob("*.prom")):
        if file.name != "dcgm.prom":
            yield file.read_text()


def _growth(name: str, kind: str) -> float:
    if kind not in ("counter", "histogram") or name == "ultracluster_xid_total":
        return 0
    if name.startswith("DCGM_FI_DEV_"):
        return 1
    if "bytes" in name:
        return 30e9
    return USEFUL_SECONDS if "useful_seconds" in name else 2
