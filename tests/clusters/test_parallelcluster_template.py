"""What CloudFormation is told of a ParallelCluster; what that is told itself, tests/rendering looks at."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded
from templates import Synthesised, assembly, many, statements, templates_alone

from ultracluster.parallelcluster.deployed_values import value_sources

Get = Callable[[str], Synthesised]
P5, GB200 = "parallelcluster-p5", "parallelcluster-gb200"
UPDATE_ARGUMENTS = {
    "ClusterName",
    "SuppressValidators",
    "ValidationFailureLevel",
    "Region",
    "Dryrun",
    "ForceUpdate",
}
"""Of update-cluster in api/openapi/openapi.yaml of aws-parallelcluster 3.16.1. The custom resource hands over
its properties as they are, but for ServiceToken, DeletionPolicy and the configuration."""


def cluster_of(made: Synthesised, name: str = P5) -> dict[str, Any]:
    ((_, cluster),) = made.resources("Custom::PclusterCluster").items()
    return cluster


@pytest.mark.parametrize("name", [P5, GB200])
def test_the_stacks_give_out_what_render_asks_for(name: str, synthesised: Get) -> None:
    made = synthesised(name)
    sources = value_sources(loaded(environment_data(name)).environment)

    for output in sources.outputs.values():
        assert output.name in made.templates[output.stack]["Outputs"], output


def test_each_property_of_the_custom_resource_is_one_of_update_cluster_too(synthesised: Get) -> None:
    """RollbackOnFailure is not: with it, every update would be refused."""
    properties = set(cluster_of(synthesised(P5))["Properties"])

    assert properties - {"ServiceToken", "DeletionPolicy", "ClusterConfiguration"} <= UPDATE_ARGUMENTS


@pytest.mark.parametrize(("protect", "policy"), [(True, "Retain"), (False, "Delete")])
def test_a_protected_cluster_outlives_its_stack(protect: bool, policy: str) -> None:
    assert cluster_of(made_of({"protect": protect}))["Properties"]["DeletionPolicy"] == policy


def test_the_provider_is_of_the_release_that_was_asked_for() -> None:
    made = made_of({"orchestrator.version": "3.15.1"})
    ((_, provider),) = made.resources("AWS::CloudFormation::Stack").items()

    assert "us-west-2-aws-parallelcluster.s3.us-west-2." in json.dumps(provider["Properties"]["TemplateURL"])
    assert "/parallelcluster/3.15.1/templates/" in json.dumps(provider["Properties"]["TemplateURL"])


def test_nodes_find_scripts_and_permissions_when_they_start(synthesised: Get) -> None:
    made = synthesised(P5)
    template = made.templates[f"{P5}-cluster"]
    needed = {
        logical_id
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "Custom::CDKBucketDeployment" or logical_id.startswith("ClusterNodePolicy")
    }

    assert len(needed) == 3
    assert needed <= set(cluster_of(made)["DependsOn"])


def test_the_folder_that_stays_lies_beside_those_of_the_content(synthesised: Get) -> None:
    made = synthesised(P5)
    uploads = {
        resource["Properties"]["DestinationBucketKeyPrefix"]: resource["Properties"]
        for resource in made.resources("Custom::CDKBucketDeployment").values()
    }
    stable = uploads.pop(f"{P5}/current")
    assert list(uploads) == [P5]
    configuration = json.dumps(cluster_of(made)["Properties"]["ClusterConfiguration"])

    # that of head and login nodes, and those of the queues
    hashes = set(re.findall(rf"/{P5}/([0-9a-f]{{12}})/files/from_s3\.sh", configuration))
    assert len(hashes) > 1
    assert f"/{P5}/current/files/from_s3.sh" in configuration
    assert stable["Prune"] is False

    # which of them is the newest, nobody can say who writes to the bucket only
    ((logical, parameter),) = made.resources("AWS::SSM::Parameter").items()
    assert parameter["Properties"]["Name"] == f"/ultracluster/scripts/{P5}"
    assert re.fullmatch("[0-9a-f]{64}", parameter["Properties"]["Value"])
    assert parameter["Properties"]["Value"][:12] in hashes
    upload, current = (
        one
        for name, one in made.resources("Custom::CDKBucketDeployment").items()
        for wanted in (P5, f"{P5}/current")
        if one["Properties"]["DestinationBucketKeyPrefix"] == wanted
    )
    assert logical.rpartition("/")[2] in current["DependsOn"]
    assert all(len(one["Properties"]["SourceObjectKeys"]) == 1 for one in (upload, current))


def test_head_and_login_nodes_read_what_was_deployed_and_nobody_writes_it(synthesised: Get) -> None:
    template = synthesised(P5).templates[f"{P5}-cluster"]
    rights = [one for _, one in statements(template) if "ssm:GetParameter" in many(one["Action"])]

    assert [one["Sid"] for one in rights] == ["ReadDeployed", "ReadDeployed"]
    assert all(f"parameter/ultracluster/scripts/{P5}" in json.dumps(one["Resource"]) for one in rights)
    assert "ssm:PutParameter" not in json.dumps([one for _, one in statements(template)])


def test_one_uploading_function_writes_both_folders(synthesised: Get) -> None:
    """The CDK makes one function per stack, with the role of the first upload: it must be allowed both."""
    template = synthesised(P5).templates[f"{P5}-cluster"]
    written = [
        json.dumps(statement["Resource"])
        for _, statement in statements(template)
        if "s3:PutObject" in many(statement["Action"])
    ]

    (resource,) = written
    assert f"/{P5}/*" in resource  # `current` lies below it, too


def test_parallelcluster_may_attach_the_policy(synthesised: Get) -> None:
    """Its own role attaches policies of this path only (parallelcluster-policies.yaml)."""
    made = synthesised(P5)
    policies = made.resources("AWS::IAM::ManagedPolicy")
    configuration = cluster_of(made)["Properties"]["ClusterConfiguration"]
    nodes = {
        "Head": [configuration["HeadNode"]],
        "Login": configuration["LoginNodes"]["Pools"],
        "Node": configuration["Scheduling"]["SlurmQueues"],
    }

    for name, those in nodes.items():
        (policy,) = [key for key in policies if f"Cluster{name}Policy" in key]
        assert policies[policy]["Properties"]["Path"] == "/parallelcluster/"
        attached = {"AdditionalIamPolicies": [{"Policy": {"Ref": policy.split("/")[1]}}]}
        assert those and all(one["Iam"] == attached for one in those)


def test_nodes_still_read_older_scripts_while_an_update_runs(synthesised: Get) -> None:
    template = synthesised(P5).templates[f"{P5}-cluster"]
    found = [one for _, one in statements(template) if one.get("Sid") == "ReadScripts"]

    assert len(found) == 3  # head node, login nodes, queues
    for read in found:
        assert read["Action"] == "s3:GetObject"
        assert json.dumps(read["Resource"]).endswith(f'/{P5}/*"]]}}')


def test_the_password_is_copied_and_never_written_down(synthesised: Get) -> None:
    made = synthesised(P5)
    template = made.templates[f"{P5}-cluster"]
    ((logical_id, secret),) = [
        (key, one)
        for key, one in template["Resources"].items()
        if one["Type"] == "AWS::SecretsManager::Secret"
    ]
    start, arn, end = secret["Properties"]["SecretString"]["Fn::Join"][1]
    database = cluster_of(made)["Properties"]["ClusterConfiguration"]["Scheduling"]["SlurmSettings"][
        "Database"
    ]

    assert (start, end) == ("{{resolve:secretsmanager:", ":SecretString:password::}}")
    assert arn == {"Fn::ImportValue": f"{P5}-storage-AccountingUserSecretArn"}
    assert "KmsKeyId" in secret["Properties"]
    assert database["PasswordSecretArn"] == {"Ref": logical_id}


def test_validation_may_look_at_what_it_validates(synthesised: Get) -> None:
    template = synthesised(P5).templates[f"{P5}-cluster"]
    ((_, provider),) = synthesised(P5).resources("AWS::CloudFormation::Stack").items()
    policy = provider["Properties"]["Parameters"]["AdditionalIamPolicies"]["Ref"]
    sids = {statement["Sid"] for key, statement in statements(template) if key == policy}

    assert sids == {"FindScripts", "UseKey", "DescribeSecrets"}


def test_for_the_pcluster_command_there_is_all_but_the_cluster(synthesised: Get) -> None:
    made = synthesised(GB200)
    outputs = made.templates[f"{GB200}-cluster"]["Outputs"]

    assert made.resources("Custom::PclusterCluster") == {}
    assert made.resources("AWS::CloudFormation::Stack") == {}
    assert len(made.resources("AWS::IAM::ManagedPolicy")) == 3  # head node, login nodes, queues
    assert "HeadNodeInstanceId" not in outputs
    assert "--rollback-on-failure false" in outputs["CreateClusterCommand"]["Value"]
    assert "parallelcluster:node-type,Values=HeadNode" in json.dumps(outputs["LoginCommand"])


def test_people_log_in_on_the_head_node_without_a_key(synthesised: Get) -> None:
    outputs = synthesised(P5).templates[f"{P5}-cluster"]["Outputs"]
    head = outputs["HeadNodeInstanceId"]["Value"]

    assert head["Fn::GetAtt"][1] == "headNode.instanceId"
    assert outputs["LoginCommand"]["Value"]["Fn::Join"][1][-1] == head


DIRECTORY = {
    "domain_name": "corp.example.com",
    "domain_address": "ldaps://corp.example.com",
    "password_secret_arn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:ldap",
    "read_only_user": "cn=reader",
    "server_networks": ["10.9.0.0/16"],
}


@pytest.mark.parametrize(
    ("changes", "ways"),
    [
        ({}, set()),
        ({"orchestrator.head_storage": "efs"}, {("10.0.0.0/16", 2049)}),
        ({"orchestrator.directory_service": DIRECTORY}, {("10.9.0.0/16", 636)}),
    ],
)
def test_nodes_reach_what_parallelcluster_adds_no_rule_for(
    changes: dict[str, Any], ways: set[tuple[str, int]]
) -> None:
    """Our group lets out web traffic and what goes to itself; to a group that is not its own, ParallelCluster
    adds nothing."""
    made = made_of(changes)
    resources = made.templates[f"{P5}-cluster"]["Resources"]
    rules = {key: one for key, one in resources.items() if one["Type"] == "AWS::EC2::SecurityGroupEgress"}

    assert {(one["Properties"]["CidrIp"], one["Properties"]["ToPort"]) for one in rules.values()} == ways
    assert set(rules) <= set(cluster_of(made)["DependsOn"])
    assert made.findings == set()


def test_a_login_pool_is_reached_from_your_networks_alone() -> None:
    pools = {"login": {"ssh_networks": ["10.0.0.0/8", "192.168.0.0/16"]}}
    template = templates_alone(
        loaded(changed(environment_data(P5), {"orchestrator.login_pools": pools})).environment
    )[f"{P5}-cluster"]
    ((name, group),) = [
        (name, one) for name, one in template["Resources"].items() if one["Type"] == "AWS::EC2::SecurityGroup"
    ]
    rules = group["Properties"]["SecurityGroupIngress"]
    assert {(one["CidrIp"], one["FromPort"], one["ToPort"], one["IpProtocol"]) for one in rules} == {
        ("10.0.0.0/8", 22, 22, "tcp"), ("192.168.0.0/16", 22, 22, "tcp"),
    }  # fmt: skip
    assert [one["CidrIp"] for one in group["Properties"]["SecurityGroupEgress"]] == ["255.255.255.255/32"]
    cluster = next(one for one in template["Resources"].values() if one["Type"] == "Custom::PclusterCluster")
    configuration = cluster["Properties"]["ClusterConfiguration"]
    (pool,) = configuration["LoginNodes"]["Pools"]
    assert {"Fn::GetAtt": [name, "GroupId"]} in pool["Networking"]["SecurityGroups"]
    assert name not in json.dumps(configuration["HeadNode"]) + json.dumps(configuration["Scheduling"])


def test_the_head_node_alone_uses_the_key_of_a_directorys_password() -> None:
    key = "arn:aws:kms:us-west-2:111122223333:key/0a1b2c3d-1111-2222-3333-444455556666"
    directory = {**DIRECTORY, "password_key_arn": key}
    environment = loaded(
        changed(environment_data(P5), {"orchestrator.directory_service": directory})
    ).environment
    template = templates_alone(environment)[f"{P5}-cluster"]
    using = [(where, one) for where, one in statements(template) if key in many(one["Resource"])]
    ((where, statement),) = using
    assert where.startswith("ClusterHeadPolicy")
    assert (statement["Action"], statement["Effect"]) == ("kms:Decrypt", "Allow")
    (through,) = statement["Condition"]["StringEquals"].values()
    assert "secretsmanager.us-west-2." in json.dumps(through)


def made_of(changes: dict[str, Any]) -> Synthesised:
    return assembly(loaded(changed(environment_data(P5), changes)).environment)
