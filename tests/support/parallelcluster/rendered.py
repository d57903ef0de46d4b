"""Environments as the cases that ParallelCluster's validators judge: configuration and account of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from parallelcluster.account import (
    ACCOUNT,
    BUCKET,
    LUSTRE,
    NODES,
    OPENZFS_VOLUME,
    OTHER_SUBNET,
    SUBNET,
    Facts,
    account,
    custom_image,
    reserve,
)
from parallelcluster.harness import Case, Found, judged
from project import ROOT

from ultracluster.catalog import instance_type
from ultracluster.config import Environment
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model import resolve
from ultracluster.parallelcluster.configuration_file import cluster_configuration
from ultracluster.parallelcluster.deployed_values import DeployedValues, value_sources

SSH_GROUP = "sg-0123456789abcde22"
"""Lets SSH into login pools."""
CHECKED_VERSION = "3.16.1"
"""Release of the package whose validators run."""


def validated(environments: Mapping[str, Environment]) -> dict[str, list[Found]]:
    """What ParallelCluster says of the clusters of environments, by the same names."""
    return judged([case_of(name, environment) for name, environment in environments.items()])


def case_of(name: str, environment: Environment, *, configuration: Any = None) -> Case:
    """The rendered configuration of an environment, in an account that has what the environment names.

    Args:
        configuration: instead of the rendered one.
    """
    values = deployed(environment)
    if configuration is None:
        configuration = cluster_configuration(resolve(environment), values)
    return Case(
        name=name,
        cluster_name=environment.cluster_name,
        region=environment.region,
        configuration=configuration,
        facts=facts_of(environment, values),
    )


def deployed(environment: Environment) -> DeployedValues:
    """Values as after a deploy: the ids of the account's parts."""
    region, settings = environment.region, environment.orchestrator
    assert isinstance(settings, ParallelCluster)
    further = environment.network.further_zones
    made = {
        "subnet_id": SUBNET,
        "further_subnet_ids": ",".join(f"{zone}={OTHER_SUBNET}" for zone in further),
        "security_group_id": NODES,
        "node_policy_arn": f"arn:aws:iam::{ACCOUNT}:policy/example-nodes",
        "head_policy_arn": f"arn:aws:iam::{ACCOUNT}:policy/example-head",
        "login_policy_arn": f"arn:aws:iam::{ACCOUNT}:policy/example-login",
        "scripts_bucket": BUCKET,
        "scripts_prefix": f"{environment.cluster_name}/0123456789abcdef",
        "queue_scripts": ",".join(f"{queue}=fedcba9876543210" for queue in resolve(environment).partitions),
        "lustre_id": LUSTRE,
        "further_lustre_ids": ",".join(f"{name}={id_}" for name, id_ in _further(environment).items()),
        "openzfs_volume_id": OPENZFS_VOLUME,
        "ssh_groups": ",".join(f"{pool}={SSH_GROUP}" for pool in settings.ssh_pools),
        "database_endpoint": f"slurm.example.{region}.rds.amazonaws.com",
        "database_secret_arn": f"arn:aws:secretsmanager:{region}:{ACCOUNT}:secret:slurm-password",
    }
    sources = value_sources(environment)
    return DeployedValues(**dict(sources.known), **{key: made[key] for key in sources.outputs})


def facts_of(environment: Environment, values: DeployedValues) -> Facts:
    """An account with everything that the environment names, as AWS would describe it."""
    orchestrator = environment.orchestrator
    assert isinstance(orchestrator, ParallelCluster)
    facts = account(
        region=environment.region,
        zone_id=environment.network.zone_id,
        types={group.instance_type for group in environment.node_groups.values()},
        version=CHECKED_VERSION,
        efa_storage=bool(getattr(environment.storage.lustre, "efa", False)),
    )
    _rename(facts["subnets"], "SubnetId", SUBNET, values.subnet_id)
    _rename(facts["file_systems"], "FileSystemId", LUSTRE, values.lustre_id)
    for file_system in _further(environment).values():
        _rename(facts["file_systems"], "FileSystemId", LUSTRE, file_system)
    _rename(facts["volumes"], "VolumeId", OPENZFS_VOLUME, values.openzfs_volume_id)
    if values.security_group_id != NODES:  # made elsewhere: with the same rules
        _renamed_group(facts, values.security_group_id)
    # it names other networks, and no other group
    closed = {"GroupId": SSH_GROUP, "IpPermissions": [], "IpPermissionsEgress": []}
    nodes = facts["security_groups"][values.security_group_id]
    facts["security_groups"][SSH_GROUP] = {**nodes, **closed}
    policies = [
        values.node_policy_arn,
        values.head_policy_arn,
        values.login_policy_arn,
        environment.governance.permissions_boundary,
    ]
    facts["policies"] = {arn: {"Arn": arn, "PolicyName": arn.split("/")[-1]} for arn in policies if arn}
    queues = [values.queue_scripts_uri(queue) for queue in resolve(environment).partitions]
    for uri in (values.scripts_uri, values.current_scripts_uri(environment.cluster_name), *queues):
        facts["objects"] |= {f"{uri}/{file}": {} for file in uploaded_scripts()}
    secrets = [values.database_secret_arn]
    if orchestrator.directory_service:
        secrets.append(orchestrator.directory_service.password_secret_arn)
    facts["secrets"] = {  # what is in another Region is not found in this one
        arn: {"ARN": arn, "Name": arn.split(":")[-1]} for arn in secrets if f":{environment.region}:" in arn
    }
    for group in environment.node_groups.values():
        known = instance_type(group.instance_type)
        if group.image and known:
            facts["images"][group.image] = custom_image(
                group.image,
                system=orchestrator.os,
                architecture=known.architecture,
                version=CHECKED_VERSION,
            )
    reserve(facts, environment)
    return facts


@cache
def uploaded_scripts() -> tuple[str, ...]:
    """The files that a deploy puts under a cluster's prefix in S3: a script that is not there is an error."""
    folder = ROOT / "lifecycle_scripts"
    return tuple(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def _further(environment: Environment) -> dict[str, str]:
    """Ids of further Lustre file systems, by name."""
    names = environment.storage.further_lustre
    return {name: f"fs-0aaaaaaaaaaaaaa{number:02d}" for number, name in enumerate(names, 10)}


def _rename(parts: dict[str, Any], key: str, old: str, new: str) -> None:
    if new and new != old:
        parts[new] = {**parts[old], key: new}


def _renamed_group(facts: Facts, new: str) -> None:
    """The nodes' group under another id, in its own rules and in those of others."""
    facts["security_groups"] = json.loads(json.dumps(facts["security_groups"]).replace(NODES, new))
