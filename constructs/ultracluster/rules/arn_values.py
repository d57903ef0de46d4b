"""ARNs in an environment, wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from ultracluster.config import Environment
from ultracluster.config.findings import YamlPath

_ARN = re.compile(r"arn:[a-z-]+:[a-z0-9-]+:[a-z0-9-]*:([0-9]{12}|aws)?:\S+$")


def arns(environment: Environment) -> Iterator[tuple[YamlPath, str]]:
    """Each ARN of the environment with its path."""
    yield from _arns(environment.model_dump(), ())


def _arns(value: Any, path: YamlPath) -> Iterator[tuple[YamlPath, str]]:
    if isinstance(value, dict):
        for key, part in cast("dict[str, Any]", value).items():
            yield from _arns(part, (*path, key))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(cast("tuple[Any, ...]", value)):
            yield from _arns(part, (*path, index))
    elif isinstance(value, str) and _ARN.match(value):
        yield path, value
