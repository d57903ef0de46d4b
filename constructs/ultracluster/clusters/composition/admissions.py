"""Rules in the groups of file systems and databases that exist already."""

from __future__ import annotations

from constructs import Construct

from ultracluster.config.storage import ExistingDatabase, ExistingLustre, ExistingOpenZfs, Storage
from ultracluster.network.admission import Admission, Traffic
from ultracluster.storage.lustre_file_system import admit_to_lustre
from ultracluster.storage.open_zfs_file_system import admit_to_open_zfs


def admit_nodes(scope: Construct, storage: Storage, nodes: str) -> list[Admission]:
    """Let the members of a security group reach them.

    Args:
        storage: what the environment requests of storage.
        nodes: id of the nodes' group.
    """
    admissions: list[Admission] = []
    if isinstance(storage.lustre, ExistingLustre):
        admissions.append(
            admit_to_lustre(
                scope, "LustreClients", clients=nodes,
                file_system_group=storage.lustre.security_group_id, efa=storage.lustre.efa,
            )
        )  # fmt: skip
    if isinstance(storage.openzfs, ExistingOpenZfs):
        admissions.append(
            admit_to_open_zfs(
                scope, "OpenZfsClients", clients=nodes, file_system_group=storage.openzfs.security_group_id
            )
        )
    if isinstance(storage.accounting_database, ExistingDatabase):
        database = storage.accounting_database
        admissions.append(
            Admission(
                scope,
                "AccountingClients",
                clients=nodes,
                servers=database.security_group_id,
                traffic=(Traffic("MySql", "tcp", database.port, database.port),),
            )
        )
    return admissions
