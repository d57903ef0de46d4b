"""What is said about Slurm itself, by orchestrators that let us."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from ultracluster.config.base import Model

PartitionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$", max_length=63)]
_VALUE = r'^([!$-\[\]-~]+|"[ !$-\[\]-~]*")$'
"""What slurm.conf takes behind `=`: a word, or text in double quotes (SchedMD/slurm,
src/common/parse_config.c, `keyvalue_pattern`). Behind a space another parameter begins, behind a line break
another line; `#` begins a comment, and a backslash at the end joins the next line."""


def _value(value: str | int) -> str | int:
    if isinstance(value, str) and not re.fullmatch(_VALUE.strip("^$"), value):
        raise PydanticCustomError(
            "slurm_value",
            "Slurm reads a value as one word of ASCII characters without `#` and backslash, or as such text "
            "in double quotes; what stands behind a space or a line break is another parameter",
        )
    return value


SlurmValue = Annotated[str | int, AfterValidator(_value), Field(json_schema_extra={"pattern": _VALUE})]
SlurmSettings = dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")], SlurmValue]
"""Parameters of slurm.conf by their own names, e.g. `SlurmctldTimeout: 300`."""
PROLOG_FLAGS = "Alloc,NoHold"
"""Prologs run on all nodes of a job at its allocation, and a failed one does not hold it: for IMEX."""


class Partition(Model):
    """Settings of a Slurm partition; which groups are in it, the groups say."""

    exclusive: bool = True
    """A job gets whole nodes: training needs that, and UltraServers require it."""
    slurm_settings: SlurmSettings = {}
    """Further parameters of the partition, e.g. `MaxTime: 7-00:00:00`."""
