"""Interface of a Lustre file system, created here or elsewhere."""

from __future__ import annotations

from typing import Protocol

from aws_cdk import aws_iam as iam

from ultracluster.model.mounts import LustreMount
from ultracluster.network.server_connections import IServer


class ILustreFileSystem(IServer, Protocol):
    """A Lustre file system, made here or elsewhere."""

    @property
    def file_system_id(self) -> str: ...
    @property
    def dns_name(self) -> str: ...
    @property
    def mount_name(self) -> str:
        """The name behind the slash when mounting; never assume "fsx"."""
        ...

    @property
    def mount_path(self) -> str:
        """Where nodes mount it."""
        ...

    @property
    def efa(self) -> bool:
        """Whether clients can reach it over EFA."""
        ...

    @property
    def gds(self) -> bool:
        """Whether clients read it straight into GPU memory (GPUDirect Storage)."""
        ...

    @property
    def capacity_gib(self) -> int | None:
        """None where it is not known, or grows with what is in it."""
        ...

    @property
    def mount(self) -> LustreMount:
        """All that nodes must know to mount it."""
        ...

    def grant_describe(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let someone ask FSx for file systems, which knows no resources."""
        ...
