"""Series on paper against those that exporters have: of each type of node, and of 1,000 nodes at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from expositions import dcgm, series
from kubernetes_support import environment
from metrics_node import METRICS, RECORDED, Node
from project import SHIPPED

from ultracluster.catalog.metrics import exporters, metric, metrics
from ultracluster.model import metric_series, resolve
from ultracluster.model.cluster import Cluster, Group
from ultracluster.model.metric_series import (
    all_series,
    cluster_series,
    default_budget,
    node_series,
    samples_per_month,
    series_of_node,
)

KEEP: dict[str, set[str]] = {
    job: set(names) for job, names in json.loads((METRICS / "keep.json").read_text()).items()
}


def cluster(base: str, changes: dict[str, Any] | None = None) -> Cluster:
    return resolve(environment(changes or {}, base=base))


def kept(job: str, text: str) -> dict[str, int]:
    """Series by exporter that the agent keeps of an exposition; it drops what the catalogue has not."""
    found: dict[str, set[Any]] = {}
    for name, labels, _ in series(text):
        if name in KEEP[job]:
            found.setdefault(metric(name).exporter, set()).add((name, *sorted(labels.items())))
    return {exporter: len(one) for exporter, one in found.items()}


def recorded(*names: str) -> str:
    return "".join((RECORDED / f"{name}.prom").read_text() for name in names)


def p5() -> tuple[Cluster, Group]:
    found = cluster("parallelcluster-p5")
    return found, found.groups["reserved"]


# ---- on paper


def test_everything_that_the_catalogue_counts_is_known() -> None:
    """A thing that no node has counts as none: a word that is written wrong would cost nothing on paper."""
    seen: set[str] = set()
    for name in SHIPPED:
        found = cluster(name)
        for group in found.groups.values():
            seen |= set(series_of_node(found, group, asks_slurm=True).by_exporter)
    every = {one.exporter for one in metrics().values()}
    assert every - seen == {"kube-state-metrics", "kueue", "vllm", "sglang"}

    known = set(metric_series._FIXED) | {"kube-node", "kube-pod", "kube-queue"}  # pyright: ignore[reportPrivateUsage]
    known |= set(metric_series._things(*p5(), asks_slurm=True))  # pyright: ignore[reportPrivateUsage]
    assert {thing for one in metrics().values() for thing in one.per} <= known


def test_model_servers_are_counted_where_models_are_served() -> None:
    """Either engine: SGLang has as many series as vLLM."""
    asked = {"orchestrator.serving": {"groups": ["train"]}, "observability": {"kind": "prometheus"}}
    found = resolve(environment(asked))
    counted = series_of_node(found, found.groups["train"]).by_exporter
    names = [[one.per for one in metrics().values() if one.exporter == name] for name in ("vllm", "sglang")]

    assert counted["vllm"] > 0 and names[0] == names[1]
    assert "vllm" not in series_of_node(found, found.groups["system"]).by_exporter


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_environments_stay_small(name: str) -> None:
    """The largest node has less than 2,000 series; with exporters' own defaults it would have thousands."""
    found = cluster(name)

    for group in found.groups.values():
        on_paper = node_series(found, group)
        assert 100 < on_paper < 2000, group.name
        assert on_paper * 1.5 <= default_budget(found, group) + 1 < on_paper * 1.5 + 501
    assert all_series(found) == cluster_series(found) + sum(
        node_series(found, group) * group.most_nodes for group in found.groups.values()
    )


def test_nothing_is_counted_that_a_node_cannot_use() -> None:
    found = cluster("dev")

    assert not {"dcgm-exporter", "collectors/efa", "collectors/neuron", "collectors/training"} & set(
        series_of_node(found, found.groups["controller"]).by_exporter
    )
    trainium = cluster("trainium")
    told = series_of_node(trainium, trainium.groups["trn2"]).by_exporter
    assert "dcgm-exporter" not in told and told["collectors/neuron"] > 128
    assert "collectors/slurm" not in told
    assert "prometheus-agent" not in series_of_node(*nodes_of("eks-p5en", "train")).by_exporter


def nodes_of(base: str, group: str) -> tuple[Cluster, Group]:
    found = cluster(base)
    return found, found.groups[group]


def test_gpus_in_parts_are_counted_in_parts() -> None:
    whole, parts = cluster("eks-p5en"), cluster("eks-p5en", {"node_groups.train.mig_profile": "1g.18gb"})
    of_whole, of_parts = (series_of_node(one, one.groups["train"]).by_exporter for one in (whole, parts))

    assert of_parts["dcgm-exporter"] == of_whole["dcgm-exporter"] * 8, "seven instances, and the GPU itself"


def test_a_type_that_nobody_knows_has_more_than_none() -> None:
    found = cluster("dev", {"node_groups.gpu.instance_type": "p9.768xlarge"})

    assert default_budget(found, found.groups["gpu"]) == 10_000


def test_samples_of_a_month() -> None:
    assert samples_per_month(1, 30) == 87_600
    assert samples_per_month(1000, 60) == 43_800_000


# ---- what exporters have


def test_a_recorded_node_is_within_its_figures_exporter_by_exporter() -> None:
    found, group = p5()
    on_paper = series_of_node(found, group).by_exporter
    real = kept("dcgm", recorded("dcgm")) | kept("agent", recorded("agent"))
    real |= kept("node", recorded("node", "efa", "lustre", "health", "ultracluster_node", "training"))

    for exporter, number in real.items():
        assert number <= on_paper[exporter], exporter
    assert {"dcgm-exporter", "node_exporter", "collectors/efa", "prometheus-agent"} <= set(real)
    assert sum(real.values()) > 0.6 * sum(on_paper.values()), (
        "a figure that is far too large says nothing either"
    )
    assert real["dcgm-exporter"] == on_paper["dcgm-exporter"]
    assert real["collectors/efa"] == on_paper["collectors/efa"]


def test_the_list_of_names_is_what_keeps_a_node_small() -> None:
    all_of_it = sum(1 for _ in series(recorded("node")))

    assert sum(kept("node", recorded("node")).values()) < all_of_it / 4


@pytest.mark.slow
def test_a_scrape_of_1000_nodes_is_within_the_budget(tmp_path: Path) -> None:
    """1,000 nodes with eight GPUs and 32 EFA devices, each with a job; the head node sees them all."""
    sizes = {"capacity": {"kind": "on-demand"}, "count": 1000}
    found = cluster("parallelcluster-p5", {f"node_groups.reserved.{key}": one for key, one in sizes.items()})
    group, head = found.groups["reserved"], found.groups["head"]
    assert group.most_nodes == 1000
    names = [f"train-st-reserved-{number}" for number in range(1, 1001)]
    alike = recorded("node", "efa", "lustre", "health", "ultracluster_node", "training", "agent")
    of_node = sum(kept("node", alike).values()) + sum(kept("agent", alike).values())

    # of each node another exposition: other GPUs, another job
    total = 0
    template = dcgm(8, job="JOB", host="HOST")
    for number, name in enumerate(names):
        text = template.replace("JOB", str(number)).replace("HOST", name).replace("GPU-", f"GPU-{number:04x}")
        scraped = of_node + sum(
            1 for line in text.splitlines() if line[:1] != "#" and line.partition("{")[0] in KEEP["dcgm"]
        )
        assert scraped <= node_series(found, group) <= default_budget(found, group)
        total += scraped
    assert total <= all_series(found) < 2_000_000, "what a new workspace takes without a word to AWS"

    node = Node(tmp_path)
    node.slurm(
        sinfo="".join(f"{name}|allocated|2026-11-22T23:00:00|none\n" for name in names),
        running="".join(f"{at // 8}|alice|team|train|{name}\n" for at, name in enumerate(names)),
        pending="".join(f"gpu|2026-11-22T23:00:00|Reason{at % 4}\n" for at in range(5000)),
    )
    pages = [
        wide(name, names) for name in ("slurm_jobs", "slurm_nodes", "slurm_scheduler", "slurm_partitions")
    ]
    on_paper = series_of_node(found, head, asks_slurm=True)
    asked = kept("node", node.text("slurm")) | kept("slurm", "".join(pages))
    for exporter, scraped in asked.items():
        assert scraped <= on_paper.by_exporter[exporter], exporter
    assert asked["slurm/nodes"] > 4000 and asked["collectors/slurm"] > 2000
    assert on_paper.of_node < default_budget(found, head, asks_slurm=True) < 20_000


def wide(recording: str, names: Iterable[str]) -> str:
    """A recording of four nodes as one of many."""
    lines: list[str] = []
    for line in recorded(recording).splitlines():
        match = re.fullmatch(r'(\w+)\{node="n1"\} (\S+)', line)
        if match:
            lines += [f'{match[1]}{{node="{name}"}} {match[2]}' for name in names]
        elif "{node=" not in line:
            lines.append(line)
    return "\n".join([*lines, ""])


def test_exporters_are_counted_under_their_scrape_job() -> None:
    assert {one.job for one in exporters().values()} >= set(KEEP)
