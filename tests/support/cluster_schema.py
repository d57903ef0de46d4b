"""`lifecycle_scripts/cluster.schema.json`, and a `cluster.json` of any instance type for tests."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from project import ROOT
from rules_support import changed, environment_data, loaded

from ultracluster.catalog import instance_type
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configuration

SCHEMA = ROOT / "lifecycle_scripts" / "cluster.schema.json"


@cache
def validator() -> Draft202012Validator:
    schema = json.loads(SCHEMA.read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def faults(cluster: Any) -> list[str]:
    """What the schema finds in it, one line each."""
    return [f"{one.json_path}: {one.message}" for one in validator().iter_errors(cluster)]


def cluster_of(instance_type: str) -> dict[str, Any]:
    """What nodes of a group `gpu` of this type are told; nothing of the type where it is not known."""
    changes = {"node_groups.gpu.instance_type": instance_type}
    return script_configuration(resolve(loaded(changed(environment_data("dev"), changes)).environment), "gpu")


def node_scripts(folder: Path, *types: str) -> Path:
    """The lifecycle scripts in a folder of their own, with a `cluster.json` of a group per type.

    A type that the catalogue lacks is in no group.
    """
    home = folder / "scripts"
    for part in ("acceptance", "lib", "verify"):
        shutil.copytree(ROOT / "lifecycle_scripts" / part, home / part)
    known = [kind for kind in types if instance_type(kind)]
    cluster = cluster_of(known[0] if known else "m5.large")
    cluster["node_groups"] = {f"group-{kind}": cluster_of(kind)["node_groups"]["gpu"] for kind in known}
    (home / "cluster.json").write_text(json.dumps(cluster))
    return home
