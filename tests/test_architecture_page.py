"""docs/architecture.md: its tables say what the code does. Its pictures: tests/test_pictures.py."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from project import ROOT

from tools import architecture_pictures
from ultracluster.config.environment import STACK_PARTS
from ultracluster.lifecycle.selection import steps_of
from ultracluster.scripts_folder import scripts_folder
from ultracluster.stacks.environment import WAITS_FOR

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SNAPSHOTS = ROOT / "tests" / "stacks" / "__snapshots__" / "test_environments"


def rows(heading: str) -> list[list[str]]:
    """Cells of the table whose first heading is given."""
    table = re.search(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table, heading
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[1].splitlines()]


def named(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([\w-]+)`", cell))


STACKS = {named(row[0])[0]: row for row in rows("Stack")}


def test_every_stack_is_there_in_its_order() -> None:
    assert tuple(STACKS) == STACK_PARTS
    assert architecture_pictures.HOLDS.keys() == set(STACK_PARTS)


@pytest.mark.parametrize("part", STACK_PARTS)
def test_a_stack_waits_for_what_it_says(part: str) -> None:
    assert named(STACKS[part][2]) == WAITS_FOR[part]  # pyright: ignore[reportArgumentType]


def templates() -> Iterator[tuple[str, bool, dict[str, str]]]:
    """Part, whether the environment is protected, and policy by type of each stack that was reviewed."""
    for file in SNAPSHOTS.glob("test_templates_are_as_reviewed*.json"):
        found = json.loads(file.read_text(encoding="utf-8"))
        protected = any(name.endswith("-protection") for name in found)
        for name, template in found.items():
            part = next(one for one in STACK_PARTS if name.endswith(f"-{one}"))
            yield (
                part,
                protected,
                {
                    one["Type"]: one["DeletionPolicy"]
                    for one in template["Resources"].values()
                    if one.get("DeletionPolicy", "Delete") != "Delete"
                },
            )


def test_what_is_retained_is_what_it_says() -> None:
    always: dict[str, set[str]] = {part: set() for part in STACK_PARTS}
    protected: dict[str, set[str]] = {part: set() for part in STACK_PARTS}
    for part, kept, policies in templates():
        (protected if kept else always)[part] |= policies.keys()

    for part, row in STACKS.items():
        said = row[3]
        assert ("always" in said or "snapshot" in said) == bool(always[part]), part
        assert ("`protect`" in said) == bool(protected[part] - always[part]), part
        assert said.startswith("nothing") == (not protected[part]), part


def test_entries_of_nodes_are_there_with_their_steps() -> None:
    script = (scripts_folder() / "lib" / "steps.sh").read_text(encoding="utf-8")
    minutes = dict(
        re.findall(r"\[(\w+)\]=(\d+)", script.partition("STEPS_RUN_MINUTES=(")[2].partition("\n)")[0])
    )
    else_minutes = re.search(r"STEPS_RUN_MINUTES_ELSE=(\d+)", script)
    assert else_minutes
    nodes = {
        name for name in re.findall(r'^  \[(\w+)\]="', script, re.MULTILINE) if not name.startswith("bake")
    }
    table = rows("Entry")

    assert {named(row[0])[0] for row in table} == nodes
    for row in table:
        entry = named(row[0])[0]
        # the team's own are none of ours
        steps = [one for one in steps_of(scripts_folder(), entry) if one != "own"]
        assert (row[2], row[3]) == (minutes.get(entry, else_minutes[1]), str(len(steps))), entry


def test_every_verdict_is_one_of_the_scripts() -> None:
    log = (scripts_folder() / "lib" / "log.sh").read_text(encoding="utf-8")

    assert {named(row[0])[0] for row in rows("Verdict")} == set(
        re.findall(r"\b(READY|DEGRADED|FAILED)\b", log)
    )


def test_every_package_has_its_words() -> None:
    found = [name for row in architecture_pictures.layers() for name in row]

    assert set(found) == architecture_pictures.PACKAGES.keys()
    assert "catalog" in architecture_pictures.without_cdk()
    assert "stacks" not in architecture_pictures.without_cdk()
