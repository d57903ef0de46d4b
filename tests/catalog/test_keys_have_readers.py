"""Each key of the catalogue has a reader: one without is a fact out of date, or a rule is missing."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from project import ROOT

pytestmark = pytest.mark.slow

CATALOGUE = ROOT / "constructs" / "ultracluster" / "catalog"
DOCUMENTS = {"about", "confidence", "date", "note", "notes", "source", "sources", "what", "why"}
"""Keys for people, as is each `<key>_source` and `<key>_note`."""
_API = "a column of `InstanceType`, which tests compare with EC2's API"
_IMAGE = "what an image has besides the parts of a release: the record of an image lists it"
_RECORDING = "tests compare names and labels of metrics with recorded expositions"
EXCUSED = {
    "baseline_gbps": _API,
    "local_nvme_gb": _API,
    "containerd": _IMAGE,
    "dnf_versionlock": _IMAGE,
    "docker": _IMAGE,
    "nvlsm": _IMAGE,
    "rdma_core": _IMAGE,
    "ssm_agent": _IMAGE,
    "also_recorded": _RECORDING,
    "constructed": _RECORDING,
    "newer_labels": _RECORDING,
    "pinned": _RECORDING,
    "clean_up": "what the maker of an image asks for, which scripts of the image builder do",
    "efa_layout_rules": "words for people; `efa_layout_rule` of a type names one",
    "id_provider": "a setting of sssd, which rules read together with its value",
    "longest_cluster": "the limit that the model of ParallelCluster has; a test compares it with the package",
    "on_eks": "tests derive from it how long EKS supports a release",
    "switch": "Slurm's word in a topology.yaml that a row quotes; programs of the nodes write it",
    "unverified": "marks a row of which AWS says nothing in public",
}
"""Keys that no code of the package reads by name, each with why. It may only shrink."""
_NAMES = {"metrics"}
"""Mappings by names of others that look like ours."""

_WORD = re.compile(r"[a-z]+(_[a-z0-9]+)*")


def rows(value: Any) -> Iterator[str]:
    """The keys of rows; what maps names to facts, as types or Regions, has no keys of ours."""
    if isinstance(value, dict):
        facts = {
            key: part
            for key, part in value.items()
            if key not in DOCUMENTS and not key.endswith(("_source", "_note"))
        }
        if 2 * sum(bool(_WORD.fullmatch(key)) for key in facts) > len(facts):
            yield from (key for key in facts if _WORD.fullmatch(key))
        for name, part in facts.items():
            yield from (key for one in part.values() for key in rows(one)) if name in _NAMES else rows(part)
    elif isinstance(value, list):
        for part in value:
            yield from rows(part)


@cache
def words() -> tuple[frozenset[str], frozenset[str]]:
    """Of the package: literals and attributes that are read.

    A literal of the catalogue's own code that fills the field of a class is no reader: somebody must ask for
    the field.
    """
    literals, filling, attributes, fields = set[str](), set[str](), set[str](), set[str]()
    for file in [*(ROOT / "constructs").rglob("*.py"), *(ROOT / "stacks").glob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Constant(value=str(text)):
                    (filling if file.parent == CATALOGUE else literals).add(text)
                case ast.Attribute(ctx=ast.Load()):
                    attributes.add(node.attr)
                case ast.AnnAssign(target=ast.Name(id=name)) if file.parent == CATALOGUE:
                    fields.add(name)
                case _:
                    pass
    return frozenset(literals | filling - fields), frozenset(attributes)


def unread(file: Path) -> set[str]:
    literals, attributes = words()
    return set(rows(json.loads(file.read_text(encoding="utf-8")))) - literals - attributes


def test_each_key_is_read() -> None:
    found = {key: file.name for file in CATALOGUE.glob("*.json") for key in unread(file)}

    assert {key: name for key, name in found.items() if key not in EXCUSED} == {}
    assert EXCUSED.keys() - found == set(), "these have a reader now, or are gone"
    assert len(EXCUSED) <= 21


def test_a_key_without_a_reader_is_found(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    file.write_text(
        '{"p5.48xlarge": {"vcpu": 1, "unheard_of": 2, "source": "a page"}, "u-1": {"denied_values": {}}}'
    )

    assert unread(file) == {"unheard_of", "denied_values"}
