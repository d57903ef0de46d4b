"""Who administers a workspace."""

from __future__ import annotations

from fake_grafana import Aws
from grafana_fixtures import ADMIN, Run


def test_administrators_that_aws_does_not_take_are_named(fill: Run, side: Aws) -> None:
    cause = {"action": "ADD", "role": "ADMIN", "users": [{"id": ADMIN, "type": "SSO_USER"}]}
    side.errors = [{"code": 404, "message": "no such user", "causedBy": cause}]
    result = fill("--yes")
    assert result.exit_code == 1 and "no such user" in result.stdout


def test_with_saml_the_identity_provider_decides_who_administers(fill: Run, side: Aws) -> None:
    side.workspace["authentication"] = {"providers": ["SAML"]}
    assert fill("--yes").exit_code == 0
    assert side.admins == []
