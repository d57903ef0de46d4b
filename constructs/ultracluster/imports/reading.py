"""A file of another tool as data, and whose it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ultracluster.config.file_text import text_of
from ultracluster.config.plain_text import one_line
from ultracluster.config.yaml_bounds import MOST_BYTES
from ultracluster.imports import base_config, cloudformation, console, eksctl, hyperpod, pcluster
from ultracluster.imports.folder import MOST_FILES, TooManyError, files_of
from ultracluster.imports.ledger import ImportRefusedError, Wrong
from ultracluster.imports.outcome import Drafted
from ultracluster.imports.parsing import PLACEHOLDER, json_of, refused, yaml_of
from ultracluster.imports.placing import region_of
from ultracluster.imports.surroundings import Asked
from ultracluster.imports.unrendered import unrendered

KNOWN = (
    "a configuration of AWS ParallelCluster 3, HyperPod's create-cluster JSON (with its "
    "provisioning_parameters.json, or the folder of its lifecycle scripts), parameters of the HyperPod "
    "console's stack, config.yaml of `hyp init`, a template with AWS::SageMaker::Cluster, or a ClusterConfig "
    "of eksctl"
)
_OLD = re.compile(r"^\[(cluster|global)\b", re.MULTILINE)


Kind = Literal[
    "cluster", "console", "prerequisites", "template", "stack", "network", "parameters", "settings", "people",
    "metrics", "",
]  # fmt: skip
"""Content of a file: a cluster; parameters of the console's template; those of what a cluster requires; a
template that makes a cluster; parameters of some stack; the network of a cluster; what HyperPod's groups are;
switches, people and metrics of lifecycle scripts. Empty: nothing that is known."""
_MOST_UNREAD = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A file that was read."""

    file: str
    data: dict[str, Any]
    kind: Kind = ""
    template: bool = False
    """Of parameters: these are a template's own defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """What a folder says."""

    given: tuple[Given, ...]
    scripts: tuple[str, ...]
    unread: tuple[tuple[str, str], ...]
    """Files that cannot be read, and why."""


def read(path: Path) -> Given:
    """Return what the file says, as YAML or JSON.

    Raises:
        ImportRefusedError: it cannot be read, with each reason that was found.
    """
    name = str(path)
    try:
        text = text_of(path, MOST_BYTES)
    except OSError as error:
        raise refused(
            name, f"cannot be read: {error.strerror or type(error).__name__}", "name a file"
        ) from None
    except UnicodeDecodeError as error:
        raise refused(name, f"byte {error.start + 1} is not UTF-8", "save it as UTF-8") from None
    if not text.strip():
        raise refused(name, "the file is empty", f"name {KNOWN}")
    if path.suffix in (".py", ".txt") and (found := _of_scripts(path, text)):
        return found
    is_json = text.lstrip().startswith(("{", "["))
    if _OLD.search(text):
        converter = "`pcluster3-config-converter` makes one of version 3 of it"
        raise refused(name, "is a configuration of ParallelCluster 2", converter)
    try:
        data: object = json_of(name, text) if is_json and path.suffix != ".yaml" else yaml_of(name, text)
        unparsed = not isinstance(data, dict | list | None)  # Terraform is one word to a YAML parser
    except ImportRefusedError as error:
        template = None if all(one.message == PLACEHOLDER for one in error.wrong) else unrendered(name, text)
        raise ImportRefusedError([template] if template else error.wrong) from None
    if unparsed and (template := unrendered(name, text)):
        raise ImportRefusedError([template])
    if data is None:
        raise refused(name, "the file is empty", f"name {KNOWN}")
    data = hyperpod.whole(data)
    if isinstance(data, dict) and console.is_hyp(cast("dict[str, Any]", data)):
        return Given(file=name, data=console.from_hyp(cast("dict[str, Any]", data)), kind="console")
    values, template = parameters_of(cast("object", data)), is_template(cast("object", data))
    if values is None and not isinstance(data, dict):
        raise refused(name, "must hold keys and values", f"name {KNOWN}")
    if values is not None and console.is_console(values):
        return Given(file=name, data=values, kind="console", template=template)
    if values is not None and console.is_prerequisites(values):
        return Given(file=name, data=values, kind="prerequisites", template=template)
    if values is not None and not template:
        return Given(file=name, data=values, kind="stack")
    mapping = cast("dict[str, Any]", data)
    if cloudformation.clusters(mapping):
        return Given(file=name, data=mapping, kind="template")
    return Given(file=name, data=mapping, kind=_kind(mapping))


def read_folder(path: Path) -> Folder:
    """Return what the files of a folder say that are known.

    Raises:
        ImportRefusedError: it cannot be read, or holds too much.
    """
    try:
        files, scripts = files_of(path)
    except OSError as error:
        raise refused(str(path), f"cannot be read: {error.strerror}", "name a file") from None
    except TooManyError:
        message = f"the directory holds more than {MOST_FILES} files"
        raise refused(str(path), message, "name the folder of one cluster, or its files") from None
    readings: list[Given] = []
    unread: list[tuple[str, str]] = []
    for file in files:
        try:
            one = read(file)
        except ImportRefusedError as error:
            unread.append((str(file.relative_to(path)), error.wrong[0].message))
            continue
        if one.kind:
            readings.append(one)
    if not readings:
        instead = f"name {KNOWN}"
        if unread:
            raise refused(str(path / unread[0][0]), unread[0][1], instead)
        raise refused(str(path), "the directory has no file of a tool that is known", instead)
    return Folder(given=tuple(readings), scripts=tuple(scripts), unread=tuple(unread[:_MOST_UNREAD]))


def everything(paths: list[Path], asked: Asked) -> Drafted:
    """Return what files and folders come to together.

    Raises:
        ImportRefusedError: one cannot be read, no tool takes them, or these together.
    """
    readings: list[Given] = []
    folders: list[Folder] = []
    for path in paths:
        if path.is_dir():
            folders.append(read_folder(path))
            readings += folders[-1].given
        else:
            readings.append(read(path))
    if folders and not asked.name:
        asked = replace(asked, name=paths[0].resolve().name)
    draft = drafted(readings, asked)
    for folder in folders:
        if folder.scripts:
            base_config.add_scripts(draft, folder.scripts)
        for name, why in folder.unread:
            draft.ledger.left(one_line(name), f"the file could not be read: {why}", "look whether it matters")
    return draft


def parameters_of(data: object) -> dict[str, Any] | None:
    """Parameters of a stack, by their names: as a list for `aws cloudformation`, in what it answers, or the
    defaults of a template. None of anything else."""
    if isinstance(data, list):
        rows = cast("list[object]", data)
        pairs = [cast("Mapping[str, Any]", row) for row in rows if isinstance(row, Mapping)]
        if not pairs or not all("ParameterKey" in pair for pair in pairs):
            return None
        return {str(pair["ParameterKey"]): pair.get("ParameterValue") for pair in pairs}
    if not isinstance(data, Mapping):
        return None
    mapping = cast("Mapping[str, Any]", data)
    stacks = mapping.get("Stacks")
    if isinstance(stacks, list) and len(cast("list[object]", stacks)) == 1:
        return parameters_of(cast("list[object]", stacks)[0])
    own = mapping.get("Parameters")
    if isinstance(own, list):
        return parameters_of(cast("list[object]", own))
    if isinstance(own, Mapping):
        declared = cast("Mapping[str, Any]", own).items()
        return {
            str(name): cast("Mapping[str, Any]", one).get("Default") if isinstance(one, Mapping) else one
            for name, one in declared
        }
    return None


def is_template(data: object) -> bool:
    """Return whether its parameters are defaults, which somebody may have overridden."""
    own: object = cast("Mapping[str, Any]", data).get("Parameters") if isinstance(data, Mapping) else None
    return isinstance(own, Mapping)


def configuration(name: str, text: str) -> dict[str, Any]:
    """Return what a text says that was not read from a file, as YAML or JSON.

    Args:
        name: where it comes from, for people.

    Raises:
        ImportRefusedError: it cannot be read, with each reason that was found.
    """
    if len(text.encode()) > MOST_BYTES:
        raise refused(name, "holds more than a configuration can mean", "import the file itself")
    data = yaml_of(name, text)
    if not isinstance(data, dict):
        raise refused(name, "must hold keys and values", f"name {KNOWN}")
    return cast("dict[str, Any]", data)


def drafted(given: list[Given], asked: Asked) -> Drafted:
    """Return what the files come to, by the tool that they are of.

    Raises:
        ImportRefusedError: no tool takes them, or these together.
    """
    if strange := [_strange(one) for one in given if not one.kind]:
        raise ImportRefusedError(strange)
    of = {kind: [one for one in given if one.kind == kind] for kind in get_args(Kind)}
    if of["template"]:
        return _of_template(given, of["template"], of["stack"], asked)
    if of["stack"]:
        raise refused(
            of["stack"][0].file, "holds parameters of a stack that is not known", "name its template, too"
        )
    clusters, parameters = of["cluster"], of["parameters"]
    console_own = [one for one in of["console"] if not one.template] or of["console"]
    defaults = [one for one in of["console"] if one.template] if console_own != of["console"] else []
    mains = [*clusters, *console_own]
    if not mains:
        beside = next(one for one in given)
        raise refused(one_line(beside.file), "is no cluster by itself", "name the create-cluster JSON, too")
    if len(mains) > 1 or len(parameters) > 1 or len(defaults) > 1:
        names = ", ".join(one_line(one.file) for one in (*mains, *(parameters if parameters[1:] else [])))
        raise refused(names, "each is a cluster of its own", "import one after the other")
    if of["prerequisites"]:
        asked = console.place_of(of["prerequisites"][0].data, asked)
    one = mains[0]
    name = plain_name(asked.name or Path(one.file).stem)
    scripted = [*of["parameters"], *of["prerequisites"], *of["settings"], *of["people"], *of["metrics"]]
    if one.kind == "console":
        data = {**(defaults[0].data if defaults else {}), **one.data}
        named = plain_name(asked.name or str(data.get("HyperPodClusterName") or one.file))
        draft = console.drafted(data, named, asked)
        if parameters:
            draft.ledger.left(
                one_line(parameters[0].file), "the stack says what groups are", "nothing to do"
            )  # fmt: skip
    elif hyperpod.is_request(one.data):
        request = {**(of["network"][0].data if of["network"] else {}), **one.data}
        draft = hyperpod.drafted(request, name, asked, parameters[0].data if parameters else None)
    elif scripted:
        raise refused(one_line(scripted[0].file), "belongs to a cluster of HyperPod", "leave it away")
    else:
        tool = eksctl if eksctl.is_configuration(one.data) else pcluster
        return tool.drafted(one.data, name, asked)
    for beside in of["prerequisites"][:1]:
        console.add_prerequisites(draft, beside.data)
    for beside in (*of["settings"], *of["people"], *of["metrics"]):
        base_config.add(draft, Path(beside.file).name, beside.data)
    return draft


def _of_template(given: list[Given], templates: list[Given], stacks: list[Given], asked: Asked) -> Drafted:
    """A template's cluster with the values of its parameters, and what else was given."""
    template = templates[0]
    names = cloudformation.clusters(template.data)
    if len(templates) > 1 or len(stacks) > 1 or len(names) > 1:
        several = (
            ", ".join(one_line(one.file) for one in (*templates, *stacks))
            if len(names) == 1
            else ", ".join(names)
        )
        raise refused(several, "each is a cluster of its own", "import one after the other")
    found = cloudformation.resolved(
        template.data, names[0], stacks[0].data if stacks else {}, asked.region or region_of(asked.zone_id)
    )
    if found.wrong:
        raise ImportRefusedError(found.wrong)
    cluster = Given(file=template.file, data=found.request, kind="cluster")
    draft = drafted([cluster, *(one for one in given if one not in (*templates, *stacks))], asked)
    for row in found.rows:
        place = row.where.partition(".Properties.")[2]
        why, todo = (draft.ledger.reason_of(place) if place else None) or (row.why, row.todo)
        if why:
            draft.ledger.left(place or row.where, why, todo)
    return draft


def plain_name(text: str) -> str:
    """A name as environments have it."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-0123456789")[:30].rstrip("-") or "imported"


def _kind(data: Mapping[str, Any]) -> Kind:
    """Return what a mapping says."""
    if _ours(data):
        return ""
    if any(
        known(data) for known in (pcluster.is_configuration, hyperpod.is_request, eksctl.is_configuration)
    ):
        return "cluster"
    if hyperpod.is_parameters(data):
        return "parameters"
    if hyperpod.is_network(data):
        return "network"
    if base_config.is_people(data):
        return "people"
    return "metrics" if base_config.is_observability(data) else ""


def _of_scripts(path: Path, text: str) -> Given | None:
    """A file of lifecycle scripts that is neither YAML nor JSON."""
    settings = base_config.settings(text) if path.suffix == ".py" else None
    if settings is not None:
        return Given(file=str(path), data=settings, kind="settings")
    people = base_config.people(text) if path.suffix == ".txt" else None
    return Given(file=str(path), data=people, kind="people") if people else None


def _ours(data: Mapping[str, Any]) -> bool:
    return "node_groups" in data or "extends" in data


def _strange(given: Given) -> Wrong:
    """Return why a file is of no tool that is known, and what to do with it."""
    data = given.data
    if _ours(data):
        return Wrong(where=given.file, message="is an environment already", instead="ultracluster validate")
    if "Resources" in data or "AWSTemplateFormatVersion" in data:
        return Wrong(
            where=given.file, message="is a template of CloudFormation without AWS::SageMaker::Cluster",
            instead="`ultracluster import --cluster NAME` reads a cluster that it made",
        )  # fmt: skip
    return Wrong(where=given.file, message="is of no tool that is known", instead=f"name {KNOWN}")
