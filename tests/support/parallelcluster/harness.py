"""ParallelCluster's own schema and validators, asked about the configurations that we render."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from project import ROOT

if TYPE_CHECKING:  # it brings the CDK
    from parallelcluster.account import Facts

PYTHON = ROOT / ".venv-parallelcluster" / "bin" / "python"
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A cluster's configuration, and the account in which it is to be made."""

    name: str
    cluster_name: str
    region: str
    configuration: dict[str, Any]
    """As in ParallelCluster's YAML."""
    facts: Facts
    """What the account has; see `account`."""


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """What one validator says."""

    level: str
    """ERROR, WARNING or INFO."""
    validator: str
    """Name of the class; `Schema` for the schema."""
    message: str


def judged(cases: Sequence[Case]) -> dict[str, list[Found]]:
    """What the schema, or else the validators, find in each case, by its name; one process for all.

    Raises:
        AssertionError: a validator asked AWS something that the case's facts do not know.
    """
    fields = ("name", "cluster_name", "region", "configuration", "facts")
    payload = [{field: getattr(case, field) for field in fields} for case in cases]
    found: dict[str, list[Found]] = {}
    for result in json.loads(_run("validate.py", json.dumps(payload))):
        assert not result["unanswered"], f"{result['name']}: no answer to {result['unanswered']}"
        found[result["name"]] = sorted(Found(**one) for one in result["findings"])
    assert len(found) == len(cases), "each case needs a name of its own"
    return found


def package_limits() -> dict[str, Any]:
    """The limits in ParallelCluster's own package."""
    return json.loads(_run("limits.py", ""))


def package_updates(changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Whether the package lets each update through (`allowed`), and which keys it refuses (`refused`)."""
    return json.loads(_run("update_policies.py", json.dumps(list(changes))))


def _run(script: str, given: str) -> str:
    assert PYTHON.exists(), "ParallelCluster's environment is missing: run `make setup-dev`"
    command = [str(PYTHON), "-I", str(HERE / script)]
    result = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout
