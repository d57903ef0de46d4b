"""The shape of the code base."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT, SHIPPED

import ultracluster
from ultracluster.cli.rules_page import rules_page
from ultracluster.config.schema import PUBLISHED, environment_schema
from ultracluster.software import release_names

pytestmark = pytest.mark.slow

LIST = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
TRACKED = subprocess.run(LIST, capture_output=True, text=True, cwd=ROOT, check=True).stdout.split()


@pytest.mark.slow
def test_modules_import_only_from_layers_below() -> None:
    result = subprocess.run(
        ["lint-imports", "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False
    )

    assert result.returncode == 0, result.stdout


def test_the_source_root_is_no_package() -> None:
    files = [file.name for file in (ROOT / "constructs").iterdir() if file.name != "__pycache__"]

    assert files == ["ultracluster"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["ultracluster.cli", "ultracluster.rules", "ultracluster.config", "ultracluster"]
)
def test_what_answers_fast_does_not_load_the_cdk(module: str) -> None:
    """import-linter does not follow parent packages; the interpreter does."""
    code = f"import sys, {module}; sys.exit('aws_cdk' in sys.modules or 'boto3' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_commands_import_at_the_top() -> None:
    """A module is imported when its command is called; what that needs less often says what it costs."""
    late: list[str] = []
    for file in sorted((ROOT / "constructs/ultracluster/cli").glob("*.py")):
        text = file.read_text()
        functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
        lines = {
            node.lineno
            for function in functions
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
        late += [f"{file.name}: {text.splitlines()[line - 1].strip()}" for line in sorted(lines)]

    assert [line for line in late if "  # " not in line] == [], "say what it costs, or import it at the top"
    assert len(late) <= 19, "the number may only shrink"


@pytest.mark.slow
def test_every_public_name_is_there() -> None:
    for name in ultracluster.__all__:
        # aws_cdk has an Environment, too
        assert getattr(ultracluster, name).__name__ == {"EnvironmentConfig": "Environment"}.get(name, name)
    with pytest.raises(AttributeError, match="NoSuchThing"):
        _ = ultracluster.NoSuchThing  # pyright: ignore[reportAttributeAccessIssue]


def test_no_file_names_a_package_registry() -> None:
    # built here, so that this file is no hit of its own
    hosts = [f"{name}.org" for name in ("pypi", "pythonhosted", "npmjs", "deb.debian")]
    guilty = [
        name
        for name in TRACKED
        if (ROOT / name).is_file()
        and any(host in (ROOT / name).read_text(errors="replace") for host in hosts)
    ]

    assert guilty == []


def test_pages_written_from_the_code_are_up_to_date() -> None:
    assert json.loads(PUBLISHED.read_text()) == environment_schema(release_names()), "run `make generate`"
    assert (ROOT / "docs" / "rules.md").read_text() == rules_page(), "run `make generate`"


def test_environment_files_name_their_schema_in_the_first_line() -> None:
    for file in (ROOT / "environments" / f"{name}.yaml" for name in SHIPPED):
        first = file.read_text().splitlines()[0]
        schema = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)

        assert schema, file
        assert (file.parent / schema[1]).resolve() == PUBLISHED.resolve()


@pytest.mark.slow
def test_stacks_have_one_import_name() -> None:
    """Two names would be two modules, and their classes would be strangers to each other."""
    imports = re.compile(r"^\s*(from|import) stacks\b", re.MULTILINE)
    wrong = [file.name for file in (ROOT / "stacks").rglob("*.py") if imports.search(file.read_text())]

    from ultracluster import stacks  # starts the CDK's kernel

    assert wrong == []
    assert Path(str(stacks.__file__)).resolve() == ROOT / "stacks" / "__init__.py"
