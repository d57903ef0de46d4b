"""Values that editors offer for fields that take any text: types, Regions, zones, releases.

A list completes and never refuses: what AWS has announced since is right, too, and unknown is not no.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from ultracluster.catalog import instance_types, offered_zone_ids, regions
from ultracluster.catalog.eks_calendar import kubernetes_releases

_FIELDS: Mapping[str, str] = {
    "instance_type": "KnownInstanceType",
    "instance_types": "KnownInstanceType",
    "region": "KnownRegion",
    "zone_id": "KnownZone",
    "second_zone_id": "KnownZone",
    "kubernetes_version": "KnownKubernetesVersion",
}
"""Names of fields, wherever they stand, and the list for each."""


def offer_values(schema: dict[str, Any], releases: Iterable[str]) -> None:
    """Add the lists to a schema and name them at the fields; `releases`: the software releases."""
    definitions = cast("dict[str, dict[str, Any]]", schema["$defs"])
    for model in [schema, *definitions.values()]:
        fields = cast("dict[str, dict[str, Any]]", model.get("properties", {}))
        for name, field in fields.items():
            if name in _FIELDS:
                _offer(field, _FIELDS[name])
    _offer(definitions["Software"]["properties"]["release"], "KnownRelease")
    for name, values in _lists(releases).items():
        definitions[name] = {"enum": values}


def _lists(releases: Iterable[str]) -> dict[str, list[str]]:
    return {
        "KnownInstanceType": sorted(instance_types()),
        "KnownRegion": sorted(regions()),
        "KnownZone": sorted(_zones()),
        "KnownKubernetesVersion": sorted(kubernetes_releases()),
        "KnownRelease": sorted(releases),
    }


def _zones() -> set[str]:
    accelerated = [name for name, known in instance_types().items() if known.accelerator]
    found = {zone for known in regions().values() for zone in known.zone_ids}
    return found.union(*(offered_zone_ids(name, region) for name in accelerated for region in regions()))


def _offer(field: dict[str, Any], definition: str) -> None:
    """Let a field of text, a list of texts, or either with null, also name the list of what is known."""
    if field.get("type") == "array":
        _offer(field["items"], definition)
    elif "anyOf" in field:
        field["anyOf"].insert(0, {"$ref": f"#/$defs/{definition}"})
    elif field.get("type") == "string":
        text = {key: field.pop(key) for key in ("type", "pattern", "minLength", "maxLength") if key in field}
        field["anyOf"] = [{"$ref": f"#/$defs/{definition}"}, text]


__all__ = ["offer_values"]
