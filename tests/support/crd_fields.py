"""Custom objects against the table of their fields (fields.json), strictly: what is not in it fails."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
from kubernetes_validate import utils as schemas

TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("fields.json").read_text(encoding="utf-8"))[
    "kinds"
]
QUANTITY = re.compile(r"\d+(\.\d+)?([KMGTPE]i?|[mk])?")
DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
LABEL_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
DURATION = re.compile(r"\d+[hms]")
schemas.schema_contents = cache(schemas.schema_contents)  # else a megabyte is read again for each object
METADATA = {"name", "namespace", "labels", "annotations"}


def problems(manifest: dict[str, Any], *, kubernetes: str = "1.34") -> list[str]:
    """What is wrong with an object of Kubernetes' own, or of a kind in the table; empty if nothing is.

    Objects of Kubernetes' own are given to Kubernetes' published schemas.
    """
    key = f"{manifest['apiVersion']} {manifest['kind']}"
    if key not in TABLE:
        return _of_core(manifest, kubernetes)
    row = TABLE[key]
    rest = {name: value for name, value in manifest.items() if name not in ("apiVersion", "kind", "metadata")}
    metadata = manifest["metadata"]
    found = [f"metadata.{name}" for name in metadata if name not in METADATA]
    if ("namespace" in metadata) != row["namespaced"]:
        found.append(f"{key} has {'a' if row['namespaced'] else 'no'} namespace")
    if not DNS_NAME.fullmatch(metadata["name"]):
        found.append(f"metadata.name {metadata['name']}")
    return [*found, *_compare(rest, row["fields"], key, kubernetes)]


def configuration_problems(data: dict[str, Any], key: str) -> list[str]:
    """The same for a configuration, which is no object."""
    return list(_compare(data, TABLE[key]["fields"], key, "1.34"))


def _compare(value: Any, form: Any, path: str, kubernetes: str) -> Iterator[str]:
    if isinstance(form, list):
        if not isinstance(value, list):
            yield f"{path}: not a list"
            return
        for index, one in enumerate(value):
            yield from _compare(one, form[0], f"{path}[{index}]", kubernetes)
    elif isinstance(form, dict):
        if not isinstance(value, dict):
            yield f"{path}: not a mapping"
            return
        forms = {name.rstrip("*"): of for name, of in form.items()}
        yield from (
            f"{path}: {name[:-1]} is missing"
            for name in form
            if name.endswith("*") and name[:-1] not in value
        )
        for name, one in value.items():
            if name not in forms and "<key>" not in forms:
                yield f"{path}: {name} is no field"
            else:
                yield from _compare(one, forms.get(name, forms.get("<key>")), f"{path}.{name}", kubernetes)
    elif not _fits(value, form, kubernetes):
        yield f"{path}: {value!r} is no {form}"


def _fits(value: Any, form: str, kubernetes: str) -> bool:
    if form == "any":
        return True
    if form == "pod-template":
        pod = {"metadata": {"name": "a", **value.get("metadata", {})}, "spec": value["spec"]}
        return value.keys() <= {"metadata", "spec"} and not _of_core(
            {"apiVersion": "v1", "kind": "Pod", **pod}, kubernetes
        )
    if form == "job-template":
        metadata = {"name": "a", **value.get("metadata", {})}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": value["spec"]}
        return value.keys() <= {"metadata", "spec"} and not _of_core(job, kubernetes)
    if form == "boolean":
        return isinstance(value, bool)
    if form == "quantity":
        return not isinstance(value, bool) and bool(QUANTITY.fullmatch(str(value)))
    if form == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if form.startswith("integer"):
        least = int(form.partition(">=")[2] or -(2**31))
        return isinstance(value, int) and not isinstance(value, bool) and value >= least
    if not isinstance(value, str):
        return False
    patterns = {"dns-name": DNS_NAME, "label-key": LABEL_KEY, "duration": DURATION}
    if form in patterns:
        return bool(patterns[form].fullmatch(value))
    return form == "string" or value in form.split("|")


def _of_core(manifest: dict[str, Any], kubernetes: str) -> list[str]:
    try:
        kubernetes_validate.validate(manifest, kubernetes, strict=True)
    except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
        return [str(error)]
    return []
