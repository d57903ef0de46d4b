"""Who writes Slurm's topology, for each orchestrator and what changes it."""

from __future__ import annotations

from typing import Any

import pytest
from project import ROOT

from ultracluster.config import Environment, load
from ultracluster.model import Cluster, resolve
from ultracluster.model.cluster_json import script_configuration
from ultracluster.model.slurm_topology import head_writes_topology, slurm_topology


def environment(name: str, **changes: Any) -> Environment:
    config = load(ROOT / "environments" / f"{name}.yaml").environment
    orchestrator = config.orchestrator.model_copy(update=changes)
    return config.model_copy(update={"orchestrator": orchestrator})


def of_types(name: str, *types: str) -> Cluster:
    """The example with these types of compute nodes, the first in each of its groups."""
    config = environment(name)
    groups = dict(config.node_groups)
    compute = [key for key, group in groups.items() if group.role == "compute"]
    for key in compute:
        groups[key] = groups[key].model_copy(update={"instance_type": types[0]})
    for number, one in enumerate(types[1:]):
        groups[f"more{number}"] = groups[compute[0]].model_copy(update={"instance_type": one})
    return resolve(config.model_copy(update={"node_groups": groups}))


def kind_of(cluster: Cluster) -> tuple[str, str]:
    found = slurm_topology(cluster, next(iter(cluster.with_role("compute").values())))
    assert found.why
    return found.kind, found.writer


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("dev", ("unknown", "AWS")),
        ("trainium", ("tree", "AWS")),
        ("parallelcluster-p5", ("tree", "Ultracluster")),
        ("parallelcluster-gb200", ("block", "AWS")),
        ("pcs-p6-b200", ("flat", "nobody")),
    ],
)
def test_of_the_shipped_environments(name: str, kind: tuple[str, str]) -> None:
    cluster = resolve(environment(name))
    assert kind_of(cluster) == kind
    assert head_writes_topology(cluster) == (kind[1] == "Ultracluster")


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"version": "3.14.0"}, ("flat", "nobody")),
        ({"version": "3.15.0"}, ("tree", "Ultracluster")),
        ({"lifecycle": "none"}, ("flat", "nobody")),
        ({"topology": "flat"}, ("flat", "nobody")),
        ({"topology": "tree"}, ("tree", "Ultracluster")),
        ({"slurm_settings": {"topologyplugin": "topology/tree"}}, ("tree", "you")),
        ({"slurm_settings": {"TopologyPlugin": "topology/flat"}}, ("flat", "you")),
        ({"slurm_settings": {"TopologyPlugin": "topology/new"}}, ("flat", "you")),
    ],
)
def test_on_parallelcluster(changes: dict[str, Any], kind: tuple[str, str]) -> None:
    assert kind_of(resolve(environment("parallelcluster-p5", **changes))) == kind


@pytest.mark.parametrize(
    ("name", "types", "kind"),
    [
        ("dev", ("p5.48xlarge", "trn2.48xlarge"), "tree"),
        ("dev", ("p5.48xlarge", "p6-b300.48xlarge"), "unknown"),
        ("dev", ("p9.48xlarge",), "unknown"),
        ("dev", ("p6e-gb200.36xlarge",), "block"),
        ("dev", ("p6e-gb200.36xlarge", "p5.48xlarge"), "unknown"),
        ("pcs-p6-b200", ("p6e-gb200.36xlarge",), "block"),
        ("parallelcluster-p5", ("g6.xlarge",), "flat"),
        ("parallelcluster-p5", ("g6.xlarge", "p5.48xlarge"), "tree"),
        ("parallelcluster-p5", ("p9.48xlarge",), "tree"),
    ],
)
def test_by_types(name: str, types: tuple[str, ...], kind: str) -> None:
    assert kind_of(of_types(name, *types))[0] == kind


def test_kubernetes_has_no_slurm() -> None:
    cluster = resolve(environment("eks-p5en"))
    with pytest.raises(ValueError, match="eks has no Slurm"):
        kind_of(cluster)
    assert not head_writes_topology(cluster)


def test_only_the_head_node_is_told_to_write_it() -> None:
    cluster = resolve(environment("parallelcluster-p5"))
    (head,) = cluster.with_role("controller")
    told = script_configuration(cluster, head)
    assert (told["topology"], told["region"]) == ("tree", cluster.region)
    for group in cluster.with_role("compute"):
        assert "topology" not in script_configuration(cluster, group)
    assert "topology" not in script_configuration(cluster)
