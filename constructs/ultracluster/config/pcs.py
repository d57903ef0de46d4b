"""AWS Parallel Computing Service: managed Slurm, nodes from our launch templates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import Model, Without
from ultracluster.config.slurm import Partition, PartitionName, SlurmSettings

PROLOG = "/opt/ultracluster/prolog"
"""What the lifecycle scripts (steps/imex.sh) put on every node to run all executables of the folder prolog.d
next to it, in the order of their names; one of them is the IMEX prolog."""


_NO_ZERO = Without(
    0,
    nearest=1,
    why="is no number of days that PCS takes (CreateCluster, defaultPurgeTimeInDays); -1 keeps records",
)


class PcsAccounting(Model):
    """Slurm accounting that the service runs; there is no database to bring."""

    mode: Literal["standard", "none"] = "standard"
    """`none` keeps no users, limits or history."""
    purge_days: Annotated[int, Field(ge=-1, le=10_000), _NO_ZERO] = 365
    """Days until records are dropped, not 0; -1 keeps them forever, and they are paid for."""


class Pcs(Model):
    """AWS PCS with Slurm."""

    kind: Literal["pcs"] = "pcs"
    cluster_name: Annotated[str, Field(pattern=r"^[a-zA-Z][a-zA-Z0-9-]{2,39}$")] | None = None
    """Name of the cluster; the environment's name by default. A new name is a new cluster."""
    size: Literal["small", "medium", "large"] | None = None
    """Size of the controller: 32, 512 or 2048 nodes. By default the smallest that holds the node groups at
    their greatest. A new size is a new cluster."""
    slurm_version: Annotated[str, Field(pattern=r"^[0-9][0-9]\.[0-9][0-9]$", examples=["25.11"])] = "25.11"
    """Slurm's release; nodes need an image that has it."""
    accounting: PcsAccounting = PcsAccounting.model_construct()
    """Slurm accounting, which the service runs."""
    network_type: Literal["ipv4", "ipv6"] = "ipv4"
    """How Slurm's controller is reached. `ipv6` makes VPC and node subnet dual stack: nodes have addresses of
    both kinds, because EFA, FSx and the images need IPv4. Another one is a new cluster."""
    rest: bool = False
    """Slurm's REST API, private, port 6820, without TLS. `ultracluster users --token` signs tokens for it."""
    scaledown_seconds: Annotated[int, Field(ge=1, le=10_000_000)] = 600
    """Seconds after which idle nodes above `count` end."""
    slurm_settings: SlurmSettings = {}
    """Parameters of slurm.conf for the cluster, of those that PCS allows."""
    slurmdbd_settings: SlurmSettings = {}
    """Parameters of slurmdbd.conf."""
    cgroup_settings: SlurmSettings = {}
    """Parameters of cgroup.conf."""
    partitions: dict[PartitionName, Partition] = {}
    """Settings of partitions (queues) by name; groups name their partition."""
    gpu_types: bool | None = None
    """Name GPUs by type, so that a job may ask for `--gres=gpu:h100:8`; jobs that ask for `--gpus` need it
    not. By default before Slurm 26.05, which detects the GPUs itself, with their place among the cores."""
    efa_interface: Literal["efa", "efa-only"] = "efa"
    """Kind of EFA interfaces. AWS's guide for PCS shows only `efa`; that `efa-only`, which takes no IP
    address, is accepted is open (unverified: one node group in an account shows it)."""
    lifecycle: Literal["node-bootstrapped", "none"] = "node-bootstrapped"
    """When our scripts run: before slurmd starts, or not at all."""
    agent_version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9]+)?$")] = "1.5.0-1"
    """Version of the PCS agent that the images have; lifecycle actions need 1.5.0-1."""
    imex: bool = True
    """On UltraServers: write the NVIDIA IMEX configuration of each job from a prolog (Slurm's Prolog and
    PrologFlags, unless slurm_settings has them)."""
    root_device: Literal["/dev/sda1", "/dev/xvda"] = "/dev/sda1"
    """Root device of the images: /dev/sda1 on Ubuntu, /dev/xvda on Amazon Linux 2023."""
