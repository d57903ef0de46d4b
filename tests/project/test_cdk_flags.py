"""The CDK's feature flags: one source, all that the installed library recommends."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk
import pytest
from project import ROOT

from ultracluster.app import cdk_flags

pytestmark = pytest.mark.slow

FILE = ROOT / "constructs" / "ultracluster" / "cdk_flags.json"


@cache
def of_library(name: str) -> str:
    """A file of the library's npm archive."""
    (archive,) = (Path(aws_cdk.__file__).parent / "_jsii").glob("aws-cdk-lib@*.tgz")
    with tarfile.open(archive) as opened:
        file = opened.extractfile(f"package/{name}")
        assert file is not None
        return file.read().decode()


def differing(ours: Mapping[str, Any], recommended: Mapping[str, Any]) -> set[str]:
    return {flag for flag, value in recommended.items() if flag not in ours or ours[flag] != value}


def test_every_recommended_flag_is_set_and_each_other_value_has_a_reason() -> None:
    own: dict[str, str] = json.loads(FILE.read_text())["own"]

    assert differing(cdk_flags(), json.loads(of_library("recommended-feature-flags.json"))) == own.keys()
    assert all(len(reason.split()) >= 3 for reason in own.values())


def test_the_library_reads_every_flag() -> None:
    """One that was renamed or dropped would be set for nothing."""
    known = set(re.findall(r"@aws-cdk[\w/:.-]*", of_library("cx-api/FEATURE_FLAGS.md")))

    assert set(cdk_flags()) - known == set()


def test_the_comparison_can_fail() -> None:
    assert differing({"a": True, "b": 1}, {"a": True, "b": 2, "c": True}) == {"b", "c"}


@pytest.mark.parametrize("file", ["cdk.json"])
def test_no_project_repeats_them(file: str) -> None:
    """Else the templates of the checkout and of a team would differ in a flag, one day."""
    assert "context" not in json.loads((ROOT / file).read_text())
