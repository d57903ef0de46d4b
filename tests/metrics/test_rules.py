"""Rules and routes at work: a real Prometheus scrapes a cluster in which things break, and SNS is told."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from metrics_fleet import Fleet, observed
from metrics_stand import VERSIONS, metrics_stand, tools
from ruamel.yaml import YAML

from ultracluster.metrics import rules
from ultracluster.metrics.routing import alert_manager
from ultracluster.metrics.rules import rule_groups
from ultracluster.model.cluster import Cluster

pytestmark = pytest.mark.slow

TOPIC = "arn:aws:sns:us-east-1:111122223333:alerts"
RACK = tuple(f"r9-{number}" for number in range(3))


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return observed("prod")


@contextmanager
def fleet(cluster: Cluster, *nodes: str, version: str = "installed") -> Iterator[Fleet]:
    """A cluster in which all is well; nodes of `RACK` share a rack, others have one each."""
    definition = alert_manager(cluster, topic_arn=TOPIC, region="us-east-1")
    with metrics_stand(rules=rule_groups(cluster), alert_manager=definition, version=version) as stand:
        here = Fleet(stand, cluster.cluster_name)
        here.head(dict.fromkeys(nodes, "allocated"))
        for node in nodes:
            here.add(node, rack="r9" if node in RACK else node)
        stand.until(lambda: len(stand.query("node:gpu:count == 8")) == len(nodes))
        yield here


def delivered(here: Fleet) -> set[tuple[str, str]]:
    """Alert and node of what the alert manager has not held back."""
    url = f"{here.stand.alert_manager_url}/api/v2/alerts?active=true&silenced=false&inhibited=false"
    with urllib.request.urlopen(url, timeout=600) as answer:  # noqa: S310 (of our own server)
        return {(one["labels"]["alertname"], one["labels"].get("node", "")) for one in json.load(answer)}


@pytest.fixture(scope="module")
def runs(cluster: Cluster) -> Iterator[dict[str, Future[None]]]:
    """Side by side, as each is little but waiting: by version what an XID comes to, and each fault."""
    with ThreadPoolExecutor() as pool:
        found = {version: pool.submit(xid_79, cluster, version) for version in VERSIONS}
        yield found | {"faults": pool.submit(each_fault, cluster)}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_xid_79_becomes_one_alert_with_its_runbook_and_a_rack_one_message(
    version: str, runs: dict[str, Future[None]]
) -> None:
    runs[version].result()


def xid_79(cluster: Cluster, version: str) -> None:
    with fleet(cluster, "n1", *RACK, version=version) as here:
        stand = here.stand
        assert not stand.firing()
        assert not stand.rule_errors()

        # the driver says so, and DCGM; nvidia-smi misses the GPU, and the health check has found all of it
        here.change("n1", {
            'ultracluster_xid_total{xid="79",gpu="0000:53:00"}': 1,
            'ultracluster_xid_last_timestamp_seconds{xid="79",gpu="0000:53:00"}': time.time(),
            'ultracluster_health_result{check="xid",code="79"}': 2,
            "ultracluster_gpu_count": 7,
        })  # fmt: skip
        here.change("n1", {_gpu("DCGM_FI_DEV_XID_ERRORS", 0): 79}, job="dcgm")
        (message,) = stand.until(lambda: stand.told)
        stand.until(
            lambda: {"GpuMissing", "HealthCheckCritical"} <= {one["alertname"] for one in stand.firing()}
        )

        assert delivered(here) == {("GpuXidReboot", "n1")}
        assert message.topic == TOPIC
        assert message.subject == "PAGE prod, rack n1: GpuXidReboot"
        assert message.attributes == {"severity": "page", "cluster": "prod"}
        assert "XID 79 on GPU 0000:53:00 of n1: GPU has fallen off the bus" in message.message
        assert 'Run first: ultracluster doctor prod --reason "ultracluster:xid:79"' in message.message
        assert "Runbook: docs/runbooks/GpuXidReboot.md" in message.message

        for node in RACK:
            here.change(node, {
                f'ultracluster_xid_last_timestamp_seconds{{xid="79",gpu="{gpu}"}}': time.time()
                for gpu in range(8)
            })  # fmt: skip
        stand.until(lambda: len(stand.told) > 1)
        stand.until(lambda: len(delivered(here)) == 4)
        time.sleep(3)

        assert [one.subject for one in stand.told[1:]] == ["PAGE prod, rack r9: GpuXidReboot (24)"]
        assert "These are the first 20" in stand.told[1].message

        here.change("n1", {
            'ultracluster_xid_last_timestamp_seconds{xid="79",gpu="0000:53:00"}': 0,
            'ultracluster_health_result{check="xid",code="79"}': 0,
            "ultracluster_gpu_count": 8,
        })  # fmt: skip
        here.change("n1", {_gpu("DCGM_FI_DEV_XID_ERRORS", 0): 0}, job="dcgm")
        stand.until(
            lambda: [one for one in stand.told if one.subject.startswith("RESOLVED PAGE prod, rack n1")]
        )
        assert not stand.rule_errors()


def _gpu(name: str, number: int) -> str:
    return f'{name}{{gpu="{number}"}}'


FAULTS: dict[str, tuple[str, dict[str, float]]] = {
    "GpuRowRemapFailure": ("dcgm", {_gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE", 3): 1}),
    "GpuThermalThrottling": ("dcgm", {_gpu("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 3): 68}),
    "GpuEccUncorrectable": ("dcgm", {_gpu("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 0): 1}),
    "GpuXidRequeue": (
        "node",
        {'ultracluster_xid_last_timestamp_seconds{xid="94",gpu="0000:53:00"}': time.time()},
    ),
    "GpuXidUnknown": (
        "node",
        {'ultracluster_xid_last_timestamp_seconds{xid="999",gpu="0000:53:00"}': time.time()},
    ),
    "GpuNvlinkDown": ("node", {'ultracluster_health_result{check="nvlink",code="inactive"}': 2}),
    "EfaDevicesMissing": ("node", {"ultracluster_efa_devices": 31}),
    "EfaPeersUnresponsive": (
        "node",
        {'node_amazonefa_unresponsive_remote_events{device="rdmap100s0",port="1"}': 3},
    ),
    "LustreStalled": ("node", {'ultracluster_lustre_stalled{fs="/fsx"}': 1}),
    "LustreEvicted": ("node", {'ultracluster_lustre_evictions_total{fs="/fsx"}': 1}),
    "LustreTargetsLost": ("node", {'ultracluster_lustre_targets_not_connected{fs="/fsx"}': 1}),
    "FaultOpen": ("node", {'ultracluster_health_open_faults{check="xid",code="95",answer="share"}': 1}),
    "HealthCheckCritical": ("node", {'ultracluster_health_result{check="disks",code="readonly"}': 2}),
    "TextfileStale": ("node", {"node_textfile_scrape_error": 1}),
}
"""Job and series by the alert that they are for; each on a node of its own, which is named as the alert."""


def test_each_fault_delivers_its_alert_and_no_other(runs: dict[str, Future[None]]) -> None:
    runs["faults"].result()


def each_fault(cluster: Cluster) -> None:
    with fleet(cluster, *FAULTS, "ExporterDown", "NodeDown") as here:
        stand = here.stand
        wanted = {(name, name) for name in (*FAULTS, "ExporterDown", "NodeDown")}
        seen: set[tuple[str, str]] = set()

        here.stop("ExporterDown", "dcgm")
        here.stop("NodeDown")
        here.head({name: "down" if name == "NodeDown" else "allocated" for _, name in wanted})
        for name, (job, values) in FAULTS.items():
            here.change(name, values, job=job)

        def all_seen() -> bool:
            seen.update(delivered(here))
            return wanted <= seen

        stand.until(all_seen)
        assert seen == wanted
        stand.until(lambda: all(any(f"{name}.md" in one.message for one in stand.told) for name, _ in wanted))
        assert not stand.rule_errors()


@pytest.mark.parametrize("name", ["prod", "eks-p5en", "trainium", "parallelcluster-gb200", "pcs-p6-b200"])
def test_promtool_takes_the_rules_of_every_kind_of_cluster(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp(name)
    files = rule_groups(observed(name))
    for namespace, text in files.items():
        (folder / f"{namespace}.yml").write_text(text)
        assert len(text) < 1_000_000, "AMP takes a megabyte"

    for version in VERSIONS:
        command = [tools(version).promtool, "check", "rules", *folder.iterdir()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["prod", "eks-p5en", "trainium", "parallelcluster-gb200", "pcs-p6-b200"])
def test_no_group_has_more_rules_than_the_default_quota(name: str) -> None:
    assert all(0 < len(group["rules"]) <= 20 for group in _groups(name))


@pytest.mark.parametrize(
    ("count", "groups"),
    [
        (20, ["prod-records"]),
        (21, ["prod-records", "prod-records-2"]),
        (41, ["prod-records", "prod-records-2", "prod-records-3"]),
    ],
)
def test_a_further_rule_begins_a_further_group(
    count: int, groups: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = next(record for record in rules.records() if not record.needs)
    many = [replace(record, name=f"further:{number}") for number in range(count)]
    monkeypatch.setattr(rules, "records", lambda: many)

    found = [group for group in _groups("prod") if group["name"].startswith("prod-records")]

    assert [group["name"] for group in found] == groups
    assert [rule["record"] for group in found for rule in group["rules"]] == [row.name for row in many]


def test_rules_are_left_out_where_nothing_could_raise_them() -> None:
    slurm, kubernetes, trainium = (_alerts(name) for name in ("prod", "eks-p5en", "trainium"))

    assert {"SlurmctldDown", "GpuXidReboot", "HealthCheckCritical"} <= slurm
    assert "NodeNotReady" in kubernetes
    assert "NodeNotReady" not in slurm
    assert not {"SlurmctldDown", "HealthCheckCritical"} & kubernetes
    assert "NeuronDevicesMissing" in trainium
    assert not {name for name in trainium if name.startswith("Gpu")}


def _alerts(name: str) -> set[str]:
    groups = _groups(name)
    assert all(int(group["interval"].removesuffix("s")) >= 30 for group in groups), (
        "AMP takes no shorter interval"
    )
    return {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}


def _groups(name: str) -> list[dict[str, Any]]:
    yaml = YAML(typ="safe")
    return [group for text in rule_groups(observed(name)).values() for group in yaml.load(text)["groups"]]
