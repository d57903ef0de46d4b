"""Which GPUs a model server can have."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.model import Cluster, resolve
from ultracluster.model.job_fit import JobError
from ultracluster.serving.fit import check_replicas, serving_pool, share_of

SERVE = {"role": "compute", "instance_type": "g6e.48xlarge", "count": 2}
TEAMS = {"research": {"quota": 8, "limit": 8}, "product": {"quota": 8}}


def cluster(**changes: Any) -> Cluster:
    made = {"node_groups.serve": SERVE, **{key.replace("__", "."): one for key, one in changes.items()}}
    return resolve(environment(made))


def test_the_first_group_that_serves_is_taken_unless_another_is_named() -> None:
    asked = cluster(orchestrator__serving={"groups": ["serve"]})

    assert serving_pool(asked, None).group == "serve"
    assert serving_pool(asked, "train").group == "train"
    assert serving_pool(cluster(), None).group == "train"


def test_servers_are_for_nvidia() -> None:
    neuron = resolve(environment({}, base="eks-trn2"))
    with pytest.raises(JobError, match="compiled first"):
        serving_pool(neuron, None)


@pytest.mark.parametrize(
    ("gpus", "nodes", "says"), [(9, 1, "--gpus 8, and more nodes"), (4, 2, "without --gpus")]
)
def test_what_a_replica_cannot_have(gpus: int, nodes: int, says: str) -> None:
    with pytest.raises(JobError, match=says):
        share_of(serving_pool(cluster(), "serve"), gpus, nodes)


@pytest.mark.parametrize(("gpus", "nodes", "most"), [(None, 1, 2), (4, 1, 4), (3, 1, 4), (None, 2, 1)])
def test_replicas_are_as_many_as_fit(gpus: int | None, nodes: int, most: int) -> None:
    known = cluster()
    pool = serving_pool(known, "serve")
    share = share_of(pool, gpus, nodes)

    check_replicas(known, pool, share, most, None)
    with pytest.raises(JobError, match=f"Use at most {most}"):
        check_replicas(known, pool, share, most + 1, None)


def test_a_team_stays_within_its_limit() -> None:
    known = cluster(teams=TEAMS)
    pool = serving_pool(known, "serve")

    check_replicas(known, pool, share_of(pool, 4), 2, "research")
    with pytest.raises(JobError, match="the limit of research allows 8 GPUs"):
        check_replicas(known, pool, share_of(pool, 4), 3, "research")
