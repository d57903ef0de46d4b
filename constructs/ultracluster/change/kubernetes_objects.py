"""What Kubernetes deletes when objects leave a manifest that the CDK applies (`kubectl apply --prune`)."""

from __future__ import annotations

from typing import Any, Final, cast

from ultracluster.change.changes import MISSING, Ruling, Verdict
from ultracluster.change.template import as_mapping, as_text
from ultracluster.config.file_text import json_of

MANIFEST: Final = "Custom::AWSCDK-EKS-KubernetesResource"
_SOURCE: Final = (
    "aws-cdk-lib aws-eks-v2: Pruning; Kubernetes documentation: kubectl apply --prune (2026-11-22)"
)

_SPACES: Final = (
    "SageMaker Developer Guide, Customize add-on (Spaces): template updates; EKS User Guide, Remove an "
    "Amazon EKS add-on (2026-11-23)"
)


def judge_manifest(before: Any, after: Any) -> Ruling | None:
    """What goes with the objects that are only in the first of two manifests.

    Args:
        before: as the template has it: JSON as text, or a join of such.
        after: the same; missing where the whole resource goes.

    Returns:
        None where nothing that holds anything goes, or a manifest cannot be read.
    """
    whole = after is MISSING
    old, new = _objects(before), [] if whole else _objects(after)
    if old is None or new is None:
        return None
    gone = [one for one in old if one not in new]
    if spaces := _names(gone, "Namespace"):
        text = (
            f"the namespace {spaces} is deleted, and in it every job that runs, every secret and claim, and "
            "each EBS volume that was made for one of these claims"
        )
        return Ruling(Verdict.DATA_LOSS, text, _SOURCE, part=not whole)
    if _names(gone, "WorkspaceTemplate"):
        text = (
            "spaces lose their template: those that run stay, and none starts again; if the add-on of spaces "
            "goes, too, its definitions may go with it, and with them every space and its volume (EKS does "
            "not say: copy what is in them first)"
        )
        return Ruling(Verdict.AT_RISK, text, _SPACES)
    claims = _names(gone, "PersistentVolumeClaim", "PersistentVolume")
    if claims and not whole:
        text = f"{claims} goes: pods that run keep it until they end, and none that names it starts again"
        return Ruling(Verdict.AT_RISK, text, _SOURCE)
    return None


def _names(objects: list[tuple[str, str, str]], *kinds: str) -> str:
    return ", ".join(dict.fromkeys(name for kind, _, name in objects if kind in kinds))


def _objects(value: Any) -> list[tuple[str, str, str]] | None:
    """Kind, namespace and name of each; None where that cannot be told."""
    try:
        found = json_of(_text(value))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list):
        return None
    objects: list[tuple[str, str, str]] = []
    for one in map(as_mapping, cast("list[Any]", found)):
        metadata = as_mapping(one.get("metadata"))
        words = (one.get("kind"), metadata.get("namespace"), metadata.get("name"))
        objects.append(cast("tuple[str, str, str]", tuple(map(as_text, words))))
    return objects


def _text(value: Any) -> str:
    """Text of a template; what is known only after deployment is one word of it."""
    join: Any = as_mapping(value).get("Fn::Join")
    if isinstance(join, list) and len(cast("list[Any]", join)) == 2:
        glue, parts = cast("list[Any]", join)
        if isinstance(parts, list):
            return as_text(glue).join(_text(part) for part in cast("list[Any]", parts))
    return value if isinstance(value, str) else "later"


__all__ = ["MANIFEST", "judge_manifest"]
