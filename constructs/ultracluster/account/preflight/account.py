"""Whose account it is, and what must be there before the first deploy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ultracluster.account.aws import Account, existing
from ultracluster.account.preflight.rows import Question, Row, Situation
from ultracluster.account.services import service_of
from ultracluster.config.governance import CDK_QUALIFIER
from ultracluster.project.cdk_command import pinned_cdk

BOOTSTRAP = 6
"""`requiresBootstrapStackVersion` of the manifest that the CDK writes; a test compares them."""
PARAMETER = "/cdk-bootstrap/{qualifier}/version"
"""Where `cdk bootstrap` writes its version (CDK Guide, "Bootstrapping")."""


def questions(situation: Situation) -> Iterator[Question]:
    yield Question("account", "credentials", lambda: _identity(situation))
    yield Question("account", "CDK bootstrap", lambda: _bootstrap(situation))
    if situation.cluster.traits.hyperpod:
        yield Question("account", "SageMaker HyperPod in the Region", lambda: _hyperpod(situation))
    service = service_of(situation.cluster)
    if service and (statuses := service.statuses):
        what = f"AWS {service.title} in the Region"
        yield Question("account", what, lambda: _one_at_a_time(situation, what, service.title, statuses))


def _identity(situation: Situation) -> Iterator[Row]:
    identity = situation.account.identity()
    environment = situation.environment
    found = f"{identity.arn} in account {identity.account}, {situation.account.region}"
    if environment.account is None:
        yield Row(
            "credentials",
            "yellow",
            found,
            f'write `account: "{identity.account}"` into the file: another profile is refused then',
        )
    else:
        yield Row("credentials", "green", found)


def _bootstrap(situation: Situation) -> Iterator[Row]:
    what, region = "CDK bootstrap", situation.account.region
    own = situation.environment.governance.bootstrap_qualifier
    parameter = PARAMETER.format(qualifier=own or CDK_QUALIFIER)
    # a second bootstrap in the account needs a stack of its own name (CDK Guide, "Customize bootstrapping")
    options = f" --qualifier {own} --toolkit-stack-name CDKToolkit-{own}" if own else ""
    do = (
        f"npx aws-cdk@{pinned_cdk()} bootstrap{options} aws://{situation.account.identity().account}/{region}"
    )
    answer = existing(lambda: situation.client("ssm").get_parameter(Name=parameter), "ParameterNotFound")
    if answer is None:
        under = f" under the qualifier {own}" if own else ""
        yield Row(what, "red", f"this account is not bootstrapped in {region}{under}", do)
        return
    value = answer["Parameter"]["Value"]
    if not value.isdigit():
        yield Row(what, "unknown", f"{parameter} holds {value!r}, no version", do)
    elif int(value) < BOOTSTRAP:
        yield Row(what, "red", f"version {value}, the stacks need {BOOTSTRAP}", do)
    else:
        yield Row(what, "green", f"version {value}, the stacks need {BOOTSTRAP}")


def _hyperpod(situation: Situation) -> Iterator[Row]:
    what, wanted = "SageMaker HyperPod in the Region", situation.environment.cluster_name
    pages = situation.client("sagemaker").get_paginator("list_clusters").paginate()
    clusters = {
        row["ClusterName"]: row.get("ClusterStatus", "") for page in pages for row in page["ClusterSummaries"]
    }
    if wanted not in clusters:
        yield Row(what, "green", f"answers, with {len(clusters)} cluster{'s' * (len(clusters) != 1)}")
        return
    status = clusters[wanted]
    if status == "InService":
        yield Row(what, "green", f"cluster {wanted} is there already, {status}")
    elif status in ("Creating", "Updating", "SystemUpdating", "Deleting", "RollingBack"):
        yield Row(
            what, "yellow", f"cluster {wanted} is {status}", "wait: a deploy is refused until it is InService"
        )
    elif status == "Failed":
        yield Row(
            what, "red", f"cluster {wanted} is Failed", f"ultracluster doctor {situation.environment.name}"
        )
    else:
        yield Row(
            what, "unknown", f"cluster {wanted} is {status or 'without a status'}, unknown to this release"
        )


def _one_at_a_time(
    situation: Situation, what: str, title: str, statuses: Callable[[Account], dict[str, str]]
) -> Iterator[Row]:
    clusters = statuses(situation.account)
    others = [
        name
        for name, status in clusters.items()
        if status == "CREATING" and name != situation.cluster.cluster_name
    ]
    if others:
        yield Row(
            what, "yellow", f"{', '.join(others)} is being created",
            f"wait: {title} creates one cluster at a time in a Region",
        )  # fmt: skip
    else:
        yield Row(what, "green", f"answers, with {len(clusters)} cluster{'s' * (len(clusters) != 1)}")
