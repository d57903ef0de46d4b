"""Fixtures of `ultracluster observability` over an environment, AWS, and a Grafana, all on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_grafana import Aws, Grafana, grafana
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.grafana import client, workspace
from ultracluster.cli.main import app

ADMIN = "12345678-90ab-cdef-1234-567890abcdef"
WATCHED: dict[str, Any] = {"grafana": {"admins": [ADMIN]}}
BASE = "eks-p5en"
Run = Callable[..., Any]


@pytest.fixture
def there() -> Iterator[Grafana]:
    with grafana() as one:
        yield one


@pytest.fixture
def side(there: Grafana) -> Aws:
    return Aws(there, environment=BASE)


@pytest.fixture
def fill(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, side: Aws) -> Run:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setattr(workspace, "SCHEME", "http")
    monkeypatch.setattr(client, "PAUSES", (0, 0))
    monkeypatch.setattr(aws, "Account", lambda **_: side.account)

    def invoke(
        *words: str,
        settings: dict[str, Any] | None = None,
        watched: bool = True,
        verb: str = "apply observability",
    ) -> Any:
        file = tmp_path / f"{BASE}.yaml"
        values = {"observability": WATCHED if settings is None else settings} if watched else {}
        with file.open("w") as out:
            YAML(typ="safe").dump(changed(environment_data(BASE), values), out)
        account = ["--account", "111122223333"] if verb.startswith("apply") else []
        return CliRunner().invoke(app, [*verb.split(), str(file), *account, *words])

    return invoke


FAILURES = {
    "denied": ((403, {"message": "You'll need additional permissions"}), "additional permissions"),
    "a page": ((200, b"<html>log in</html>"), "what answered is not Grafana, or broke off"),
    "a redirect": ((302, {}), "it leads to another address"),
    "broken": ((500, {"message": "database is locked"}), "(500): database is locked"),
    "a gateway": ((502, b"<html>"), "(502): without a reason"),
    "too many requests": ((429, {"message": "slow down"}), "(429): slow down"),
    "silence": ((200, "hang"), "cannot be reached: no answer in time"),
    "half an answer": ((200, b"{"), "what answered is not Grafana, or broke off"),
    "an expired token": ((401, {"message": "expired"}), "its 10 minutes are over"),
}
