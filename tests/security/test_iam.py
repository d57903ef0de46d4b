"""What templates say of rights, keys and retention; which rights each role has: test_rights.py."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from project import ENVIRONMENTS, ROOT, environments_of
from templates import Synthesised, many, statements

from ultracluster.config import load
from ultracluster.config.orchestrator import KUBERNETES
from ultracluster.model.stack_guards import EKS_SWITCH

KEPT = "RetainExceptOnCreate"
Get = Callable[[str], Synthesised]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_action_is_a_wildcard(name: str, synthesised: Get) -> None:
    for stack, template in synthesised(name).templates.items():
        for logical_id, statement in statements(template):
            if template["Resources"][logical_id]["Type"] == "AWS::EC2::VPCEndpoint":
                continue  # it grants nothing: test_perimeter.py holds what it lets through
            for action in many(statement.get("Action", [])):
                service, _, verb = action.partition(":")
                key_policy = template["Resources"][logical_id]["Type"] == "AWS::KMS::Key"

                assert action != "*", f"{stack}/{logical_id}"
                # a key that its own account cannot administer is lost: KMS's default statement
                assert verb != "*" or (service == "kms" and key_policy) or statement["Effect"] == "Deny"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_managed_policy_and_no_user(name: str, synthesised: Get) -> None:
    made = synthesised(name)

    assert not made.resources("AWS::IAM::User")
    for role in made.resources("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role["Properties"]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_who_may_assume_which_role(name: str, synthesised: Get) -> None:
    services = {
        path.split("/")[1].rstrip("0123456789ABCDEF"): role["Properties"]["AssumeRolePolicyDocument"][
            "Statement"
        ][0]["Principal"]["Service"]
        for path, role in synthesised(name).resources("AWS::IAM::Role").items()
    }

    assert set(services.values()) <= {
        "ec2.amazonaws.com",
        "eks.amazonaws.com",
        "pods.eks.amazonaws.com",
        "sagemaker.amazonaws.com",
        "lambda.amazonaws.com",
        "vpc-flow-logs.amazonaws.com",
        "scheduler.amazonaws.com",
        "grafana.amazonaws.com",
    }


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_principal_that_may_be_anyone_is_always_bound_by_a_condition(name: str, synthesised: Get) -> None:
    for stack, template in synthesised(name).templates.items():
        for logical_id, statement in statements(template):
            if template["Resources"][logical_id]["Type"] == "AWS::EC2::VPCEndpoint":
                continue  # it grants nothing
            if statement["Effect"] == "Allow" and statement.get("Principal") in ("*", {"AWS": "*"}):
                conditions = statement["Condition"]
                through = str(conditions["StringEquals"].get("kms:ViaService", ""))
                # who makes the workspace is whoever deploys: bound by the service that asks on his behalf
                bound = "aps." in through or "aws:PrincipalArn" in conditions["ArnLike"]
                assert bound, f"{stack}/{logical_id}"
                assert "kms:CallerAccount" in conditions["StringEquals"], f"{stack}/{logical_id}"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_everything_that_stores_is_encrypted_with_a_rotating_key(name: str, synthesised: Get) -> None:
    made = synthesised(name)

    assert all(k["Properties"]["EnableKeyRotation"] for k in made.resources("AWS::KMS::Key").values())
    assert all("KmsKeyId" in f["Properties"] for f in made.resources("AWS::FSx::FileSystem").values())
    assert all("KmsKeyId" in g["Properties"] for g in made.resources("AWS::Logs::LogGroup").values())
    assert all(d["Properties"]["StorageEncrypted"] for d in made.resources("AWS::RDS::DBInstance").values())
    assert all("KmsKeyId" in s["Properties"] for s in made.resources("AWS::SecretsManager::Secret").values())


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_what_holds_data_is_retained_where_it_is_protected(name: str, synthesised: Get) -> None:
    made = synthesised(name)
    protected = load(ROOT / "environments" / f"{name}.yaml").environment.protect
    kept = ["AWS::S3::Bucket", "AWS::KMS::Key"] + (["AWS::FSx::FileSystem"] if protected else [])

    for kind in kept:
        assert made.resources(kind)
        for path, resource in made.resources(kind).items():
            assert resource["DeletionPolicy"] == "RetainExceptOnCreate", path
            assert resource["UpdateReplacePolicy"] == "Retain", path
    for database in made.resources("AWS::RDS::DBInstance").values():
        assert database["DeletionPolicy"] == ("RetainExceptOnCreate" if protected else "Snapshot")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_nothing_is_retained_when_the_stack_that_first_makes_it_is_rolled_back(
    name: str, synthesised: Get
) -> None:
    """A leftover of a failed deploy costs money, or its name stands in the way of the next try."""
    for stack, template in synthesised(name).templates.items():
        for logical_id, resource in template["Resources"].items():
            assert resource.get("DeletionPolicy") != "Retain", f"{stack}/{logical_id}"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_what_a_retained_thing_is_in_is_retained_with_it(name: str, synthesised: Get) -> None:
    """EC2 deletes no group and no subnet that has members: the deletion of the stack would hang."""
    made = synthesised(name)
    resources = {
        path: resource for stack in made.templates for path, resource in _of_stack(made, stack).items()
    }
    exports = {
        output["Export"]["Name"]: f"{stack}/{output['Value']['Fn::GetAtt'][0]}"
        for stack, template in made.templates.items()
        for output in template.get("Outputs", {}).values()
        if "Export" in output and "Fn::GetAtt" in output["Value"]
    }
    kinds = ("AWS::FSx::FileSystem", "AWS::RDS::DBInstance", "AWS::RDS::DBSubnetGroup")
    needed = ("AWS::EC2::SecurityGroup", "AWS::EC2::Subnet", "AWS::EC2::VPC", "AWS::RDS::DBSubnetGroup",
              "AWS::RDS::DBParameterGroup", "AWS::SecretsManager::Secret")  # fmt: skip
    pending = [p for p, r in resources.items() if r["Type"] in kinds and r.get("DeletionPolicy") == KEPT]
    seen: set[str] = set()
    while pending:
        path = pending.pop()
        seen.add(path)
        stack = path.split("/")[0]
        for one in _named(resources[path]["Properties"]):
            near = exports.get(one, f"{stack}/{one}")
            if near in resources and near not in seen and resources[near]["Type"] in needed:
                assert resources[near].get("DeletionPolicy") == KEPT, f"{near}, which {path} is in"
                pending.append(near)
    protected = load(ROOT / "environments" / f"{name}.yaml").environment.protect
    assert bool(seen) == protected


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_deletion_protection_is_switched_on_where_it_blocks_no_rollback(name: str, synthesised: Get) -> None:
    """EKS and RDS delete nothing that is protected, also not for a creation that is taken back."""
    made = synthesised(name)
    config = load(ROOT / "environments" / f"{name}.yaml").environment
    for kind in ("AWS::RDS::DBInstance", "AWS::EKS::Cluster"):
        for resource in made.resources(kind).values():
            assert "DeletionProtection" not in resource["Properties"]
    calls = json.dumps(made.templates.get(f"{name}-protection", {}))
    wanted = {
        EKS_SWITCH: config.protect and config.orchestrator.kind in KUBERNETES,
        "modifyDBInstance": config.protect and config.makes_database,
    }

    assert {action: action in calls for action in wanted} == wanted
    for action, on in wanted.items():
        if on:
            stack = f"{name}-control-plane" if action == EKS_SWITCH else f"{name}-storage"
            manifest = json.loads((made.folder / "manifest.json").read_text())["artifacts"]
            assert stack in manifest[f"{name}-protection"]["dependencies"]


def _of_stack(made: Synthesised, stack: str) -> dict[str, dict[str, Any]]:
    return {f"{stack}/{one}": r for one, r in made.templates[stack]["Resources"].items()}


def _named(value: Any) -> Iterator[str]:
    """Logical ids and exports that a value names."""
    if isinstance(value, list):
        for one in value:
            yield from _named(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key in ("Ref", "Fn::ImportValue") and isinstance(one, str):
                yield one
            elif key == "Fn::GetAtt":
                yield one[0]
            else:
                yield from _named(one)


def test_no_secret_value_is_in_a_template(synthesised: Get) -> None:
    for secret in synthesised("prod").resources("AWS::SecretsManager::Secret").values():
        assert "SecretString" not in secret["Properties"]
        assert secret["Properties"]["GenerateSecretString"]["PasswordLength"] >= 30
    for database in synthesised("prod").resources("AWS::RDS::DBInstance").values():
        password = database["Properties"]["MasterUserPassword"]
        assert "{{resolve:secretsmanager:" in str(password)


# Scripts: what nodes and the upload may read


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_nodes_may_read_older_scripts_of_their_cluster(name: str, synthesised: Get) -> None:
    """The policy changes before the cluster does: a node that starts meanwhile asks for the former folder."""
    for template in synthesised(name).templates.values():
        for _, statement in statements(template):
            if statement.get("Sid") == "ReadScripts":
                resource = json.dumps(statement["Resource"])
                assert f"/{name}/*" in resource or "/*.run" in resource
                assert not re.search(r"[0-9a-f]{12}/", resource)


@pytest.mark.parametrize("name", [*environments_of("hyperpod-slurm"), *environments_of("hyperpod-eks")])
def test_hyperpod_may_list_scripts_without_a_prefix(name: str, synthesised: Get) -> None:
    """How it lists is not published; HeadBucket asks for the same right, and has no prefix."""
    found = [
        statement
        for _, statement in statements(synthesised(name).templates[f"{name}-cluster"])
        if statement.get("Sid") == "ListScripts"
    ]

    assert found
    assert all(one["Action"] == "s3:ListBucket" and "Condition" not in one for one in found)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_whoever_reads_assets_may_decrypt_them_and_nothing_else(name: str, synthesised: Get) -> None:
    """A customer's key on the bootstrap bucket may leave to IAM who uses it."""
    for stack, template in synthesised(name).templates.items():
        found = {
            (logical_id, statement["Sid"]): statement
            for logical_id, statement in statements(template)
            if statement.get("Sid")
        }
        for (policy, sid), statement in found.items():
            text = json.dumps(statement.get("Resource", ""))
            if "cdk-hnb659fds-assets" not in text or "s3:GetObject" not in many(statement["Action"]):
                continue
            decrypt = found[policy, sid.replace("Read", "Decrypt")]
            assert decrypt["Action"] == "kms:Decrypt", stack
            assert list(decrypt["Condition"]["StringEquals"]) == ["kms:ViaService"]
            (context,) = decrypt["Condition"]["ArnLike"].items()
            assert context[0] == "kms:EncryptionContext:aws:s3:arn"
            assert statement["Resource"] in context[1]
            assert "cdk-hnb659fds-assets" in json.dumps(context[1][0])


@pytest.mark.parametrize("name", [*environments_of("hyperpod-slurm"), *environments_of("hyperpod-eks")])
def test_subnets_and_groups_may_be_those_of_another_account(name: str, synthesised: Get) -> None:
    """A shared subnet is its owner's, and HyperPod's instances are in an account of the service."""
    wanted = {"AttachToVpc", "AddressesForPods", "PodAddresses"}
    for template in synthesised(name).templates.values():
        for _, statement in statements(template):
            if statement.get("Sid") not in wanted:
                continue
            for resource in statement["Resource"]:
                text = "".join(map(str, resource["Fn::Join"][1]))
                assert ("network-interface" in text) != ("*:" in text), text


@pytest.mark.parametrize("name", [*environments_of("eks"), *environments_of("hyperpod-eks")])
def test_a_function_in_the_vpc_may_not_touch_interfaces_itself(name: str, synthesised: Get) -> None:
    """They are Lambda's to make; only a call of the function's own code names a function."""
    for template in synthesised(name).templates.values():
        found = {(one, s["Sid"]): s for one, s in statements(template) if "Sid" in s}
        for policy, sid in found:
            if sid == "RunInVpc":
                refused = found[policy, "NotFromCode"]
                assert refused["Effect"] == "Deny" and refused["Resource"] == "*"
                assert refused["Condition"] == {"Null": {"lambda:SourceFunctionArn": "false"}}
                assert set(found[policy, sid]["Action"]) <= set(refused["Action"])
