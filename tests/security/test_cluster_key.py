"""The key admits the roles that launch nodes with encrypted volumes, and no one else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aws_cdk import Stack
from aws_cdk.assertions import Template
from templates import app_in

from ultracluster import ClusterKey
from ultracluster.model.orchestrators import Launcher
from ultracluster.security.cluster_key import AUTO_SCALING, PCS


def statements(tmp_path: Path, *launched_by: Launcher) -> dict[str, dict[str, Any]]:
    stack = Stack(app_in(tmp_path), "Stack")
    ClusterKey(stack, "Key", launched_by=launched_by)
    (key,) = Template.from_stack(stack).find_resources("AWS::KMS::Key").values()
    return {one["Sid"]: one for one in key["Properties"]["KeyPolicy"]["Statement"] if "Sid" in one}


def test_no_one_launches_by_default(tmp_path: Path) -> None:
    assert set(statements(tmp_path)) == {"CloudWatchLogs", "FsxDataRepositories"}


def test_each_service_uses_the_key_in_this_account_alone(tmp_path: Path) -> None:
    found = statements(tmp_path, "auto-scaling", "computing-service")
    assert set(found) >= {"LaunchNodes", "AttachVolumes", "LaunchNodes2", "AttachVolumes2"}
    for number, role in (("", AUTO_SCALING), ("2", PCS)):
        use, grant = found[f"LaunchNodes{number}"], found[f"AttachVolumes{number}"]
        for statement in (use, grant):
            assert statement["Condition"]["StringEquals"] == {"kms:CallerAccount": {"Ref": "AWS::AccountId"}}
            assert role in str(statement["Condition"]["ArnLike"]["aws:PrincipalArn"])
        assert grant["Action"] == "kms:CreateGrant"
        assert grant["Condition"]["Bool"] == {"kms:GrantIsForAWSResource": "true"}
        assert "kms:CreateGrant" not in use["Action"]
