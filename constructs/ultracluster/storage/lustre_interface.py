"""Interface of a Lustre file system, created here or elsewhere."""

from __future__ import annotations

from typing import Any, Protocol

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.model.mounts import LustreMount
from ultracluster.network.admission import Admission


class ILustreFileSystem(Protocol):
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
    def security_group(self) -> ec2.ISecurityGroup | None:
        """None where it is not known: then its owner admits the clients."""
        ...

    @property
    def mount(self) -> LustreMount:
        """All that nodes must know to mount it."""
        ...

    @property
    def connections(self) -> ec2.Connections:
        """Opens all that Lustre needs, both ways."""
        ...

    @property
    def node(self) -> Any: ...

    def admit(self, scope: Construct, construct_id: str, *, clients: ec2.IConnectable) -> list[Admission]:
        """Let the members of security groups mount it; see `ServerConnections.admit`."""
        ...

    def grant_describe(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let someone ask FSx for file systems, which knows no resources."""
        ...
