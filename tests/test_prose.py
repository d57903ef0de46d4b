"""The word list in tools/prose: which text it reads, which lines it checks, what it reports."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from needs import without_setup
from project import ROOT

from tools.prose.__main__ import added_lines, check, text_of

DIFF = """\
diff --git a/docs/a.md b/docs/a.md
--- a/docs/a.md
+++ b/docs/a.md
@@ -3,0 +4,2 @@ Title
+one
+two
@@ -9 +11 @@
-old
+new
diff --git a/gone.md b/gone.md
--- a/gone.md
+++ /dev/null
@@ -1 +0,0 @@
-gone
"""


def test_lines_are_those_that_the_diff_adds() -> None:
    assert added_lines(DIFF) == {"docs/a.md": {4, 5, 11}}


def test_a_line_that_moved_is_not_new() -> None:
    moved = DIFF + "--- /dev/null\n+++ b/docs/b.md\n@@ -0,0 +1,2 @@\n+  gone\n+fresh\n"
    quoted = moved.replace("+  gone", '+    """gone."""')

    for diff in (moved, quoted):
        assert added_lines(diff) == {"docs/a.md": {4, 5, 11}, "docs/b.md": {2}}


def test_code_of_python_is_no_text_and_columns_stay() -> None:
    content = 'mend = 1  # mended\nsay(f"told {mend} twice", """a\n  b""")\n'

    lines = text_of("x.py", content).splitlines()

    assert lines[0].strip() == "# mended"
    assert lines[0].index("# mended") == content.index("# mended")
    assert "told" in lines[1] and "twice" in lines[1] and "say" not in lines[1]
    assert "  b" in lines[2]


@pytest.mark.slow
def test_added_text_is_held_to_the_word_list(tmp_path: Path) -> None:
    if not (ROOT / "tools/prose/node_modules").is_dir():
        pytest.skip(without_setup("textlint"))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("It tells you.\n\nIt tells you.\n\n`it tells you`\n")
    (tmp_path / "a.py").write_text(
        'def mend() -> str:\n    """Of a node."""\n    return "the file wants a name"\n'
    )
    shutil.copy(tmp_path / "a.py", tmp_path / "b.py")

    findings = list(check({"docs/a.md": {3, 5}, "a.py": None, "b.py": {1}}, tmp_path))

    assert sorted(findings) == [
        'a.py:2:5: `"""Of`: write `a docstring that begins with a noun or a verb`',
        "a.py:3:22: `wants`: write `requires`",
        "docs/a.md:3:4: `tells`: write `report, state`",
    ]
