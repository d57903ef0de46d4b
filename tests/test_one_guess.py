"""One guess: what is known of a thing is in the file where its next builder looks first, and in no other.

Counted are the files that people write below `constructs/`, `stacks/` and `lifecycle_scripts/`; not what is
generated, and not documentation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest
from project import ROOT

from ultracluster.catalog import instance_types
from ultracluster.catalog.instances import families
from ultracluster.cli.documents import DOCUMENTS
from ultracluster.model import TRAITS
from ultracluster.rules import RULE_SETS, all_rules

pytestmark = pytest.mark.slow

PACKAGE = "constructs/ultracluster"
CATALOGUE = f"{PACKAGE}/catalog"
GENERATED = {
    f"{CATALOGUE}/general_instances.json",
    "constructs/ultracluster/config/environment.schema.json",
    "constructs/ultracluster/rules/examples.json",  # the examples of docs/rules.md
    "constructs/ultracluster/account/permissions.json",
    "lifecycle_scripts/releases/lock.schema.json",
    *(f"{PACKAGE}/cli/schemas/{name}.json" for name in DOCUMENTS),
}
SUFFIXES = {".py", ".json", ".csv", ".sh", ".sbatch", ".yaml", ".service", ".conf", ".lock"}

ROW = f"{CATALOGUE}/instances.json"
PRICES = {f"{CATALOGUE}/prices.csv", f"{CATALOGUE}/service_prices.json"}
"""EC2's of accelerated types, and those of all other types and services."""

OTHERS_THAT_NAME_TYPES = {
    # hints for a person: without one the quota is found by its name
    f"{CATALOGUE}/quotas.json": 18,
    # what examples of AWS use, and machines that build images
    f"{CATALOGUE}/guidelines.json": 2,
    f"{CATALOGUE}/image_bases.json": 2,
    # EC2's table of minimum software has a line for one size of a family
    f"{CATALOGUE}/software_constraints.json": 1,
    # general types that remedies and defaults name
    "constructs/ultracluster/config/shape_findings.py": 1,
    "constructs/ultracluster/config/storage.py": 1,
    "constructs/ultracluster/rules/eks/groups.py": 1,
    "constructs/ultracluster/rules/eks/pods.py": 2,
    "constructs/ultracluster/rules/groups/roles.py": 2,
    "constructs/ultracluster/rules/parallelcluster/types.py": 2,
    "constructs/ultracluster/rules/pcs/groups.py": 2,
}
"""How many types each of these names. The numbers may only shrink: lower them, never raise one."""

FAMILIES_IN_CODE = {
    # general families from which remedies take a machine
    "constructs/ultracluster/rules/parallelcluster/types.py": 2,
    "constructs/ultracluster/rules/groups/types.py": 2,
}
"""How many families of types the code of each of these names. The numbers may only shrink, too."""

MOST_FILES = {"hyperpod-slurm": 10, "hyperpod-eks": 11, "parallelcluster": 12, "pcs": 10, "eks": 11}
"""In how many files, outside its own folders, each orchestrator may be named. The numbers may only shrink."""

_TYPE = re.compile(r"(?<![a-z0-9-])[a-z][a-z0-9-]*\.(?:\d*x?large|medium|small|micro|metal[\w-]*)\b")
_WORD = re.compile(r"(?<![\w/.-])[a-z]+\d[a-z0-9-]*")


@cache
def files() -> dict[str, str]:
    """Text by path of all files that count."""
    # each answers for every orchestrator, in words
    wishes = {f"{CATALOGUE}/wishes/{file.name}" for file in (ROOT / CATALOGUE / "wishes").iterdir()}
    found: dict[str, str] = {}
    for folder in ("constructs", "stacks", "lifecycle_scripts"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and path.suffix in SUFFIXES and name not in GENERATED | wishes:
                found[name] = path.read_text(encoding="utf-8")
    return found


def types_named(text: str) -> set[str]:
    return set(_TYPE.findall(text)) & instance_types().keys()


def families_in_code(name: str, text: str) -> set[str]:
    """Families that the code of a file compares with; comments, docstrings and data say what they like.

    A beginning of several families, `p6e-`, is one, too.
    """
    if not any_family().search(text):
        return set()
    if name.endswith(".py"):
        words = {value.rstrip(".-*") for value in strings_of(text)}
    elif name.endswith((".sh", ".sbatch")):
        code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        words = {word.rstrip("-") for word in _WORD.findall(code)}
    else:
        words = set[str]()
    return words & family_names()


@cache
def family_names() -> set[str]:
    names = {one.family for one in instance_types().values()} | families().keys()
    return names | {one.partition("-")[0] for one in names}


@cache
def any_family() -> re.Pattern[str]:
    """A pattern for all their names: few files have one, and parsing every file takes seconds."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, family_names()))})(?!\w)")


@cache
def parsed(source: str) -> list[ast.AST]:
    """All nodes of a file."""
    return list(ast.walk(ast.parse(source)))


def strings_of(source: str) -> Iterator[str]:
    """Literals of Python code, without docstrings."""
    tree = parsed(source)
    said = {
        id(one.value)
        for node in tree
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for one in node.body
        if isinstance(one, ast.Expr)
    }
    for node in tree:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def test_a_type_is_a_row_and_its_prices() -> None:
    """Two guesses find all of it; what else names one is listed above."""
    named = {name: len(types) for name, text in files().items() if (types := types_named(text))}

    assert {
        name: count for name, count in named.items() if name not in {ROW, *PRICES}
    } == OTHERS_THAT_NAME_TYPES


def test_no_hand_written_code_names_an_accelerated_type() -> None:
    accelerated = {one.name for one in instance_types().values() if one.accelerator}
    found = {
        name: types_named(text) & accelerated
        for name, text in files().items()
        if not name.endswith((".json", ".csv"))
    }

    assert {name: types for name, types in found.items() if types} == {}


def test_code_compares_with_no_family() -> None:
    """What holds for a family is a column of its rows: code that lists families forgets the next one."""
    found = {name: len(words) for name, text in files().items() if (words := families_in_code(name, text))}

    assert found == FAMILIES_IN_CODE


def rules_named(text: str) -> set[str]:
    """Rules named in code, comments and docstrings included; by number where a set declares one."""
    prefixes = "|".join(rule_set.prefix for rule_set in RULE_SETS)
    return set(re.findall(rf"\b(?:{prefixes})\d{{3}}\b", text)) & {rule.id for rule in all_rules()}


def test_a_rule_is_a_function_and_at_most_one_mention_of_it() -> None:
    named: dict[str, set[str]] = {}
    for name, text in files().items():
        if name.endswith(".py"):
            for rule in rules_named(text):
                named.setdefault(rule, set()).add(name)

    assert {rule: sorted(where) for rule, where in named.items() if len(where) > 2} == {}


KIND = re.compile(rf"[\"'}}](?:{'|'.join(TRAITS)})[\"'{{]")
"""A literal, or a part of one."""


def kinds_named(name: str, text: str) -> set[str]:
    """Orchestrators that a file tells apart: literals of Python, keys and values of data; not the service of
    the same name, as a client is made for it."""
    if not KIND.search(text) and not name.endswith(".sh"):
        return set()
    if name.endswith(".py"):
        tree = parsed(text)
        services = {
            id(word)
            for node in tree
            if isinstance(node, ast.Call)
            for word in [*node.args[:1], *(one.value for one in node.keywords if one.arg == "service")]
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("client", "format_arn")
        }
        words = {
            node.value
            for node in tree
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in services
        }
    elif name.endswith(".json"):
        words = set(re.findall(r'"([a-z-]+)"', text))
    else:
        words = (
            set(re.findall(r"(?<![\w./-])[a-z]+(?:-[a-z]+)*(?![\w./-])", text))
            if name.endswith(".sh")
            else set()
        )
    return words & set(TRAITS)


ABOUT_IMAGES = (
    f"{CATALOGUE}/images.json",
    f"{CATALOGUE}/images.py",
    f"{CATALOGUE}/image_bases.json",
    f"{PACKAGE}/software/",
    f"{PACKAGE}/lifecycle/",
    "lifecycle_scripts/",
)
"""Where families of images are told apart, several of which have the name of their orchestrator."""
ABOUT_SERVICES = (
    f"{CATALOGUE}/regions.json",
    f"{CATALOGUE}/quotas.json",
    f"{CATALOGUE}/slurm.json",
    f"{PACKAGE}/plan/picture_icons.py",
    f"{PACKAGE}/plan/picture_symbols.py",
)
"""Where the service of that name is meant: EKS has quotas and an icon, and a service of Slurm's lets us set
some of its parameters, whoever uses it."""


def own_folders(kind: str) -> tuple[str, ...]:
    """Where a kind may be named as often as one likes."""
    family = kind.partition("-")[0]
    return (
        f"constructs/ultracluster/clusters/{family}/",
        f"constructs/ultracluster/rules/{family}/",
        f"constructs/ultracluster/{family}/",
        f"stacks/{kind.replace('-', '_')}.py",
        f"constructs/ultracluster/config/{kind}.py",
        f"constructs/ultracluster/catalog/{kind}.py",
    )


BY_ORCHESTRATOR = tuple(
    f"{CATALOGUE}/{name}.json"
    for name in ("combinations", "effects", "fixed_settings", "node_agents", "zone_kinds")
)
"""Tables of which each row says whom it binds."""


def test_an_orchestrator_is_a_folder_and_few_places() -> None:
    named = {name: kinds_named(name, text) for name, text in files().items()}
    found = {
        kind: sum(
            kind in kinds
            for name, kinds in named.items()
            if not name.startswith((*own_folders(kind), *ABOUT_IMAGES, *ABOUT_SERVICES, *BY_ORCHESTRATOR))
        )
        for kind in TRAITS
    }

    assert {kind: count for kind, count in found.items() if count > MOST_FILES[kind]} == {}


def test_the_counts_can_fail() -> None:
    assert types_named("Use ml.p5.48xlarge, ec2.m5.large; not up5.48xlarge") == {"p5.48xlarge", "m5.large"}
    assert families_in_code("a.py", 'x = kind.startswith("p6e-") or kind == "p4d."') == {"p6e", "p4d"}
    assert families_in_code("a.py", '"""p5"""\n# p5\nx = "as p5 has"') == set()
    assert families_in_code("a.sh", "case $1 in\n  p4d.* | trn2*) ;; # p5\nesac") >= {"p4d", "trn2"}
    assert len(types_named(files()[ROW])) > 20
    assert rules_named("FSX012 and XYZ001") == {"FSX012"}
    assert kinds_named("a.py", 'x = client("pcs") == kind("eks")\ny = a.client("pcs")') == {"pcs", "eks"}
    assert kinds_named("a.py", 'y = a.client("pcs")') == set()
    assert kinds_named("a.json", '{"pcs": "eks-1"}') == {"pcs"}
    assert len(files()) > 400
