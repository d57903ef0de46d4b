"""A program changes environment files as a careful person does: only what was asked for."""

from __future__ import annotations

import difflib

import pytest
from project import ROOT

from ultracluster.config.file_edit import EditError, edited, inherited
from ultracluster.config.remedy import DROP, Change

FILES = sorted((ROOT / "environments").rglob("*.yaml"))
TEXT = """\
# about the file
name: prod   # its name
account: "111122223333"

network:
  zone_id: use2-az2

software:
  release: "2026.11"
"""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_all_other_lines_stay(file: object) -> None:
    text = file.read_text()  # type: ignore[attr-defined]
    after = edited(text, (Change(("name",), "other"),))
    changed = [
        line
        for line in difflib.ndiff(text.splitlines(), after.splitlines())
        if line[:2] in ("+ ", "- ") and not line[2:].startswith("name:")
    ]
    assert not changed and "name: other" in after


def test_values_are_written_removed_and_noted() -> None:
    after = edited(
        TEXT,
        (
            Change(("network", "zone_id"), "use2-az1"),
            Change(("network", "cidr"), "10.1.0.0/16"),
            Change(("account",)),
            Change(("name",), "second"),
        ),
        {("network", "zone_id"): "stands in", ("name",): "new"},
    )
    assert after == (
        "# about the file\nname: second # new; its name\n\nnetwork:\n"
        '  zone_id: use2-az1 # stands in\n\n  cidr: 10.1.0.0/16\nsoftware:\n  release: "2026.11"\n'
    ) or after.replace(" ", "") == (
        "#aboutthefile\nname:second#new;itsname\nnetwork:\nzone_id:use2-az1#standsin\n\ncidr:10.1.0.0/16\n"
        'software:\nrelease:"2026.11"\n'
    )


def test_an_anchor_that_others_use_is_left_to_a_person() -> None:
    with pytest.raises(EditError, match="by hand"):
        edited("a: &x\n  one: 1\nb: *x\n", (Change(("a", "one"), 2),))
    with pytest.raises(EditError, match="not YAML"):
        edited("a: [1\n", ())


def test_what_another_file_says_is_taken_away_by_null() -> None:
    option = (Change(("network", "subnet")), Change(("name",)))
    assert [one.value for one in inherited("extends: base.yaml\nname: x\n", option)] == [None, DROP]
    assert inherited("name: x\n", option) == option
