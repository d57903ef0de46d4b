"""`ultracluster render`: a file for the pcluster command from what is deployed, or with placeholders."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from botocore.stub import Stubber
from moto import mock_aws
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.account.aws import Account
from ultracluster.cli.main import app
from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.parallelcluster.configuration_file import cluster_configuration
from ultracluster.parallelcluster.deployed_values import DeployedValues, value_sources

NAME = "parallelcluster-p5"
FILE = str(ROOT / "environments" / f"{NAME}.yaml")
GB200 = str(ROOT / "environments" / "parallelcluster-gb200.yaml")
REGION = "us-west-2"
OUTPUTS = {
    "network": {"NodeSubnetId": "subnet-0aaaaaaaaaaaaaaa1", "NodeSecurityGroupId": "sg-0aaaaaaaaaaaaaaa1"},
    "buckets": {"ScriptsBucketName": "scripts"},
    "storage": {
        "LustreId": "fs-0aaaaaaaaaaaaaaa1",
        "OpenZfsVolumeId": "fsvol-0aaaaaaaaaaaaaaa1",
        "AccountingEndpoint": "db.example.com",
    },
    "cluster": {
        "NodePolicyArn": "arn:aws:iam::111122223333:policy/parallelcluster/nodes",
        "HeadPolicyArn": "arn:aws:iam::111122223333:policy/parallelcluster/head",
        "LoginPolicyArn": "arn:aws:iam::111122223333:policy/parallelcluster/login",
        "ScriptsPrefix": f"{NAME}/0123456789ab",
        "QueueScripts": "train=ba9876543210",
        "AccountingPasswordSecretArn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:plain",
    },
}
FIELDS = {
    "NodeSubnetId": "subnet_id",
    "NodeSecurityGroupId": "security_group_id",
    "LustreId": "lustre_id",
    "OpenZfsVolumeId": "openzfs_volume_id",
    "AccountingEndpoint": "database_endpoint",
    "ScriptsBucketName": "scripts_bucket",
    "NodePolicyArn": "node_policy_arn",
    "HeadPolicyArn": "head_policy_arn",
    "LoginPolicyArn": "login_policy_arn",
    "ScriptsPrefix": "scripts_prefix",
    "QueueScripts": "queue_scripts",
    "AccountingPasswordSecretArn": "database_secret_arn",
}


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        yield


def deploy(monkeypatch: pytest.MonkeyPatch, *stacks: str, without: str = "") -> None:
    """CloudFormation answers, in the form that botocore's model asks for, for these stacks and no other."""
    client = boto3.client("cloudformation", region_name=REGION)
    stubber = Stubber(client)
    for stack, outputs in OUTPUTS.items():
        name = f"{NAME}-{stack}"
        if stack not in stacks:
            stubber.add_client_error(
                "describe_stacks", "ValidationError", f"Stack with id {name} does not exist"
            )
            continue
        answer: dict[str, Any] = {
            "StackName": name,
            "CreationTime": datetime(2026, 11, 1, tzinfo=UTC),
            "StackStatus": "CREATE_COMPLETE",
            "Outputs": [
                {"OutputKey": key, "OutputValue": value} for key, value in outputs.items() if key != without
            ],
        }
        stubber.add_response("describe_stacks", {"Stacks": [answer]}, {"StackName": name})
    use(monkeypatch, stubber)


def use(monkeypatch: pytest.MonkeyPatch, stubber: Stubber) -> None:
    """Let every account answer for CloudFormation with this stub."""
    stubber.activate()
    ask = Account.client
    monkeypatch.setattr(
        Account,
        "client",
        lambda self, service, region=None: (
            stubber.client if service == "cloudformation" else ask(self, service, region)
        ),
    )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["export", "parallelcluster", *arguments])


def test_the_file_holds_what_is_deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(monkeypatch, "network", "buckets", "storage", "cluster")

    result = run(FILE)

    assert result.exit_code == 0, result.stderr
    values = {FIELDS[name]: value for outputs in OUTPUTS.values() for name, value in outputs.items()}
    assert yaml.safe_load(result.stdout) == cluster_configuration(
        resolve(load(FILE).environment), DeployedValues(**values)
    )


def test_offline_it_names_what_it_does_not_know() -> None:
    result = run(FILE, "--offline")

    assert result.exit_code == 0, result.stderr
    configuration = yaml.safe_load(result.stdout)
    assert configuration["HeadNode"]["Networking"] == {
        "SubnetId": f"<{NAME}-network.NodeSubnetId>",
        "SecurityGroups": [f"<{NAME}-network.NodeSecurityGroupId>"],
    }
    assert configuration["SharedStorage"][1]["FsxLustreSettings"] == {
        "FileSystemId": f"<{NAME}-storage.LustreId>"
    }


def test_missing_stacks_and_outputs_are_told_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(monkeypatch, "network", without="NodeSubnetId")

    result = run(FILE)

    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert f"missing  {NAME}-network.NodeSubnetId: it has no such output" in lines
    assert f"missing  {NAME}-storage.LustreId: the stack is not deployed" in lines
    assert sum(line.startswith("missing") for line in lines) == 11
    assert f"cdk deploy {NAME}-network {NAME}-buckets {NAME}-storage {NAME}-cluster" in lines[-1]
    assert "--offline" in lines[-1]


def test_the_command_line_is_exact_and_says_why() -> None:
    result = run(GB200, "--offline")

    assert (
        "  pcluster create-cluster --cluster-name parallelcluster-gb200 --cluster-configuration "
        "parallelcluster-gb200.pcluster.yaml --region us-east-1 --rollback-on-failure false"
    ) in result.stderr.splitlines()
    assert "--rollback-on-failure false keeps the instances" in result.stderr
    # update-cluster has no such argument (api/openapi/openapi.yaml of aws-parallelcluster 3.16.1)
    assert result.stderr.count("--rollback-on-failure") == 2
    assert "Careful" not in result.stderr


def test_a_cluster_that_cdk_deploy_makes_is_not_made_twice() -> None:
    assert "`cdk deploy` makes this cluster" in run(FILE, "--offline").stderr


def test_it_writes_a_file(tmp_path: Path) -> None:
    file = tmp_path / "my cluster.yaml"

    result = run(FILE, "--offline", "-o", str(file))

    assert result.exit_code == 0
    assert result.stdout == ""
    assert yaml.safe_load(file.read_text())["Region"] == REGION
    assert f"--cluster-configuration '{file}'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([str(ROOT / "environments" / "dev.yaml"), "--offline"], "orchestrator.kind is hyperpod-slurm"),
        (["no-such-environment", "--offline"], "no-such-environment"),
        (
            [FILE, "--offline", "-o", "/no/such/folder/file"],
            "/no/such/folder/file cannot be written: No such file or directory",
        ),
    ],
)
def test_what_cannot_be_rendered_is_refused_in_words(arguments: list[str], message: str) -> None:
    result = run(*arguments)

    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_refused_request_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    client = boto3.client("cloudformation", region_name=REGION)
    stubber = Stubber(client)
    stubber.add_client_error("describe_stacks", "AccessDenied", "not authorized to perform: x")
    use(monkeypatch, stubber)

    result = run(FILE)

    assert result.exit_code == 2
    assert "access denied" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_environment_that_breaks_a_rule_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(Path(FILE).read_text().replace("region: us-west-2", "region: us-east-1"))

    result = run(str(file), "--offline")

    assert result.exit_code == 2
    assert "ENV003" in result.stderr


def test_the_stacks_give_out_what_the_command_asks_for() -> None:
    """The names in OUTPUTS above are those that the stacks have: tests/test_parallelcluster_template.py."""
    asked = {(one.stack, one.name) for one in value_sources(load(FILE).environment).outputs.values()}

    assert asked == {(f"{NAME}-{stack}", name) for stack, names in OUTPUTS.items() for name in names}
