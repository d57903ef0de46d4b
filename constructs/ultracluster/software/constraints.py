"""The rows of `catalog/software_constraints.json`: what ties versions together, and who says so."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

import ultracluster.catalog
from ultracluster.config.base import Many, Model

Operator = Literal[">=", ">", "<=", "<", "==", "within", "in", "lacks", "covers", "present", "absent"]
FILE = Path(ultracluster.catalog.__file__).with_name("software_constraints.json")


class Condition(Model):
    """One comparison of a fact of a release with a value, or with another fact (`@...`).

    Facts are written `nccl` (its version), `efa-installer:libfabric` (what it provides) and
    `aws-ofi-nccl@install_path` (a field; `@os` is the set of its operating systems).
    """

    fact: Annotated[str, Field(pattern=r"^[a-z0-9-]+([:@][A-Za-z0-9._-]+)?$")]
    op: Operator
    value: str | Many[str] = ""


class Case(Model):
    """What must hold (`require`, all of it) where `when` holds (all of it)."""

    when: Many[Condition] = ()
    require: Annotated[Many[Condition], Field(min_length=1)]


class Constraint(Model):
    """One sourced constraint between components."""

    id: Annotated[str, Field(pattern=r"^SWC[0-9]{3}$")]
    title: Annotated[str, Field(min_length=10)]
    """What must hold, as a statement."""
    components: Annotated[Many[str], Field(min_length=1)]
    severity: Literal["error", "warning"]
    """A warning where the source is not AWS's or the maker's own, or the harm is a lost feature."""
    why: Annotated[str, Field(min_length=10)]
    """What happens otherwise."""
    source: Annotated[str, Field(min_length=10)]
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    cases: Annotated[Many[Case], Field(min_length=1)]


class InstanceConstraint(Model):
    """What instance types with certain accelerators require of a release."""

    id: Annotated[str, Field(pattern=r"^SWI[0-9]{3}$")]
    title: Annotated[str, Field(min_length=10)]
    accelerators: Annotated[Many[str], Field(min_length=1)]
    """Names as the EC2 API has them: `B200`."""
    families: Many[str] = ()
    """Only these families of instance types (`p5en`); none named is every one with the accelerator."""
    types: Many[str] = ()
    """Only these instance types; none named is every one of the families."""
    severity: Literal["error", "warning"]
    recommended: bool = False
    """AWS recommends the minimum: `software show --check` refuses less, `validate` warns, a node joins."""
    why: Annotated[str, Field(min_length=10)]
    source: Annotated[str, Field(min_length=10)]
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    require: Annotated[Many[Condition], Field(min_length=1)]


class Constraints(Model):
    """The whole file."""

    about: dict[str, str]
    constraints: Many[Constraint]
    instances: Many[InstanceConstraint]


@cache
def constraints() -> Constraints:
    """Every constraint, in the order of the file."""
    return Constraints.model_validate(json.loads(FILE.read_text(encoding="utf-8")))
