"""Image recipes: accepted by the authorities at hand, and the check of the scripts really run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import hcl2
import pytest
from botocore.session import get_session
from botocore.validate import ParamValidator
from ruamel.yaml import YAML
from typer.testing import CliRunner

from ultracluster.catalog.image_bases import UnknownBaseError, image_bases
from ultracluster.cli.main import app
from ultracluster.scripts_folder import script_files, scripts_folder, tree_sha256
from ultracluster.software.image_recipe import (
    Recipe,
    check_command,
    component_that_builds,
    component_that_tests,
)
from ultracluster.software.packer_file import packer_file

pytestmark = pytest.mark.slow

BASES = [(base.orchestrator, base.os) for base in image_bases()]
# Image Builder User Guide: AWSTOE component documents, and its action modules
PHASES = {"build", "validate", "test"}
STEP = {"name", "action", "timeoutSeconds", "onFailure", "maxAttempts", "inputs"}
ACTIONS = {"ExecuteBash", "S3Download"}


def recipe(orchestrator: str = "pcs", os: str = "", **more: Any) -> Recipe:
    return Recipe(release="2026.11", orchestrator=orchestrator, os=os, **more)


def document(text: str) -> dict[str, Any]:
    return YAML(typ="safe").load(text)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def commands(made: dict[str, Any], phase: str) -> dict[str, str]:
    """Command by name of the step, of the steps that have one."""
    steps = next(one["steps"] for one in made["phases"] if one["name"] == phase)
    return {step["name"]: step["inputs"]["commands"][0] for step in steps if step["action"] == "ExecuteBash"}


@pytest.mark.parametrize("component", [component_that_builds, component_that_tests])
@pytest.mark.parametrize("scripts", ["s3://scripts/dev/0123", "s3://scripts/0123.zip"])
@pytest.mark.parametrize(("orchestrator", "os"), BASES)
def test_a_component_is_a_document_that_awstoe_knows(
    component: Any, scripts: str, orchestrator: str, os: str
) -> None:
    made = document(component(recipe(orchestrator, os, scripts=scripts, archive=scripts.endswith(".zip"))))
    assert set(made) <= {"name", "description", "schemaVersion", "parameters", "phases"}
    assert made["schemaVersion"] == 1.0
    assert [set(one) for one in made["parameters"]] == [{"ScriptsUri"}]
    assert made["parameters"][0]["ScriptsUri"]["default"] == scripts
    names = [phase["name"] for phase in made["phases"]]
    assert len(names) == len(set(names))
    assert set(names) <= PHASES
    for phase in made["phases"]:
        steps = [step["name"] for step in phase["steps"]]
        assert len(steps) == len(set(steps))
        for step in phase["steps"]:
            assert set(step) <= STEP
            assert re.fullmatch(r"[A-Za-z0-9_-]{3,128}", step["name"])
            assert step["action"] in ACTIONS
            assert step["onFailure"] in {"Abort", "Continue", "Ignore"}
            assert step["timeoutSeconds"] > 0
            if step["action"] == "ExecuteBash":
                assert all(isinstance(line, str) for line in step["inputs"]["commands"])
                for line in step["inputs"]["commands"]:
                    subprocess.run(["bash", "-n", "-c", line], check=True)
            else:
                assert [set(one) for one in step["inputs"]] == [{"source", "destination"}]


def test_a_build_bakes_proves_it_and_cleans_up_last() -> None:
    made = document(component_that_builds(recipe()))
    assert [phase["name"] for phase in made["phases"]] == ["build", "validate"]
    assert list(commands(made, "build")) == ["Empty", "Check", "Bake"]
    assert list(commands(made, "validate")) == ["BakeAgain", "Record", "Clean"]
    assert commands(made, "validate")["BakeAgain"].endswith("--verify yes")


def test_a_test_brings_its_own_scripts_for_the_build_has_taken_them_away() -> None:
    made = document(component_that_tests(recipe()))
    assert [phase["name"] for phase in made["phases"]] == ["test"]
    assert list(commands(made, "test")) == ["Empty", "Check", "Verify", "Record"]
    assert commands(made, "test")["Verify"].endswith("--verify yes")


@pytest.mark.parametrize("component", [component_that_builds, component_that_tests])
def test_the_service_takes_the_component(component: Any) -> None:
    shape = get_session().get_service_model("imagebuilder").operation_model("CreateComponent").input_shape
    data = component(recipe())
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
            "Data": component_that_builds(recipe()),
        },
    }
    file = tmp_path / "template.json"
    file.write_text(json.dumps({"Resources": {"Component": component}}))
    lint = subprocess.run(["cfn-lint", str(file)], capture_output=True, text=True, check=False)
    assert lint.returncode == 0, lint.stdout


def unquoted(made: Any) -> Any:
    """What python-hcl2 parses, without the quotes that it keeps."""
    if isinstance(made, dict):
        return {unquoted(key): unquoted(value) for key, value in made.items()}
    if isinstance(made, list):
        return [unquoted(one) for one in made]
    return json.loads(made) if isinstance(made, str) and re.fullmatch(r'".*"', made, re.DOTALL) else made


def packer(made: Recipe) -> dict[str, Any]:
    return unquoted(hcl2.loads(packer_file(made)))


def builder(made: dict[str, Any]) -> dict[str, Any]:
    return next(iter(made["source"][0]["amazon-ebs"].values()))


@pytest.mark.parametrize(("orchestrator", "os"), BASES)
@pytest.mark.parametrize("architecture", ["x86_64", "arm64"])
def test_a_packer_file_parses_and_declares_what_it_uses(
    architecture: str, orchestrator: str, os: str
) -> None:
    text = packer_file(
        recipe(orchestrator, os, architecture=architecture, scripts="s3://scripts/dev", mirror="s3://m/x")
    )
    made = unquoted(hcl2.loads(text))
    assert {"packer", "variable", "locals", "source", "build"} <= set(made)
    declared = {name for one in made["variable"] for name in one}
    assert declared == set(re.findall(r"var\.([a-z_]+)", text))
    assert ("data" in made) == ("data." in text)
    assert "$${found%% *}" in text
    assert "--mirror s3://m/x" in text
    for shell in made["build"][0]["provisioner"]:
        for line in shell["shell"]["inline"]:
            subprocess.run(["bash", "-n", "-c", line], check=True)


@pytest.mark.parametrize(
    ("orchestrator", "os", "user", "device", "gib"),
    [
        ("parallelcluster", "ubuntu2404", "ubuntu", "/dev/sda1", 90),
        ("parallelcluster", "alinux2023", "ec2-user", "/dev/xvda", 90),
        ("parallelcluster", "rocky9", "rocky", "/dev/sda1", 90),
        ("pcs", "ubuntu24.04", "ubuntu", "/dev/sda1", 200),
        ("pcs", "al2023", "ec2-user", "/dev/xvda", 200),
        ("eks", "al2023", "ec2-user", "/dev/xvda", 60),
        ("hyperpod-slurm", "ubuntu22.04", "ubuntu", None, None),
        ("hyperpod-eks", "al2023", "ec2-user", None, None),
    ],
)
def test_login_and_volume_are_those_of_the_base(
    orchestrator: str, os: str, user: str, device: str | None, gib: int | None
) -> None:
    made = packer(recipe(orchestrator, os))
    source = builder(made)
    assert source["ssh_username"] == user
    sizes = {name: row["default"] for one in made["variable"] for name, row in one.items() if "gib" in name}
    assert sizes == ({"root_volume_gib": gib} if gib else {})
    if device is None:  # HyperPod sets the size; encrypted is an image with the cluster's key or not at all
        assert "launch_block_device_mappings" not in source
        assert source["encrypt_boot"] == '${var.kms_key_id != "" ? true : null}'
        return
    (volume,) = source["launch_block_device_mappings"]
    assert volume["device_name"] == device
    assert volume["encrypted"] is True


def test_nobody_reaches_the_build_from_outside() -> None:
    source = builder(packer(recipe()))
    assert source["associate_public_ip_address"] is False
    assert source["ssh_interface"] == "session_manager"
    assert source["security_group_id"] == "${var.security_group_id}"
    assert source["ssh_clear_authorized_keys"] is True
    assert source["metadata_options"][0]["http_tokens"] == "required"


def test_packer_cleans_up_last() -> None:
    *_, last = packer(recipe("parallelcluster"))["build"][0]["provisioner"]
    assert last["shell"]["inline"] == ["bash /opt/ultracluster/scripts/image/clean.sh"]


@pytest.mark.parametrize("accelerator", ["nvidia", "neuron", "none"])
def test_the_newest_base_is_looked_up_where_aws_publishes_it(accelerator: Any) -> None:
    eks = recipe("eks", kubernetes="1.34", architecture="arm64", accelerator=accelerator)
    kind = {"none": "standard"}.get(accelerator, accelerator)
    assert eks.base_parameter == (
        f"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/{kind}/recommended/image_id"
    )
    assert recipe("eks").base_parameter is None  # of which Kubernetes release?
    assert packer(eks)["data"][0]["amazon-parameterstore"]["base"]["name"] == eks.base_parameter


def test_an_unknown_base_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UnknownBaseError, match=r"no image with os 'ubuntu2404': write one of ubuntu24\.04"):
        recipe("pcs", "ubuntu2404")
    with pytest.raises(UnknownBaseError, match="'slurm' is unknown: write one of hyperpod-slurm"):
        recipe("slurm")
    with pytest.raises(ValueError, match="no image for riscv64: write one of x86_64, arm64"):
        recipe(architecture="riscv64")


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


def test_so_they_do_from_an_archive(tmp_path: Path) -> None:
    """The steps of a build from an archive, but for the download, in a folder of the test."""
    made = commands(
        document(component_that_builds(recipe(scripts="s3://scripts/0123.zip", archive=True))), "build"
    )
    here = str(tmp_path / "target")
    shutil.make_archive(here, "zip", copy_of_scripts(tmp_path))
    (tmp_path / "target").mkdir()
    for step in ("Unpack", "Check"):
        line = made[step].replace("/opt/ultracluster/scripts", here)
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert not (tmp_path / "target.zip").exists()


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


@pytest.mark.parametrize(("orchestrator", "os"), BASES)
def test_the_build_calls_what_is_there(orchestrator: str, os: str) -> None:
    words = recipe(orchestrator, os, mirror="s3://m").verify.split()
    assert words[:2] == ["bash", "/opt/ultracluster/scripts/bake.sh"]
    script = (scripts_folder() / "bake.sh").read_text()
    for option in (word for word in words if word.startswith("--")):
        assert f"{option})" in script, option
    families = re.search(r"BAKE_FAMILY =~ \^\((.*)\)\?", script)
    assert families
    assert words[words.index("--family") + 1] in families[1].split("|")
    for file in ("image/record.sh", "image/clean.sh"):
        assert (scripts_folder() / file).exists()


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["software", "recipe", "--release", "2026.11", *arguments])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--orchestrator", "pcs", "--os", "ubuntu2404"], "--os: pcs has no image with os 'ubuntu2404'"),
        (
            ["--orchestrator", "pcs", "--release", "eks-2026.10"],
            "release eks-2026.10 is for images of eks-al2023, not for pcs: write one of ",
        ),
        (["--orchestrator", "pcs", "--release", "2030.01"], "2030.01"),
        (["--orchestrator", "eks", "--kubernetes", "v1.34"], "--kubernetes 'v1.34' is not a release"),
        (
            ["--orchestrator", "pcs", "--mirror", "bucket/x"],
            "--mirror 'bucket/x': write it as s3://bucket/prefix",
        ),
        (
            ["--orchestrator", "pcs", "--format", "packer", "--scripts", "s3://bucket/x.zip"],
            "--scripts: pass a folder for Packer",
        ),
    ],
)
def test_the_command_refuses_what_makes_no_recipe(arguments: list[str], why: str) -> None:
    said = invoke(*arguments)
    assert said.exit_code == 2
    assert why in said.output


@pytest.mark.parametrize("form", ["imagebuilder", "imagebuilder-test", "packer"])
def test_the_command_prints_every_form(form: str) -> None:
    said = invoke("--orchestrator", "hyperpod-eks", "--format", form, "--arch", "arm64")
    assert said.exit_code == 0
    assert "--family hyperpod-eks --accelerator nvidia --efa yes" in said.output
