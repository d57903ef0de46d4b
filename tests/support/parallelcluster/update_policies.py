"""Prints what ParallelCluster's own package says of updates, as JSON; runs in its environment.

Without input: the update policy of every key of the configuration. With a list of changes on stdin, each
with `before`, `after`, `region` and what runs (`compute`; `login`: pools with nodes): whether the package
would let the update through, and by which keys it would not.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

os.environ["AWS_DEFAULT_REGION"] = "us-east-1"

from pcluster.config.config_patch import ConfigPatch
from pcluster.config.update_policy import EXTRA_CHEF_ATTRIBUTES_UPDATABLE_PATHS
from pcluster.schemas.cluster_schema import ClusterSchema
from pcluster.utils import get_installed_version


class Running:
    """As much of a cluster as the policies look at."""

    name = stack_name = "gpu"

    def __init__(self, compute: bool, login: list[str]) -> None:
        self.compute, self.login = compute, login

    def has_running_capacity(self, **_: Any) -> bool:
        return self.compute

    def has_running_login_nodes(self, pool_name: str | None = None) -> bool:
        return pool_name in self.login if pool_name else bool(self.login)


def main() -> None:
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the answer is all on stdout: what packages print goes to stderr
    given = sys.stdin.read()
    if given:
        said: Any = [checked(**change) for change in json.loads(given)]
    else:
        said = {
            "version": get_installed_version(),
            "updatable_chef_attributes": sorted(EXTRA_CHEF_ATTRIBUTES_UPDATABLE_PATHS),
            "keys": dict(policies(ClusterSchema("gpu"), "")),
        }
    json.dump(said, answer)
    answer.close()


def policies(schema: Any, above: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each key below a section: its policy, and by which key the elements of a list are known."""
    for field in schema.declared_fields.values():
        many = bool(getattr(field, "many", False))
        path = f"{above}{field.data_key}{'[]' if many else ''}"
        row: dict[str, Any] = {"policy": field.metadata["update_policy"].name}
        if many:
            row["by"] = field.metadata["update_key"]
        nested = hasattr(field, "nested")
        yield path, row | ({"section": True} if nested and not many else {})
        if nested:
            yield from policies(field.schema, f"{path}.")


def checked(before: Any, after: Any, compute: bool, login: list[str], region: str) -> dict[str, Any]:
    os.environ["AWS_DEFAULT_REGION"] = os.environ["AWS_REGION"] = region
    try:
        allowed, rows = ConfigPatch(Running(compute, login), before, after).check()
    except (AttributeError, TypeError) as error:  # the checker itself does not know the case
        return {"allowed": None, "refused": [str(error)]}
    head = {name: place for place, name in enumerate(rows[0])}
    refused = [row for row in rows[1:] if row[head["check"]] != "SUCCEEDED"]
    where = [".".join([*row[head["param_path"]], row[head["parameter"]]]) for row in refused]
    return {"allowed": allowed, "refused": sorted(where)}


if __name__ == "__main__":
    main()
