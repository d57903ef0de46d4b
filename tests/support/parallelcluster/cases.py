"""One way to break each rule on ParallelCluster, own or shared, and the smallest change that mends it.

The rules are tried on these, and so are ParallelCluster's own validators.
"""

from __future__ import annotations

from typing import Any

from rules_table import Case, cases

BASE = {
    "orchestrator": {"kind": "parallelcluster"},
    "node_groups": {
        "controller": {"role": "controller", "instance_type": "m5.2xlarge", "count": 1},
        "login": {"role": "login", "instance_type": "m5.xlarge", "count": 1},
        "gpu": {"role": "compute", "instance_type": "p5.48xlarge", "count": 4},
    },
}
GPU = {"role": "compute", "instance_type": "p5.48xlarge", "count": 1}
TYPE = "node_groups.gpu.instance_type"
CAPACITY = "node_groups.gpu.capacity"


def case(rule: str, broken: dict[str, Any], says: str, instead: str) -> Case:
    return Case(rule, {**BASE, **broken}, "node_groups", says, instead, {"node_groups.more0": ...})


def more(count: int, group: dict[str, Any], **each: Any) -> dict[str, Any]:
    """So many further groups."""
    return {f"node_groups.more{number}": {**group, **each} for number in range(count)}


CASES = [
    *cases("parallelcluster"),
    case("PCL012", more(50, GPU), "51 partitions", "50 partitions"),
    case("PCL013", more(50, GPU, partition="gpu"), "51 compute groups", "50 groups"),
    case(
        "PCL099",
        more(11, GPU),
        "there are 12 partitions. In each update the head node has 30 seconds",
        "fewer than 12 partitions",
    ),
]
