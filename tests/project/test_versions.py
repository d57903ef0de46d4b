"""The versions of a project that must fit: who made it, what it pins, what runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import ROOT

from ultracluster.project.place import ProjectError, cdk_json
from ultracluster.project.versions import MADE_BY, deployed_by, misfits


def repository(folder: Path, made_by: object, pin: str) -> Path:
    (folder / "cdk.json").write_text(json.dumps({"context": {MADE_BY: made_by}}))
    (folder / "requirements.txt").write_text(f"# pins\n{pin}\npytest>=8\n")
    return folder


@pytest.mark.parametrize(
    ("made_by", "pin", "stops", "words"),
    [
        ("0.2.0", "ultracluster[cli]==0.2.0", [], ""),
        ("0.2.0", "ultracluster==0.2.0  # ours", [], ""),
        ("0.2.1", "ultracluster @ git+https://git.example.com/ultracluster@0123abc", ["everything"], "0.2.1"),
        ("0.1.9", "Ultracluster [cli] == 0.2.0", ["nothing"], "then write 0.2.0 there"),
        ("0.2.0", "ultracluster[cli]==0.1.0", ["deploy"], "pip install -r requirements.txt"),
        ("0.2.0", "./wheels/ultracluster-0.1.0-py3-none-any.whl", ["deploy"], "pins ultracluster 0.1.0"),
        ("0.2.0", "./wheels/ultracluster-0.2.0-py3-none-any.whl", [], ""),
        ("0.3.0", "ultracluster==0.3.0", ["everything", "deploy"], "may not know its keys"),
        ("soon", "ultracluster==0.2.0", ["nothing"], "which is no version: write 0.2.0"),
    ],
)
def test_what_does_not_fit_says_what_to_change(
    made_by: str, pin: str, stops: list[str], words: str, tmp_path: Path
) -> None:
    found = misfits(repository(tmp_path, made_by, pin), "0.2.0")

    assert [one.stops for one in found] == stops
    assert words in " ".join(one.text for one in found)


def test_a_checkout_and_an_own_app_have_no_version_to_fit(tmp_path: Path) -> None:
    assert misfits(ROOT) == []
    assert misfits(repository(tmp_path, 1, "ultracluster==9"), "0.2.0") == []


@pytest.mark.parametrize(("text", "words"), [("{", "cannot be read"), ("[]", "must hold a JSON object")])
def test_a_wrong_cdk_json_is_named(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text(text)

    with pytest.raises(ProjectError, match=words):
        cdk_json(tmp_path)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("0.2.0", ""),
        ("0.1.9", "prod was deployed by ultracluster 0.1.9, and 0.2.0 runs: "),
        ("0.10.0", "takes its changes back. Install 0.10.0"),
        ("", "a version without a number in its stacks"),
        ("odd", "was deployed by ultracluster odd"),
    ],
)
def test_an_environment_of_another_version_has_one_note(version: str, said: str) -> None:
    note = deployed_by(version, "prod", "0.2.0")

    assert said in note and bool(note) is bool(said)
    assert "docs/upgrading.md" in note or not said
