"""What is done about faulty nodes under Slurm."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import Many, Model

CheckOrRow = Annotated[
    str, Field(pattern=r"^[a-z][a-z0-9]*([_-][a-z0-9_]+)*$", max_length=40, examples=["efa", "xid-109"])
]


class Health(Model):
    """Checks of nodes at boot, before jobs, after failed ones and in between, and what follows a fault
    (docs/health.md). Slurm only: on Kubernetes the services' own agents do it."""

    mode: Literal["off", "dry-run", "enforce"] = "dry-run"
    """`dry-run`: nodes are checked, and what would be done is written to their log. `enforce`: it is done.
    `off`: nothing runs."""
    boot_gate: bool = True
    """A node is checked when it boots: with a fault it joins drained (`enforce`), or with a warning."""
    ignore: Many[CheckOrRow] = ()
    """Checks that are not run, by name; also `xid`, the kernel's reports of GPU faults. Or single faults that
    are not acted on, by their row of docs/faults.md, such as `xid-109`."""
    max_drained_percent: Annotated[int, Field(ge=1, le=50)] = 10
    """Of the nodes that are there, this share may be out of work because of our checks or of HyperPod's at a
    time, and at least one node. Beyond it a fault stays open, is reported and tried again: a false alarm
    cannot empty the cluster. Nodes that only wait for an idle moment have a budget of their own, as large."""
    max_closed_percent: Annotated[int, Field(ge=1, le=100)] = 25
    """Beyond that share, nodes with a fault that ends running work are closed to new jobs until up to this
    share of all is out of work or closed, and at least two nodes. Their jobs run on meanwhile."""
    max_drained_per_hour: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Nodes that may be drained within an hour, also those that are back; by default as many as the share,
    and at least two for a fault that ends running work."""
    replace: bool = True
    """A node whose fault asks for it is replaced; else it stays drained for a person. ParallelCluster always
    replaces a node that is drained and has no job."""
    max_resumes_per_day: Annotated[int, Field(ge=0, le=20)] = 2
    """So often within 24 hours a node is given back after its checks passed; then it is replaced, or waits
    for a person where a boot would not mend it."""
    checkpoint_seconds: Annotated[int, Field(ge=0, le=3600)] = 60
    """Seconds that jobs on a node to be rebooted or replaced have before they are queued again. A job with
    the comment `ultracluster:signal=USR1` gets that signal at their start."""


__all__ = ["Health"]
