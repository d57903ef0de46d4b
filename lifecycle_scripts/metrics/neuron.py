#!/usr/bin/python3 -ISB
"""Follows neuron-monitor, whose reports have what happened since the one before, and adds them up for
node_exporter.

    neuron.py [--to FOLDER] [--settings FILE]

Names are those of the maker's own neuron-monitor-prometheus.py, so that nodes of Slurm and of Kubernetes
have the same ones. A program of its own and no part of a round: what happens between two reports is in no
other one. Python 3.9 and newer.
"""

import argparse
import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from exposition import render  # noqa: E402
from rounds import write  # noqa: E402

NAME = "neuron"
METRICS = {
    "neuroncore_utilization_ratio": ("gauge", "Share of time in which a NeuronCore was active"),
    "neuron_runtime_memory_used_bytes": ("gauge", "Memory of all applications"),
    "execution_errors_total": ("counter", "Executions that failed"),
    "execution_status_total": ("counter", "Executions by their end"),
    "execution_latency_seconds": ("gauge", "Latency of an execution, of the slowest application"),
    "hardware_ecc_events_total": ("counter", "Memory errors of a Neuron device"),
    "ultracluster_neuron_monitor_timestamp_seconds": ("gauge", "When neuron-monitor last reported"),
}
MONITOR = ("neuron-monitor", "--config-file", str(HERE / "neuron_monitor.json"))
SILENT_SECONDS = 60
"""Without a report for so long it is ended and started again; it reports each 10 seconds."""
_WORD = re.compile(r"[a-z0-9_]{1,40}")
_PERCENTILES = ("p50", "p99", "p100")
_ECC = ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_corrected", "sram_ecc_uncorrected")
_REPORT_BYTES = 16 << 20
_MOST = 512
"""Of anything: Trn2 has 128 NeuronCores and 16 devices."""


class Sums:
    """Counters, added up from reports, and gauges of the last one."""

    def __init__(self):
        self.counters, self.gauges = {}, {}

    def take(self, report, now):
        """Takes one report; what is no number, or has an unknown shape, counts as nothing."""
        self.gauges = {("ultracluster_neuron_monitor_timestamp_seconds", ()): now}
        for runtime in _list(report, "neuron_runtime_data"):
            told = _dict(runtime, "report")
            for core, one in [*_dict(told, "neuroncore_counters", "neuroncores_in_use").items()][:_MOST]:
                used = _number(_dict(one).get("neuroncore_utilization"))
                if used is not None and re.fullmatch(r"\d{1,4}", core):
                    self._most("neuroncore_utilization_ratio", ("neuroncore", core), used / 100)
            for where, used in _dict(told, "memory_used", "neuron_runtime_used_bytes").items():
                if where in ("host", "neuron_device") and _number(used) is not None:
                    key = ("neuron_runtime_memory_used_bytes", (("memory_location", where),))
                    self.gauges[key] = self.gauges.get(key, 0) + used
            for kind, count in _dict(told, "execution_stats", "error_summary").items():
                self._add("execution_errors_total", ("error_type", kind), count)
            for kind, count in _dict(told, "execution_stats", "execution_summary").items():
                self._add("execution_status_total", ("status_type", kind), count)
            latency = _dict(told, "execution_stats", "latency_stats", "total_latency")
            for one in _PERCENTILES:
                if _number(latency.get(one)) is not None:
                    self._most("execution_latency_seconds", ("percentile", one), latency[one])
        for device in _list(_dict(report, "system_data", "neuron_hw_counters"), "neuron_devices")[:_MOST]:
            index = _dict(device).get("neuron_device_index")
            for kind in _ECC if isinstance(index, int) else ():
                more = (("event_type", kind), ("neuron_device_index", str(index)))
                self._add("hardware_ecc_events_total", more, _dict(device).get(kind))

    def samples(self):
        """As `exposition.render` takes them."""
        for (name, labels), value in {**self.gauges, **self.counters}.items():
            yield name, dict(labels), value

    def _most(self, name, label, value):
        """A core or a percentile that several applications have: the larger one."""
        self.gauges[name, (label,)] = max(value, self.gauges.get((name, (label,)), value))

    def _add(self, name, labels, count):
        labels = labels if isinstance(labels[0], tuple) else (labels,)
        good = _number(count) is not None and count >= 0 and all(_WORD.fullmatch(text) for _, text in labels)
        key = (name, labels)
        if good and (key in self.counters or len(self.counters) < _MOST):
            self.counters[key] = self.counters.get(key, 0) + count


def _dict(one, *keys):
    for key in keys:
        one = one.get(key) if isinstance(one, dict) else None
    return one if isinstance(one, dict) else {}


def _list(one, key):
    found = _dict(one).get(key)
    return found if isinstance(found, list) else []


def _number(value):
    """None where it is none; a huge one would take the sum with it."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18
    return value if good else None


def reports(process, silent=SILENT_SECONDS):
    """Reports of neuron-monitor, one a line, until it ends or is silent."""
    text = b""
    os.set_blocking(process.stdout.fileno(), False)
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        while waiting.select(silent):
            block = os.read(process.stdout.fileno(), 1 << 16)
            if not block:
                return
            *whole, text = (text + block).split(b"\n")
            if len(text) > _REPORT_BYTES:
                return
            for line in whole:
                try:
                    report = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(report, dict):
                    yield report


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=Path("/var/lib/ultracluster/metrics"))
    parser.add_argument("--settings", help="as main.py has it; nothing of it is needed here")
    to = parser.parse_args(arguments).to
    os.environ["PATH"] = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/opt/aws/neuron/bin"
    sums = Sums()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        process = subprocess.Popen(MONITOR, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    except OSError as error:
        print(f"neuron-monitor: {error}", flush=True)
        return 1
    try:
        for report in reports(process):
            sums.take(report, time.time())
            write(to, "neuron.prom", render(METRICS, sums.samples())[0])
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)  # one that closed its output is about to end, and its own exit code says why
    finally:
        process.kill()
        process.wait()
        write(to, "neuron.prom", "")
    print(f"neuron-monitor has ended with {process.returncode}, or was silent", flush=True)
    # systemd starts both again; counters begin at 0, which is what a counter may do
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(0)
