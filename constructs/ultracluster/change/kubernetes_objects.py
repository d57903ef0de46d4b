"""Changes of a manifest, object by object: the CDK applies it with `kubectl apply`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from ultracluster.change.changes import MISSING, Ruling, Steps, Verdict, dotted, walk
from ultracluster.change.tables import fact_about, has_facts
from ultracluster.change.template import Json, as_mapping, as_text
from ultracluster.config.file_text import json_of

MANIFEST: Final = "Custom::AWSCDK-EKS-KubernetesResource"
KIND: Final = "Kubernetes::"
"""Stands before the kind of an object, as the type of its facts (kubernetes_facts.json)."""
_SOURCE: Final = (
    "aws-cdk-lib aws-eks-v2: Pruning; Kubernetes documentation: kubectl apply --prune (2026-11-22)"
)
_SPACES: Final = (
    "SageMaker Developer Guide, Customize add-on (Spaces): template updates; EKS User Guide, Remove an "
    "Amazon EKS add-on (2026-11-23)"
)
_SAID: Final = frozenset({"Namespace", "WorkspaceTemplate", "PersistentVolume", "PersistentVolumeClaim"})
"""Kinds of which `_deleted` says more."""
_LATER, _OTHER = "later", "another"
"""Stand for what is known only after deployment, and for the same where it changes."""
_SHOWN: Final = 3
_Name = tuple[str, str, str]
"""Kind, namespace and name of an object."""


def judge_manifest(before: Any, after: Any, *, prunes: bool = False) -> Ruling | None:
    """The worst of what happens to the objects of a manifest.

    Args:
        before: as the template has it: JSON as text, or a join of such.
        after: the same, or the very same where something that it refers to changes; missing where the whole
            resource goes.
        prunes: objects that leave the manifest are deleted; without it they stay.

    Returns:
        None where the whole resource goes and nothing that holds anything goes with it, or where a manifest
        cannot be read.
    """
    whole = after is MISSING
    old = objects_of(before, _LATER)
    new = {} if whole else objects_of(after, _OTHER if after is before else _LATER)
    if old is None or new is None:
        return None
    gone = {name: one for name, one in old.items() if name not in new}
    rulings = [*_deleted(gone, whole)] if whole or prunes else [*_left(gone)]
    for name in old.keys() & new.keys():
        rulings += _changed(name, old[name], new[name])
    if whole and not rulings:
        return None
    if made := [name for name in new if name not in old]:
        rulings.append(Ruling(Verdict.IN_PLACE, f"{_names(made)} is added", _SOURCE, part=True))
    return _worst(rulings) or Ruling(Verdict.IN_PLACE, "the same objects", _SOURCE)


def judge_field(name: _Name, steps: Steps, before: Any, after: Any, properties: tuple[Json, Json]) -> Ruling:
    """Judge the change of one field of an object.

    Args:
        properties: the object before and after.
    """
    kind = KIND + name[0]
    fact = None
    if has_facts(kind):
        old, new = properties
        fact = fact_about(kind, steps, before, after, new, old) or fact_about(
            f"{KIND}*", steps, before, after, new, old
        )
    what = f"{' '.join(filter(None, name))}: {dotted(steps)}"
    if fact is None:
        text = f"{what}: no source says what this does: try it in another environment first"
        return Ruling(Verdict.NOT_KNOWN, text, "kubernetes_facts.json has no row", part=True)
    return Ruling(fact.verdict, f"{what}: {fact.reason}", fact.source, part=True, order=fact.order)


def _changed(name: _Name, old: Json, new: Json) -> Iterator[Ruling]:
    for steps, b, a in walk(old, new):
        if b != a:
            yield judge_field(name, steps, b, a, (old, new))


def _deleted(gone: Mapping[_Name, Json], whole: bool) -> Iterator[Ruling]:
    """Rulings on objects that kubectl deletes."""
    if spaces := _names(gone, "Namespace"):
        text = (
            f"the namespace {spaces} is deleted, and in it every job that runs, every secret and claim, and "
            "each EBS volume that was made for one of these claims"
        )
        yield Ruling(Verdict.DATA_LOSS, text, _SOURCE, part=not whole)
    if _names(gone, "WorkspaceTemplate"):
        text = (
            "spaces lose their template: those that run stay, and none starts again; if the add-on of spaces "
            "goes, too, its definitions may go with it, and with them every space and its volume (EKS does "
            "not say: copy what is in them first)"
        )
        yield Ruling(Verdict.AT_RISK, text, _SPACES)
    claims = _names(gone, "PersistentVolumeClaim", "PersistentVolume")
    if claims and not whole:
        text = f"{claims} goes: pods that run keep it until they end, and none that names it starts again"
        yield Ruling(Verdict.AT_RISK, text, _SOURCE)
    for name, one in gone.items():
        if fact := fact_about(KIND + name[0], (), one, MISSING, one):
            text = f"{_names([name])} is deleted: {fact.reason}"
            yield Ruling(fact.verdict, text, fact.source, part=not whole)
        elif not whole and name[0] not in _SAID:
            yield Ruling(Verdict.REPLACED, f"{_names([name])} is deleted", _SOURCE, part=True)


def _left(gone: Mapping[_Name, Json]) -> Iterator[Ruling]:
    """Objects that leave a manifest which does not prune."""
    if gone:
        text = (
            f"{_names(gone)} leaves the manifest and stays in the cluster, with what it holds: nothing "
            "manages it, delete it by hand when nothing needs it"
        )
        yield Ruling(Verdict.IN_PLACE, text, _SOURCE, part=True)


def _worst(rulings: list[Ruling]) -> Ruling | None:
    """One ruling with the reasons of the worst ones."""
    top = max(rulings, key=lambda one: one.verdict.rank, default=None)
    if top is None:
        return None
    alike = [one for one in rulings if one.verdict is top.verdict]
    reasons = list(dict.fromkeys(one.reason for one in alike))
    rest = [f"{len(reasons) - _SHOWN} more"] if len(reasons) > _SHOWN else []
    text = "; ".join(reasons[:_SHOWN] + rest)
    return Ruling(top.verdict, text, top.source, part=all(one.part for one in alike), order=top.order)


def _names(objects: Mapping[_Name, Json] | list[_Name], *kinds: str) -> str:
    """Names of the objects of some kinds; of all, each with its kind."""
    if kinds:
        return ", ".join(dict.fromkeys(name for kind, _, name in objects if kind in kinds))
    return ", ".join(" ".join(filter(None, one)) for one in objects)


def objects_of(value: Any, later: str = _LATER) -> dict[_Name, Json] | None:
    """Each object by its name; None where the manifest cannot be read."""
    try:
        found = json_of(_text(value, later))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list):
        return None
    objects: dict[_Name, Json] = {}
    for one in map(as_mapping, cast("list[Any]", found)):
        metadata = as_mapping(one.get("metadata"))
        words = (one.get("kind"), metadata.get("namespace"), metadata.get("name"))
        objects[cast("_Name", tuple(map(as_text, words)))] = one
    return objects


def _text(value: Any, later: str) -> str:
    """Text of a template; what is known only after deployment is one word of it."""
    join: Any = as_mapping(value).get("Fn::Join")
    if isinstance(join, list) and len(cast("list[Any]", join)) == 2:
        glue, parts = cast("list[Any]", join)
        if isinstance(parts, list):
            return as_text(glue).join(_text(part, later) for part in cast("list[Any]", parts))
    return value if isinstance(value, str) else later


__all__ = ["KIND", "MANIFEST", "judge_field", "judge_manifest", "objects_of"]
