"""The apps in examples/, from the wheel in an empty folder: strict validation and cdk-nag find nothing."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from project import ROOT
from wheel import run_in

EXAMPLES = ROOT / "examples"
FIRST_APPS = ROOT / "tests" / "support" / "first_apps"
KINDS = {
    "hyperpod_slurm": {"AWS::SageMaker::Cluster", "AWS::FSx::FileSystem", "AWS::EC2::SecurityGroupEgress"},
    "pcs": {"AWS::PCS::Cluster", "AWS::PCS::Queue", "AWS::EC2::VPC"},
    "eks": {"AWS::EKS::Cluster", "AWS::EKS::Nodegroup", "AWS::EKS::AccessEntry"},
    "training_cluster": {
        "AWS::APS::Workspace",
        "AWS::EC2::VPC",
        "AWS::FSx::FileSystem",
        "AWS::SageMaker::Cluster",
    },
    "own_app": {"AWS::FSx::FileSystem", "AWS::EC2::SecurityGroupEgress", "AWS::KMS::Key"},
    "image": {"AWS::ImageBuilder::ImagePipeline"},
}
FIRST = {
    "hyperpod_slurm": {"AWS::SageMaker::Cluster", "AWS::FSx::FileSystem"},
    "pcs": {"AWS::PCS::Cluster", "AWS::PCS::Queue"},
    "eks": {"AWS::EKS::Cluster", "AWS::EKS::AccessEntry"},
    "own_nodes": {"AWS::EC2::LaunchTemplate", "AWS::FSx::DataRepositoryAssociation"},
}
"""Apps as the CDK's users write them before they have read much: below tests/support/first_apps."""
LINES = {"hyperpod_slurm": 25, "pcs": 15, "eks": 15}
"""From the first import on, without blank ones."""
WRONG = ('scratch.resource.add_property_override("StorageCapacity", "much")', {"F3012"})
"""A line that CloudFormation's schemas refuse, and what they then say."""

# Runs the app of each folder as it is, with all that may find fault with it, in one process.
JUDGED = """
import os, pathlib, runpy
import aws_cdk
from cdk_nag import AwsSolutionsChecks

class Judged(aws_cdk.App):
    def __init__(self):
        super().__init__(
            outdir=str(pathlib.Path("out").resolve()), analytics_reporting=False,
            builtin_cloud_formation_validation=True,
        )
        aws_cdk.Validations.of(self).add_plugins(AwsSolutionsChecks(self))

aws_cdk.App = Judged
home = pathlib.Path.cwd()
for folder in sorted(home.glob("*/app.py")):
    os.chdir(folder.parent)
    try:
        runpy.run_path("app.py", run_name="__main__")
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise
"""


@pytest.fixture(scope="module")
def judged(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each example below it, synthesised; `wrong` is one with a mistake."""
    home = tmp_path_factory.mktemp("examples")
    for name in KINDS:
        shutil.copytree(EXAMPLES / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FIRST:
        (home / f"first_{name}").mkdir()
        shutil.copy(FIRST_APPS / f"{name}.py", home / f"first_{name}" / "app.py")
    app = (EXAMPLES / "own_app" / "app.py").read_text()
    (home / "wrong").mkdir()
    (home / "wrong" / "app.py").write_text(app.replace("app.synth()", f"{WRONG[0]}\napp.synth()"))
    (home / "judged.py").write_text(JUDGED)
    run_in(site, home, "python", "judged.py", check=True)
    return home


def test_every_example_is_tried() -> None:
    assert {file.parent.name for file in EXAMPLES.glob("*/app.py")} == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_an_example_is_clean_with_the_wheel_alone(name: str, judged: Path) -> None:
    assert made_in(judged / name) >= KINDS[name]
    assert found_in(judged / name) == set()


@pytest.mark.parametrize("name", FIRST)
def test_what_a_cdk_author_writes_first_is_made(name: str, judged: Path) -> None:
    assert made_in(judged / f"first_{name}") >= FIRST[name]
    assert found_in(judged / f"first_{name}") <= {"Annotation::ultracluster:IMG007"}


def test_a_wrong_example_would_be_found(judged: Path) -> None:
    assert found_in(judged / "wrong") == WRONG[1]


def made_in(folder: Path) -> set[str]:
    """Types of resources in an app's templates."""
    templates = [json.loads(file.read_text()) for file in (folder / "out").glob("*.template.json")]
    return {one["Type"] for template in templates for one in template["Resources"].values()}


def found_in(folder: Path) -> set[str]:
    """What CloudFormation's schemas, cdk-nag and warnings say."""
    report = json.loads((folder / "out" / "validation-report.json").read_text())
    return {violation["ruleName"] for plugin in report["pluginReports"] for violation in plugin["violations"]}


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


# What the guide's code made, compared with what is public.
NOT_MADE = """
import inspect
import aws_cdk, constructs, ultracluster

apps = [value for value in globals().values() if isinstance(value, aws_cdk.App)]
made = {type(one) for app in apps for one in app.node.find_all()}
public = [getattr(ultracluster, name) for name in ultracluster.__all__]
wanted = {one for one in public if inspect.isclass(one) and issubclass(one, constructs.Construct)}
assert len(wanted) > 20
print("not made:", *sorted(one.__name__ for one in wanted - made))
"""


def test_every_public_construct_is_made_from_the_wheel(site: Path, tmp_path: Path) -> None:
    """By the code of docs/constructs.md, in an empty folder; examples/eks makes what that leaves out."""
    page = (ROOT / "docs" / "constructs.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "guide.py").write_text("\n".join([*blocks, NOT_MADE]))
    shutil.copytree(ROOT / "environments", tmp_path / "environments")

    said = run_in(site, tmp_path, "python", "guide.py", check=True).stdout
    assert "EksCluster(" in (EXAMPLES / "eks" / "app.py").read_text()
    assert said.splitlines()[-1] == "not made: EksCluster"
