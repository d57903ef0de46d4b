"""Records of images from what nodes say: the real script's answer, and answers that make no record."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ultracluster.catalog.images import Fact, fields, image
from ultracluster.cli.main import app
from ultracluster.software.image_record import RecordError, read_answer, record, script, text

KNOWN = "eks-al2023-nvidia-1.34-x86_64-20261012"
ARM = "eks-al2023-nvidia-1.34-arm64-20261012"


def said(**facts: Any) -> str:
    """What the script prints, with some of its facts."""
    answer = {
        "schema": 1,
        "asked": "2026-12-01",
        "os": "al2023",
        "arch": "x86_64",
        "installed": "",
        "facts": {"kernel": "6.12.111-136.204", "python": "3.9.25", **facts},
    }
    return json.dumps(answer)


def made(answer: str, **more: Any) -> dict[str, Any]:
    given = {
        "image_id": "eks-al2023-nvidia-1.34-x86_64-20261203",
        "family": "eks-al2023-nvidia",
        "release": "1.34.13-20261203",
        "kubernetes": "1.34",
    }
    return record(read_answer(answer), **{**given, **more})


@pytest.fixture(scope="module")
def answer() -> str:
    """This machine's own answer, which some of its facts must be in."""
    done = subprocess.run(["bash", "-s"], input=script(), capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.slow
def test_the_script_tells_every_field_of_the_catalogue_and_no_other(answer: str) -> None:
    assert set(json.loads(answer)["facts"]) == set(fields())


@pytest.mark.slow
def test_what_a_machine_says_is_read(answer: str) -> None:
    kernel = subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout.strip()
    assert read_answer(f"Welcome!\n{answer}logout\n").facts["kernel"] == kernel


def test_a_record_is_of_the_catalogues_shape() -> None:
    row = made(said(nvidia_driver="580.178.04", nccl=False, docker=True, slurm=None))
    assert {key: row[key] for key in row if key != "values"} == {
        "id": "eks-al2023-nvidia-1.34-x86_64-20261203",
        "family": "eks-al2023-nvidia",
        "release": "1.34.13-20261203",
        "date": "2026-12-03",
        "os": "al2023",
        "arch": "x86_64",
        "kubernetes": "1.34",
    }
    assert tuple(row["values"]) == fields()
    assert row["values"]["nvidia_driver"] == ["580.178.04", "confirmed", "node", "2026-12-01"]
    assert row["values"]["nccl"][0] is False
    assert row["values"]["docker"][0] is True
    assert row["values"]["slurm"] is None
    assert row["values"]["enroot"] is None  # nobody asked
    for cell in row["values"].values():
        assert cell is None or Fact(*cell).source in ("node", "derived")
    assert json.loads(text(row)) == row


def test_what_the_node_cannot_tell_stays_as_the_catalogue_has_it() -> None:
    before = image(KNOWN)
    row = made(said(efa_kmod="3.3.1"), image_id=KNOWN, release=before.release)
    assert row["values"]["efa_kmod"] == ["3.3.1", "confirmed", "node", "2026-12-01"]
    toolkit = before.fact("container_toolkit")
    assert toolkit
    assert Fact(*row["values"]["container_toolkit"]) == toolkit
    assert row["values"]["lustre_kernel_in_matrix"][:2] == [
        True,
        "inferred",
    ]  # the catalogue knows its kernel


def test_what_is_no_version_is_there_with_a_note() -> None:
    cell = made(said(docker="built by hand"))["values"]["docker"]
    assert cell == [True, "confirmed", "node", "2026-12-01", "built by hand"]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("hello", "there is no record in it"),
        (said()[:-20], "cut off or broken"),
        (said().replace('"schema": 1', '"schema": 2'), "schema: Input should be 1"),
        (said(kernal="6.12"), "no field 'kernal', the nearest is kernel"),
        (said(kernel=None, python=None), "neither kernel nor python"),
        (said(kernel=6.12), "facts.kernel"),
    ],
)
def test_an_answer_that_makes_no_record_is_refused(broken: str, why: str) -> None:
    with pytest.raises(RecordError, match=why):
        read_answer(broken)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"family": "eks"}, "family 'eks' is unknown: write one of hyperpod-slurm"),
        ({"kubernetes": ""}, "add --kubernetes 1.34"),
        ({"release": "1.34"}, "'1.34' does not end in a date: add --date"),
        ({"day": "2026-13-01"}, "'2026-13-01' does not end in a date"),
        (
            {"image_id": KNOWN.replace("x86_64", "arm64")},
            "is for al2023 on arm64, and the node has",
        ),
        ({"image_id": "an image"}, "id 'an image' has to be letters"),
    ],
)
def test_what_is_said_of_the_image_is_checked(given: dict[str, str], why: str) -> None:
    with pytest.raises(RecordError, match=why):
        made(said(), **given)


@pytest.mark.parametrize("text", ['{"schema":' + "9" * 5000 + "}", '{"schema":' + "[" * 100_000])
def test_a_record_that_python_cannot_hold_is_broken(text: str) -> None:
    with pytest.raises(RecordError, match="cut off or broken"):
        read_answer(text)


def invoke(*arguments: str, given: str | None = None) -> Any:
    return CliRunner().invoke(app, ["software", "record", *arguments], input=given)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (
            {"nvidia_driver": "580.1", "imex": "580.2"},
            "imex is 580.2, the driver 580.1: they have one version",
        ),
        ({"nvidia_driver": False, "gdrdrv": "2.6"}, "gdrdrv without an NVIDIA driver"),
        ({"cuda_all": "12.8", "cuda_default": "13.2"}, "CUDA 13.2 is the default and not one of 12.8"),
        ({"login_user": "ubuntu"}, "the login user ubuntu is none of al2023"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(facts: dict[str, Any], why: str) -> None:
    with pytest.raises(RecordError, match=f"the record contradicts itself: {why}"):
        made(said(**facts))


OF = ["--id", "pcs-ready-dlami-x", "--family", "pcs-ready-dlami", "--release", "20261130"]


def test_the_command_prints_the_script() -> None:
    printed = invoke("--script")
    assert printed.exit_code == 0
    assert printed.output == script()


def test_the_command_prints_the_record_and_tells_what_is_unknown(tmp_path: Path) -> None:
    file = tmp_path / "node.json"
    file.write_text(said(nccl=False))
    for printed in (invoke(str(file), *OF), invoke("-", *OF, given=said(nccl=False))):
        assert printed.exit_code == 0
        assert json.loads(printed.stdout)["values"]["nccl"] == [False, "confirmed", "node", "2026-12-01"]
        assert printed.stderr.startswith("4 values; unknown: nvidia_driver, ")


def test_a_node_that_shows_more_than_its_image_is_told_of() -> None:
    changed = said().replace('"installed": ""', '"installed": "efa nccl"')
    assert "not only the image: Ultracluster has installed efa nccl" in invoke("-", *OF, given=changed).stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "ultracluster software record --script >record.sh"),
        (["-"], "--id is missing"),
        (["no-such-file", *OF], "cannot read no-such-file"),
        (["-", *OF[:2], "--family", "pcs", "--release", "20261130"], "-: family 'pcs' is unknown"),
    ],
)
def test_the_command_refuses_with_what_to_do(arguments: list[str], why: str) -> None:
    refused = invoke(*arguments, given=said())
    assert refused.exit_code == 2
    assert why in refused.stderr
