"""Names of modules that share one process in the tests."""

from __future__ import annotations

from pathlib import Path

from project import ROOT


def names(folder: Path) -> set[str]:
    return {one.stem for one in folder.iterdir() if one.suffix == ".py" or (one / "__init__.py").exists()}


def test_test_code_and_tools_have_no_name_of_a_program_on_the_nodes() -> None:
    """Tests load those by their own names: whoever comes first in a worker would hide the other."""
    scripts = {file.stem for file in (ROOT / "lifecycle_scripts").rglob("*.py")}
    assert "metrics_agent" in scripts
    assert (names(ROOT / "tests" / "support") | names(ROOT / "tools")) & scripts == set()
