"""What is imported synthesises: a running cluster of each orchestrator, over its network and file systems."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from import_samples import FOLDER
from templates import assembly

from ultracluster.config import load
from ultracluster.model import TRAITS
from ultracluster.software import newest_release

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("sample", sorted(file.stem for file in (FOLDER / "expected").glob("running-*.yaml")))
def test_an_import_is_a_cluster_that_can_be_deployed(sample: str, tmp_path: Path) -> None:
    text = (FOLDER / "expected" / f"{sample}.yaml").read_text(encoding="utf-8")
    kind = re.findall(r"^  kind: (\S+)$", text, re.MULTILINE)[0]
    release = newest_release(TRAITS[kind].software_family).release
    file = tmp_path / "new.yaml"
    file.write_text(text.replace("RELEASE", release), encoding="utf-8")
    made = assembly(load(file).environment, checked=False)

    assert made.resources("AWS::EC2::VPC") == {}
    assert made.resources("AWS::FSx::FileSystem") == {}
