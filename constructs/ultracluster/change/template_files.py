"""CloudFormation templates as they lie in files: JSON as the CDK writes it, or YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode

from ultracluster.change.changes import ChangeError
from ultracluster.change.template import PROTECTED, Template, as_mapping
from ultracluster.config.file_text import json_of, text_of

_MOST_BYTES = 32 << 20
"""CloudFormation takes 1 MB of a template; a manifest of an assembly is of the same order."""


def read_templates(place: Path) -> dict[str, Template]:
    """Templates by stack name, of a folder as the CDK writes it or of one file.

    Raises:
        ChangeError: there is none, or one cannot be read.
    """
    if place.is_dir():
        files = sorted(place.glob("*.template.json"))
        if not files:
            raise ChangeError(f"{place} holds no *.template.json; name a cdk.out folder or a template")
    else:
        files = [place]
    found: dict[str, Template] = {}
    protected = _protected(place / "manifest.json") if place.is_dir() else {}
    for file in files:
        stack = file.name.partition(".")[0]
        more = {PROTECTED: protected[stack]} if stack in protected else {}
        try:
            found[stack] = {**parse_template(text_of(file, _MOST_BYTES)), **more}
        except OSError as error:
            raise ChangeError(f"{file}: {error.strerror}") from None
        except ValueError as error:
            raise ChangeError(f"{file} is not a template: {error}") from None
    return found


def _protected(manifest: Path) -> dict[str, bool]:
    """By stack: whether the CDK protects it from deletion, as the manifest of a cloud assembly says."""
    try:
        artifacts = as_mapping(as_mapping(json_of(text_of(manifest, _MOST_BYTES))).get("artifacts"))
    except (OSError, ValueError):
        return {}
    stacks = {
        name: as_mapping(as_mapping(artifact).get("properties"))
        for name, artifact in artifacts.items()
        if as_mapping(artifact).get("type") == "aws:cloudformation:stack"
    }
    return {name: properties.get("terminationProtection") is True for name, properties in stacks.items()}


def parse_template(text: str) -> Template:
    """A template, JSON or YAML with the short forms of intrinsic functions.

    Raises:
        ValueError: it is neither.
    """
    try:
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = _yaml(text)
    except RecursionError:
        raise ValueError("its values lie in one another too deep") from None
    if not isinstance(value, dict) or not isinstance(cast("dict[str, Any]", value).get("Resources"), dict):
        raise ValueError("it has no Resources")
    return cast("Template", value)


def _yaml(text: str) -> Any:
    class Constructor(SafeConstructor):
        """Its own class: constructors are registered on the class."""

    def intrinsic(constructor: Any, tag: str, node: Any) -> Any:
        if isinstance(node, ScalarNode):
            value = constructor.construct_scalar(node)
            if tag == "GetAtt":
                value = str(value).split(".", 1)
        elif isinstance(node, MappingNode):
            value = constructor.construct_mapping(node, deep=True)
        else:
            value = constructor.construct_sequence(node, deep=True)
        return {tag if tag in ("Ref", "Condition") else f"Fn::{tag}": value}

    cast("Any", Constructor).add_multi_constructor("!", intrinsic)
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.Constructor = Constructor
    try:
        return yaml.load(text)
    except YAMLError as error:
        raise ValueError(" ".join(str(error).split())[:200]) from None
