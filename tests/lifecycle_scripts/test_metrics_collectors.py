"""Collectors of EFA, Lustre, health and the node, on files of a made-up node, some of them torn."""

from __future__ import annotations

import os
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from expositions import series
from metrics_node import COLLECTORS, NOW, XID, Node, module
from project import ROOT


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def values(text: str) -> dict[str, float]:
    """By name and labels as they are written."""
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line[:1] != "#"
    }


# ---- EFA


def test_only_devices_of_the_efa_driver_count(node: Node) -> None:
    node.efa(devices=2)
    other = node.root / "sys/class/infiniband/ibp1"
    (other / "device").mkdir(parents=True)
    (other / "device/driver").symlink_to("../../../../bus/pci/drivers/mlx5_core")
    (node.root / "sys/class/infiniband/broken").mkdir()

    told = values(node.text("efa"))

    assert told["ultracluster_efa_devices"] == 2
    assert told["ultracluster_efa_devices_expected"] == 32
    assert told['node_amazonefa_tx_bytes{device="rdmap79s0",port="1"}'] == 1_000_000
    assert not [key for key in told if "ibp1" in key]
    # steps, checks and the proof count the same
    counter = "source lifecycle_scripts/lib/devices.sh; devices::names efa"
    environment = {"PATH": os.environ["PATH"], "ULTRACLUSTER_ROOT": str(node.root)}
    names = subprocess.run(
        ["bash", "-euc", counter], cwd=ROOT, env=environment, text=True, capture_output=True, check=True
    ).stdout.split()
    assert names == ["rdmap79s0", "rdmap80s0"]


def test_counters_that_a_generation_lacks_are_left_out(node: Node) -> None:
    node.efa(devices=1)
    (node.root / "sys/class/infiniband/rdmap79s0/ports/1/hw_counters/retrans_pkts").unlink()
    node.write("sys/class/infiniband/rdmap79s0/ports/1/hw_counters/rx_drops", "-1\n")

    text = node.text("efa")

    assert "retrans_pkts" not in text and "rx_drops" not in text and "retrans_bytes" in text


@pytest.mark.parametrize(("expected", "told"), [(32, 0), (0, None), (None, None)])
def test_a_node_without_devices_says_so_only_where_there_should_be_some(
    node: Node, expected: int | None, told: int | None
) -> None:
    node.settings["efa_interfaces"] = expected

    assert values(node.text("efa")).get("ultracluster_efa_devices") == told


# ---- Lustre


def test_what_lustre_has_counted(node: Node) -> None:
    node.lustre()

    told = values(node.text("lustre"))

    assert told['ultracluster_lustre_read_bytes_total{fs="/fsx"}'] == 3_401_234_567_890
    assert told['ultracluster_lustre_write_operations_total{fs="/fsx"}'] == 91_234
    assert told['ultracluster_lustre_metadata_operations_total{fs="/fsx"}'] == 4012 + 4010 + 120_345 + 12
    spent = (401_200 + 201_200 + 1_203_450 + 7_200) / 1e6
    assert told['ultracluster_lustre_metadata_seconds_total{fs="/fsx"}'] == pytest.approx(spent)
    assert told['ultracluster_lustre_targets{fs="/fsx"}'] == 5
    assert told['ultracluster_lustre_targets_not_connected{fs="/fsx"}'] == 0, "an idle OST is none"
    assert told['ultracluster_lustre_efa{fs="/fsx"}'] == 1
    assert told['ultracluster_lustre_stalled{fs="/fsx"}'] == 0
    assert (
        told['ultracluster_lustre_size_bytes{fs="/fsx"}']
        == os.statvfs(node.root).f_blocks * os.statvfs(node.root).f_frsize
    )
    assert 0 <= told['ultracluster_lustre_probe_seconds{fs="/fsx"}'] < 10


@pytest.mark.parametrize(
    ("stats", "operations", "seconds"),
    [
        ("open 3 samples [regs]\nclose 2 samples [regs]\n", 5, None),
        ("open 3 samples [reqs]\nclose 2 samples [usec] 1 9 10\n", 5, None),  # half a sum is no mean
        ("open 3 samples [usecs] 1 9 2000000 4000000\nread_bytes 1 samples [bytes] 4 4 4\n", 3, 2.0),
        ("read_bytes 1 samples [bytes] 4 4 4\n", 0, None),
    ],
)
def test_metadata_operations_are_timed_only_where_all_of_them_are(
    node: Node, stats: str, operations: int, seconds: float | None
) -> None:
    node.lustre()
    node.write("sys/kernel/debug/lustre/llite/abcdefgh-ffff8d0f2c4e8800/stats", stats)

    told = values(node.text("lustre"))

    assert told['ultracluster_lustre_metadata_operations_total{fs="/fsx"}'] == operations
    assert told.get('ultracluster_lustre_metadata_seconds_total{fs="/fsx"}') == seconds


def test_a_lost_target_and_an_eviction_count_once(node: Node) -> None:
    node.lustre()
    assert values(node.text("lustre"))['ultracluster_lustre_evictions_total{fs="/fsx"}'] == 0
    node.lustre(lost=True)

    for _ in range(2):
        told = values(node.text("lustre"))
        assert told['ultracluster_lustre_evictions_total{fs="/fsx"}'] == 1
        assert told['ultracluster_lustre_reconnects_total{fs="/fsx"}'] == 1


def test_a_target_that_is_away_is_seen(node: Node) -> None:
    node.lustre()
    node.write(
        "sys/kernel/debug/lustre/osc/abcdefgh-OST0001-osc-ffff8d0f2c4e8800/state", "current_state: DISCONN\n"
    )

    assert values(node.text("lustre"))['ultracluster_lustre_targets_not_connected{fs="/fsx"}'] == 1


def test_a_network_without_efa_is_0_and_one_that_cannot_be_read_is_absent(node: Node) -> None:
    node.lustre()
    node.write("sys/kernel/debug/lnet/nis", "nid status\n10.1.0.1@efa down 0\n10.1.0.1@tcp up 0\n")
    assert values(node.text("lustre"))['ultracluster_lustre_efa{fs="/fsx"}'] == 0

    (node.root / "sys/kernel/debug/lnet/nis").unlink()
    assert "ultracluster_lustre_efa" not in node.text("lustre")


def test_mounts_of_pods_are_one_file_system(node: Node) -> None:
    node.lustre()
    pods = "".join(
        f"10.1.2.3@tcp:/abcdefgh /var/lib/kubelet/pods/{one}/volumes/fsx lustre rw 0 0\n" for one in range(9)
    )
    node.write("proc/mounts", pods)

    found = {labels["fs"] for _, labels, _ in series(node.text("lustre"))}

    assert found == {"abcdefgh"}


def test_without_lustre_nothing_is_said(node: Node) -> None:
    node.write("proc/mounts", "/dev/nvme0n1p1 / ext4 rw 0 0\n")

    assert node.text("lustre") == ""


# ---- health


def test_words_of_health_checks(node: Node) -> None:
    node.health()
    bad = {"check": "ecc", "result": "critical", "code": "row_remap", "at": NOW - 5}
    node.document("var/lib/ultracluster/health/ecc.json", bad)
    node.document("var/lib/ultracluster/health/nvlink.json", {"check": "other", "result": "ok", "code": "ok"})
    node.document("var/lib/ultracluster/health/xid.json", {"check": "xid", "result": "ok", "code": 'x"} 1\n'})
    node.write("var/lib/ultracluster/health/efa.json", "{")

    told = values(node.text("health"))

    assert told['ultracluster_health_result{check="ecc",code="row_remap"}'] == 2
    assert told['ultracluster_health_checked_timestamp_seconds{check="ecc"}'] == NOW - 5
    assert told['ultracluster_health_result{check="xid",code="other"}'] == 0
    assert not [key for key in told if "nvlink" in key or '"efa"' in key or "drained" in key]


def test_open_faults_with_what_keeps_them_open(node: Node) -> None:
    node.health()
    rows = [
        {"finding": {"check": "xid", "code": "95"}, "answer": "share"},
        {"finding": {"check": "xid", "code": "95"}, "answer": "share"},
        {"finding": {"check": "xid", "code": "79"}, "answer": "drain"},
        {"finding": {"check": "x y", "code": "79"}, "answer": "share"},
        {"finding": None, "answer": "share"},
        "nonsense",
    ]
    node.document("var/lib/ultracluster/health/open.json", {"version": 1, "rows": rows})

    told = values(node.text("health"))

    key = 'ultracluster_health_open_faults{answer="share",check="xid",code="95"}'
    assert {name: value for name, value in told.items() if "open_faults" in name} == {key: 2}


def test_xids_are_counted_once_each_and_from_where_the_last_round_has_ended(node: Node) -> None:
    node.health(XID, "NVRM: Xid (PCI:0000:53:00 GPU-I:05): 94, pid=1")
    first = values(node.text("health"))
    node.journal(XID, "NVRM: Xid (PCI:0000:53:00 GPU-I:05): 94, pid=1", XID)
    second = values(node.text("health"))

    assert first['ultracluster_xid_total{gpu="0000:9b:00",xid="79"}'] == 1
    assert second['ultracluster_xid_total{gpu="0000:9b:00",xid="79"}'] == 2
    assert second['ultracluster_xid_total{gpu="0000:53:00",xid="94"}'] == 1
    assert second['ultracluster_xid_last_timestamp_seconds{gpu="0000:9b:00",xid="79"}'] == NOW - 98


@pytest.mark.parametrize(
    ("line", "transport"),
    [
        (XID, "syslog"),
        ("NVRM: Xid (PCI:[4711]: segfault at 0 in x): 79, pid=1", "kernel"),
        (f"audit: {XID}", "kernel"),
        ("NVRM: Xid (PCI:0000:9b:00): 790000000, x", "kernel"),
    ],
)
def test_a_line_that_a_user_can_write_counts_as_nothing(node: Node, line: str, transport: str) -> None:
    node.health()
    node.journal(line, transport=transport)

    assert "xid_total" not in node.text("health")


def test_a_gpu_that_has_fallen_off_the_bus_is_missing(node: Node) -> None:
    node.health()
    node.write("sys/bus/pci/drivers/nvidia/0000:53:00.0/config", b"\xff\xff\xff\xff")

    told = values(node.text("health"))

    assert (told["ultracluster_gpu_count"], told["ultracluster_gpu_count_expected"]) == (7, 8)


def test_a_journal_that_hangs_ends_in_time(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.health()
    node.command("journalctl", "exec sleep 3600")
    monkeypatch.setattr(module("health"), "JOURNAL_SECONDS", 0.3)

    assert values(node.text("health"))["ultracluster_gpu_count"] == 8


# ---- the node


def test_the_node_itself(node: Node) -> None:
    node.itself()

    told = values(node.text("node"))

    assert told['ultracluster_node_cpu_seconds_total{mode="idle"}'] == 900_000 / os.sysconf("SC_CLK_TCK")
    assert told["ultracluster_node_cpus"] == 192
    assert told["ultracluster_node_usd_per_hour"] == 98.32
    assert told['ultracluster_lease_end_timestamp_seconds{lease_group="train"}'] == NOW + 86_400


@pytest.mark.parametrize(
    ("report", "state", "missing"),
    [
        (['{"run": "ended", "state": "failed", "degraded": ["a", "b"], "release": "r"}'], "failed", 2),
        (
            ['{"run": "ended", "state": "ready", "degraded": []}', '{"step": "efa", "state": "installed"}'],
            "running",
            None,
        ),
        (['{"run": "ended", "state": "ready", "degraded": []}', '{"step": "ef'], "ready", 0),
        (['{"run": "ended", "state": "of another version"}'], "unknown", None),
    ],
)
def test_after_a_boot_the_report_tells_what_came_of_the_release(
    node: Node, report: list[str], state: str, missing: int | None
) -> None:
    node.write("var/log/ultracluster/report.jsonl", "\n".join(report) + "\n")

    told = values(node.text("node"))

    assert [re.findall(r'state="(\w+)"', key) for key in told if "release_info" in key] == [[state]]
    assert told.get("ultracluster_node_components_missing") == missing


# ---- files that are torn


@pytest.mark.parametrize("seed", range(12))
def test_torn_files_break_no_collector(node: Node, seed: int) -> None:
    node.everything()
    dice = random.Random(seed)  # noqa: S311 - the same files each time
    files = [one for one in node.root.rglob("*") if one.is_file() and not one.is_symlink()]
    for file in dice.sample(files, k=min(150, len(files))):
        content = bytearray(file.read_bytes())
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(content) + 1)
            content[at:at] = dice.choice(
                [b"\0", b"\xff\xfe", b'"', b"{", b"-1", b"9" * 400, b"\n", b"NaN", b"|"]
            )
        file.write_bytes(bytes(content[: dice.randint(0, len(content))]))

    for name in COLLECTORS:
        one: Any = module(name)
        text, _ = module("exposition").render(one.METRICS, one.collect(node.host()))
        list(series(text))
