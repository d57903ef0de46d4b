"""A node as collectors of metrics see it: files of the kernel below a folder, and commands that print files.

Its figures are those of a p5.48xlarge at work, so that what collectors write of it is also the recording that
rules and dashboards are tried on: `python tests/support/metrics_node.py` writes those of
`tests/metrics/recorded/`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from script_modules import script_module

ROOT = Path(__file__).parents[2]
METRICS = ROOT / "lifecycle_scripts" / "metrics"
RECORDED = ROOT / "tests" / "metrics" / "recorded"
NOW = 1_795_392_000
"""The unix second of all recordings, as in `expositions`."""
COLLECTORS = ("efa", "health", "lustre", "node", "slurm", "training")
SETTINGS: dict[str, Any] = {
    "cluster": "prod", "environment": "prod", "orchestrator": "hyperpod-slurm", "release": "2026.11",
    "node": "ip-10-1-0-1", "node_group": "train", "role": "compute", "instance_type": "p5.48xlarge",
    "accelerator": "nvidia", "accelerators": 8, "efa_interfaces": 32, "lustre_path": "/fsx", "slurm": True,
    "usd_per_hour": 98.32, "scrape_seconds": 30,
}  # fmt: skip
LLITE = """snapshot_time             1795391999.123456789 secs.nsecs
start_time                1795300000.000000000 secs.nsecs
read_bytes                812345 samples [bytes] 4096 4194304 3401234567890
write_bytes               91234 samples [bytes] 1 4194304 380123456789
read                      812345 samples [usecs] 10 90000 812345678
open                      4012 samples [usecs] 20 4000 401200
close                     4010 samples [usecs] 10 3000 201200
getattr                   120345 samples [usecs] 5 2000 1203450
statfs                    12 samples [usecs] 300 900 7200
"""
STATE = """current_state: FULL
state_history:
 - [ {begin}, CONNECTING ]
 - [ {begin}, FULL ]
 - [ {lost}, DISCONN ]
 - [ {lost}, CONNECTING ]
 - [ {lost}, EVICTED ]
 - [ {back}, FULL ]
"""
CALM = "current_state: {state}\nstate_history:\n - [ 1795300000, CONNECTING ]\n - [ 1795300000, FULL ]\n"
NIS = "nid                      status alive refs peer  rtr   max    tx   min\n"
SINFO = """ip-10-1-0-1|mixed|Unknown|none
ip-10-1-0-2|drained|2026-11-22T23:40:00|ultracluster:gpu_count:missing
ip-10-1-0-2|drained|2026-11-22T23:40:00|ultracluster:gpu_count:missing
ip-10-1-0-3|idle|Unknown|none
"""
RUNNING = "4711|alice|team-a|train|ip-10-1-0-[1,3]\n"
PENDING = "train|2026-11-22T23:00:00|Resources\ntrain|2026-11-22T23:30:00|Resources\n"
XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
HISTOGRAM = {"buckets": [[0.05, 3], [0.1, 9], [0.5, 12]], "sum": 1.4, "count": 12}
TRAINING: dict[str, Any] = {
    "step": 1200, "step_seconds": 1.31, "compute_seconds": 1.12, "wait_seconds": 0.19,
    "tokens_per_second": 411_000, "loss": 2.31, "mfu_ratio": 0.42, "checkpoint_seconds": 21.5,
    "useful_seconds_total": 15_720.0,
    "lost_seconds_total": {"repeated": 41.0, "startup": 190.0, "checkpoint": 64.5},
}  # fmt: skip
REPORT: dict[str, Any] = {
    "neuron_runtime_data": [{"pid": 367, "report": {
        "neuroncore_counters": {
            "neuroncores_in_use": {str(core): {"neuroncore_utilization": 42.5} for core in range(4)},
        },
        "memory_used": {"neuron_runtime_used_bytes": {"host": 9_043_968, "neuron_device": 12_519_788_544}},
        "execution_stats": {
            "error_summary": {"generic": 0, "numerical": 0, "transient": 0, "runtime": 0, "hardware": 0},
            "execution_summary": {"completed": 123, "completed_with_err": 0, "timed_out": 0},
            "latency_stats": {"total_latency": {"p0": 0.011, "p50": 0.0121, "p99": 0.0144, "p100": 0.015}},
        },
    }}],
    "system_data": {"neuron_hw_counters": {"neuron_devices": [
        {"neuron_device_index": index, "mem_ecc_corrected": 0, "mem_ecc_uncorrected": 0,
         "sram_ecc_corrected": 0, "sram_ecc_uncorrected": 0}
        for index in range(2)
    ]}},
}  # fmt: skip
PROBE = {
    "probe_seconds": 0.0021, "size_bytes": 50_000_000_000_000, "free_bytes": 21_000_000_000_000,
    "files": 400_000_000, "files_free": 390_000_000,
}  # fmt: skip


def module(name: str) -> ModuleType:
    """One of the programs' modules, which import each other by their own names."""
    return script_module(METRICS, name)


class Node:
    """Files and commands of a node below a folder."""

    def __init__(self, folder: Path) -> None:
        self.root, self.state, self.bin = folder / "root", folder / "state", folder / "bin"
        for one in (self.root, self.state, self.bin):
            one.mkdir(parents=True, exist_ok=True)
        self.settings: dict[str, Any] = dict(SETTINGS)

    def write(self, path: str, text: str | bytes, *, at: int | None = NOW) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        if at is not None:
            os.utime(file, (at, at))
        return file

    def document(self, path: str, document: object, **more: Any) -> Path:
        return self.write(path, json.dumps(document), **more)

    def command(self, name: str, script: str) -> None:
        """Puts a command on the PATH of `host().run`."""
        file = self.bin / name
        file.write_text(f"#!/bin/bash\n{script}\n")
        file.chmod(0o755)

    def host(self, now: float = NOW) -> Any:
        """As one round of `main.py` sees this node; for one test (conftest gives PATH back)."""
        os.environ["PATH"] = f"{self.bin}:{os.environ['PATH'].replace(f'{self.bin}:', '')}"
        host = module("host").Host(self.root, self.state, self.settings, now)
        host.is_mount = lambda path: Path(path).is_dir()
        return host

    def text(self, name: str, now: float = NOW) -> str:
        """What a collector writes; AssertionError where it refuses a sample."""
        one = module(name)
        most = module("rounds").MOST_LINES.get(name, 5000)
        text, refused = module("exposition").render(one.METRICS, one.collect(self.host(now)), most)
        assert refused == 0, f"{refused} samples of {name} are refused"
        return text

    # ---- what it has

    def efa(self, devices: int = 32, **counters: int) -> None:
        driver = self.root / "sys/bus/pci/drivers/efa"
        driver.mkdir(parents=True, exist_ok=True)
        for number in range(devices):
            folder = f"sys/class/infiniband/rdmap{79 + number}s0"
            for at, counter in enumerate(module("efa")._COUNTERS):
                value = counters.get(
                    counter, (at + 1) * 1_000_000 if "bytes" in counter or "pkts" in counter else 0
                )
                self.write(f"{folder}/ports/1/hw_counters/{counter}", f"{value}\n")
            (self.root / folder / "device").mkdir()
            (self.root / folder / "device/driver").symlink_to(
                os.path.relpath(driver, self.root / folder / "device")
            )

    def lustre(self, *, lost: bool = False) -> None:
        self.write(
            "proc/mounts", "10.1.2.3@tcp:/abcdefgh /fsx lustre rw,flock 0 0\n/dev/nvme0n1p1 / ext4 rw 0 0\n"
        )
        (self.root / "fsx").mkdir(exist_ok=True)
        base = "sys/kernel/debug/lustre"
        self.write(f"{base}/llite/abcdefgh-ffff8d0f2c4e8800/stats", LLITE)
        self.write(
            "sys/kernel/debug/lnet/nis",
            NIS + "10.1.0.1@efa up 0 3 8 0 64 64 60\n10.1.0.1@tcp up 0 3 8 0 64 64 60\n",
        )
        for number in range(4):
            text = CALM.format(state="IDLE" if number else "FULL")
            if lost and number == 0:
                text = STATE.format(begin=1_795_300_000, lost=NOW + 10, back=NOW + 40)
            self.write(f"{base}/osc/abcdefgh-OST{number:04x}-osc-ffff8d0f2c4e8800/state", text)
        self.write(f"{base}/mdc/abcdefgh-MDT0000-mdc-ffff8d0f2c4e8800/state", CALM.format(state="FULL"))

    def health(self, *lines: str) -> None:
        for check in ("gpu_count", "ecc", "nvlink", "efa", "lustre", "xid"):
            told = {"check": check, "verb": "quick", "result": "ok", "code": "ok", "at": NOW - 40}
            self.document(f"var/lib/ultracluster/health/{check}.json", told)
        self.document("var/lib/ultracluster/health/drained.json", {})
        rows = [{"finding": {"check": "xid", "code": "95"}, "answer": "share"}]
        self.document("var/lib/ultracluster/health/open.json", {"version": 1, "rows": rows})
        self.document("var/lib/ultracluster/health/node_name.json", "ip-10-1-0-1")
        for number in range(8):
            name = f"0000:{0x53 + number * 0x11:02x}:00.0"
            self.write(f"sys/bus/pci/drivers/nvidia/{name}/class", "0x030200\n")
            self.write(f"sys/bus/pci/drivers/nvidia/{name}/config", b"\xde\x10\x30\x23")
        (self.root / "sys/bus/pci/drivers/nvidia/module").mkdir(exist_ok=True)
        self.journal(*lines)

    def journal(self, *lines: str, transport: str = "kernel") -> None:
        """The kernel's log, from its beginning on."""
        entries = [
            {"__CURSOR": f"c{number}", "__REALTIME_TIMESTAMP": f"{(NOW - 100 + number) * 10**6}",
             "_TRANSPORT": transport, "MESSAGE": line}
            for number, line in enumerate(lines)
        ]  # fmt: skip
        (self.bin / "journal").write_text("".join(f"{json.dumps(one)}\n" for one in entries))
        self.command(
            "journalctl",
            f"""file={self.bin}/journal
for word; do case $word in --after-cursor=*) after=${{word#*=}} ;; esac; done
if [[ -n ${{after:-}} ]]; then sed "1,/\\"$after\\"/d" "$file"; else cat "$file"; fi""",
        )

    def itself(self) -> None:
        rows = "".join(f"cpu{number} 1 2 3 4 5 6 7 8 9 10\n" for number in range(192))
        self.write("proc/stat", f"cpu  90000 100 20000 900000 400 0 300 20 0 0\n{rows}btime 1795300000\n")
        ended = {"run": "ended", "state": "ready", "degraded": [], "release": "2026.11"}
        self.document("run/ultracluster/ready", ended)
        leases = [{"id": "cr-1", "group": "train", "kind": "capacity-block"}]
        self.document("var/lib/ultracluster/state/lease.json", {"leases": leases})
        self.document(
            "var/lib/ultracluster/lease_end.json", {"ends": {"cr-1": {"begin": None, "end": NOW + 86_400}}}
        )

    def slurm(
        self, sinfo: str = SINFO, running: str = RUNNING, pending: str = PENDING, private: str = "none"
    ) -> None:
        self.command("scontrol", f"echo 'PriorityType = x'; echo 'PrivateData             = {private}'")
        for name, text in (("sinfo", sinfo), ("running", running), ("pending", pending)):
            (self.bin / f"{name}.txt").write_text(text)
        self.command("sinfo", f"cat {self.bin}/sinfo.txt")
        self.command(
            "squeue",
            f"case $* in *PENDING*) cat {self.bin}/pending.txt ;; *) cat {self.bin}/running.txt ;; esac",
        )

    def job(self, number: int = 4711, uid: int | None = None) -> None:
        """A job of that user: its step's process, of root, and one of its own."""
        status = "Name:\tx\nPPid:\t{0}\nUid:\t{1}\t{1}\t{1}\t{1}\n"
        step = 900_000 + number * 2
        self.write(f"proc/{step}/status", status.format(1, 0))
        self.write(f"proc/{step}/cmdline", f"slurmstepd: [{number}.batch]\0")
        self.write(f"proc/{step + 1}/status", status.format(step, os.getuid() if uid is None else uid))
        self.write(f"proc/{step + 1}/cmdline", "python\0train.py\0")

    def training(self, *ranks: int, job: int = 4711, inference: bool = False) -> None:
        for rank in ranks:
            names = TRAINING if rank == 0 else {key: TRAINING[key] for key in [*TRAINING][:4]}
            told: dict[str, Any] = {
                "version": 1,
                "job_id": str(job),
                "rank": rank,
                "written": NOW,
                "training": names,
            }
            if inference:
                both = ("time_to_first_token_seconds", "inter_token_seconds")
                told["inference"] = {"llama": dict.fromkeys(both, HISTOGRAM)}
            self.document(f"run/ultracluster/training/{job}.{rank}.json", told)

    def everything(self) -> None:
        self.efa()
        self.lustre()
        self.health(XID, "usb 1-1: new device")
        self.itself()
        self.slurm()
        self.job()
        self.training(*range(8), inference=True)


def recordings(folder: Path) -> dict[str, str]:
    """What collectors write of the node, by the name of the recording; the same at each call."""
    node = Node(folder)
    node.everything()
    lustre: Any = module("lustre")
    ask, lustre._ask = lustre._ask, lambda _: PROBE
    try:
        texts = {f"{name}.prom": node.text(name) for name in COLLECTORS}
    finally:
        lustre._ask = ask
    neuron, render, rounds = module("neuron"), module("exposition").render, module("rounds")
    sums = neuron.Sums()
    sums.take(REPORT, NOW)
    texts["neuron.prom"] = render(neuron.METRICS, sums.samples())[0]
    about = [
        sample
        for name in COLLECTORS
        for sample in (
            ("ultracluster_collector_up", {"collector": name}, 1),
            ("ultracluster_collector_seconds", {"collector": name}, 0.01),
            ("ultracluster_collector_samples_refused", {"collector": name}, 0),
        )
    ]
    trainium = Node(folder / "trainium")
    trainium.settings |= {"accelerator": "neuron", "accelerators": 2}
    for number in range(2):
        trainium.write(f"sys/class/neuron_device/neuron{number}/core_count", "8\n")
    texts["health.prom"] += trainium.text("health")
    texts["ultracluster_node.prom"] = texts.pop("node.prom") + render(rounds.METRICS, about)[0]
    return {
        name: f"# Written by lifecycle_scripts/metrics of a made-up p5.48xlarge.\n{text}"
        for name, text in texts.items()
    }


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as there:
        for name, text in recordings(Path(there)).items():
            (RECORDED / name).write_text(text, encoding="utf-8")
