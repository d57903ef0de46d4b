"""Rules on: the files of a team's own node steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ultracluster.config import Environment
from ultracluster.config.file_text import kind_of
from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import Remedy, ask, drop, write
from ultracluster.model.own_steps import FORM, OwnStep, named_steps
from ultracluster.rules.engine import Breach, Breaches, at
from ultracluster.rules.sets import STP
from ultracluster.scripts_folder import scripts_folder

VERBS = ("detect", "install", "verify")
_FRAME = "this package: lifecycle_scripts/README.md, A step"
_NODE = "this package: lifecycle_scripts/lib/node.sh"
_STAGES = frozenset({"own", "start", "node", "release", "mounts", "run", "user_data"})
"""Words of the frame: what a log names beside steps."""


@STP.error(1, _NODE, "2026-11-22")
def step_file_name(environment: Environment) -> Breaches:
    """A step of your own is called `NN_name.sh`."""
    for step, path in _steps(environment):
        if not step.name:
            yield at(*path).breach(
                f"`{step.file.name}` is not called like a step: two digits, which order it among yours, an "
                "underscore, and a name of small letters, digits and underscores, 30 at most.",
                ask("action", f"rename the file, for example to {_nearest(step.file.name)}"),
            )


@STP.error(2, "this package: lifecycle_scripts/lib/steps.sh", "2026-11-22")
def step_name_unique(environment: Environment) -> Breaches:
    """A step of your own has a name that no other step has."""
    seen: dict[str, str] = {}
    for step, path in _steps(environment):
        if not step.name:
            continue
        if step.name in _taken():
            yield at(*path).breach(
                f"`{step.name}` is the name of a step or library of this package: its functions and yours "
                "would be the same, and logs could not tell them apart.",
                ask("action", f"rename the file, for example to {step.file.name[:3]}own_{step.name}.sh"),
            )
        elif step.name in seen:
            yield at(*path).breach(
                f"`{step.name}` is the name of {seen[step.name]}, too: groups choose steps by name.",
                drop().noting("or rename one of the files"),
            )
        seen.setdefault(step.name, step.path)


@STP.error(3, "this package: docs/own-steps.md", "2026-11-22")
def step_file_exists(environment: Environment) -> Breaches:
    """The file of a step of your own exists."""
    for step, path in _steps(environment):
        if step.content is None:
            yield Breach(path, f"{step.path} {_why_unread(step)}.", _near(step))


@STP.error(
    4,
    "GNU Bash Reference Manual: space, tab and newline separate words, a carriage return does not",
    "2026-11-22",
)
def step_is_bash(environment: Environment) -> Breaches:
    """bash can read the file of a step of your own."""
    for step, path in _steps(environment):
        content = step.content or b""
        if not _is_text(content):
            yield at(*path).breach(
                f"{step.path} is not UTF-8 text: it is no shell script.", ask("action", "a bash script")
            )
        elif b"\r" in content:
            line = content[: content.index(b"\r")].count(b"\n") + 1
            yield at(*path).breach(
                f"line {line} of {step.path} ends with a carriage return, as files from Windows do: bash "
                "takes it for a part of the last word of the line, and the step fails on every node.",
                ask("action", f"sed -i 's/\\r$//' {step.path}; and `*.sh text eol=lf` in .gitattributes"),
            )


@STP.error(5, _FRAME, "2026-11-22")
def step_has_functions(environment: Environment) -> Breaches:
    """A step of your own has the functions that the frame calls."""
    for step, path in _steps(environment):
        if not step.name or step.content is None:
            continue
        missing = [verb for verb in VERBS if not _defines(step.text, f"{step.name}::{verb}")]
        if not missing:
            continue
        bare = [verb for verb in missing if _defines(step.text, verb)]
        what = ", ".join(f"`{step.name}::{verb}`" for verb in missing)
        words = (
            "; ".join(f"{step.name}::{verb}() instead of {verb}()" for verb in bare)
            if bare
            else "; ".join(f"{step.name}::{verb}() {{ {_LEAST[verb]}; }}" for verb in missing)
        )
        yield at(*path).breach(
            f"{step.path} does not define {what}: a node with this step would fail, or join degraded.",
            ask("action", f"write in it: {words}"),
        )


@STP.error(6, _FRAME, "2026-11-22")
def step_need_exists(environment: Environment) -> Breaches:
    """A step of your own says its need in words that exist."""
    for step, path in _steps(environment):
        if step.says_need not in ("", "required", "optional"):
            yield at(*path).breach(
                f"{step.path} says `need: {step.says_need}`: nodes know `required` (a node without it fails) "
                "and `optional` (it joins degraded).",
                ask("decision", "`# need: required` or `# need: optional`"),
            )


_LEAST = {
    "detect": "step::absent 'not looked for'",
    "install": "true",
    "verify": "step::fail 'nothing proves it'",
}


def _steps(environment: Environment) -> Iterator[tuple[OwnStep, YamlPath]]:
    """Each step with its place."""
    for number, step in enumerate(named_steps(environment)):
        yield step, ("lifecycle_steps", number)


@cache
def _taken() -> frozenset[str]:
    folder = scripts_folder()
    files = [*(folder / "steps").glob("*.sh"), *(folder / "lib").glob("*.sh"), *folder.glob("*.sh")]
    return frozenset(file.stem for file in files) | _STAGES


def _defines(text: str, function: str) -> bool:
    name = re.escape(function)
    return re.search(rf"^\s*(function\s+{name}\b|{name}\s*\(\s*\))", text, re.MULTILINE) is not None


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def _why_unread(step: OwnStep) -> str:
    words = {"folder": "is a folder", "none": "does not exist"}
    return words.get(kind_of(step.file), "cannot be read")


def _near(step: OwnStep) -> Remedy:
    """Another file of that name or number beside it, where there is one."""
    folder = step.file.parent
    there = folder.glob("*.sh") if kind_of(folder) == "folder" else ()
    beside = sorted(file.name for file in there if file.is_file())
    name = step.file.name.lower()
    near = [one for one in beside if one.lower() == name or one[3:] == name[3:] or one[3:] == name]
    parent = step.path.rpartition("/")[0]
    if near:
        return write(*(f"{parent}/{one}" if parent else one for one in near))
    return ask("fact", "the path of a step, from the folder of this file")


def _nearest(name: str) -> str:
    stem = name.removesuffix(".sh")
    found = re.match(r"(\d*)[_-]*(.*)", stem)
    assert found
    number = f"{int(found[1] or 50) % 100:02d}"
    words = re.sub(r"[^a-z0-9]+", "_", found[2].lower()).strip("_")
    words = re.sub(r"^[0-9_]+", "", words)[:30] or "step"
    made = f"{number}_{words}.sh"
    return made if FORM.fullmatch(made) else "50_step.sh"
