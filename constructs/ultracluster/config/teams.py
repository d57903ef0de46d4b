"""Teams that share a cluster: one section for every scheduler, Kubernetes' and Slurm's accounting."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ultracluster.config.base import Many, Model
from ultracluster.config.kubernetes import KubernetesName, PodSecurity, PrincipalArn
from ultracluster.config.nodes import GroupName

TeamName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")]
"""Names a queue, an account and, by default, a namespace alike."""
Accelerators = Annotated[int, Field(ge=0, le=10_000_000)]


class Team(Model):
    """People who share a part of the cluster's accelerators: GPUs, Neuron devices, or MIG instances where a
    group's GPUs are cut."""

    quota: Accelerators | dict[GroupName, Accelerators] = 0
    """Accelerators that are the team's whenever it needs them: in total, or by node group. A total is taken
    from the groups in their order."""
    limit: Accelerators | dict[GroupName, Accelerators] | None = None
    """Accelerators at the most, with those that are borrowed: in total, or by node group; no limit by
    default. Equal to `quota`, the team borrows nothing, and so it does of a group that is not named."""
    parent: TeamName | None = None
    """Team that this one is a part of. Its quota comes out of the parent's, and what the parent's teams leave
    idle goes to each other first."""
    most_per_user: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Slurm: GPUs at the most in all running jobs of one user in the team; no limit by default."""
    lend: bool = True
    """Others may use what the team leaves idle, until it needs it again."""
    weight: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Share of what is idle, relative to the other teams' weights; with task governance 100 at the most."""
    preempt_own: bool = True
    """A job of higher priority ends one of lower priority of the same team."""
    namespace: KubernetesName | None = None
    """Kubernetes namespace, which is made; the team's name by default."""
    members: Many[PrincipalArn] = ()
    """Kubernetes: IAM roles and users that may run jobs in the namespace, and nothing elsewhere."""
    pod_security: PodSecurity = "restricted"
    """Kubernetes: what pods of the namespace may be (Kubernetes documentation, Pod Security Standards).
    Neither level allows a privileged pod or one with the host's network or folders; `baseline` lets a
    container be root, for images that need it."""
    uid: Annotated[int, Field(ge=1000, le=2_147_483_647)] | None = None
    """Kubernetes: user and group id of the team's files. Pods of the namespace run as it and as no other, so
    that permissions on the shared file systems hold between teams. Without it each pod says which it is, and
    `ultracluster job` says 1000 in a namespace that is `restricted`."""
    users: Many[Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]] = ()
    """Slurm: Unix users that may run jobs in the account."""


__all__ = ["Accelerators", "Team", "TeamName"]
