"""The table of what a change takes, from the pages of CloudFormation's template reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools import facts
from tools import update_requires_from_docs as reference

TABLE: dict[str, Any] = json.loads(reference.TABLE.read_text(encoding="utf-8"))
PAGE = """# AWS::Odd::Thing

### JSON

```
  "Properties" : {{
      "{open}Name{close}" : String,
      "{open}Parts{close}" : [ Part, ... ],
      "{open}Tags{close}" : [ Tag, ... ]
```

## Properties

`Name`{anchor}
One of these:

`Parts-of-it`
{em}Type{em}: String
{em}Update requires{em}: [Replacement](#update-replacement)

`Parts`{anchor}
{em}Type{em}: Array of [Part](aws-properties-odd-thing-part.md)
{em}Update requires{em}: [No interruption](#update-no-interrupt)

`Tags`{anchor}
{em}Type{em}: Array of [Tag](aws-properties-odd-thing-tag.md)
{em}Update requires{em}: [No interruption](#update-no-interrupt)

## Return values

`Name`
"""
PART = """# Part

### JSON

```
  "Size" : Integer,
```

## Properties

`Size`
_Update requires_: [Some interruptions](#update-some-interrupt)
"""
STYLES = [
    {"open": "", "close": "", "anchor": "", "em": "_"},
    {"open": "[", "close": "](#cfn-odd)", "anchor": '  <a name="cfn-odd"></a>', "em": "*"},
]
ROW = {
    "replacement": ["Name"],
    "none": ["Parts", "Tags"],
    "within": {"Parts": {"some": ["Size"]}},
}


def pages(folder: Path, page: str, part: str = PART) -> Path:
    (folder / "aws-resource-odd-thing.md").write_text(page, encoding="utf-8")
    (folder / "aws-properties-odd-thing-part.md").write_text(part, encoding="utf-8")
    (folder / "aws-properties-odd-thing-tag.md").write_text(part, encoding="utf-8")
    return folder


@pytest.mark.parametrize("style", STYLES, ids=["one text", "another text"])
def test_a_page_is_read_in_both_forms_of_the_text(tmp_path: Path, style: dict[str, str]) -> None:
    assert reference.of_type(pages(tmp_path, PAGE.format(**style)), "AWS::Odd::Thing") == ROW


def test_what_a_page_says_otherwise_is_told(tmp_path: Path) -> None:
    docs = pages(tmp_path, PAGE.format(**STYLES[0]), PART.replace("Some interruptions", "No interruption"))
    types = {"AWS::Odd::Thing": {**ROW, "none": ["Gone", "Parts"]}, "AWS::Odd::Other": {}}

    assert list(reference.differences(docs, types)) == [
        ("gone", "AWS::Odd::Thing Gone: none"),
        ("changed", "AWS::Odd::Thing Parts/Size: some -> none"),
        ("new", "AWS::Odd::Thing Tags: none"),
        ("gone", f"AWS::Odd::Other: {docs} has no page of it"),
    ]


def test_an_answer_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    docs = pages(tmp_path, PAGE.format(**STYLES[0]), PART.replace("Some interruptions", "A miracle"))
    with pytest.raises(reference.PageError, match="Size: `Update requires: A miracle` is new"):
        reference.of_type(docs, "AWS::Odd::Thing")


def test_pages_and_schemas_that_disagree_are_told_and_the_worse_counts() -> None:
    types = {"AWS::Odd::Thing": ROW}
    found = list(reference.contradictions(types, {"AWS::Odd::Thing": {"always": ["Tags", "Name"]}}))
    assert found == ["AWS::Odd::Thing Tags"]
    assert [line.due for line in facts._contradictions()] == [False] * len(list(facts._contradictions()))


def test_the_file_is_as_it_is_written_and_each_row_by_hand_is_still_needed() -> None:
    assert reference.TABLE.read_text(encoding="utf-8") == reference.render(TABLE)
    for row in TABLE["by_hand"]:
        assert row["update"] in reference.WORDS.values() and row["source"] and len(row["date"]) == 10
        known = dict(reference.leaves(TABLE["types"][row["type"]]))
        assert row["path"].replace(".", "/") not in known, "its page has it now"
