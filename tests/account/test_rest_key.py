"""`ultracluster users --token`: the key that PCS made, from shapes of the SDK to a printed token."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account, answer, refusal
from joserfc import jwt
from joserfc.jwk import OctKey
from json_contract import check_document
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.cli.main import app

KEY = bytes(range(32))
ARN = "arn:aws:secretsmanager:us-east-2:111122223333:secret:pcs!slurm-jwt-key-AbCdEf"
CLUSTER = "arn:aws:pcs:us-east-2:111122223333:cluster/pcs_1"
ALICE = {"alice": {"uid": 2001}}
ENDPOINTS: dict[str, dict[str, str]] = {
    "SLURMCTLD": {"privateIpAddress": "10.96.0.10", "port": "6817"},
    "SLURMRESTD": {"privateIpAddress": "10.96.0.10", "port": "6820"},
}
DENIED = "(denied)"
Run = Callable[..., Any]


def pcs(*, jwt_key: bool = True, stored: str | None = None, endpoints: Any = ENDPOINTS) -> aws.Account:
    """An account with a cluster, as PCS and Secrets Manager answer."""
    aws_account = account("us-east-2")

    def cluster(asked: dict[str, Any]) -> dict[str, Any]:
        assert asked == {"clusterIdentifier": "pcs-p6-b200"}
        slurm = {"jwtAuth": {"jwtKey": {"secretArn": ARN, "secretVersion": "1" * 32}}} if jwt_key else {}
        return {
            "cluster": {
                "name": "pcs-p6-b200", "id": "pcs_1", "arn": CLUSTER,
                "status": "ACTIVE", "createdAt": 0, "modifiedAt": 0, "size": "SMALL", "networking": {},
                "scheduler": {"type": "SLURM", "version": "25.11"}, "slurmConfiguration": slurm,
                "endpoints": [{"type": kind, **where} for kind, where in endpoints.items()],
            }
        }  # fmt: skip

    def value(asked: dict[str, Any]) -> dict[str, Any]:
        assert asked == {"SecretId": ARN, "VersionId": "1" * 32}
        if stored is None:
            return {"SecretString": base64.b64encode(KEY).decode()}
        if stored == DENIED:
            raise refusal("AccessDeniedException", "not authorized", "GetSecretValue")
        return {"SecretString": stored}

    answer(aws_account.client("pcs"), "GetCluster", cluster)
    answer(aws_account.client("secretsmanager"), "GetSecretValue", value)
    return aws_account


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    def invoke(
        *words: str, there: aws.Account | None = None, base: str = "pcs-p6-b200", **changes: Any
    ) -> Any:
        wanted = {"orchestrator.rest": True} if base == "pcs-p6-b200" else {}
        data = changed(environment_data(base), {"users": ALICE, **wanted, **changes})
        file = tmp_path / f"{base}.yaml"
        with file.open("w") as out:
            YAML(typ="safe").dump(data, out)
        monkeypatch.setattr(aws, "Account", lambda **_: there or pcs())
        return CliRunner().invoke(app, ["users", str(file), "--token", *words])

    return invoke


def test_a_user_gets_a_token_that_the_clusters_key_signed(run: Run) -> None:
    result = run("alice", "--minutes", "10")
    assert result.exit_code == 0, result.output
    read = jwt.decode(result.stdout.strip(), OctKey.import_key(KEY), algorithms=["HS256"])
    assert read.claims["id"]["name"] == "alice"
    assert read.claims["exp"] - read.claims["iat"] == 600
    assert "to http://10.96.0.10:6820 from within the VPC" in result.stderr


def test_as_json(run: Run) -> None:
    result = run(
        "alice",
        "--json",
        there=pcs(endpoints={"SLURMRESTD": {**ENDPOINTS["SLURMRESTD"], "ipv6Address": "2600::1"}}),
    )
    found = check_document(result.stdout)
    assert (found["user"], found["url"]) == ("alice", "http://[2600::1]:6820")
    assert "key" not in result.stdout.replace(found["token"], "")


def test_where_pcs_names_no_address_yet(run: Run) -> None:
    assert json.loads(run("alice", "--json", there=pcs(endpoints={})).stdout)["url"] == ""


@pytest.mark.parametrize(
    ("words", "there", "says"),
    [
        (["bob"], None, "has no user bob: alice"),
        (["alice"], {"jwt_key": False}, "has no key for tokens: deploy it with `rest: true`"),
        (["alice"], {"stored": DENIED}, "not authorized"),
        (["alice"], {"stored": "not base64!"}, "holds no key in base64"),
    ],
)
def test_what_is_refused(run: Run, words: list[str], there: dict[str, Any] | None, says: str) -> None:
    result = run(*words, there=pcs(**there) if there else None)
    assert result.exit_code == 2
    assert says in result.output


@pytest.mark.parametrize(("base", "changes"), [("dev", {}), ("pcs-p6-b200", {"orchestrator.rest": False})])
def test_only_a_cluster_with_that_api_has_tokens(run: Run, base: str, changes: dict[str, Any]) -> None:
    result = run("alice", base=base, **changes)
    assert result.exit_code == 2
    assert "only AWS PCS with `orchestrator.rest: true`" in result.output
