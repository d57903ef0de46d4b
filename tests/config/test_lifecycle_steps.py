"""How an environment names node steps of a team's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import ROOT

from ultracluster.config import InvalidEnvironmentError, load


def team(folder: Path, lines: str) -> Path:
    file = folder / "dev.yaml"
    file.write_text(f"{(ROOT / 'environments' / 'dev.yaml').read_text()}{lines}\n")
    return file


@pytest.mark.parametrize(
    ("lines", "at", "says"),
    [
        ("lifecycle_steps: ./10_proxy.sh", "lifecycle_steps", "a list is needed"),
        ("lifecycle_steps: [./10_proxy.py]", "lifecycle_steps[0]", "does not have the form"),
        ("lifecycle_steps: [1]", "lifecycle_steps[0]", "1"),
    ],
)
def test_another_form_is_refused(lines: str, at: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidEnvironmentError) as caught:
        load(team(tmp_path, lines))
    (finding,) = caught.value.findings
    assert finding.dotted == at
    assert says in finding.message


@pytest.mark.parametrize(
    ("written", "means"), [("[proxy]", ("proxy",)), ("[]", ()), (None, None)], ids=["some", "none", "all"]
)
def test_a_group_chooses_all_some_or_none(written: str | None, means: object, tmp_path: Path) -> None:
    file = team(tmp_path, "")
    if written:
        file.write_text(file.read_text().replace("\n  gpu:\n", f"\n  gpu:\n    lifecycle_steps: {written}\n"))
    assert load(file).environment.node_groups["gpu"].lifecycle_steps == means
