"""What the files of a team's own steps say of themselves, and which nodes run them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from project import ROOT

from ultracluster.config import Environment, load
from ultracluster.model.own_steps import OwnStep, named_steps, own_steps, steps_of_group
from ultracluster.scripts_folder import own_step


def step(folder: Path, name: str = "10_proxy.sh", text: str = "") -> OwnStep:
    (folder / name).write_text(text)
    return OwnStep(name, folder / name)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("10_proxy.sh", "proxy"),
        ("99_a_2.sh", "a_2"),
        ("1_proxy.sh", ""),
        ("10_Proxy.sh", ""),
        ("10_2nd.sh", ""),
        ("proxy.sh", ""),
        (f"10_{'a' * 31}.sh", ""),
    ],
)
def test_the_name_is_that_of_the_file_without_its_number(file: str, name: str) -> None:
    assert OwnStep(file, Path(file)).name == name


@pytest.mark.parametrize(
    ("line", "says", "need"),
    [
        ("# need: required", "required", "required"),
        ("#need:required", "required", "required"),
        ("# need: optional", "optional", "optional"),
        ("# need: maybe", "maybe", "optional"),
        ("need=required", "", "optional"),
        ("# it has a need: required things", "", "optional"),
    ],
)
def test_the_need_stands_in_a_comment(line: str, says: str, need: str, tmp_path: Path) -> None:
    found = step(tmp_path, text=f"# shellcheck shell=bash\n{line}\n")
    assert (found.says_need, found.need) == (says, need)


def test_a_file_that_is_not_there_has_no_content(tmp_path: Path) -> None:
    missing = OwnStep("10_no.sh", tmp_path / "10_no.sh")
    assert (missing.content, missing.text, missing.need) == (None, "", "optional")


def test_its_digest_names_what_its_nodes_get(tmp_path: Path) -> None:
    told = step(tmp_path, text="# need: required\n").for_node()

    assert told["file"] == "10_proxy.sh" and told["need"] == "required"
    assert own_step(told["sha256"]) == b"# need: required\n"
    assert told["sha256"] == hashlib.sha256(b"# need: required\n").hexdigest()
    with pytest.raises(KeyError):
        own_step("0" * 64)


def environment(folder: Path) -> Environment:
    steps = ("./b/10_late.sh", "./20_agent.sh", "./a/05_first.sh")
    made = load(ROOT / "environments" / "dev.yaml").environment.at(folder / "team.yaml")
    return made.model_copy(update={"lifecycle_steps": steps})


def test_numbers_order_them_wherever_they_lie(tmp_path: Path) -> None:
    found = environment(tmp_path)

    assert [one.path for one in named_steps(found)] == ["./b/10_late.sh", "./20_agent.sh", "./a/05_first.sh"]
    assert [one.name for one in own_steps(found)] == ["first", "late", "agent"]
    assert own_steps(found)[0].file == tmp_path / "a" / "05_first.sh"
    assert [one.name for one in steps_of_group(found, "gpu")] == ["first", "late", "agent"]


@pytest.mark.parametrize(("chosen", "run"), [(("agent", "first"), ["first", "agent"]), ((), [])])
def test_a_group_runs_what_it_chooses_in_the_same_order(
    chosen: tuple[str, ...], run: list[str], tmp_path: Path
) -> None:
    made = environment(tmp_path)
    groups = dict(made.node_groups)
    groups["gpu"] = groups["gpu"].model_copy(update={"lifecycle_steps": chosen})
    changed = made.model_copy(update={"node_groups": groups})

    assert [one.name for one in steps_of_group(changed, "gpu")] == run
    assert len(steps_of_group(changed, "login")) == 3
