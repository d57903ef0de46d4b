"""Forms of what a company's rules ask for, and what is said of others."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import ROOT

from ultracluster.config import InvalidEnvironmentError, load
from ultracluster.config.environment import STACK_PARTS
from ultracluster.config.governance import Governance


@pytest.mark.parametrize(
    ("field", "value", "instead"),
    [
        ("permissions_boundary", "TeamBoundary", "a value of the form"),
        ("permissions_boundary", "arn:aws:iam::111122223333:role/Team", "a value of the form"),
        ("role_path", "teams", "/teams/"),
        ("role_path", "/teams", "/teams/"),
        ("role_path", "teams/training", "/teams/training/"),
        ("role_prefix", "a team", "a-team"),
        ("stack_prefix", "team_", "team"),
        ("bootstrap_qualifier", "Train", "train"),
        ("bootstrap_qualifier", "longer-than-ten", "a value of the form"),
    ],
)
def test_another_form_is_refused_with_what_is_near(
    field: str, value: str, instead: str, tmp_path: Path
) -> None:
    file = tmp_path / "dev.yaml"
    text = (ROOT / "environments" / "dev.yaml").read_text()
    file.write_text(f'{text}governance:\n  {field}: "{value}"\n')
    with pytest.raises(InvalidEnvironmentError) as caught:
        load(file)
    (finding,) = caught.value.findings
    assert finding.dotted == f"governance.{field}"
    assert instead in finding.instead
    assert finding.location and finding.location.line == text.count("\n") + 2


def test_the_old_place_of_the_boundary_names_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "dev.yaml"
    text = (ROOT / "environments" / "parallelcluster-p5.yaml").read_text()
    old = "kind: parallelcluster\n  permissions_boundary: arn:aws:iam::111122223333:policy/Team"
    file.write_text(text.replace("kind: parallelcluster", old))
    with pytest.raises(InvalidEnvironmentError) as caught:
        load(file)
    (finding,) = caught.value.findings
    assert finding.dotted == "orchestrator.permissions_boundary"
    assert "governance: {permissions_boundary" in finding.message


def test_a_prefix_is_in_the_name_of_every_stack() -> None:
    environment = load(ROOT / "environments" / "dev.yaml").environment
    prefixed = environment.model_copy(update={"governance": Governance(stack_prefix="team-")})

    assert environment.possible_stack_names == tuple(f"dev-{part}" for part in STACK_PARTS)
    assert prefixed.possible_stack_names == tuple(f"team-dev-{part}" for part in STACK_PARTS)
    assert prefixed.stack_names == tuple(f"team-{name}" for name in environment.stack_names)
