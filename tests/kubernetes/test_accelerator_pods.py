"""Variables of processes: few, because libfabric and the EFA plugin know the types themselves."""

from __future__ import annotations

import pytest
from kubernetes_support import environment

from ultracluster.kubernetes.accelerator_pods import NO_LOCAL, environment_variables
from ultracluster.model import resolve
from ultracluster.model.team_shares import pools

FABRIC = {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"}


@pytest.mark.parametrize(
    ("instance_type", "processes", "variables"),
    [
        ("p5en.48xlarge", 8, {"NCCL_SOCKET_IFNAME": NO_LOCAL}),
        ("trn2.48xlarge", None, FABRIC),
        ("trn2.48xlarge", 128, {**FABRIC, "NEURON_LOGICAL_NC_CONFIG": "1"}),
    ],
)
def test_variables_follow_from_the_accelerator(
    instance_type: str, processes: int | None, variables: dict[str, str]
) -> None:
    cluster = resolve(environment({"node_groups.train.instance_type": instance_type}, base="eks-p5en"))
    pool = next(pool for pool in pools(cluster) if pool.group == "train")

    assert environment_variables(pool, processes) == variables
