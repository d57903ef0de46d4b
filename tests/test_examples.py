"""The apps in examples/, from the wheel in an empty folder: strict validation and cdk-nag find nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from project import ROOT
from wheel import run_in

EXAMPLES = ROOT / "examples"
KINDS = {
    "hyperpod_slurm": {"AWS::SageMaker::Cluster", "AWS::FSx::FileSystem", "AWS::EC2::SecurityGroupEgress"},
    "pcs": {"AWS::PCS::Cluster", "AWS::PCS::Queue", "AWS::EC2::VPC"},
    "eks": {"AWS::EKS::Cluster", "AWS::EKS::Nodegroup", "AWS::EKS::AccessEntry"},
    "training_cluster": {"AWS::SageMaker::Cluster", "AWS::FSx::FileSystem", "AWS::EC2::VPC"},
    "own_app": {"AWS::FSx::FileSystem", "AWS::EC2::SecurityGroupEgress", "AWS::KMS::Key"},
    "image": {"AWS::ImageBuilder::ImagePipeline"},
}
LINES = {"hyperpod_slurm": 25, "pcs": 15, "eks": 15}
"""From the first import on, without blank ones."""
# Runs an app as it is, with all that may find fault with it, and writes what was found.
JUDGED = """
import runpy, sys
import aws_cdk
from cdk_nag import AwsSolutionsChecks

class Judged(aws_cdk.App):
    def __init__(self):
        super().__init__(analytics_reporting=False, builtin_cloud_formation_validation=True)
        aws_cdk.Validations.of(self).add_plugins(AwsSolutionsChecks(self))

aws_cdk.App = Judged
try:
    runpy.run_path("app.py", run_name="__main__")
except RuntimeError as error:
    if "ValidationFailed" not in str(error):
        raise
"""


def test_every_example_is_tried() -> None:
    assert {file.parent.name for file in EXAMPLES.glob("*/app.py")} == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_an_example_is_clean_with_the_wheel_alone(name: str, site: Path, tmp_path: Path) -> None:
    for file in (EXAMPLES / name).iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path / file.name)
    (tmp_path / "judged.py").write_text(JUDGED)

    made = run_in(site, tmp_path, "python", "judged.py", CDK_OUTDIR=str(tmp_path / "out"))

    assert (tmp_path / "out" / "validation-report.json").exists(), made.stderr[-2000:]
    kinds: set[str] = set()
    for template in (tmp_path / "out").glob("*.template.json"):
        kinds |= {one["Type"] for one in json.loads(template.read_text())["Resources"].values()}
    assert kinds >= KINDS[name]
    assert made.returncode == 0
    assert found_in(tmp_path) == set(), made.stderr[-4000:]


def found_in(folder: Path) -> set[str]:
    report = json.loads((folder / "out" / "validation-report.json").read_text())
    return {violation["ruleName"] for plugin in report["pluginReports"] for violation in plugin["violations"]}


def test_a_wrong_example_would_be_found(site: Path, tmp_path: Path) -> None:
    wrong = 'scratch.resource.add_property_override("StorageCapacity", "much")\napp.synth()'
    app = (EXAMPLES / "own_app" / "app.py").read_text()
    (tmp_path / "app.py").write_text(app.replace("app.synth()", wrong))
    (tmp_path / "judged.py").write_text(JUDGED)

    run_in(site, tmp_path, "python", "judged.py", CDK_OUTDIR=str(tmp_path / "out"))

    assert found_in(tmp_path) == {"F3012"}, "a figure is required"


@pytest.mark.parametrize("name", LINES)
def test_an_example_is_as_short_as_the_page_says(name: str) -> None:
    lines = (EXAMPLES / name / "app.py").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("from"))
    assert len([line for line in lines[start:] if line]) <= LINES[name]


@pytest.mark.parametrize("name", KINDS)
def test_an_example_requires_nothing_private(name: str) -> None:
    for line in (EXAMPLES / name / "app.py").read_text().splitlines():
        if "ultracluster" in line and "import" in line:
            assert line.startswith("from ultracluster import "), line
            assert " _" not in line


@pytest.mark.parametrize("name", LINES)
def test_the_guide_shows_the_example(name: str) -> None:
    code = (EXAMPLES / name / "app.py").read_text().split('"""\n\n', 1)[1]

    assert f"```py\n{code}```" in (ROOT / "docs" / "constructs.md").read_text()
