"""Writes docs/environment-reference.md: every key of an environment file, from its JSON Schema and the rules.

Run by `make generate`; a test fails when the page is stale. Which orchestrators take a key is asked of the
rules: by the settings of node groups, and with files in which a key is set under each orchestrator.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from tools.docs_site.links import slug  # noqa: E402 (only once the folder is on the path)
from tools.rule_examples import ENVIRONMENTS, on_the_day  # noqa: E402
from ultracluster.config import Loaded, parse  # noqa: E402
from ultracluster.config.base import DISCRIMINATORS  # noqa: E402
from ultracluster.config.orchestrator import OrchestratorKind  # noqa: E402
from ultracluster.config.schema import PUBLISHED  # noqa: E402
from ultracluster.config.source import Source, read  # noqa: E402
from ultracluster.model import resolve  # noqa: E402
from ultracluster.rules import all_rules  # noqa: E402
from ultracluster.rules.engine import Rule, run  # noqa: E402
from ultracluster.rules.examples import applied, examples  # noqa: E402
from ultracluster.rules.groups.settings import SETTINGS  # noqa: E402

Variant = tuple[str, dict[str, Any]]
"""When a model is meant, as `kind: eks`, and the model."""
KINDS: tuple[OrchestratorKind, ...] = get_args(OrchestratorKind)
BASES = {
    "hyperpod-slurm": "dev",
    "hyperpod-eks": "hyperpod-eks-p5",
    "parallelcluster": "parallelcluster-p5",
    "pcs": "pcs-p6-b200",
    "eks": "eks-p5en",
}
"""A shipped environment of each orchestrator."""
PROBES: dict[str, Any] = {
    "users": {"alice": {"uid": 3001, "keys": ["ssh-ed25519 " + "A" * 68]}},
    "directory": {
        "kind": "ldap",
        "bind_dn": "cn=reader,dc=example,dc=com",
        "password_secret_arn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:reader-AbCdEf",
        "uris": ["ldaps://ldap.example.com"],
        "search_base": "dc=example,dc=com",
        "server_networks": ["10.9.0.0/24"],
    },
    "health": {"mode": "enforce"},
    "access.node_ssh": "jobs",
}
"""Keys beside the orchestrator and the groups that some orchestrators refuse, with a value of each."""
NAME = "<name>"
HEAD = """# Reference of the environment file

<!-- Written by `make generate` from the JSON Schema and the rules; edit the models in config/. -->

Every key of an environment file: its type and default, what it does, which orchestrators take it, and the
rules whose findings stand at it. [Environment files](environment-files.md) shows how one is written; your
editor has all this from the schema in the first line of a file, and `ultracluster rules FSX002` prints a
rule. **Required** keys may stand in the file that `extends:` names. Where no orchestrator is named, those of
the key above take it: at the top, all. Of node groups, one is named where some of its groups take the key.
"""


def page() -> str:
    """The page as Markdown."""
    parts = [HEAD, *_section("", [("", _schema())])]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def keys() -> set[str]:
    """Every key of the page, as `storage.lustre.capacity_gib`."""
    return set(_seen(""))


@cache
def _schema() -> dict[str, Any]:
    return json.loads(PUBLISHED.read_text(encoding="utf-8"))


def _seen(path: str, models: Sequence[dict[str, Any]] = ()) -> Iterator[str]:
    for model in models or [_schema()]:
        for key, part in model["properties"].items():
            place = f"{path}.{key}" if path else key
            yield place
            inner, suffix = _models(part)
            if inner:
                yield from _seen(place + suffix, inner)


def _section(path: str, models: Sequence[Variant]) -> Iterator[str]:
    """The tables of one place, and those below it that stand nowhere yet."""
    if path:
        yield f"\n## `{path}`\n"
    below: dict[str, list[Variant]] = {}
    for when, model in models:
        if len(models) > 1:
            yield f"\n### `{path}` with {when}\n"
        if model.get("description") and path:
            yield f"{_prose(model['description'])}\n"
        yield "| key | type, default | | orchestrators | rules |\n|---|---|---|---|---|"
        for key, part in model["properties"].items():
            place = f"{path}.{key}" if path else key
            inner, suffix = _models(part)
            yield _row(place, key, part, model, inner, suffix)
            if _homes().get(place + suffix) == place + suffix:
                known = below.setdefault(place + suffix, [])
                known += [(_tag(one) or when, one) for one in inner if one not in [two for _, two in known]]
        yield ""
    for place, inner in below.items():
        yield from _section(place, inner)


@cache
def _homes() -> dict[str, str]:
    """Where the keys of each place are explained: there, or at the first place that takes the same ones."""
    variants: dict[str, list[str]] = {}
    waiting: list[tuple[str, list[dict[str, Any]]]] = [("", [_schema()])]
    while waiting:
        path, models = waiting.pop(0)
        for model in models:
            for key, part in model["properties"].items():
                inner, suffix = _models(part)
                if inner:
                    place = f"{path}.{key}{suffix}" if path else f"{key}{suffix}"
                    known = variants.setdefault(place, [])
                    known += [one["title"] for one in inner if one["title"] not in known]
                    waiting.append((place, inner))
    first: dict[tuple[str, ...], str] = {}
    return {place: first.setdefault(tuple(titles), place) for place, titles in variants.items()}


def _row(
    place: str,
    key: str,
    part: dict[str, Any],
    model: dict[str, Any],
    inner: Sequence[dict[str, Any]],
    suffix: str,
) -> str:
    kinds = _kinds(place, model)
    usual = "**required**" if key in model.get("required", ()) or place in _TOP else _default(part)
    kind = _type(part)
    if inner:
        kind = f"[{kind or 'keys'}](#{slug(f'`{_homes()[place + suffix]}`')})"
    rules = [
        rule
        for rule in _rules().get(place, ())
        if not place.startswith("orchestrator.") or _about(rule, kinds)
    ]
    codes = ", ".join(f"[{rule.id}](rules.md#{slug(f'{rule.id}: {rule.title}')})" for rule in rules)
    cells = (
        f"`{key}`",
        ", ".join(filter(None, (kind, usual))),
        _prose(part.get("description", "") or _words_of(inner)),
        ", ".join(kinds) if kinds is not None and not place.startswith("orchestrator.") else "",
        codes,
    )
    return f"| {' | '.join(cells)} |"


_TOP = ("name", "region", "network", "orchestrator", "node_groups", "software")
"""What the merged file must have; the schema of one file requires nothing, because a base may say it."""


def _words_of(inner: Sequence[dict[str, Any]]) -> str:
    return str(inner[0].get("description", "")).split("\n\n")[0] if len(inner) == 1 else ""


def _models(part: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """The models that a value can be, and what stands between the key and theirs: a name, for a map."""
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        model = _schema()["$defs"][name]
        return ([model], "") if "properties" in model else ([], "")
    for several in ("anyOf", "oneOf"):
        found = [_models(one) for one in part.get(several, ())]
        models = [model for some, _ in found for model in some]
        if models:
            return models, next(suffix for some, suffix in found if some)
    for value in (*part.get("patternProperties", {}).values(), part.get("additionalProperties")):
        if isinstance(value, dict) and (models := _models(value)[0]):
            return models, f".{NAME}"
    if isinstance(part.get("items"), dict) and (models := _models(part["items"])[0]):
        return models, "[]"
    return [], ""


def _tag(model: dict[str, Any]) -> str:
    """The key that tells a model from its siblings, with its values; empty where it has none."""
    for key in DISCRIMINATORS:
        part = model["properties"].get(key, {})
        values = [part["const"]] if "const" in part else part.get("enum", [])
        if values:
            return f"{key}: {' or '.join(map(str, values))}"
    return ""


def _type(part: dict[str, Any]) -> str:
    if "$ref" in part:
        target = _schema()["$defs"][part["$ref"].rpartition("/")[2]]
        return "" if "properties" in target else _type(target)
    if "const" in part:
        return f"`{part['const']}`"
    if "enum" in part:
        values = part["enum"]
        shown = ", ".join(f"`{one}`" for one in values[:8])
        return shown if len(values) <= 8 else f"{part.get('type', 'string')}, one of {len(values)}"
    for several in ("anyOf", "oneOf"):
        if several in part:
            rest = [one for one in part[several] if one.get("type") != "null"]
            known = [_type(one) for one in rest if not _models(one)[0]]
            if "string" in known:  # what is not known yet, too
                known = [one.replace("one of ", "known: ") for one in known if one != "string"] or known
            return " or ".join(dict.fromkeys(filter(None, (*known, "keys" if _models(part)[0] else ""))))
    if part.get("type") == "array":
        return f"list of {_type(part.get('items', {})) or 'keys'}"
    if part.get("type") == "object":
        return "map by name" if _models(part)[0] or part.get("patternProperties") else "map"
    limits = [
        f"{word} {part[key]:,}"
        for key, word in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "more than"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "less than"),
        )
        if key in part
    ]
    return ", ".join([str(part.get("type", "")), *limits])


def _default(part: dict[str, Any]) -> str:
    if "default" not in part:
        return ""
    value = part["default"]
    if isinstance(value, dict) and value:
        return ""
    if value is None or value in ([], {}, ""):
        return "optional"
    return f"default `{value if isinstance(value, str) else json.dumps(value)}`"


def _kinds(place: str, model: dict[str, Any]) -> Sequence[str] | None:
    """Orchestrators that take a key; None where it is for all, or for those that take the key above it."""
    if place.startswith("orchestrator."):
        return (model["properties"]["kind"]["const"],) if "kind" in model["properties"] else None
    return _taken().get(place)


@cache
def _taken() -> dict[str, tuple[str, ...]]:
    """By key: the settings of groups as their rule has them, and keys that rules refuse as a whole."""
    bases = {kind: _base(name) for kind, name in BASES.items()}
    groups = {kind: resolve(_parsed(data).environment).groups for kind, data in bases.items()}
    found = {
        f"node_groups.{NAME}.{key}": tuple(
            k for k in KINDS if any(setting.has(one) for one in groups[k].values())
        )
        for key, setting in SETTINGS.items()
    }
    with on_the_day():
        for key, value in PROBES.items():
            found[key] = tuple(kind for kind in KINDS if not _refused(bases[kind], key, value))
    return {key: kinds for key, kinds in found.items() if len(kinds) < len(KINDS)}


def _refused(base: dict[str, Any], key: str, value: object) -> bool:
    findings = run(all_rules(), _parsed(applied(base, {key: value})))
    return any(one.severity == "error" and one.dotted == key for one in findings)


def _base(name: str) -> dict[str, Any]:
    return applied(read(ENVIRONMENTS / f"{name}.yaml").data, {})


def _parsed(data: dict[str, Any]) -> Loaded:
    return parse(Source("reference.yaml", data=data))


@cache
def _rules() -> dict[str, list[Rule]]:
    """Rules by the key at which their finding stands, in their example."""
    known = {rule.id: rule for rule in all_rules()}
    found: dict[str, list[Rule]] = {}
    for code, example in examples().items():
        found.setdefault(_key(example.at), []).append(known[code])
    return found


def _about(rule: Rule, kinds: Sequence[str] | None) -> bool:
    """Whether a rule that stands at a key of several orchestrators is about one of these."""
    return kinds is None or rule.kinds is None or any(kind in rule.kinds for kind in kinds)


def _key(at: str) -> str:
    """The key of the page in which a finding stands: names become `<name>`, numbers `[]`."""
    words = re.findall(r'"[^"]*"|[^.\[\]]+', re.sub(r"\[\d+\]", "", at))
    models: list[dict[str, Any]] = [_schema()]
    place = prefix = ""
    while words and models:
        parts = [one["properties"][words[0]] for one in models if words[0] in one["properties"]]
        if not parts:
            break
        place = f"{prefix}.{words.pop(0)}" if prefix else words.pop(0)
        inner = [_models(part) for part in parts]
        models = [model for some, _ in inner for model in some]
        suffix = next((suffix for some, suffix in inner if some), "")
        prefix = _homes().get(place + suffix, place + suffix)
        if suffix == f".{NAME}":
            words = words[1:]
    return place


def _prose(text: str) -> str:
    """Words of a docstring in a cell: only backquotes are marks."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    plain = [one if one.startswith("`") else re.sub(r"([\\<>*])", r"\\\1", one) for one in parts]
    return "".join(plain).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
