"""Look-ups in the CDK's own trees: each finds its construct in the tested CDK or names what is missing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer
from foreign import imported_vpc, warnings
from project import ROOT

from ultracluster import AccountingDatabase
from ultracluster.clusters.eks.kubectl import provider_of, write_out
from ultracluster.lifecycle.bundles import Bundle
from ultracluster.lifecycle.script_bundle import ScriptBundle
from ultracluster.security.cdk_tree import TESTED, CdkTreeError, below, policy_of, singletons

SAYS = re.escape(f"install aws-cdk-lib {TESTED}, with which this package was tested")


# jsii's declarations do not make the two their own interfaces
EC2: Any = iam.ServicePrincipal("ec2.amazonaws.com")


def _key(stack: Stack) -> Any:
    return kms.Key(stack, "Key")


@pytest.fixture
def stack() -> Stack:
    return Stack(App(analytics_reporting=False), "test")


@pytest.fixture
def cluster(stack: Stack) -> eks.Cluster:
    return eks.Cluster(
        stack,
        "Cluster",
        version=eks.KubernetesVersion.of("1.35"),
        vpc=ec2.Vpc(stack, "Vpc"),
        default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
        default_capacity=0,
        kubectl_provider_options=eks.KubectlProviderOptions(kubectl_layer=KubectlV35Layer(stack, "Kubectl")),
    )


def test_the_tested_cdk_is_the_lowest_that_is_allowed() -> None:
    """`make cdk-range` runs this file with the newest, too."""
    allowed = re.search(r'"aws-cdk-lib>=([0-9.]+),<3"', (ROOT / "pyproject.toml").read_text())
    assert allowed and TESTED.startswith(f"{allowed[1]}.")


def test_the_tested_cdk_is_the_locked_one() -> None:
    assert f"aws-cdk-lib=={TESTED} " in (ROOT / "requirements.lock").read_text()


def test_without_a_policy_in_its_place_the_role_stands_for_it(stack: Stack) -> None:
    role = iam.Role(stack, "Role", assumed_by=EC2)
    assert policy_of(role) is role

    role.add_to_policy(iam.PolicyStatement(actions=["s3:ListAllMyBuckets"], resources=["*"]))

    assert policy_of(role).node.path == "test/Role/DefaultPolicy"


def test_something_else_by_the_same_name_is_refused(stack: Stack) -> None:
    iam.Role(stack, "Role", assumed_by=EC2)

    with pytest.raises(CdkTreeError, match=r"test/Role is a Role, not a Policy"):
        below(stack, iam.Policy, "Role")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("KubectlProvider", "has no KubectlProvider"),
        ("KubectlProvider/Handler", "has no Handler"),
        ("KubectlProvider/Provider/framework-onEvent", "has no Provider/framework-onEvent"),
        ("KubectlProvider/Provider/framework-onEvent/ServiceRole", "has no Provider/.*/ServiceRole"),
    ],
)
def test_a_kubectl_provider_of_another_shape_is_named(
    stack: Stack, cluster: eks.Cluster, path: str, says: str
) -> None:
    *parents, last = path.split("/")
    home = cluster.node
    for parent in parents:
        home = home.find_child(parent).node
    assert home.try_remove_child(last)

    with pytest.raises(CdkTreeError, match=SAYS + f".*{says}"):
        write_out(cluster, _key(stack))


def test_a_kubectl_provider_of_the_tested_shape_is_found(stack: Stack, cluster: eks.Cluster) -> None:
    write_out(cluster, _key(stack))

    assert provider_of(cluster).service_token


def test_the_function_that_uploads_scripts_is_found(stack: Stack) -> None:
    prefix = "Custom::CDKBucketDeployment"
    bundle = Bundle(folder="hash", files={"a.sh": b"true\n"})
    ScriptBundle(stack, "Scripts", bucket=s3.Bucket(stack, "Bucket"), name="test", bundles={"all": bundle})

    (function,) = singletons(stack, prefix)
    assert function.node.id.startswith(prefix) and not warnings(stack)


def test_a_function_by_another_name_is_a_warning(stack: Stack) -> None:
    assert singletons(stack, "Custom::CDKBucketDeployment") == []

    (said,) = warnings(stack)
    assert re.match(SAYS + ".*test has no Custom::CDKBucketDeployment", said)


def test_the_masters_secret_is_below_the_database(stack: Stack) -> None:
    database = AccountingDatabase(stack, "Accounting", vpc=imported_vpc(stack))

    found = below(database.resource, secretsmanager.Secret, "Secret")
    assert stack.resolve(found.secret_arn) != stack.resolve(database.secret_arn)
