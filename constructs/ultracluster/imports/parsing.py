# pyright: basic
# ruamel.yaml gives its nodes and marks no types.
"""Text of another tool's file as data; of a template of CloudFormation what a cluster in it is made of."""

from __future__ import annotations

import json
from typing import Any, cast

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.tag import Tag

from ultracluster.config.findings import Location, YamlPath
from ultracluster.config.plain_text import clipped, one_line
from ultracluster.config.source import reason
from ultracluster.config.yaml_bounds import MOST_LEVELS, TooDeepError, TooMuchError, compose
from ultracluster.config.yaml_tree import NodeWalk, Tree
from ultracluster.imports.cloudformation import CLUSTER
from ultracluster.imports.ledger import ImportRefusedError, Wrong

PLACEHOLDER = "is a placeholder"
_MOST_WRONG = 20
_SECTIONS = ("AWSTemplateFormatVersion", "Resources")
_READ = ("Parameters", "Mappings", "Conditions")


def refused(where: str, message: str, instead: str) -> ImportRefusedError:
    """One reason."""
    return ImportRefusedError([Wrong(where=where, message=message, instead=instead)])


def json_of(name: str, text: str) -> Any:
    """JSON as data."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{name}:{error.lineno}:{error.colno}"
        raise refused(
            where, f"not JSON: {error.msg.lower()}", "correct it there; comments are no JSON"
        ) from None
    except ValueError:
        raise refused(name, "a number has too many digits", "correct it there") from None
    except RecursionError:
        raise refused(name, "values lie in one another too deep", "name another file") from None
    if _levels(data) > MOST_LEVELS:
        raise refused(name, "values lie in one another too deep", "name another file")
    return data


def _levels(data: Any, level: int = 0) -> int:
    if level > MOST_LEVELS or not isinstance(data, dict | list):
        return level
    below = cast("dict[str, Any]", data).values() if isinstance(data, dict) else cast("list[Any]", data)
    return max((_levels(one, level + 1) for one in below), default=level)


def yaml_of(name: str, text: str) -> Any:
    """YAML as data; None where it says nothing."""
    try:
        node = compose(text)
    except (TooDeepError, TooMuchError):
        raise refused(name, "holds more than a configuration can mean", "name another file") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        problem = clipped(one_line(str(error.problem or error)))
        if error.problem == "but found another document":
            raise refused(where, "a second YAML document begins here", "one file for each cluster") from None
        raise refused(where, f"not YAML: {problem}", "correct it there") from None
    except YAMLError as error:
        words, line = reason(text, error)
        raise refused(f"{name}:{line}", words, "save it as plain text in UTF-8") from None
    if node is None:
        return None
    wrong: list[Wrong] = []

    def note(code: str, message: str, location: Location, instead: str = "", path: YamlPath = ()) -> None:
        del code, path
        words = one_line(message).rstrip(".")
        if "not expanded" in words:  # of environments; here somebody has a template in hand
            words, instead = PLACEHOLDER, "fill it in first, e.g. `envsubst < FILE > filled.yaml`"
        wrong.append(Wrong(where=str(location), message=words, instead=instead))

    try:
        walk = NodeWalk(note, name, text.splitlines())
        if (template := _sections(node)) is not None:
            wrong.clear()
            return _template(template, walk)
        tree = walk.tree(node, (), None)
    except TooMuchError:
        raise refused(name, "holds more than a configuration can mean", "name another file") from None
    if wrong:
        raise ImportRefusedError(wrong[:_MOST_WRONG])
    return _values(tree)


def _sections(node: Any) -> dict[str, Any] | None:
    """Sections of a template of CloudFormation, whose tags (`!Ref`) only it can read; None of other files."""
    if not isinstance(node, MappingNode):
        return None
    found = {str(key.value): value for key, value in node.value if isinstance(key.value, str)}
    return found if any(name in found for name in _SECTIONS) else None


def _template(sections: dict[str, Any], walk: NodeWalk) -> dict[str, Any]:
    """Return what its clusters are made of, and the names of other resources. Tags (`!Ref`) are functions."""
    data: dict[str, Any] = dict.fromkeys(sections, "")
    for name in _READ:
        if name in sections:
            data[name] = _values(walk.tree(_untagged(sections[name]), (), None))
    resources = sections.get("Resources")
    if isinstance(resources, MappingNode):
        data["Resources"] = {
            str(key.value): _values(walk.tree(_untagged(one), (), None)) if CLUSTER in _types(one) else ""
            for key, one in resources.value
        }
    return data


def _types(resource: Any) -> list[str]:
    """The type of a resource, where it says one."""
    pairs = resource.value if isinstance(resource, MappingNode) else []
    return [str(value.value) for key, value in pairs if key.value == "Type"]


def _untagged(node: Node, made: dict[int, Node] | None = None) -> Node:
    """A copy with each tag as the function that it is short for; aliases stay one node."""
    made = {} if made is None else made
    if id(node) in made:
        return made[id(node)]
    value, kind = node.value, "str"
    if isinstance(node, MappingNode):
        value, kind = [(key, _untagged(one, made)) for key, one in value], "map"
    elif isinstance(node, SequenceNode):
        value, kind = [_untagged(one, made) for one in value], "seq"
    tag = str(node.tag or "")
    own = tag.startswith("!")
    copy = type(node)(_tag(kind) if own else node.ctag, value, node.start_mark, node.end_mark)
    if own:
        name = tag[1:] if tag in ("!Ref", "!Condition") else f"Fn::{tag[1:]}"
        key = ScalarNode(_tag("str"), name, node.start_mark, node.end_mark)
        copy = MappingNode(_tag("map"), [(key, copy)], node.start_mark, node.end_mark)
    made[id(node)] = copy
    return copy


def _tag(kind: str) -> Tag:
    return Tag(suffix=f"tag:yaml.org,2002:{kind}")


def _values(tree: Tree) -> Any:
    """The data alone, without its places."""
    if isinstance(tree.value, dict):
        return {key: _values(one) for key, one in tree.value.items()}
    if isinstance(tree.value, list):
        return [_values(one) for one in tree.value]
    return tree.value
