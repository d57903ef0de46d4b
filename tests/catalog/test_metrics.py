"""The catalogue of metrics: names, labels, what a node has of each, and the files made of it."""

from __future__ import annotations

import csv
import re

import pytest
from metrics_node import METRICS, module

from tools.metrics_keep import FILE, text
from ultracluster.catalog.metrics import exporters, jobs, metric, metrics, series_names

OURS = ("efa", "health", "lustre", "neuron", "node", "slurm", "training")


def test_every_metric_has_a_known_exporter_and_a_name_that_prometheus_takes() -> None:
    for name, one in metrics().items():
        assert one.exporter in exporters(), name
        engine = f"{one.exporter}:" if exporters()[one.exporter].job == "serving" else ""
        assert re.fullmatch(rf"{engine}[a-zA-Z_][a-zA-Z0-9_]*", name)
        assert one.help and not one.help.endswith("."), name
        assert len(set(one.labels)) == len(one.labels), name
        assert bool(one.labels) or not set(one.per) - {"cluster", "target"}, (
            f"{name} is told apart by nothing"
        )
        assert {"job", "instance"}.isdisjoint(one.labels), name


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(LookupError, match="nearest: ultracluster_lustre_stalled"):
        metric("ultracluster_lustre_stale")
    with pytest.raises(LookupError, match=r"^no metric is called zzz$"):
        metric("zzz")


def test_series_of_a_histogram_belong_to_it() -> None:
    found = metric("ultracluster_inference_inter_token_seconds_bucket")

    assert found.name == "ultracluster_inference_inter_token_seconds"
    assert metric(found.name) is found
    assert {f"{found.name}{end}" for end in ("_bucket", "_sum", "_count")} <= set(series_names("node"))
    assert found.name not in series_names("node")


def test_scrape_jobs_keep_their_own_names_only() -> None:
    assert jobs() == ("dcgm", "node", "slurm", "agent", "kueue", "serving", "kube-state-metrics")
    assert "up" not in {name for job in jobs() for name in series_names(job)}
    assert set(series_names("dcgm")) == {name for name in metrics() if name.startswith("DCGM_")}
    assert "node_cpu_seconds_total" not in series_names("node"), "1,500 series on a node with 192 processors"


def test_nodes_keep_what_the_catalogue_says() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "stale: python tools/metrics_keep.py"


def test_the_counters_file_of_dcgm_exporter_is_the_catalogue() -> None:
    with (METRICS / "dcgm_counters.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]

    assert all(len(row) == 3 for row in rows), "field, type, help: a comma in the help is one column more"
    assert {row[0].strip(): row[1].strip() for row in rows} == {
        one.name: one.type for one in metrics().values() if one.exporter == "dcgm-exporter" and not one.until
    }


@pytest.mark.parametrize("name", OURS)
def test_a_collector_writes_what_the_catalogue_has_of_it(name: str) -> None:
    of_rounds = module("rounds").METRICS if name == "node" else {}
    wanted = {one.name: one.type for one in metrics().values() if one.exporter == f"collectors/{name}"}

    assert {key: kind for key, (kind, _) in {**module(name).METRICS, **of_rounds}.items()} == wanted


def test_two_collectors_never_write_the_same_name() -> None:
    names = [key for name in (*OURS, "rounds") for key in module(name).METRICS]

    assert len(names) == len(set(names))
