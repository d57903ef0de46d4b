"""Image recipes: accepted by the authorities at hand, and the check of the scripts really run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from botocore.session import get_session
from botocore.validate import ParamValidator
from ruamel.yaml import YAML

from ultracluster.operations.image_recipe import (
    Recipe,
    check_command,
    image_builder_component,
    packer_file,
)
from ultracluster.scripts_folder import script_files, scripts_folder, tree_sha256

ORCHESTRATORS = ["hyperpod-slurm", "parallelcluster", "pcs"]
# Image Builder User Guide: AWSTOE component documents, and its action modules
PHASES = {"build", "validate", "test", "container-host-test"}
STEP = {"name", "action", "timeoutSeconds", "onFailure", "maxAttempts", "inputs"}
ACTIONS = {"ExecuteBash", "S3Download"}


def recipe(orchestrator: str = "pcs", **more: Any) -> Recipe:
    return Recipe(release="2026.11", orchestrator=orchestrator, **{"accelerator": "nvidia", **more})


def document(text: str) -> dict[str, Any]:
    return YAML(typ="safe").load(text)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
def test_a_component_is_a_document_that_awstoe_knows(orchestrator: str) -> None:
    made = document(image_builder_component(recipe(orchestrator, scripts="s3://scripts/dev/0123")))
    assert set(made) <= {"name", "description", "schemaVersion", "parameters", "phases"}
    assert made["schemaVersion"] == 1.0
    assert [set(one) for one in made["parameters"]] == [{"ScriptsUri"}]
    assert made["parameters"][0]["ScriptsUri"]["default"] == "s3://scripts/dev/0123"
    names = [phase["name"] for phase in made["phases"]]
    assert len(names) == len(set(names))
    assert set(names) <= PHASES
    for phase in made["phases"]:
        steps = [step["name"] for step in phase["steps"]]
        assert len(steps) == len(set(steps))
        for step in phase["steps"]:
            assert set(step) <= STEP
            assert step["action"] in ACTIONS
            assert step["onFailure"] in {"Abort", "Continue", "Ignore"}
            if step["action"] == "ExecuteBash":
                assert all(isinstance(line, str) for line in step["inputs"]["commands"])
            else:
                assert [set(one) for one in step["inputs"]] == [{"source", "destination"}]


def test_the_service_takes_the_component() -> None:
    shape = get_session().get_service_model("imagebuilder").operation_model("CreateComponent").input_shape
    data = image_builder_component(recipe())
    request = {
        "name": "ultracluster",
        "semanticVersion": "2026.11.0",
        "platform": "Linux",
        "data": data,
        "clientToken": "0",
    }
    report: Any = ParamValidator().validate(request, shape)
    assert not report.has_errors(), report.generate_report()
    assert len(data) <= 16_000  # CreateComponent: longest inline document


def test_cloudformations_schema_takes_the_component(tmp_path: Path) -> None:
    component = {
        "Type": "AWS::ImageBuilder::Component",
        "Properties": {
            "Name": "ultracluster",
            "Version": "2026.11.0",
            "Platform": "Linux",
            "Data": image_builder_component(recipe()),
        },
    }
    file = tmp_path / "template.json"
    file.write_text(json.dumps({"Resources": {"Component": component}}))
    lint = subprocess.run(["cfn-lint", str(file)], capture_output=True, text=True, check=False)
    assert lint.returncode == 0, lint.stdout


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
def test_a_packer_file_parses(orchestrator: str) -> None:
    hcl2 = pytest.importorskip("hcl2", reason="python-hcl2 is not installed")
    made = hcl2.loads(packer_file(recipe(orchestrator, scripts="s3://scripts/dev", mirror="s3://mirror/x")))
    assert {"packer", "variable", "source", "build"} <= set(made)
    text = json.dumps(made)
    assert "$${found%% *}" in text
    assert "--mirror s3://mirror/x" in text


def copy_of_scripts(folder: Path) -> Path:
    source, target = scripts_folder(), folder / "scripts"
    for file in script_files(source):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    return target


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euc", check_command(str(folder))], capture_output=True, text=True, check=False
    )


def test_the_scripts_of_this_package_pass_the_check(tmp_path: Path) -> None:
    folder = copy_of_scripts(tmp_path)
    (folder / "cluster.json").write_text("{}")  # a deployed folder has one
    assert tree_sha256(folder) == tree_sha256(scripts_folder())
    assert check(folder).returncode == 0, check(folder).stderr


@pytest.mark.parametrize("change", ["changed", "missing", "added", "renamed"])
def test_other_scripts_do_not(change: str, tmp_path: Path) -> None:
    folder = copy_of_scripts(tmp_path)
    file = folder / "lib" / "log.sh"
    if change == "changed":
        file.write_text(file.read_text() + "\n")
    elif change == "missing":
        file.unlink()
    elif change == "added":
        (folder / "lib" / "evil.sh").write_text("")
    else:
        file.rename(folder / "lib" / "log2.sh")
    done = check(folder)
    assert done.returncode == 1
    assert done.stderr == "refused: these are not the scripts of this recipe\n"


def test_the_build_calls_what_is_there() -> None:
    words = recipe(mirror="s3://m").bake.split()
    assert words[:2] == ["bash", "/opt/ultracluster/scripts/bake.sh"]
    script = scripts_folder() / "bake.sh"
    for option in (word for word in words if word.startswith("--")):
        assert f"{option})" in script.read_text(), option
