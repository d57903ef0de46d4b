"""Rules in the groups of file systems and databases that exist already."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.config.storage import ExistingDatabase, ExistingLustre, ExistingOpenZfs, Storage
from ultracluster.network.admission import ALL_TRAFFIC, LUSTRE, NFS, Admission, Traffic


def admit_nodes(scope: Construct, storage: Storage, nodes: str) -> list[Admission]:
    """Let the members of a security group reach them.

    Args:
        storage: what the environment requests of storage.
        nodes: id of the nodes' group.
    """
    admissions: list[Admission] = []
    clients = _group(scope, "ClientSecurityGroup", nodes)
    if isinstance(storage.lustre, ExistingLustre):
        admissions.append(
            Admission(
                scope,
                "LustreClients",
                clients=clients,
                servers=_group(scope, "LustreSecurityGroup", storage.lustre.security_group_id),
                traffic=ALL_TRAFFIC if storage.lustre.efa else LUSTRE,
                mutual=True,
            )
        )
    if isinstance(storage.openzfs, ExistingOpenZfs):
        admissions.append(
            Admission(
                scope,
                "OpenZfsClients",
                clients=clients,
                servers=_group(scope, "OpenZfsSecurityGroup", storage.openzfs.security_group_id),
                traffic=NFS,
            )
        )
    if isinstance(storage.accounting_database, ExistingDatabase):
        database = storage.accounting_database
        admissions.append(
            Admission(
                scope,
                "AccountingClients",
                clients=clients,
                servers=_group(scope, "AccountingSecurityGroup", database.security_group_id),
                traffic=(Traffic("MySql", "tcp", database.port, database.port),),
            )
        )
    return admissions


def _group(scope: Construct, construct_id: str, group_id: str) -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(scope, construct_id, group_id, mutable=False)
