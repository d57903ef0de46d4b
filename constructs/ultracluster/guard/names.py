"""Physical names of constructs that are given none."""

from __future__ import annotations

from aws_cdk import Names
from constructs import IConstruct


def unique_name(scope: IConstruct, *, max_length: int = 63) -> str:
    """A name from the construct's path: lower-case letters, digits and dashes, unique in its app.

    Args:
        max_length: longer paths are cut, and end with digits that tell them apart.
    """
    name = Names.unique_resource_name(scope, max_length=max_length, separator="-").lower().strip("-")
    return name if name[0].isalpha() else f"c{name}"[:max_length]
