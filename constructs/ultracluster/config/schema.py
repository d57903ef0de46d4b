"""The JSON Schema of an environment file, for editors and reviewers."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

from ultracluster.config.environment import Environment

PUBLISHED = Path(__file__).with_name("environment.schema.json")
"""The committed schema; `make generate` renews it."""


def environment_schema() -> dict[str, Any]:
    """The schema of one file.

    A file that `extends:` another may leave out what its base says, so nothing is required at the top; the
    loader checks the merged whole.
    """
    schema = deepcopy(Environment.model_json_schema())
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Ultracluster environment"
    schema["properties"]["extends"] = {
        "type": "string",
        "description": "Another environment file, relative to this one, whose values this one changes.",
    }
    schema["patternProperties"] = {r"^\.": {"description": "A place for YAML anchors; ignored."}}
    schema["required"] = []
    return schema
