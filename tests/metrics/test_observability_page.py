"""The five questions of docs/observability.md, asked of a real Prometheus about a job with one sick node."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from board_prometheus import END, START, STEP, Prometheus, prometheus
from metrics_stand import NoPrometheusError, tools
from project import ROOT

from ultracluster.catalog.metrics import metrics
from ultracluster.metrics.expressions import names

PAGE = (ROOT / "docs" / "observability.md").read_text()
QUERIES: dict[str, str] = dict(re.findall(r"```promql\n# ([^\n]+)\n(.+?)```", PAGE, flags=re.S))
NODES = ("n1", "n2", "n3", "n4")
SICK = "n3"
AS_A_NUMBER = {
    "By how much each node computes longer than the middle one",
    "The lowest clock of each node's GPUs, in MHz",
    "What each node reads, in bytes per second: compare with the file system's throughput",
    "Share of the step that a node waits, for others or for data",
}
"""These tell of all nodes; the others of the sick one only."""


def exposition(node: str, second: float) -> dict[str, float]:
    """What a node says after so many seconds: counters run on, the sick one's faster, its GPU slower."""
    sick = node == SICK
    rank = f'{{job_id="4711",rank="{node[1:]}"}}'
    lines = {
        f'ultracluster_training_compute_seconds{rank}': 2.4 if sick else 2.0,
        f'ultracluster_training_wait_seconds{rank}': 0.1 if sick else 0.5,
        f'ultracluster_training_step_seconds{rank}': 2.5,
        f'ultracluster_training_loss_finite{rank}': 0 if sick else 1,
        'DCGM_FI_DEV_SM_CLOCK{gpu="0"}': 1200 if sick else 1980,
        'DCGM_FI_DEV_THERMAL_VIOLATION{gpu="0"}': 4e8 * second if sick else 0,
        "ultracluster_gpu_count": 7 if sick else 8,
        "ultracluster_gpu_count_expected": 8,
        'node_amazonefa_tx_bytes{device="rdmap1s0",port="1"}': 1e3 * second if sick else 1e10 * second,
        'node_amazonefa_retrans_bytes{device="rdmap1s0",port="1"}': 10 * second if sick else 0,
        'node_amazonefa_retrans_timeout_events{device="rdmap1s0",port="1"}': second if sick else 0,
        'node_amazonefa_unresponsive_remote_events{device="rdmap1s0",port="1"}': 0,
        'node_amazonefa_impaired_remote_conn_events{device="rdmap1s0",port="1"}': 0,
        "ultracluster_efa_devices": 31 if sick else 32,
        "ultracluster_efa_devices_expected": 32,
        'node_network_transmit_bytes_total{device="eth0"}': 5e9 * second if sick else 1e3 * second,
        'ultracluster_lustre_stalled{fs="/fsx"}': int(sick),
        'ultracluster_lustre_targets_not_connected{fs="/fsx"}': 2 if sick else 0,
        'ultracluster_lustre_read_bytes_total{fs="/fsx"}': 1e9 * second,
        'ultracluster_lustre_metadata_operations_total{fs="/fsx"}': 100 * second,
        'ultracluster_lustre_metadata_seconds_total{fs="/fsx"}': 5 * second if sick else 0.05 * second,
        "node_pressure_cpu_waiting_seconds_total": 0.6 * second if sick else 0.01 * second,
    }  # fmt: skip
    if sick:
        lines['ultracluster_xid_last_timestamp_seconds{xid="79",gpu="0000:9b:00"}'] = END - 60
    jobs = [("4711", node)] + ([("4712", node)] if sick else [])
    for job, where in jobs:
        lines[f'ultracluster_slurm_job_node{{job_id="{job}",user="a",slurm_node="{where}"}}'] = 1
    return lines


def hour() -> Iterator[str]:
    for node in NODES:
        labels = f'cluster="prod",node="{node}",node_group="train"'
        moments = range(START, END + 1, STEP)
        found = {moment: exposition(node, moment - START) for moment in moments}
        for series in found[START]:
            name, _, rest = series.partition("{")
            both = f"{name}{{{labels}{',' if rest else '}'}{rest}"
            yield from (f"{both} {found[moment][series]} {moment}\n" for moment in moments)
    yield "# EOF\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    try:
        programs = tools()
    except NoPrometheusError as error:
        pytest.skip(str(error))
    with prometheus(tmp_path_factory.mktemp("prometheus"), programs, hour()) as one:
        yield one


def asked(server: Prometheus, title: str) -> dict[str, float]:
    """The answer by node."""
    return {
        row["metric"].get("node") or row["metric"]["slurm_node"]: float(row["value"][1])
        for row in server.query(QUERIES[title])
    }


def test_there_are_five_questions() -> None:
    assert re.findall(r"(?m)^## (\d)\. ", PAGE) == ["1", "2", "3", "4", "5"]
    assert len(QUERIES) == PAGE.count("```promql")


@pytest.mark.parametrize("title", QUERIES)
def test_queries_name_metrics_that_nodes_send(title: str) -> None:
    runs = {series for metric in metrics().values() for series in metric.series_names}

    assert names(QUERIES[title]) <= runs


@pytest.mark.slow
@pytest.mark.parametrize("title", QUERIES)
def test_the_sick_node_is_the_answer(title: str, server: Prometheus) -> None:
    assert set(asked(server, title)) == (set(NODES) if title in AS_A_NUMBER else {SICK})


@pytest.mark.slow
def test_the_late_node_stands_out(server: Prometheus) -> None:
    late, clock, _, wait = (asked(server, title) for title in QUERIES if title in AS_A_NUMBER)

    assert late == {"n1": 1, "n2": 1, "n3": pytest.approx(1.2), "n4": 1}
    assert min(clock, key=clock.__getitem__) == SICK
    assert min(wait, key=wait.__getitem__) == SICK


def test_every_page_that_it_names_is_there() -> None:
    for name in re.findall(r"\]\(([\w.-]+)\)", PAGE):
        assert (ROOT / "docs" / name).exists(), name
