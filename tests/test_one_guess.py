"""One guess: what is known of a thing is in the file where its next builder looks first, and in no other.

Counted are the files that people write below `constructs/`, `stacks/` and `lifecycle_scripts/`; not what is
generated, and not documentation.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from project import ROOT

from ultracluster.catalog import instance_types
from ultracluster.catalog.instances import families

CATALOGUE = "constructs/ultracluster/catalog"
GENERATED = {
    f"{CATALOGUE}/general_instances.json",
    "constructs/ultracluster/config/environment.schema.json",
    "constructs/ultracluster/rules/examples.json",  # the examples of docs/rules.md
}
SUFFIXES = {".py", ".json", ".csv", ".sh", ".sbatch", ".yaml", ".service", ".conf", ".lock"}

HOMES_OF_A_TYPE = {f"{CATALOGUE}/instances.json", f"{CATALOGUE}/prices.csv"}
"""A row and its prices."""

OTHERS_THAT_NAME_TYPES = {
    # prices by the hour that no factor gives, and what is measured or counted of a type: without a row the
    # price is derived, the quota is found by its name, and a run is measured without being judged
    f"{CATALOGUE}/service_prices.json": 0,
    f"{CATALOGUE}/quotas.json": 0,
    f"{CATALOGUE}/nccl_curves.json": 0,
}
"""How many types each of these names. The numbers may only shrink: lower them, never raise one."""

FAMILIES_IN_CODE: dict[str, int] = {}
"""How many families of types the code of each of these names. The numbers may only shrink, too."""


@cache
def files() -> dict[str, str]:
    """Text by path of all files that count."""
    found: dict[str, str] = {}
    for folder in ("constructs", "stacks", "lifecycle_scripts"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and path.suffix in SUFFIXES and name not in GENERATED:
                found[name] = path.read_text(encoding="utf-8")
    return found


def types_named(text: str) -> set[str]:
    words = set(re.findall(r"(?<![a-z0-9-])[a-z][a-z0-9-]*\.(?:[0-9]*x?large|medium|small|micro|metal[0-9a-z-]*)\b", text))
    return words & instance_types().keys()


def families_in_code(name: str, text: str) -> set[str]:
    """Families that the code of a file compares with or matches; comments, docstrings and data say what they like."""
    known = {one.family for one in instance_types().values()} | families().keys()
    words: Iterator[str] = iter(())
    if name.endswith(".py"):
        words = (word for value in strings_of(text) for word in [value.rstrip(".-*")])
    elif name.endswith((".sh", ".sbatch")):
        code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        words = (word.rstrip("-") for word in re.findall(r"(?<![\w/.-])[a-z]+[0-9][a-z0-9-]*", code))
    return {word for word in words if word in known or any(one.startswith(f"{word}-") for one in known if word[-1:].isalnum() and re.fullmatch(r"[a-z]+[0-9][a-z0-9]*", word))}


def strings_of(source: str) -> Iterator[str]:
    """Literals of Python code, without docstrings."""
    tree = ast.parse(source)
    said = {
        id(one.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for one in node.body
        if isinstance(one, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def test_a_type_is_a_row_and_its_prices() -> None:
    named = {name: types_named(text) for name, text in files().items()}
    others = {name: len(types) for name, types in named.items() if types and name not in HOMES_OF_A_TYPE}

    assert others == OTHERS_THAT_NAME_TYPES


def test_no_type_is_in_more_files_than_its_homes_and_the_exceptions() -> None:
    allowed = HOMES_OF_A_TYPE | OTHERS_THAT_NAME_TYPES.keys()
    count = Counter(kind for name, text in files().items() if name not in allowed for kind in types_named(text))

    assert count == {}


def test_code_compares_with_no_family() -> None:
    """What holds for a family is a column of its rows: code that lists families forgets the next one."""
    found = {name: len(words) for name, text in files().items() if (words := families_in_code(name, text))}

    assert found == FAMILIES_IN_CODE


def test_the_counts_can_fail() -> None:
    assert types_named("Use ml.p5.48xlarge, ec2.m5.large; not up5.48xlarge") == {"p5.48xlarge", "m5.large"}
    assert families_in_code("a.py", 'x = kind.startswith("p6e-") or kind == "p4d."') == {"p6e", "p4d"}
    assert families_in_code("a.py", '"""p5"""\n# p5\nx = "as p5 has"') == set()
    assert families_in_code("a.sh", "case $1 in\n  p4d.* | trn2*) ;; # p5\nesac") >= {"p4d", "trn2"}
    assert Path(ROOT / CATALOGUE / "instances.json").relative_to(ROOT).as_posix() in files()
