"""What a change of templates does to what is deployed: two sets of templates in, a list of changes out.

Pure: no account, no files but the two tables beside it. `create_only.json` is what CloudFormation says of its
resource types, `change_facts.json` what it does not say: HyperPod's immutable fields, file systems that only
grow, nodes that are drained. What no table knows is treated as replaced, never as harmless.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

Template = Mapping[str, Any]
"""A CloudFormation template as JSON holds it."""
Json = Mapping[str, Any]
Steps = tuple[str, ...]
"""A property path: names, and `[name]` for the elements of a list."""


class Verdict(StrEnum):
    """What happens to a resource, from nothing to the worst."""

    NO_OP = "no-op"
    IN_PLACE = "in place"
    ROLLING = "rolling"
    """Nodes or servers restart or are renewed one after the other; jobs on them end."""
    SCALE_TO_ZERO = "needs scale-to-zero"
    """Nothing that runs has it until its nodes are made anew."""
    REPLACED = "replaced"
    """What is there now is deleted; something new may take its place."""
    DATA_LOSS = "DATA LOSS"

    @property
    def rank(self) -> int:
        """0 for no-op to 5 for data loss."""
        return list(Verdict).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed property of one resource, or the resource as a whole."""

    stack: str
    logical_id: str
    """Empty for the stack as a whole."""
    resource_type: str
    path: str
    """Below Properties, as `InstanceGroups[train].InstanceCount`; empty for the resource as a whole."""
    verdict: Verdict
    reason: str
    source: str
    before: Any = None
    """The value until now; None where there was none."""
    after: Any = None
    refused: bool = False
    """AWS refuses the update, which is then rolled back."""
    replaces: bool = False
    """The resource as a whole goes, so what refers to it changes, too."""

    @property
    def resource(self) -> str:
        """`stack/logical id`, which is what `--accept-data-loss` takes."""
        return f"{self.stack}/{self.logical_id}" if self.logical_id else self.stack


class _Missing:
    """A value that is not there, which is not the same as null."""


MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True)
class _Ruling:
    verdict: Verdict
    reason: str
    source: str
    refused: bool = False
    part: bool = False
    overrides: bool = False

    @property
    def replaces(self) -> bool:
        return self.verdict.rank >= Verdict.REPLACED.rank and not self.refused and not self.part


@dataclass(frozen=True, slots=True)
class _Pair:
    """One resource before and after."""

    stack: str
    logical_id: str
    before: Json
    after: Json

    @property
    def type(self) -> str:
        return _text(self.after.get("Type"))

    @property
    def key(self) -> tuple[str, str]:
        return self.stack, self.logical_id

    def change(self, ruling: _Ruling, steps: Steps = (), before: Any = None, after: Any = None) -> Change:
        return Change(
            stack=self.stack,
            logical_id=self.logical_id,
            resource_type=self.type,
            path=dotted(steps),
            verdict=ruling.verdict,
            reason=f"AWS refuses this: {ruling.reason}" if ruling.refused else ruling.reason,
            source=ruling.source,
            before=None if before is MISSING else before,
            after=None if after is MISSING else after,
            refused=ruling.refused,
            replaces=ruling.replaces,
        )


def blast_radius(before: Mapping[str, Template], after: Mapping[str, Template]) -> list[Change]:
    """Every change between two sets of templates (by stack name), worst first.

    A stack that is only in `after` is new; one that is only in `before` stays as it is, because a deploy
    deletes no stack. Never raises, whatever the templates hold.
    """
    changes: list[Change] = []
    pairs: list[_Pair] = []
    for stack in sorted(before.keys() | after.keys()):
        if stack not in after:
            changes.append(_left_behind(stack, before[stack]))
            continue
        old, new = _resources(before.get(stack, {})), _resources(after[stack])
        for logical_id in sorted(old.keys() | new.keys()):
            pair = _Pair(stack, logical_id, old.get(logical_id, {}), new.get(logical_id, {}))
            if pair.before and pair.after:
                pairs.append(pair)
            changes += _direct(pair)
    changes += _cascade(pairs, changes, before, after)
    return sorted(changes, key=lambda c: (-c.verdict.rank, c.stack, c.logical_id, c.path))


def worst(changes: list[Change]) -> Verdict:
    """The worst verdict; no-op if nothing changes."""
    return max((change.verdict for change in changes), key=lambda v: v.rank, default=Verdict.NO_OP)


def dotted(steps: Steps) -> str:
    """`InstanceGroups[train].InstanceCount`."""
    return ".".join(steps).replace(".[", "[")


def paired(before: Mapping[str, Template], after: Mapping[str, Template]) -> dict[str, Template]:
    """`before` with its stacks and exports renamed to those of `after` where only the environment's name
    differs: `dev-storage` is to be compared with `prod-storage`."""
    if len(before) == len(after) == 1:
        renamed = dict(zip(before, after, strict=True))
    else:
        rest = {name.rpartition("-")[2]: name for name in after if name not in before}
        renamed = {name: rest.get(name.rpartition("-")[2], name) for name in before if name not in after}
        renamed = {old: new for old, new in renamed.items() if list(renamed.values()).count(new) == 1}
    made = {
        renamed.get(name, name): cast("Template", _renamed(template, renamed))
        for name, template in before.items()
    }
    for old, new in renamed.items():
        if old != new:
            made[new] = _twins(made[new], after[new])
    return made


# ----------------------------------------------------------------- resources that come, go and change


def _direct(pair: _Pair) -> list[Change]:
    """Changes of the resource itself."""
    kind = pair.type or _text(pair.before.get("Type"))
    if kind == "AWS::CDK::Metadata":  # written by the CDK's command alone
        return []
    if not pair.before:
        return [pair.change(_fact(kind, (), MISSING, pair.after, {}) or _NEW, after=pair.after)]
    if not pair.after:
        gone = replace(pair, after={"Type": kind})
        return [gone.change(_removal(gone), before=pair.before)]
    if _text(pair.before.get("Type")) != pair.type:
        other = f"was {_text(pair.before.get('Type'))}: that is deleted, and a {pair.type} is made"
        return [pair.change(_with_data(pair, _Ruling(Verdict.REPLACED, other, "")))]
    changes = [pair.change(ruling, steps, b, a) for steps, b, a, ruling in _attributes(pair)]
    old, new = _mapping(pair.before.get("Properties")), _mapping(pair.after.get("Properties"))
    for steps, b, a in walk(old, new):
        if b != a:
            changes.append(pair.change(_judged(pair, steps, b, a), steps, b, a))
    return changes


def _attributes(pair: _Pair) -> Iterator[tuple[Steps, Any, Any, _Ruling]]:
    """What changed beside the properties."""
    for name in sorted((pair.before.keys() | pair.after.keys()) - {"Type", "Properties"}):
        b, a = pair.before.get(name, MISSING), pair.after.get(name, MISSING)
        if b == a:
            continue
        if name in ("Metadata", "DependsOn"):
            yield (name,), b, a, _Ruling(Verdict.NO_OP, "nothing that exists changes", _GUIDE + name)
        elif name == "Condition":
            text = "whether it exists depends on another condition, which cannot be told here"
            yield (name,), b, a, _with_data(pair, _Ruling(Verdict.REPLACED, text, _GUIDE + name))
        elif pair.type in _facts()["holds_data"] and _text(b) in _KEEPING and _text(a) not in _KEEPING:
            text = "the guard is taken away: from now on its deletion takes the data along"
            yield (name,), b, a, _Ruling(Verdict.IN_PLACE, text, _GUIDE + name)
        else:
            text = "concerns later changes of the stack"
            yield (name,), b, a, _Ruling(Verdict.IN_PLACE, text, _GUIDE + name)


def _removal(pair: _Pair) -> _Ruling:
    """What a resource suffers that is no longer in its template."""
    policy, source = _text(pair.before.get("DeletionPolicy")), _GUIDE + "DeletionPolicy"
    if policy in _RETAINING:
        text = f"retained, no longer managed (DeletionPolicy: {policy}): it stays, and so do its costs"
        return _Ruling(Verdict.IN_PLACE, text, source)
    if policy == "Snapshot" and pair.type in _snapshots():
        text = "deleted; a last snapshot is kept (DeletionPolicy: Snapshot)"
        return _Ruling(Verdict.REPLACED, text, source)
    if data := _facts()["holds_data"].get(pair.type):
        source = _facts()["holds_data_about"]["source"]
        return _Ruling(Verdict.DATA_LOSS, f"deleted, and with it {data}", source)
    fact = _fact(pair.type, (), pair.before, MISSING, {})
    return fact or _Ruling(Verdict.REPLACED, "deleted: it is no longer in the template", source)


def _left_behind(stack: str, template: Template) -> Change:
    resources = _resources(template)
    data = [name for name, one in resources.items() if _text(one.get("Type")) in _facts()["holds_data"]]
    holding = f", of which {len(data)} hold data" if data else ""
    return Change(
        stack=stack,
        logical_id="",
        resource_type="AWS::CloudFormation::Stack",
        path="",
        verdict=Verdict.IN_PLACE,
        reason=f"the stack is no longer part of the environment: a deploy leaves it as it is, with its "
        f"{len(resources)} resources{holding}; delete it by hand when nothing needs it",
        source="CDK CLI reference: cdk deploy",
    )


# ------------------------------------------------------------------------------------------ judgement


def _judged(pair: _Pair, steps: Steps, before: Any, after: Any) -> _Ruling:
    """What the change of one property does."""
    ruling = _ruling(pair, steps, before, after)
    return _with_name(pair, _with_data(pair, ruling)) if ruling.replaces else ruling


def _ruling(pair: _Pair, steps: Steps, before: Any, after: Any) -> _Ruling:
    kind = pair.type
    table = _create_only()
    fact = _fact(kind, steps, before, after, _mapping(pair.after.get("Properties")))
    row = table["types"].get("AWS::CloudFormation::CustomResource" if kind.startswith("Custom::") else kind)
    source = table["about"]["source"]
    if fact and fact.overrides:
        return fact
    if row is None:
        text = "not in the table of create-only properties: treated as replaced"
        return fact or _Ruling(Verdict.REPLACED, text, source)
    if _hits(row.get("always", ()), steps):
        text = "set at creation only: a new one is made, this one is deleted"
        made = _Ruling(Verdict.REPLACED, text, source)
        return fact if fact and fact.verdict.rank >= made.verdict.rank else made
    if fact:
        return fact
    if _hits(row.get("sometimes", ()), steps):
        text = "CloudFormation replaces it in some cases: count on a new one"
        return _Ruling(Verdict.REPLACED, text, source)
    if steps[:1] == ("Tags",):
        return _Ruling(Verdict.IN_PLACE, TAGS, source)
    if kind.startswith("Custom::"):
        return _Ruling(Verdict.IN_PLACE, "what happens is up to the function behind it", source)
    return _Ruling(Verdict.IN_PLACE, "CloudFormation updates it where it is", source)


def _with_data(pair: _Pair, ruling: _Ruling) -> _Ruling:
    """A replacement, in the light of what the resource holds."""
    kind = _text(pair.before.get("Type"))
    data = _facts()["holds_data"].get(kind)
    if data is None:
        return ruling
    # CloudFormation does not say whose policy counts when it changes, too: both must keep the data
    policies = {_text(one.get("UpdateReplacePolicy")) for one in (pair.before, pair.after)}
    if policies <= _RETAINING | ({"Snapshot"} if kind in _snapshots() else set()):
        kept = (
            "only a last snapshot of the old one is kept"
            if "Snapshot" in policies
            else "the old one is retained"
        )
        text = f"{ruling.reason}; {kept} (UpdateReplacePolicy), no longer managed, and the new one is empty"
        return replace(ruling, reason=text)
    return replace(ruling, verdict=Verdict.DATA_LOSS, reason=f"{ruling.reason}. Lost: {data}")


def _with_name(pair: _Pair, ruling: _Ruling) -> _Ruling:
    """CloudFormation makes the new one first, which fails while the old one has the name."""
    name = _facts()["names"]["properties"].get(pair.type)
    old, new = (_mapping(one.get("Properties")).get(name) for one in (pair.before, pair.after))
    if isinstance(old, str) and old == new:
        hint = f". While its {name} stays `{old}`, CloudFormation refuses: give it another name"
        return replace(ruling, reason=ruling.reason + hint)
    return ruling


def _fact(kind: str, steps: Steps, before: Any, after: Any, properties: Json) -> _Ruling | None:
    """The first fact that fits."""
    for fact in _facts_of(kind):
        if _applies(fact, steps, before, after, properties):
            return _Ruling(
                Verdict(fact["verdict"]),
                fact["reason"],
                f"{fact['source']} ({fact['date']})",
                refused=fact.get("refused", False),
                part=fact.get("part", False),
                overrides=fact.get("overrides", False),
            )
    return None


def _applies(fact: Json, steps: Steps, before: Any, after: Any, properties: Json) -> bool:
    pattern = _pattern(fact["path"])
    whole = not steps  # the resource comes or goes: only facts about the resource as a whole
    if (whole and pattern) or (whole and "change" not in fact):
        return False
    if not whole and not pattern and "change" in fact:
        return False
    if not _below(pattern, steps):
        return False
    how = fact.get("change")
    if how in ("added", "removed"):
        # of an element of a list: the element itself, not a property of it
        return len(pattern) == len(steps) and (before if how == "added" else after) is MISSING
    if how in ("increased", "decreased"):
        old, new = _number(before), _number(after)
        if old is None or new is None or not (new > old if how == "increased" else new < old):
            return False
    return all(_at(properties, path) in values for path, values in fact.get("where", {}).items())


def _below(pattern: Steps, steps: Steps) -> bool:
    """Whether the steps are the pattern's, or lead further down."""
    return len(pattern) <= len(steps) and all(
        want == step or (want == "[]" and step.startswith("["))
        for want, step in zip(pattern, steps, strict=False)
    )


def _hits(rows: list[str] | tuple[str, ...], steps: Steps) -> bool:
    """Whether one of the schema's paths is the changed one, lies above it or below it."""
    names = [step for step in steps if not step.startswith("[")]
    for row in rows:
        parts = [part for part in row.split("/") if part != "*"]
        length = min(len(parts), len(names))
        if parts[:length] == names[:length]:
            return True
    return False


# ------------------------------------------------------------------------------------------ cascades


def _cascade(
    pairs: list[_Pair], direct: list[Change], before: Mapping[str, Template], after: Mapping[str, Template]
) -> list[Change]:
    """What refers to something that is replaced changes, too, and so on until nothing new comes."""
    exports = _exports(after)
    known = {(change.stack, change.logical_id, change.path) for change in direct}
    moved = _moved(direct) | _moved_values(before, after)
    found: list[Change] = []
    while True:
        fresh: list[Change] = []
        for pair in pairs:
            properties = _mapping(pair.after.get("Properties"))
            for steps, value, _ in walk(properties, properties):
                place = (pair.stack, pair.logical_id, dotted(steps))
                if place in known:
                    continue
                cause = _cause(value, pair.stack, moved, exports)
                if cause is None or cause[:2] == pair.key:
                    continue
                known.add(place)
                ruling = _judged(pair, steps, value, value)
                text = f"refers to {_named(cause, pair.stack)}, which changes: {ruling.reason}"
                if cause[0] != pair.stack:
                    text += f". It is an export of {cause[0]}: CloudFormation refuses to change one in use"
                fresh.append(pair.change(replace(ruling, reason=text), steps, value, value))
        if not fresh:
            return found
        found += fresh
        moved |= _moved(fresh)


def _moved(changes: list[Change]) -> set[tuple[str, str, str | None]]:
    """References whose value is another one afterwards; None stands for every attribute."""
    moved: set[tuple[str, str, str | None]] = set()
    for change in changes:
        if change.replaces:
            moved.add((change.stack, change.logical_id, None))
        elif change.verdict is not Verdict.NO_OP and change.path:
            for attribute in _facts()["moving_attributes"]["attributes"].get(change.resource_type, ()):
                moved.add((change.stack, change.logical_id, attribute))
    return moved


def _moved_values(
    before: Mapping[str, Template], after: Mapping[str, Template]
) -> set[tuple[str, str, str | None]]:
    """Parameters and mappings with another value."""
    return {
        (stack, name, None)
        for stack in before.keys() & after.keys()
        for section in ("Parameters", "Mappings")
        for name, value in _mapping(_mapping(after[stack]).get(section)).items()
        if _mapping(_mapping(before[stack]).get(section)).get(name, value) != value
    }


def _cause(
    value: Any,
    stack: str,
    moved: set[tuple[str, str, str | None]],
    exports: Mapping[str, set[tuple[str, str, str | None]]],
) -> tuple[str, str, str | None] | None:
    """The first reference in a value that has another value afterwards."""
    found: set[tuple[str, str, str | None]] = set()
    for name, attribute in references(value):
        if name.startswith(_IMPORT):
            found |= exports.get(name.removeprefix(_IMPORT), set())
        else:
            found.add((stack, name, attribute))
    hit = [one for one in found if one in moved or (one[0], one[1], None) in moved]
    return min(hit, key=lambda one: (one[0], one[1], one[2] or "")) if hit else None


def _exports(templates: Mapping[str, Template]) -> dict[str, set[tuple[str, str, str | None]]]:
    """What the value of each export refers to."""
    return {
        name: {
            (stack, to, attribute)
            for to, attribute in references(output.get("Value"))
            if not to.startswith(_IMPORT)
        }
        for stack, template in templates.items()
        for output in map(_mapping, _mapping(_mapping(template).get("Outputs")).values())
        if isinstance(name := _mapping(output.get("Export")).get("Name"), str)
    }


def references(value: Any) -> Iterator[tuple[str, str | None]]:
    """(logical id, attribute or None) of every reference in a value; imports as `import:<name>`."""
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from references(item)
        return
    for key, inner in _mapping(value).items():
        if key in ("Ref", "Fn::ImportValue") and isinstance(inner, str):
            yield (inner if key == "Ref" else _IMPORT + inner), None
        elif key == "Fn::GetAtt" and (parts := _parts(inner)):
            yield parts[0], ".".join(parts[1:]) or None
        elif key == "Fn::FindInMap" and (parts := _parts(inner)):
            yield parts[0], None
        elif key == "Fn::Sub":
            text = next(iter(cast("list[Any]", inner)), "") if isinstance(inner, list) else inner
            for name in re.findall(r"\$\{([^!}][^}]*)\}", _text(cast("object", text))):
                to, _, attribute = name.strip().partition(".")
                yield to, attribute or None
            yield from references(inner)
        else:
            yield from references(inner)


def _parts(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split(".")
    parts = cast("list[Any]", value) if isinstance(value, list) else []
    return [part for part in parts if isinstance(part, str)] if parts and isinstance(parts[0], str) else []


def _named(cause: tuple[str, str, str | None], stack: str) -> str:
    return f"`{cause[1]}`" if cause[0] == stack else f"`{cause[0]}/{cause[1]}`"


# ------------------------------------------------------------------------------------ walking values


def walk(before: Any, after: Any, steps: Steps = ()) -> Iterator[tuple[Steps, Any, Any]]:
    """Every leaf of two values side by side, equal ones included.

    Elements of lists are matched by what names them (a key, a name, a device), else by position; one that is
    on one side only is a leaf as a whole. Intrinsic functions and lists of plain values are leaves.
    """
    if _plain(before) and _plain(after) and not (before is MISSING and after is MISSING):
        old, new = _mapping(before), _mapping(after)
        if not old and not new:
            if before is not after and before != after:
                yield steps, before, after
            return
        for name in sorted(old.keys() | new.keys()):
            yield from walk(old.get(name, MISSING), new.get(name, MISSING), (*steps, name))
    elif _objects(before) and _objects(after) and any(one not in (MISSING, []) for one in (before, after)):
        olds, news = _elements(before, after)
        for name in [*olds, *(name for name in news if name not in olds)]:
            b, a = olds.get(name, MISSING), news.get(name, MISSING)
            if b is MISSING or a is MISSING:
                yield (*steps, name), b, a
            else:
                yield from walk(b, a, (*steps, name))
    else:
        yield steps, before, after


def _plain(value: Any) -> bool:
    """A dictionary of properties (or nothing), not an intrinsic function."""
    if value is MISSING:
        return True
    if not isinstance(value, dict):
        return False
    names = list(cast("dict[str, Any]", value))
    return not (len(names) == 1 and (names[0] in ("Ref", "Condition") or names[0].startswith("Fn::")))


def _objects(value: Any) -> bool:
    """A list of such dictionaries (or nothing); an empty list is one."""
    if value is MISSING:
        return True
    return isinstance(value, list) and all(
        isinstance(one, dict) and _plain(one) for one in cast("list[Any]", value)
    )


_NAMES = (
    "InstanceGroupName", "Key", "Name", "Id", "Sid", "DeviceName", "ParameterName", "LogicalName",
)  # fmt: skip


def _elements(before: Any, after: Any) -> tuple[dict[str, Json], dict[str, Json]]:
    """The elements of two lists by what names them."""
    lists = [cast("list[Json]", [] if one is MISSING else one) for one in (before, after)]
    for name in _NAMES:
        names = [[item.get(name) for item in items] for items in lists]
        if all(all(isinstance(n, str) for n in side) and len(set(side)) == len(side) for side in names):
            return _by([f"[{n}]" for n in names[0]], lists[0]), _by([f"[{n}]" for n in names[1]], lists[1])
    kinds = [[_kind(item) for item in items] for items in lists]
    if all(None not in side and len(set(side)) == len(side) for side in kinds):
        return _by([f"[{k}]" for k in kinds[0]], lists[0]), _by([f"[{k}]" for k in kinds[1]], lists[1])
    places = [[f"[{i}]" for i in range(len(items))] for items in lists]
    return _by(places[0], lists[0]), _by(places[1], lists[1])


def _by(names: list[str], items: list[Json]) -> dict[str, Json]:
    return dict(zip(names, items, strict=True))


def _kind(item: Json) -> str | None:
    """Of a choice such as {"FsxLustreConfig": ...}: which one; the two EBS volumes differ by RootVolume.
    Of a network interface: its card and device."""
    if "DeviceIndex" in item:
        return f"{item.get('NetworkCardIndex', 0)}.{item['DeviceIndex']}"
    if len(item) != 1 or not isinstance(inner := next(iter(item.values())), dict):
        return None
    root = " root" if cast("dict[str, Any]", inner).get("RootVolume") else ""
    return next(iter(item)).removesuffix("Config") + root


# ----------------------------------------------------------------------- stacks of another environment


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A template with the exports and imports of renamed stacks renamed."""
    if isinstance(value, list):
        return [_renamed(item, names) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for key, inner in cast("dict[str, Any]", value).items():
        if key in ("Fn::ImportValue", "Export"):
            name = _mapping(inner).get("Name") if key == "Export" else inner
            if isinstance(name, str):
                stack = max((old for old in names if name.startswith(f"{old}-")), key=len, default="")
                new = names[stack] + name[len(stack) :] if stack else name
                made[key] = {"Name": new} if key == "Export" else new
                continue
        made[key] = _renamed(inner, names)
    return made


def _twins(before: Template, after: Template) -> Template:
    """Logical ids that hold the stack's name: the only one left of its type on either side is the same."""
    old, new = _resources(before), _resources(after)
    left, came = [name for name in old if name not in new], [name for name in new if name not in old]
    pairs: dict[str, str] = {}
    for name in left:
        kind = _text(old[name].get("Type"))
        same = [one for one in left if _text(old[one].get("Type")) == kind]
        others = [one for one in came if _text(new[one].get("Type")) == kind]
        if len(same) == len(others) == 1:
            pairs[name] = others[0]
    return cast("Template", _referring(before, pairs)) if pairs else before


def _referring(value: Any, names: Mapping[str, str]) -> Any:
    """A template with logical ids renamed, as keys of Resources and in references."""
    if isinstance(value, list):
        return [_referring(item, names) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return names.get(value, value) if isinstance(value, str) else value
    return {
        names.get(key, key): _referring(inner, names) for key, inner in cast("dict[str, Any]", value).items()
    }


# -------------------------------------------------------------------------------------------- tables

TAGS: Final = "tags only"
_IMPORT: Final = "import:"
_RETAINING: Final = frozenset({"Retain", "RetainExceptOnCreate"})
_KEEPING: Final = _RETAINING | {"Snapshot"}
_GUIDE: Final = "CloudFormation User Guide: attribute "
NEW: Final = "new"
_NEW: Final = _Ruling(Verdict.IN_PLACE, NEW, "")


@cache
def _create_only() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("create_only.json").read_text(encoding="utf-8"))


@cache
def _facts() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("change_facts.json").read_text(encoding="utf-8"))


@cache
def _facts_of(kind: str) -> tuple[Json, ...]:
    return tuple(fact for fact in _facts()["facts"] if fact["type"] == kind)


@cache
def _pattern(path: str) -> Steps:
    return tuple(path.replace("[", ".[").split(".")) if path else ()


@cache
def _snapshots() -> frozenset[str]:
    return frozenset(_facts()["snapshots"]["types"])


def _resources(template: Any) -> dict[str, Json]:
    found = _mapping(_mapping(template).get("Resources"))
    return {name: one for name, one in found.items() if one and isinstance(one, dict)}


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> tuple[float, ...] | None:
    """Figures to compare: 16, "20", and "1.33", which is more than "1.4"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return (value,)
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}(\.\d{1,9}){0,3}", value):
        return tuple(int(part) for part in value.split("."))
    return None


def _at(properties: Json, path: str) -> Any:
    value: Any = properties
    for name in path.split("."):
        value = _mapping(value).get(name)
    return value
