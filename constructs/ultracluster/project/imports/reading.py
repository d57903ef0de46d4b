# pyright: basic
# ruamel.yaml gives its nodes and marks no types.
"""A file of another tool as data, and whose it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ruamel.yaml.error import MarkedYAMLError, YAMLError

from ultracluster.config.file_text import text_of
from ultracluster.config.findings import Location, YamlPath
from ultracluster.config.plain_text import clipped, one_line
from ultracluster.config.source import reason
from ultracluster.config.yaml_bounds import MOST_BYTES, MOST_LEVELS, TooDeepError, TooMuchError, compose
from ultracluster.config.yaml_tree import NodeWalk, Tree
from ultracluster.project.imports import eksctl, hyperpod, pcluster
from ultracluster.project.imports.ledger import ImportRefusedError, Wrong
from ultracluster.project.imports.outcome import Asked, Drafted

KNOWN = (
    "a configuration of AWS ParallelCluster 3, HyperPod's create-cluster JSON (with its "
    "provisioning_parameters.json), or a ClusterConfig of eksctl"
)
_OLD = re.compile(r"^\[(cluster|global)\b", re.MULTILINE)
_MOST_WRONG = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A file that was read."""

    file: str
    data: dict[str, Any]


def read(path: Path) -> Given:
    """What the file says, as YAML or JSON.

    Raises:
        ImportRefusedError: it cannot be read, with each reason that was found.
    """
    name = str(path)
    try:
        text = text_of(path, MOST_BYTES)
    except OSError as error:
        raise _refused(
            name, f"cannot be read: {error.strerror or type(error).__name__}", "name a file"
        ) from None
    except UnicodeDecodeError as error:
        raise _refused(name, f"byte {error.start + 1} is not UTF-8", "save it as UTF-8") from None
    if not text.strip():
        raise _refused(name, "the file is empty", f"name {KNOWN}")
    is_json = text.lstrip().startswith(("{", "["))
    if _OLD.search(text):
        converter = "`pcluster3-config-converter` makes one of version 3 of it"
        raise _refused(name, "is a configuration of ParallelCluster 2", converter)
    data = _json(name, text) if is_json and path.suffix != ".yaml" else _yaml(name, text)
    if not isinstance(data, dict):
        raise _refused(name, "must hold keys and values", f"name {KNOWN}")
    return Given(file=name, data=cast("dict[str, Any]", data))


def drafted(given: list[Given], asked: Asked) -> Drafted:
    """What the files come to, by the tool that they are of.

    Raises:
        ImportRefusedError: no tool takes them, or these together.
    """
    if strange := [_strange(one) for one in given if not _is_cluster(one) and not _is_beside(one)]:
        raise ImportRefusedError(strange)
    clusters = [one for one in given if _is_cluster(one)]
    beside = [one for one in given if not _is_cluster(one)]
    if not clusters:
        raise _refused(beside[0].file, "says only what groups are", "name the create-cluster JSON, too")
    if len(clusters) > 1 or len(beside) > 1:
        names = ", ".join(one_line(one.file) for one in given)
        raise _refused(names, "each is a cluster of its own", "import one after the other")
    one = clusters[0]
    name = plain_name(asked.name or Path(one.file).stem)
    if hyperpod.is_request(one.data):
        return hyperpod.drafted(one.data, name, asked, beside[0].data if beside else None)
    if beside:
        raise _refused(beside[0].file, "belongs to a cluster of HyperPod", "leave it away")
    tool = eksctl if eksctl.is_configuration(one.data) else pcluster
    return tool.drafted(one.data, name, asked)


def plain_name(text: str) -> str:
    """A name as environments have it."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-0123456789")[:30].rstrip("-") or "imported"


def _is_cluster(given: Given) -> bool:
    """Whether it is the file of a tool that is known."""
    data = given.data
    return not _ours(data) and any(
        known(data) for known in (pcluster.is_configuration, hyperpod.is_request, eksctl.is_configuration)
    )


def _is_beside(given: Given) -> bool:
    return not _ours(given.data) and hyperpod.is_parameters(given.data)


def _ours(data: Mapping[str, Any]) -> bool:
    return "node_groups" in data or "extends" in data


def _strange(given: Given) -> Wrong:
    """Why a file is of no tool that is known, and what to do with it."""
    data = given.data
    if _ours(data):
        return Wrong(where=given.file, message="is an environment already", instead="ultracluster validate")
    if "Resources" in data or "AWSTemplateFormatVersion" in data:
        return Wrong(
            where=given.file, message="is a template of CloudFormation",
            instead="write what its cluster has into an environment: `ultracluster init` begins one",
        )  # fmt: skip
    return Wrong(where=given.file, message="is of no tool that is known", instead=f"name {KNOWN}")


def _refused(where: str, message: str, instead: str) -> ImportRefusedError:
    return ImportRefusedError([Wrong(where=where, message=message, instead=instead)])


def _json(name: str, text: str) -> Any:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{name}:{error.lineno}:{error.colno}"
        raise _refused(
            where, f"not JSON: {error.msg.lower()}", "correct it there; comments are no JSON"
        ) from None
    except RecursionError:
        raise _refused(name, "values lie in one another too deep", "name another file") from None
    if _levels(data) > MOST_LEVELS:
        raise _refused(name, "values lie in one another too deep", "name another file")
    return data


def _levels(data: Any, level: int = 0) -> int:
    if level > MOST_LEVELS or not isinstance(data, dict | list):
        return level
    below = cast("dict[str, Any]", data).values() if isinstance(data, dict) else cast("list[Any]", data)
    return max((_levels(one, level + 1) for one in below), default=level)


def _yaml(name: str, text: str) -> Any:
    try:
        node = compose(text)
    except (TooDeepError, TooMuchError):
        raise _refused(name, "holds more than a configuration can mean", "name another file") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        problem = clipped(one_line(str(error.problem or error)))
        if error.problem == "but found another document":
            raise _refused(where, "a second YAML document begins here", "one file for each cluster") from None
        raise _refused(where, f"not YAML: {problem}", "correct it there") from None
    except YAMLError as error:
        words, line = reason(text, error)
        raise _refused(f"{name}:{line}", words, "save it as plain text in UTF-8") from None
    if node is None:
        raise _refused(name, "the file is empty", f"name {KNOWN}")
    wrong: list[Wrong] = []

    def note(code: str, message: str, location: Location, instead: str = "", path: YamlPath = ()) -> None:
        del code, path
        wrong.append(Wrong(where=str(location), message=one_line(message).rstrip("."), instead=instead))

    try:
        tree = NodeWalk(note, name, text.splitlines()).tree(node, (), None)
    except TooMuchError:
        raise _refused(name, "holds more than a configuration can mean", "name another file") from None
    if wrong:
        raise ImportRefusedError(wrong[:_MOST_WRONG])
    return _values(tree)


def _values(tree: Tree) -> Any:
    """The data alone, without its places."""
    if isinstance(tree.value, dict):
        return {key: _values(one) for key, one in tree.value.items()}
    if isinstance(tree.value, list):
        return [_values(one) for one in tree.value]
    return tree.value
