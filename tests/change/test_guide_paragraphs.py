"""Paragraphs of AWS's guides, and what was made of each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from rows import for_each

from tools import facts
from tools.guide_paragraphs import FILE, differences, digest, recorded, render, sections
from ultracluster.change import tables
from ultracluster.rules import all_rules

POLICIES = Path(tables.__file__).with_name("parallelcluster_updates.json")
ROWS = [
    (page["page"], heading, row)
    for page in recorded()["pages"]
    for heading, rows in page["sections"].items()
    for row in rows
]


@for_each(("page", "heading", "row"), ROWS, ids=lambda one: str(one)[-40:])
def test_each_paragraph_has_facts_that_exist_or_a_reason(
    page: str, heading: str, row: dict[str, Any]
) -> None:
    assert re.fullmatch(r"[0-9a-f]{12}", row["words"])
    assert row.keys() == {"words", "facts"} or (row.keys() == {"words", "none"} and len(row["none"]) > 8)
    for fact in row.get("facts", []):
        assert exists(fact), fact


def exists(name: str) -> bool:
    if re.fullmatch(r"[A-Z]{3}\d{3}", name):
        return name in {rule.id for rule in all_rules()}
    kind, _, path = name.partition(" ")
    if kind == "ParallelCluster":
        return path in json.loads(POLICIES.read_text(encoding="utf-8"))["keys"].values()
    steps = tuple(path.replace("[]", ".[]").split("."))
    known = any(fact["path"] == path for fact in tables._facts_of(kind))
    always = (tables.create_only(kind) or {}).get("always", ())
    return known or bool(path and (tables.is_among(always, steps) or tables.update_requires(kind, steps)))


def test_an_invented_fact_is_missed() -> None:
    assert not exists("AWS::FSx::FileSystem Odd") and not exists("FSX999")


def test_the_file_is_as_it_is_written() -> None:
    assert FILE.read_text(encoding="utf-8") == render(recorded())


PAGE = "docs/fsx/latest/LustreGuide/growing.md"
TEXT = """---
source_url: https://example.com
---

# Growing
<a name="growing"></a>

Consider:
+ **Only up** – It only [grows](other.md).
+ **Six hours** – Wait, and then
go on.

```
code
```

| A | B |
| --- | --- |
| one | two |

## Another heading

Else.
"""
CAPACITY = "AWS::FSx::FileSystem StorageCapacity"
KNOWN = {
    "pages": [
        {
            "page": PAGE,
            "sections": {
                "Growing": [
                    {"words": digest("Consider"), "none": "introduces a list"},
                    {
                        "words": digest("Only up It only grows"),
                        "facts": [CAPACITY],
                    },
                    {"words": digest("six hours wait and then go on"), "facts": ["FSX001"]},
                    {"words": digest("a b"), "none": "head of a table"},
                    {"words": digest("one two"), "none": "an example"},
                ]
            },
        }
    ]
}


def found(tmp_path: Path, text: str, page: str = PAGE) -> list[str]:
    file = tmp_path / page
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return [f"{kind}: {what}" for kind, what in differences(tmp_path, KNOWN)]


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("**", "__").replace("+ ", "- ").replace("other.md", "https://example.com/x.html"),
        TEXT.replace("Wait, and then\ngo on.", "Wait, and\n  then go on."),
        TEXT.replace("Else.", "Else, and more."),
    ],
    ids=["the same", "marks and links", "line breaks", "another section"],
)
def test_the_same_words_are_no_change(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "It only",
            "It never only",
            "changed: .* paragraph 2 has other words: read it, correct AWS::",
        ),
        ("+ **Six hours", "+ It costs.\n+ **Six hours", "new: .* paragraph 3 is new: make facts of it"),
        ("+ **Only up** – It only [grows](other.md).\n", "", "gone: .* see whether this holds: AWS::F"),
        ("# Growing", "# Shrinking", "gone: .*, Growing: no such heading"),
        ("| one | two |", "| one | three |", "changed: .* paragraph 5 .* `an example`"),
    ],
)
def test_each_change_is_one_finding_that_names_what_to_do(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in TEXT
    (line,) = found(tmp_path, TEXT.replace(old, new))
    assert re.match(told, line), line


def test_a_page_that_has_gone_is_told_and_a_guide_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    (line,) = found(tmp_path, TEXT, str(Path(PAGE).with_name("other.md")))
    assert line == f"gone: {PAGE}: find where its text is now, and read it again"
    assert list(differences(tmp_path / "empty", KNOWN)) == []


def test_make_facts_compares_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert facts.main(["--docs", str(tmp_path)]) == 1
    assert f"{tmp_path} has the guides of 0 of" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        facts.main(["--docs", str(tmp_path / "none")])
    assert ended.value.code == 2


def test_code_and_front_matter_are_no_paragraphs() -> None:
    assert sections(TEXT).keys() == {"Growing", "Another heading"}
    assert digest("code") not in sections(TEXT)["Growing"]
    assert json.dumps(recorded()).count("source_url") == 0
