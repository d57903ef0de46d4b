"""Roles that services make for themselves, and roles and policies that the file names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from ultracluster.account.aws import existing
from ultracluster.account.preflight.rows import Question, Row, Situation
from ultracluster.config.orchestrator import Eks, HyperPodEks, HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.config.storage import RdsMySql

LINKED = {
    "AWSServiceRoleForAmazonSageMakerHyperPod": "hyperpod.sagemaker.amazonaws.com",
    "AWSServiceRoleForAmazonEKS": "eks.amazonaws.com",
    "AWSServiceRoleForAmazonEKSNodegroup": "eks-nodegroup.amazonaws.com",
    "AWSServiceRoleForAutoScaling": "autoscaling.amazonaws.com",
    "AWSServiceRoleForPCS": "pcs.amazonaws.com",
    "AWSServiceRoleForAmazonFSx": "fsx.amazonaws.com",
    "AWSServiceRoleForRDS": "rds.amazonaws.com",
    "AWSServiceRoleForEC2Spot": "spot.amazonaws.com",
}
"""Service-linked roles and who may take them (each service's own guide)."""


def questions(situation: Situation) -> Iterator[Question]:
    for name in linked_roles(situation):
        yield Question("roles", name, lambda name=name: _linked(situation, name))
    for arn in _named(situation):
        yield Question("roles", arn, lambda arn=arn: _principal(situation, arn))


def linked_roles(situation: Situation) -> list[str]:
    """The service-linked roles without which the environment does not come up."""
    cluster, storage = situation.cluster, situation.environment.storage
    home = storage.openzfs
    lustres = situation.environment.lustres.values()
    created = any(lustre.new for lustre in lustres) or (home is not None and home.deployment != "existing")
    needs = {
        **dict.fromkeys(cluster.traits.linked_roles, True),
        "AWSServiceRoleForAmazonFSx": created,
        "AWSServiceRoleForRDS": isinstance(storage.accounting_database, RdsMySql),
        "AWSServiceRoleForEC2Spot": any(one.capacity.kind == "spot" for one in cluster.in_account.values()),
    }
    return [name for name, needed in needs.items() if needed]


def _linked(situation: Situation, name: str) -> Iterator[Row]:
    iam, service = situation.client("iam"), LINKED[name]
    if existing(lambda: iam.get_role(RoleName=name), "NoSuchEntity") is None:
        yield Row(
            name, "yellow", "is not there yet: the service makes it at first use, if it is let",
            f"aws iam create-service-linked-role --aws-service-name {service}",
        )  # fmt: skip
        return
    yield Row(name, "green", "is there")


def _named(situation: Situation) -> Sequence[str]:
    """ARNs of roles, users and policies in the file."""
    found: list[str | None] = [situation.environment.governance.permissions_boundary]
    match situation.cluster.settings:
        case Eks() as settings:
            found += settings.admins
        case HyperPodEks() as settings:
            found += settings.admins
            if settings.inference:
                parts = settings.inference
                found += [
                    parts.execution_role_arn,
                    parts.load_balancer_role_arn,
                    parts.autoscaler_role_arn,
                ]
        case HyperPodSlurm() | ParallelCluster() | Pcs():
            pass
        case _ as never:
            assert_never(never)
    return list(dict.fromkeys(str(arn) for arn in found if arn))


def _principal(situation: Situation, arn: str) -> Iterator[Row]:
    iam = situation.client("iam")
    parts = arn.split(":", 5)
    kind, _, path = parts[5].partition("/")
    name, owner = path.rpartition("/")[2], situation.account.identity().account
    if parts[4] not in (owner, "aws"):
        yield Row(
            arn, "yellow", f"belongs to account {parts[4]}", "make sure it exists: it cannot be seen here"
        )
        return

    def ask() -> object:
        if kind == "role":
            return iam.get_role(RoleName=name)
        return iam.get_user(UserName=name) if kind == "user" else iam.get_policy(PolicyArn=arn)

    if existing(ask, "NoSuchEntity") is None:
        yield Row(arn, "red", f"there is no such {kind}", "make it, or name another one")
        return
    yield Row(arn, "green", f"the {kind} is there")
