"""Names and types of the keys of ParallelCluster's configuration, from its own schema, as JSON on standard
output. Runs in the environment that has ParallelCluster."""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
import sys
from typing import Any

from marshmallow import fields
from pcluster.schemas.cluster_schema import ClusterSchema

_TYPES = ((fields.Boolean, "boolean"), (fields.Integer, "integer"), (fields.Float, "integer"))


def shape(schema: Any) -> dict[str, Any]:
    """Keys of a schema, with those below."""
    return {field.data_key or name: _of(field) for name, field in sorted(schema.fields.items())}


def _of(field: Any) -> Any:
    if isinstance(field, fields.Nested):
        below = shape(field.schema)
        return [below] if field.many else below
    if isinstance(field, fields.List):
        return [_of(field.inner)]
    if isinstance(field, fields.Dict):
        return "object"
    return next((name for kind, name in _TYPES if isinstance(field, kind)), "string")


json.dump(shape(ClusterSchema(cluster_name="x")), sys.stdout)
