"""What is said about Slurm itself, by orchestrators that let us."""

from __future__ import annotations

import re
from typing import Annotated, Literal

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


def named(settings: SlurmSettings, name: str) -> tuple[str, str]:
    """Name and value of a parameter as written, in any letter case; an empty value where it is missing."""
    return next(
        ((key, str(value)) for key, value in settings.items() if key.lower() == name.lower()), (name, "")
    )


PROLOG_FLAGS = "Alloc,NoHold"
"""Prologs run on all nodes of a job at its allocation, and a failed one does not hold it: for IMEX."""


_DEVICES = r"^/[A-Za-z0-9_./,\[\]-]*[A-Za-z0-9_\]]$"
_TYPE = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
_FLAGS = r"^[A-Za-z0-9_]+(,[A-Za-z0-9_]+)*$"


class GresRecord(Model):
    """A line of gres.conf: devices that nodes have. Jobs may ask for what `Gres` in slurm_settings counts."""

    auto_detect: Literal["nvml", "nvidia", "full", "nrt", "off"] | None = None
    """slurmd finds the GPUs itself, with their place among the cores; from Slurm 25.11 on."""
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64, examples=["gpu"])] | None = None
    """`gpu`, `mps`, `shard` or a name of your own; none where `auto_detect` finds the devices."""
    type: Annotated[str, Field(pattern=_TYPE, max_length=64, examples=["b200"])] | None = None
    """Type by which jobs may ask for it, as in `--gres=gpu:b200:8`."""
    count: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """How many there are; by default one for each file, or one."""
    cores: Annotated[str, Field(pattern=r"^[0-9]+([,-][0-9]+)*$", examples=["0-47"])] | None = None
    """Cores near the devices, by Slurm's own numbers."""
    links: Annotated[str, Field(pattern=r"^-?[0-9]+(,-?[0-9]+)*$", examples=["-1,18,18,18"])] | None = None
    """Links to each device of the node, -1 for the device itself."""
    flags: Annotated[str, Field(pattern=_FLAGS, examples=["CountOnly"])] | None = None
    """Flags of gres.conf."""
    file: Annotated[str, Field(pattern=_DEVICES, max_length=1024, examples=["/dev/sg0"])] | None = None
    """Device files."""
    multiple_files: Annotated[str, Field(pattern=_DEVICES, max_length=1024)] | None = None
    """Device files that belong to one device together."""

    @property
    def detects(self) -> bool:
        """Whether slurmd looks for the devices itself; `off` does not."""
        return self.auto_detect not in (None, "off")

    @property
    def is_gpu(self) -> bool:
        """As PCS counts GPU records: one that is named so, or that detects."""
        return self.name == "gpu" or self.auto_detect is not None

    @property
    def files(self) -> str | None:
        """Whichever field names device files."""
        return self.file or self.multiple_files

    @property
    def line(self) -> dict[str, str]:
        """Attributes of gres.conf by their own names."""
        values = self.model_dump(exclude_none=True)
        return {name: str(values[key]) for key, name in _ATTRIBUTES.items() if key in values}


_ATTRIBUTES = {
    "auto_detect": "AutoDetect", "name": "Name", "type": "Type", "count": "Count", "cores": "Cores",
    "links": "Links", "flags": "Flags", "file": "File", "multiple_files": "MultipleFiles",
}  # fmt: skip


class Partition(Model):
    """Settings of a Slurm partition; which groups are in it, the groups say."""

    exclusive: bool = True
    """A job gets whole nodes: training needs that, and UltraServers require it."""
    slurm_settings: SlurmSettings = {}
    """Further parameters of the partition, e.g. `MaxTime: 7-00:00:00`."""
