"""What to write in the place of a value of the wrong type, form or range."""

from __future__ import annotations

import difflib
import re
from ipaddress import IPv4Network
from typing import Any, cast

from pydantic_core import ErrorDetails

from ultracluster.catalog.fsx import lustre, lustre_deployments
from ultracluster.catalog.gpu_names import types_of_gpu_name
from ultracluster.catalog.instances import example_type
from ultracluster.config.findings import YamlPath
from ultracluster.config.hints import in_unit_of
from ultracluster.config.plain_text import clipped, foreign_in, named, unseen_in
from ultracluster.config.remedy import Remedy, ask, beside, rename, write
from ultracluster.config.source import Source

_MEANT = {
    "role": {
        "worker": "compute", "workers": "compute", "gpu": "compute", "train": "compute", "node": "compute",
        "head": "controller", "headnode": "controller", "head-node": "controller", "master": "controller",
        "submit": "login", "bastion": "login", "jump": "login",
        "infra": "system", "addons": "system", "default": "system",
    },
    "kind": {
        "ondemand": "on-demand", "odcr": "reservation", "block": "capacity-block", "cbml": "capacity-block",
        "plan": "training-plan", "hyperpod": "hyperpod-slurm", "slurm": "hyperpod-slurm", "k8s": "eks",
        "kubernetes": "eks", "pcluster": "parallelcluster",
    },
    "egress": {"none": "closed", "private": "closed", "internet": "nat"},
}  # fmt: skip
"""Words of other tools for our values. A word that merely looks alike means something else."""
_ALIKE = 0.75


def meant(name: str, given: str, allowed: list[str]) -> str:
    """The value that was probably meant; empty where a guess would be a guess."""
    plain = given.strip().lower().replace("_", "-")
    if plain in allowed:
        return plain
    if (other := _MEANT.get(name, {}).get(plain)) in allowed:
        return other or ""
    return next(iter(difflib.get_close_matches(plain, allowed, n=1, cutoff=_ALIKE)), "")


def wrong_value(source: Source, path: YamlPath, error: ErrorDetails) -> tuple[str, Remedy]:
    """What is wrong with the value at `path`, and what fixes it."""
    message, remedy = _advice(source, path, error)
    known = remedy.relative or remedy.options or remedy.note
    return message, remedy if known else ask("decision", _needed(error))


_NEEDED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "a text",
    "tuple_type": "a list",
}


def _needed(error: ErrorDetails) -> str:
    """What belongs there where nothing better is known."""
    text = error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return _NEEDED.get(error["type"], f"{text[0].lower()}{text[1:]}")


def _advice(source: Source, path: YamlPath, error: ErrorDetails) -> tuple[str, Remedy]:
    value = error["input"]
    context = error.get("ctx", {})
    shown = source.raw(path) or _shown(value)
    name = str(path[-1]) if path else ""
    nothing = ask("decision", "")
    match error["type"]:
        case "string_type" if isinstance(value, int | float):
            return f"a text is needed, and YAML reads {shown} as a number.", write(shown)
        case "string_type":
            return f"a text is needed here, not {shown}.", nothing
        case "int_type" | "int_from_float" | "float_type" if isinstance(value, str):
            return f"a number is needed, not the text {value!r}.", _number(source.data, path, value)
        case "int_type" | "int_from_float":
            rounded = write(round(value)) if isinstance(value, float) and abs(value) < 1e15 else nothing
            return f"a whole number is needed, not {shown}.", rounded
        case "bool_type":
            word = str(value).lower()
            said = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}.get(
                word
            )
            return f"true or false is needed, not {shown}.", (
                ask("decision", "true or false") if said is None else write(said)
            )
        case "literal_error":
            return _one_of(name, shown, value, str(context["expected"]))
        case "string_pattern_mismatch":
            if odd := foreign_in(str(value)) or unseen_in(str(value)):
                message = f"`{shown}` holds {named(odd)}; the form is {context['pattern']}."
                return message, ask("fact", "the same in plain ASCII characters")
            return _form(source, path, shown, str(context["pattern"]))
        case "unseen":
            return f"{error['msg']}, which does not show or begins another line.", ask("action", "remove it")
        case "slurm_value":
            return f"`{shown}`: {error['msg']}.", ask("decision", "one word")
        case "value_error":
            return f"`{shown}` is {context['error']}.", _network(shown)
        case "greater_than_equal" | "less_than_equal" | "greater_than" | "less_than":
            limit = next(context[key] for key in ("ge", "le", "gt", "lt") if key in context)
            step = {"greater_than": 1, "less_than": -1}.get(error["type"], 0)
            way = "more" if error["type"].startswith("greater") else "less"
            return f"{shown} is out of range: {name} is {limit + step} or {way}.", write(limit + step)
        case "excluded":
            return f"{shown} {context['why']}.", write(context["nearest"])
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"keys and values are needed here, not {shown}.", ask("decision", "keys and values")
        case "tuple_type" if isinstance(value, str | int | float):
            return f"a list is needed here, not {shown}.", write([value])
        case _:
            text = error["msg"]
            return f"{shown}: {text[0].lower()}{text[1:]}.", nothing


def _shown(value: object) -> str:
    """A value as it was written, or what it is an object of."""
    if isinstance(value, str):
        return clipped(value)
    if value is None or isinstance(value, int | float | list | tuple | dict):
        return clipped(repr(cast("object", value)))
    return f"an object of {str(getattr(value, '__jsii_type__', type(value).__name__)).rpartition('.')[2]}"


def wrong_key(path: YamlPath, error: ErrorDetails) -> tuple[str, Remedy]:
    """What is wrong with the name that `path` ends in, and what fixes it."""
    name, pattern = str(path[-1]), error.get("ctx", {}).get("pattern", "")
    shown = clipped(name)
    if odd := foreign_in(name) or unseen_in(name):
        message = f"the name `{shown}` holds {named(odd)}."
        return message, ask("decision", "another name")
    if pattern:
        near = _reshaped(name, pattern)
        words = f"the name `{shown}` does not have the form {pattern}."
        return words, rename(near) if near and near != name else ask("decision", "another name")
    return f"the name `{shown}`: {error['msg'].lower()}.", ask("decision", "another name")


def _one_of(name: str, shown: str, value: Any, expected: str) -> tuple[str, Remedy]:
    allowed = re.findall(r"'([^']*)'|(\d+)", expected)
    options = [text or number for text, number in allowed]
    message = f"{shown} is none of {', '.join(options)}."
    numbers = [int(number) for _, number in allowed if number]
    if isinstance(value, int | float) and not isinstance(value, bool) and numbers:
        return message, write(min(numbers, key=lambda one: abs(one - value)))
    near = meant(name, str(value), options)
    if not near:
        return message, ask("decision", f"one of {', '.join(options)}")
    return message, write(int(near) if near.isdigit() and int(near) in numbers else near)


def _form(source: Source, path: YamlPath, shown: str, pattern: str) -> tuple[str, Remedy]:
    name, message = path[-1] if path else "", f"`{shown}` does not have the form {pattern}."
    url = re.fullmatch(r"(?:s3://|arn:aws[a-z-]*:s3:::)([^/]+)/*(.*)", shown)
    if url and name in ("bucket", "name") and re.fullmatch(pattern, url[1]):
        if name == "bucket" and url[2]:
            return message, beside(bucket=url[1], prefix=f"{url[2].strip('/')}/")
        return message, write(url[1])
    if name == "instance_type" or path[-2:-1] == ("instance_types",):
        types = types_of_gpu_name(shown) or [near for near in (_reshaped(shown, pattern),) if near]
        words = f"`{shown}` does not have the form in which EC2 writes a type, like {example_type()}."
        return words, write(*types) if types else ask("fact", "the type that EC2 has of it")
    near = "" if "//" in shown else _reshaped(shown, pattern)
    return message, write(near) if near else ask("fact", f"a value of the form {pattern}")


def _network(shown: str) -> Remedy:
    try:
        return write(str(IPv4Network(shown, strict=False)))
    except ValueError:
        return ask("fact", "an IPv4 network such as 10.0.0.0/16")


def _number(data: Any, path: YamlPath, text: str) -> Remedy:
    name = str(path[-1]) if path else ""
    number, note = in_unit_of(name, text)
    if number is None:
        return ask("decision", "a number")
    if name == "capacity_gib" and path[:2] == ("storage", "lustre"):
        number = _file_system_size(data, text, number)
    return write(number).noting(note)


def _file_system_size(data: Any, text: str, gib: int | float) -> int | float:
    """FSx says 1.2 TiB of 1200 GiB; the size that it makes and that is nearest to what was written."""
    settings = cast("dict[str, Any]", data["storage"]["lustre"])
    name, tier = settings.get("deployment"), settings.get("throughput_mbps_per_tib")
    if name not in lustre_deployments() or not lustre_deployments()[str(name)].capacities:
        return gib
    if not isinstance(tier, int | None):
        return gib
    sizes = lustre(str(name)).capacity(tier, efa=settings.get("efa") is True)
    as_fsx_says, as_written = round(gib / 1024 * 1000), round(gib)
    if sizes is None or as_written in sizes:
        return as_written
    if re.search(r"[tp]i", text, re.IGNORECASE) and as_fsx_says in sizes:
        return as_fsx_says
    return sizes.neighbours(as_written)[-1]


def _reshaped(text: str, pattern: str) -> str:
    """The nearest text of the form asked for that a few ordinary mistakes lead to."""
    plain = text.strip().removeprefix("ml.")
    if plain.startswith("ami-"):
        return ""  # no parameter is meant, and which AMI it is cannot be guessed
    for candidate in (
        plain,
        plain.lower(),
        re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-"),
        f"/{plain}",
        f"/{plain.strip('/')}/",
    ):
        if re.fullmatch(pattern.removeprefix("^").removesuffix("$"), candidate):
            return candidate
    return ""
