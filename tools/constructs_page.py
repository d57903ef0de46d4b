"""Writes docs/constructs-reference.md: signature, arguments and attributes of every public name.

Run by `make generate`; a test fails when the page is stale.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ultracluster

HEAD = """# Reference of the constructs

<!-- Written by `make generate` from the code; edit docstrings there, or tools/constructs_page.py. -->

What `from ultracluster import ...` gives, with the arguments of each. [The guide](constructs.md) shows how
they are used. Arguments behind `*` are given by name. `ec2`, `eks`, `iam`, `kms`, `s3` and `secretsmanager`
are the CDK's modules.
"""
ROOMS = {
    "clusters": "Clusters and their nodes",
    "storage": "Storage",
    "network": "Network",
    "security": "Keys and roles",
    "observability": "What watches a cluster",
    "lifecycle": "Scripts and images",
    "interfaces": "Interfaces",
    "settings": "Settings",
    "functions": "Functions",
}
SECTIONS = ("Args:", "Attributes:", "Raises:", "Returns:")
OURS = "ultracluster"
ROOT = Path(__file__).resolve().parents[1] / "constructs"


@dataclass(frozen=True)
class Definition:
    """A class or function with the module that it is in, in which its names mean something."""

    module: str
    node: ast.ClassDef | ast.FunctionDef

    @property
    def doc(self) -> str:
        return ast.get_docstring(self.node) or ""


def page() -> str:
    """The page as Markdown."""
    rooms: dict[str, list[str]] = {room: [] for room in ROOMS}
    for name in sorted(ultracluster.__all__, key=str.lower):
        found = _find(OURS, name)
        if found is None:
            raise LookupError(f"{name} is no class or function of ours")
        rooms[_room(found)].append("\n".join(_entry(name, found)))
    parts = [f"## {ROOMS[room]}\n\n" + "\n".join(entries) for room, entries in rooms.items() if entries]
    return re.sub(r"\n{3,}", "\n\n", "\n".join([HEAD, *parts])).rstrip() + "\n"


def described() -> Iterator[tuple[str, set[str], dict[str, str]]]:
    """Each public constructor and maker of what exists: its arguments by name, those with a default with a
    `?`, and what its docstring states of each."""
    for name in ultracluster.__all__:
        found = _find(OURS, name)
        for _, one in _functions(found) if found else ():
            if one.name == "__init__" or one.name.startswith("from_"):
                told = re.findall(
                    r"^    (\w+): ((?:.+\n?)(?:        .+\n?)*)", ast.get_docstring(one) or "", re.M
                )
                pairs = zip(one.args.kwonlyargs, one.args.kw_defaults, strict=True)
                arguments = {f"{arg.arg}{'?' if default else ''}" for arg, default in pairs}
                yield f"{name}.{one.name}", arguments, dict(told)


def _room(found: Definition) -> str:
    if isinstance(found.node, ast.FunctionDef):
        return "functions"
    bases = set(_bases(found))
    if "Protocol" in bases:
        return "interfaces"
    return found.module.split(".")[1] if "Construct" in bases else "settings"


def _bases(found: Definition) -> Iterator[str]:
    for one in _line(found):
        if isinstance(one.node, ast.ClassDef):
            yield from map(ast.unparse, one.node.bases)


def _entry(name: str, found: Definition) -> Iterator[str]:
    yield f"### {name}\n"
    if isinstance(found.node, ast.FunctionDef):
        yield from _code(_call(name, found.node, found.module))
        yield from _prose(found.doc)
        return
    if _room(found) == "interfaces":
        yield from _prose(found.doc)
        yield from _methods(found, name)
    elif _room(found) == "settings":
        yield from _code(_fields(name, found))
        yield from _prose(found.doc)
        yield from _explained(found)
    else:
        init = next((one for one in _functions(found) if one[1].name == "__init__"), None)
        if init:
            yield from _code(_call(name, init[1], init[0].module))
        yield from _prose(found.doc)
        if init:
            told = list(_prose(ast.get_docstring(init[1]) or ""))
            yield from told[_first_list(told) :]
        yield from _methods(found, name)


def _methods(found: Definition, name: str) -> Iterator[str]:
    """Public methods and properties, those of base classes that are ours included."""
    said = _attributes(found)
    public = [
        (home, method)
        for home, method in sorted(_functions(found), key=lambda one: one[1].name)
        if not method.name.startswith("_") and method.name not in said and method.name != "node"
    ]
    properties = [_property(method) for _, method in public if _decorated(method, "property")]
    if _room(found) == "interfaces":
        properties += [
            f"- `{ast.unparse(one.target)}: {ast.unparse(one.annotation)}`"
            for one in found.node.body
            if isinstance(one, ast.AnnAssign)
        ]
    if properties:
        yield "\nProperties:\n"
        yield from properties
    for home, method in public:
        if _decorated(method, "property"):
            continue
        owner = name if _decorated(method, "classmethod", "staticmethod") else ""
        yield ""
        yield from _code(_call(f"{owner}.{method.name}", method, home.module))
        yield from _prose(ast.get_docstring(method) or "")
    yield ""


def _property(method: ast.FunctionDef) -> str:
    kind = f": {ast.unparse(method.returns)}" if method.returns else ""
    doc = ast.get_docstring(method)
    return f"- `{method.name}{kind}`" + (f": {_low(doc.splitlines()[0])}" if doc else "")


def _attributes(found: Definition) -> set[str]:
    section = re.search(r"^Attributes:\n((?:    .*\n?)+)", found.doc, re.MULTILINE)
    return set(re.findall(r"^    (\w+):", section[1], re.MULTILINE)) if section else set()


def _functions(found: Definition) -> list[tuple[Definition, ast.FunctionDef]]:
    """Methods by name, where a class's own hides that of its base."""
    methods: dict[str, tuple[Definition, ast.FunctionDef]] = {}
    for one in _line(found):
        for statement in one.node.body:
            if isinstance(statement, ast.FunctionDef):
                methods.setdefault(statement.name, (one, statement))
    return list(methods.values())


def _line(found: Definition) -> Iterator[Definition]:
    """A class and those of its bases that are ours, itself first."""
    yield found
    if isinstance(found.node, ast.ClassDef):
        for base in found.node.bases:
            if isinstance(base, ast.Name) and (above := _find(found.module, base.id)):
                yield from _line(above)


def _call(name: str, function: ast.FunctionDef, module: str) -> str:
    """A signature, one argument a line; settings by keyword are spelled out."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    if plain and plain[0].arg in ("self", "cls"):
        plain = plain[1:]
    usual: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    lines = [_argument(one, default) for one, default in zip(plain, usual, strict=True)]
    if arguments.vararg:
        lines.append(f"*{_argument(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        lines.append("*")
    lines += [
        _argument(one, default)
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    says = function.returns if function.name != "__init__" else None
    returns = f" -> {ast.unparse(says)}" if says else ""
    body = "".join(f"    {line},\n" for line in lines)
    if arguments.kwarg and arguments.kwarg.annotation:
        body += f"    # {arguments.kwarg.arg}, or a model of them by config=\n"
        body += "".join(f"    {line},\n" for line in _settings(arguments.kwarg.annotation, module))
    return (
        f"{name}(\n{body}){returns}"
        if len(body) > 90 or body.count("\n") > 3
        else f"{name}({', '.join(lines)}){returns}"
    )


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(one.annotation)}" if one.annotation else ""
    return f"{one.arg}{kind}" + (f" = {ast.unparse(default)}" if default is not None else "")


def _settings(annotation: ast.expr, module: str) -> Iterator[str]:
    assert isinstance(annotation, ast.Subscript)
    assert isinstance(annotation.slice, ast.Name)
    found = _find(module, annotation.slice.id)
    assert found, f"{annotation.slice.id} of {module}"
    for one in reversed(list(_line(found))):
        for statement in one.node.body:
            if isinstance(statement, ast.AnnAssign):
                yield f"{ast.unparse(statement.target)}: {ast.unparse(statement.annotation)}"


def _fields(name: str, found: Definition) -> str:
    lines = [f"    {field}: {kind}{usual},\n" for field, kind, usual, _ in _of_model(found)]
    return f"{name}(\n    *,\n{''.join(lines)})"


def _explained(found: Definition) -> Iterator[str]:
    for field, _, _, doc in _of_model(found):
        if doc:
            yield f"- **{field}**: {' '.join(doc.split())}"
    yield ""


def _of_model(found: Definition) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and description of each field, as pydantic and dataclasses have them."""
    fields: dict[str, tuple[str, str, str, str]] = {}
    for one in reversed(list(_line(found))):
        body = one.node.body
        for statement, after in zip(body, [*body[1:], None], strict=True):
            if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                continue
            if "ClassVar" in ast.unparse(statement.annotation):
                continue
            doc = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                doc = str(after.value.value)
            usual = f" = {ast.unparse(statement.value)}" if statement.value is not None else ""
            field = statement.target.id
            fields[field] = (field, _kind(statement.annotation), usual, doc)
    # what must be given comes first
    yield from sorted(fields.values(), key=lambda one: bool(one[2]))


def _kind(annotation: ast.expr) -> str:
    """A type without its limits, which rules and the JSON Schema have."""
    return ast.unparse(_Plain().visit(ast.parse(ast.unparse(annotation), mode="eval").body))


class _Plain(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple):
            return node.slice.elts[0]
        return node


def _prose(doc: str) -> Iterator[str]:
    """A docstring as Markdown: its sections become lists."""
    lines = doc.splitlines()
    section = ""
    for line in lines:
        if line in SECTIONS:
            section = line
            yield f"\n{line}\n"
        elif section and section != "Returns:" and (entry := re.match(r"    (\w+): (.*)", line)):
            yield f"- **{entry[1]}**: {entry[2]}"
        elif section:
            yield f"  {line.strip()}" if line.strip() and section != "Returns:" else line.strip()
        else:
            yield line
    yield ""


def _first_list(lines: list[str]) -> int:
    return next((number for number, line in enumerate(lines) if line.strip() in SECTIONS), len(lines))


def _code(text: str) -> Iterator[str]:
    # `py`: what is marked `python` is run by the tests
    yield f"```py\n{text}\n```\n"


def _low(text: str) -> str:
    return text if text[:2].isupper() or text.startswith("None ") else text[:1].lower() + text[1:]


def _decorated(function: ast.FunctionDef, *names: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id in names for one in function.decorator_list)


def _find(module: str, name: str) -> Definition | None:
    """A class or function of ours by the name that it has in a module; None for those of others."""
    if module.partition(".")[0] != OURS:
        return None
    for statement in ast.walk(_tree(module)):  # what is imported for type checkers, too
        if isinstance(statement, ast.ClassDef | ast.FunctionDef) and statement.name == name:
            return Definition(module, statement)
        if isinstance(statement, ast.ImportFrom) and statement.module:
            for one in statement.names:
                if (one.asname or one.name) == name:
                    return _find(statement.module, one.name)
    return None


@cache
def _tree(module: str) -> ast.Module:
    """Read, not imported: a page needs no CDK."""
    place = ROOT.joinpath(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.stdout.write(page())
