"""Jobs that can never start are refused before a queue keeps them."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import changed, environment_data

from ultracluster.config import Environment
from ultracluster.model import Cluster, resolve
from ultracluster.model.job_fit import JobError, check_job, job_pool, most_nodes_of_job


def cluster(**changes: Any) -> Cluster:
    """Eight nodes with eight accelerators each."""
    data = changed(
        environment_data("eks-p5en"), {key.replace("__", "."): one for key, one in changes.items()}
    )
    return resolve(Environment.model_validate(data))


@pytest.mark.parametrize(
    ("team", "most"),
    [
        (None, 8),
        ({"quota": 16}, 8),  # without a limit a team may borrow everything
        ({"quota": 16, "limit": 24}, 3),
        ({"quota": 16, "limit": 20}, 2),  # whole nodes only
        ({"quota": {"train": 16}, "limit": {"train": 24}}, 3),
        ({"quota": {"train": 16}, "limit": {"train": 8}}, 2),  # what is guaranteed is never taken away
        ({"quota": 8, "limit": 640}, 8),
    ],
)
def test_most_nodes_of_a_job(team: Any, most: int) -> None:
    found = cluster(teams={"research": team}) if team else cluster()
    pool = job_pool(found, None)
    name = "research" if team else None

    assert most_nodes_of_job(found, pool, name) == most
    check_job(found, pool, most, name)
    with pytest.raises(JobError, match=f"a job on {most + 1} can never start"):
        check_job(found, pool, most + 1, name)


def test_limits_above_a_team_and_of_each_user_count() -> None:
    teams = {
        "science": {"quota": 8, "limit": 32},
        "vision": {"parent": "science", "limit": 64, "most_per_user": 24},
        "speech": {"parent": "vision"},
    }
    found = cluster(teams=teams)
    pool = job_pool(found, None)

    assert [most_nodes_of_job(found, pool, name) for name in teams] == [4, 3, 4]
    alone = cluster(teams=teams, orchestrator__scheduler="kai")
    with pytest.raises(JobError, match="only divides its share among its teams: --team, one of vision"):
        check_job(alone, pool, 1, "science")


def test_a_group_without_whole_accelerators_has_no_job() -> None:
    assert job_pool(cluster(), "train").nodes == 8
    with pytest.raises(JobError, match="one of train"):
        job_pool(cluster(), "system")
    shared = cluster(node_groups__train__gpu_time_slices=4)
    with pytest.raises(JobError, match="pods share the GPUs of train"):
        job_pool(shared, "train")
    with pytest.raises(JobError, match="no compute group has whole accelerators"):
        job_pool(shared, None)
