"""Roles that services make for themselves, and roles and policies that the file names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ultracluster.account.aws import AWS_ERRORS, code
from ultracluster.account.preflight.rows import Question, Row, Situation
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES
from ultracluster.config.storage import RdsMySql

_LINKED = {
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
    environment = situation.environment
    kind, storage = environment.orchestrator.kind, environment.storage
    spot = any(group.capacity.kind == "spot" for group in environment.node_groups.values())
    wanted = {
        "AWSServiceRoleForAmazonSageMakerHyperPod": kind in HYPERPOD,
        "AWSServiceRoleForAmazonEKS": kind in KUBERNETES,
        "AWSServiceRoleForAmazonEKSNodegroup": kind in KUBERNETES,
        "AWSServiceRoleForAutoScaling": kind in KUBERNETES,
        "AWSServiceRoleForPCS": kind == "pcs",
        "AWSServiceRoleForAmazonFSx": any(
            one is not None and one.deployment != "existing" for one in (storage.lustre, storage.openzfs)
        ),
        "AWSServiceRoleForRDS": isinstance(storage.accounting_database, RdsMySql),
        "AWSServiceRoleForEC2Spot": spot and kind not in HYPERPOD,
    }
    return [name for name, needed in wanted.items() if needed]


def _linked(situation: Situation, name: str) -> Iterator[Row]:
    iam, service = situation.client("iam"), _LINKED[name]
    try:
        iam.get_role(RoleName=name)
    except AWS_ERRORS as error:
        if code(error) != "NoSuchEntity":
            raise
        yield Row(
            name, "yellow", "is not there yet: the service makes it at first use, if it is let",
            f"aws iam create-service-linked-role --aws-service-name {service}",
        )  # fmt: skip
        return
    yield Row(name, "green", "is there")


def _named(situation: Situation) -> Sequence[str]:
    """ARNs of roles, users and policies in the file."""
    orchestrator = situation.environment.orchestrator
    inference = getattr(orchestrator, "inference", None)
    found = [
        *getattr(orchestrator, "admins", ()),
        getattr(orchestrator, "permissions_boundary", None),
        getattr(inference, "execution_role_arn", None),
        getattr(inference, "load_balancer_role_arn", None),
        getattr(inference, "autoscaler_role_arn", None),
    ]
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
    try:
        if kind == "role":
            iam.get_role(RoleName=name)
        elif kind == "user":
            iam.get_user(UserName=name)
        else:
            iam.get_policy(PolicyArn=arn)
    except AWS_ERRORS as error:
        if code(error) != "NoSuchEntity":
            raise
        yield Row(arn, "red", f"there is no such {kind}", "make it, or name another one")
        return
    yield Row(arn, "green", f"the {kind} is there")
