"""Variables and huge pages of every pod with accelerators, of a job or of a model server."""

from __future__ import annotations

from ultracluster.model.team_shares import Pool

NO_LOCAL = "^docker,lo,veth"
"""Interfaces that NCCL does not open its connections on; the traffic itself goes over EFA."""
HUGE_PAGES_MIB = 5120
"""Of 2 MiB pages that EFA's installer reserves on a node (EKS User Guide, Run machine learning training on
Amazon EKS with Elastic Fabric Adapter)."""


def environment_variables(
    pool: Pool, processes: int | None = None, *, joined: bool = False
) -> dict[str, str]:
    """Of the processes of a job: few, because libfabric and the EFA plugin know the types themselves.

    Args:
        pool: its nodes.
        processes: of a node; as many as it has accelerators, or logical NeuronCores, by default.
        joined: NVLink joins the nodes, by a ComputeDomain.
    """
    if not pool.resource.startswith("nvidia.com/"):
        return _of_neuron(pool, processes)
    variables = {"NCCL_SOCKET_IFNAME": NO_LOCAL}
    if pool.instance_type.imex and not joined:
        # NVLink between nodes requires a ComputeDomain (NVIDIA's DRA driver)
        variables["NCCL_MNNVL_ENABLE"] = "0"
    return variables


def _of_neuron(pool: Pool, processes: int | None) -> dict[str, str]:
    """Of EFA, which the Neuron runtime does not choose by itself (Neuron documentation, multi-node
    execution), and of cores, where each process has a physical one."""
    kind = pool.instance_type
    variables: dict[str, str] = {}
    if kind.least_efa_interfaces:
        variables = {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"}
    if processes and processes > (kind.logical_neuron_cores or processes):
        variables["NEURON_LOGICAL_NC_CONFIG"] = "1"
    return variables
