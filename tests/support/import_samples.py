"""Samples of other tools' files, each with the environment that it becomes, and every loss in its head."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import ROOT

from ultracluster.config import load
from ultracluster.imports.outcome import Imported, finished
from ultracluster.imports.reading import drafted, read
from ultracluster.imports.surroundings import Asked
from ultracluster.rules import check

FOLDER = ROOT / "tests" / "imports"


def imported(sample: str, request: pytest.FixtureRequest, asked: Asked | None = None) -> Imported:
    """What the files `samples/SAMPLE*` become, compared with `expected/SAMPLE.yaml`, which no rule refuses.

    `--snapshot-update` writes it.
    """
    files = sorted((FOLDER / "samples").glob(f"{sample}.*"))
    found = finished(
        drafted([read(one) for one in files], asked or Asked()), ", ".join(one.name for one in files)
    )
    release = found.environment.software.release
    text = found.text.replace(release, "RELEASE")
    expected = FOLDER / "expected" / f"{sample}.yaml"
    if request.config.option.update_snapshots:
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")
    assert_validates(found.text, request.getfixturevalue("tmp_path") / "new.yaml")
    return found


def assert_validates(text: str, file: Path) -> None:
    """Written to a file, `validate` finds no error."""
    file.write_text(text, encoding="utf-8")
    assert [one for one in check(load(file)) if one.blocks] == []
