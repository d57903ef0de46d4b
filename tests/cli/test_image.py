"""`ultracluster software show --images` and `software show`."""

from __future__ import annotations

import json

import pytest
from command_line import Ended, ultracluster

from ultracluster.catalog.images import fields, image, images


def run(*arguments: str) -> Ended:
    return ultracluster("software", "show", *arguments)


def test_list_names_every_image() -> None:
    result = run("--images")

    assert result.returncode == 0
    names = {line.split()[0] for line in result.stdout.splitlines() if line}
    assert {one.id for one in images()} <= names
    bad = next(line for line in result.stdout.splitlines() if "nvidia-1.34-x86_64-20260930" in line)
    assert bad.endswith("reported bad")


def test_list_takes_a_family_and_a_system() -> None:
    rows = json.loads(run("--images", "--family", "hyperpod-slurm", "--os", "ubuntu24.04", "--json").stdout)[
        "images"
    ]

    assert rows
    assert {(row["family"], row["os"]) for row in rows} == {("hyperpod-slurm", "ubuntu24.04")}


def test_show_says_who_says_so_and_what_nobody_says() -> None:
    result = run("eks-al2023-nvidia-1.34-x86_64-20260930")
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line}

    assert set(fields()) <= set(lines)
    assert lines["kernel"].split()[1:3] == ["6.12.110-135.201", "reported"]
    assert "amazon-eks-ami issue 2845" in lines["kernel"]
    assert lines["efa_installer"].split() == ["efa_installer", "?"]
    assert lines["libfabric"].split()[1] == "-"
    assert "may panic" in lines["reported:"]


def test_show_as_json_keeps_unknown_and_no_apart() -> None:
    shown = json.loads(run("eks-al2023-nvidia-1.34-x86_64-20261012", "--json").stdout)["image"]

    assert shown["values"]["efa_installer"] is None
    assert shown["values"]["libfabric"]["value"] is False
    driver = image("eks-al2023-nvidia-1.34-x86_64-20261012").fact("nvidia_driver")
    assert driver and shown["values"]["nvidia_driver"]["value"] == driver.value
    assert list(shown["values"]) == list(fields())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("hyperpod-slurm-ubuntu22.04-x86_64-20260918",), "20260917"),
        (("--family", "hyperpod"), "hyperpod-slurm"),
        (("--os", "ubuntu2204"), "ubuntu22.04"),
    ],
)
def test_what_is_not_known_is_one_line_and_exit_code_2(arguments: tuple[str, ...], says: str) -> None:
    result = run(*arguments)

    assert (result.returncode, result.stdout) == (2, "")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
