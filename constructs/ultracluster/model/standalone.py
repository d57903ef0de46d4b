"""A cluster from parts that stand alone, as a CDK app has them: no file, and no network of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ultracluster.config import Environment
from ultracluster.config.environment import Access, Software
from ultracluster.config.network import (
    ExistingSecurityGroup,
    ExistingSubnet,
    ExistingVpc,
    FurtherZone,
    Network,
)
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup
from ultracluster.config.observability import Observability
from ultracluster.config.orchestrator import OrchestratorSettings
from ultracluster.config.storage import ExistingDatabase, ExistingLustre, ExistingOpenZfs, Storage
from ultracluster.model.cluster import Cluster, resolve
from ultracluster.model.mounts import Accounting, LustreMount, OpenZfsMount
from ultracluster.model.orchestrators import TRAITS
from ultracluster.software import newest_release

LATER = "${Token[LATER.0]}"
"""Stands for what a construct is not told. It has the form of a CDK token, so that no rule judges it, and the
CDK refuses a template with it."""
_LONGEST_NAME = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneStorage:
    """File systems that nodes or pods mount, and the database of Slurm's accounting."""

    lustre: LustreMount | None = None
    further_lustre: Mapping[str, LustreMount] = field(default_factory=dict[str, LustreMount])
    open_zfs: OpenZfsMount | None = None
    accounting: Accounting | None = None

    @property
    def settings(self) -> Storage:
        """The same as existing storage of an environment."""
        return Storage(
            lustre=_lustre(self.lustre) if self.lustre else None,
            further_lustre={name: _lustre(mount) for name, mount in self.further_lustre.items()},
            openzfs=_open_zfs(self.open_zfs),
            accounting_database=_database(self.accounting),
        )


def standalone(
    settings: OrchestratorSettings,
    node_groups: Mapping[str, NodeGroup],
    *,
    cluster_name: str,
    region: str = LATER,
    storage: StandaloneStorage | None = None,
    release: str | None = None,
    mirror: str | None = None,
    instance_types: Mapping[str, DeclaredInstanceType] | None = None,
    tags: Mapping[str, str] | None = None,
    access: Access | None = None,
    observability: Observability | None = None,
    further_zones: Sequence[str] = (),
) -> Cluster:
    """What the parts come to.

    Args:
        settings: of the orchestrator; a `cluster_name` in it counts for nothing.
        node_groups: by name.
        cluster_name: as its service knows it.
        region: AWS Region; a token where it is known only at deploy.
        storage: what its nodes or pods mount, and the database of accounting; none by default.
        release: software release; the newest one for this orchestrator by default.
        mirror: `s3://bucket/prefix` of mirrored releases.
        instance_types: those that the catalogue does not have, by name.
        tags: of everything that the cluster itself tags.
        access: who reaches the instance metadata of Slurm nodes; services only by default.
        observability: metrics of its nodes; none by default.
        further_zones: ids of zones of which a subnet is given.

    Raises:
        pydantic.ValidationError: a part has the wrong shape, as a name of a group has; its places are those
            of an environment file.
    """
    traits = TRAITS[settings.kind]
    parts = {
        "name": _environment_name(cluster_name),
        "region": region,
        "network": _NETWORK.model_copy(update={"further_zones": dict.fromkeys(further_zones, _FURTHER)}),
        "storage": (storage or StandaloneStorage()).settings,
        "orchestrator": settings.model_copy(update={"cluster_name": cluster_name}),
        "node_groups": dict(node_groups),
        "software": Software(
            release=release or newest_release(traits.software_family).release, mirror=mirror
        ),
        "instance_types": dict(instance_types or {}),
        "tags": dict(tags or {}),
        "access": access or Access(),
        "observability": observability,
    }
    return resolve(Environment.model_validate(parts).without_file())


_NETWORK = Network(
    zone_id="unknown",
    vpc=ExistingVpc(id=LATER, cidr="0.0.0.0/0"),
    subnet=ExistingSubnet(id=LATER, cidr="0.0.0.0/0"),
    security_group=ExistingSecurityGroup(id=LATER),
)
_FURTHER = FurtherZone(cidr="0.0.0.0/0", subnet_id=LATER)
"""It exists already, and how large it is nobody has said."""


def _environment_name(cluster_name: str) -> str:
    """A name of the form that environments have, from a cluster's name, which may have capitals."""
    words = re.findall(r"[a-z0-9]+", cluster_name.lower())
    name = "-".join(words)[:_LONGEST_NAME].rstrip("-")
    return name if name[:1].isalpha() else f"c{name}"[:_LONGEST_NAME].rstrip("-")


def _lustre(mount: LustreMount) -> ExistingLustre:
    return ExistingLustre(
        id=mount.file_system_id or LATER,
        dns_name=mount.dns_name,
        mount_name=mount.mount_name,
        security_group_id=LATER,
        mount_path=mount.path,
        efa=mount.efa,
        gds=mount.gds,
    )


def _open_zfs(mount: OpenZfsMount | None) -> ExistingOpenZfs | None:
    if mount is None:
        return None
    return ExistingOpenZfs(
        id=mount.file_system_id or LATER,
        dns_name=mount.dns_name,
        volume_id=mount.volume_id or LATER,
        security_group_id=LATER,
        mount_path=mount.path,
    )


def _database(accounting: Accounting | None) -> ExistingDatabase | None:
    if accounting is None:
        return None
    return ExistingDatabase(
        endpoint=accounting.endpoint,
        port=accounting.port,
        database_name=accounting.database_name,
        secret_arn=accounting.secret_arn,
        username=accounting.username or None,
        secret_key_arn=accounting.secret_key_arn,
        security_group_id=LATER,
    )
