"""Nodes of a cluster as exporters show them, on a stand: well at first, and faults are values that change."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import expositions
from metrics_stand import Stand
from project import ROOT

from ultracluster.catalog.metrics import series_names
from ultracluster.config import load
from ultracluster.config.observability import Observability
from ultracluster.model.cluster import Cluster, resolve

RECORDED = ROOT / "tests" / "metrics" / "recorded"
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]
"""By name and labels."""
HEAD = "head"


def observed(name: str) -> Cluster:
    """A shipped environment that asks for observability."""
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    return resolve(environment.model_copy(update={"observability": Observability(kind="prometheus")}))


def key(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A series as it is written, `name{label="value"}`."""
    ((name, labels, _),) = expositions.series(f"{text} 0\n")
    return name, tuple(sorted(labels.items()))


@dataclass
class Fleet:
    """Nodes and what they say; each by a target of node_exporter and one of dcgm-exporter."""

    stand: Stand
    cluster: str
    said: dict[str, Values] = field(default_factory=dict[str, Values])

    def add(self, node: str, **labels: str) -> None:
        """A node that is well, with the recordings of a p5."""
        common = {
            "cluster": self.cluster,
            "node": node,
            "node_group": "gpu",
            "instance_id": f"i-{node}",
            **labels,
        }
        for job, values in {"node": _node(), "dcgm": _values([expositions.dcgm(8)], "dcgm")}.items():
            self.said[f"{node}/{job}"] = values
            self.stand.serve(f"{node}/{job}", _text(values), job=job, labels=common)

    def head(self, states: dict[str, str]) -> None:
        """The controller, whose collector asks slurmctld: the recording, with the nodes in these states."""
        recorded = (RECORDED / "slurm.prom").read_text().splitlines()
        lines = [one for one in recorded if not one.startswith(("#", "ultracluster_slurm_node_"))]
        for node, state in states.items():
            lines.append(f'ultracluster_slurm_node_state{{slurm_node="{node}",state="{state}"}} 1')
            if state in ("down", "drained"):
                lines.append(
                    f'ultracluster_slurm_node_drained{{slurm_node="{node}",check="other",code=""}} 1'
                )
        labels = {"cluster": self.cluster, "node": HEAD, "node_group": "controller"}
        self.stand.serve(f"{HEAD}/node", "\n".join(lines), job="node", labels=labels)

    def change(self, node: str, values: dict[str, float], *, job: str = "node") -> None:
        """Other values of the series with these labels among theirs; a new series where there is none."""
        said = self.said[f"{node}/{job}"]
        for one, value in values.items():
            name, labels = key(one)
            found = [known for known in said if known[0] == name and set(labels) <= set(known[1])]
            said.update(dict.fromkeys(found or [(name, labels)], value))
        self.stand.serve(f"{node}/{job}", _text(said))

    def stop(self, node: str, *jobs: str) -> None:
        """Exporters of a node that do not answer; without any, the node is gone."""
        for job in jobs:
            self.stand.fail(f"{node}/{job}")
        if not jobs:
            for job in ("node", "dcgm"):
                self.stand.forget(f"{node}/{job}")


def _node() -> Values:
    files = ("node", "efa", "health", "lustre", "ultracluster_node")
    found = _values([(RECORDED / f"{name}.prom").read_text() for name in files], "node")
    now = time.time()
    for name, labels in found:
        if name in ("node_textfile_mtime_seconds", "ultracluster_health_checked_timestamp_seconds"):
            found[name, labels] = now
        elif name == "ultracluster_lease_end_timestamp_seconds":
            found[name, labels] = now + 30 * 86400
        elif name.startswith(("ultracluster_xid", "ultracluster_health_open")):
            found[name, labels] = 0
    # they were recorded in a container, which cannot set the clock
    return found | {key("node_timex_sync_status"): 1}


def _values(texts: Iterable[str], job: str) -> Values:
    kept = set(series_names(job))
    return {
        (name, tuple(sorted(labels.items()))): value
        for text in texts
        for name, labels, value in expositions.series(text)
        if name in kept
    }


def _text(values: Values) -> str:
    return "\n".join(f"{name}{_braces(labels)} {value}" for (name, labels), value in values.items())


def _braces(labels: tuple[tuple[str, str], ...]) -> str:
    return "{" + ",".join(f'{label}="{text}"' for label, text in labels) + "}"
