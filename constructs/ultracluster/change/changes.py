"""A change: the resource and property that it happens to, its verdict, and where that comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, cast

from ultracluster.change.surroundings import Surroundings
from ultracluster.change.template import Json, as_mapping, as_text


class ChangeError(Exception):
    """What cannot be compared; the message says why, and what to do."""


Steps = tuple[str, ...]
"""A property path: names, and `[name]` for the elements of a list."""


class _Missing:
    """A value that is not there, which is not the same as null."""


MISSING: Final = _Missing()


NEW: Final = "new"
"""The reason of a resource that was not there."""
TAGS: Final = "tags only"
"""The reason of a change of nothing but tags."""


class Verdict(StrEnum):
    """What happens to a resource, from nothing to the worst."""

    NO_OP = "no-op"
    IN_PLACE = "in place"
    ROLLING = "rolling"
    """Nodes or servers restart or are renewed one after the other; jobs on them end."""
    SCALE_TO_ZERO = "needs scale-to-zero"
    """Running nodes do not have it: they must be recreated."""
    AT_RISK = "jobs at risk"
    """Nothing is replaced, but running jobs lose a way, a right or a file that they may use."""
    NOT_KNOWN = "not known"
    """No source says what the change does: it may be harmless, or any of the others."""
    REPLACED = "replaced"
    """What is there now is deleted; something new may take its place."""
    REFUSED = "refused"
    """AWS refuses the update and rolls it back: nothing changes, and the rest is not deployed either."""
    DATA_AT_RISK = "DATA AT RISK"
    """Nothing that is in use is lost yet, but a guard of data goes, backups go, or data is left behind."""
    DATA_LOSS = "DATA LOSS"

    @property
    def rank(self) -> int:
        """0 for no-op, the highest for data loss."""
        return list(Verdict).index(self)

    @property
    def needs_acceptance(self) -> bool:
        """Whether nobody deploys it who has not named the resource."""
        return self in (Verdict.DATA_AT_RISK, Verdict.DATA_LOSS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed property of one resource, or the resource as a whole."""

    stack: str
    logical_id: str
    """Empty for the stack as a whole."""
    resource_type: str
    """`AWS::FSx::FileSystem`; empty where it is gone."""
    path: str
    """Below Properties, as `InstanceGroups[train].InstanceCount`; empty for the resource as a whole."""
    verdict: Verdict
    reason: str
    source: str
    before: Any = None
    """As it stands in the template; null where there was nothing."""
    after: Any = None
    refused: bool = False
    """AWS refuses the update, which is then rolled back."""
    replaces: bool = False
    """The resource as a whole goes, so what refers to it changes, too."""
    order: tuple[str, ...] = ()
    """Deployments in which a refused change works, first to last."""

    @classmethod
    def of_stack(
        cls,
        stack: str,
        reason: str,
        source: str,
        *,
        path: str = "",
        verdict: Verdict = Verdict.IN_PLACE,
        order: tuple[str, ...] = (),
    ) -> Change:
        """What happens to a stack as a whole, or to a setting of it: none of its resources is meant."""
        return cls(
            stack=stack,
            logical_id="",
            resource_type="AWS::CloudFormation::Stack",
            path=path,
            verdict=verdict,
            reason=reason,
            source=source,
            refused=verdict is Verdict.REFUSED,
            order=order,
        )

    @property
    def resource(self) -> str:
        """What `--accept` takes: `stack/logical id`, or `stack/setting` of a stack as a whole."""
        part = self.logical_id or self.path
        return f"{self.stack}/{part}" if part else self.stack


@dataclass(frozen=True, slots=True)
class Ruling:
    """What one of the tables says of a change."""

    verdict: Verdict
    reason: str
    source: str
    part: bool = False
    """Only a part of the resource goes, such as one group of nodes."""
    overrides: bool = False
    """CloudFormation's own list does not count here."""
    order: tuple[str, ...] = ()
    """Deployments in which a refused change works, first to last."""
    earlier: tuple[str, ...] = ()
    """Those of other reasons, before it; the reason has them in words."""

    @property
    def refused(self) -> bool:
        """AWS refuses the update."""
        return self.verdict is Verdict.REFUSED

    @property
    def words(self) -> str:
        """The reason, and for what is refused the order that works."""
        if not self.refused:
            return self.reason
        return f"AWS refuses this: {self.reason}{in_order(self.order)}"

    @property
    def replaces(self) -> bool:
        """Whether the resource as a whole goes."""
        return self.verdict in (Verdict.REPLACED, Verdict.DATA_LOSS) and not self.part


def in_order(order: tuple[str, ...]) -> str:
    """The end of a reason: which deployment does what."""
    steps = "; ".join(f"deployment {number}: {step}" for number, step in enumerate(order, 1))
    return f". In this order it works: {steps}" if steps else ""


@dataclass(frozen=True, slots=True)
class Pair:
    """One resource before and after."""

    stack: str
    logical_id: str
    before: Json
    after: Json
    before_all: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)
    """Every resource of its stack, by logical id."""
    after_all: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)
    around: Surroundings | None = field(default=None, repr=False)
    """All stacks, for facts about a parent or a child; None where they are not known."""

    @property
    def type(self) -> str:
        """The type that it has afterwards; empty where it is gone."""
        return as_text(self.after.get("Type"))

    @property
    def key(self) -> tuple[str, str]:
        """Stack and logical id."""
        return self.stack, self.logical_id

    def change(self, ruling: Ruling, steps: Steps = (), before: Any = None, after: Any = None) -> Change:
        """What the ruling makes of this resource, or of one of its properties."""
        return Change(
            stack=self.stack,
            logical_id=self.logical_id,
            resource_type=self.type,
            path=dotted(steps),
            verdict=ruling.verdict,
            reason=ruling.words,
            source=ruling.source,
            before=None if before is MISSING else before,
            after=None if after is MISSING else after,
            refused=ruling.refused,
            replaces=ruling.replaces,
            order=tuple(dict.fromkeys((*ruling.earlier, *ruling.order))),
        )


BY_MEANING: Final = frozenset({
    "PolicyDocument", "AssumeRolePolicyDocument", "KeyPolicy", "ResourcePolicy", "FileSystemPolicy",
    "SecurityGroupIngress", "SecurityGroupEgress",
})  # fmt: skip
"""Properties that are compared as a whole: `ways_and_rights` says what a change of one takes away."""


def walk(before: Any, after: Any, steps: Steps = ()) -> Iterator[tuple[Steps, Any, Any]]:
    """Every leaf of two values side by side, equal ones included.

    Elements of lists are matched by what names them (a key, a name, a device), else by position; one that is
    on one side only is a leaf as a whole. Intrinsic functions, lists of plain values, and what is compared
    by its meaning (policy documents, lists of rules) are leaves.
    """
    if steps and steps[-1] in BY_MEANING:
        yield steps, before, after
    elif _plain(before) and _plain(after) and not (before is MISSING and after is MISSING):
        old, new = as_mapping(before), as_mapping(after)
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


def dotted(steps: Steps) -> str:
    """`InstanceGroups[train].InstanceCount`."""
    return ".".join(steps).replace(".[", "[")


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
    "PolicyName",
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
