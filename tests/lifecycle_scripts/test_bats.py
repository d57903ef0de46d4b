"""The bash that runs on the nodes: linted, formatted, and run in sandboxes (tests/lifecycle_scripts/)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from first_boot.sandbox import in_memory
from needs import without_setup

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "lifecycle_scripts"
TESTS = ROOT / "tests" / "lifecycle_scripts"

ENTRIES = [
    "bake.sh",
    "eks_user_data.sh",
    "hyperpod_eks_on_create.sh",
    "hyperpod_on_create.sh",
    "hyperpod_on_init_complete.sh",
    "parallelcluster_on_node_configured.sh",
    "parallelcluster_on_node_start.sh",
    "pcs_node.sh",
]
SHELL_FILES = sorted(SCRIPTS.rglob("*.sh"))
TEST_FILES = sorted([*TESTS.glob("*.bats"), *TESTS.glob("*.bash"), *(TESTS / "fakes").iterdir()])


def tool(name: str) -> str:
    """Its path; the test is skipped where the machine has no such tool."""
    # The bats package names its command in a way that npm does not link into node_modules/.bin.
    places = [
        ROOT / "node_modules" / "bats" / "bin",
        ROOT / "node_modules" / ".bin",
        ROOT / ".venv" / "bin",
    ]
    for place in [*map(str, places), None]:
        if found := shutil.which(name, path=place):
            return found
    pytest.skip(without_setup(name))


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_scripts_are_found() -> None:
    assert {path.name for path in SCRIPTS.glob("*.sh")} == set(ENTRIES)
    assert len(SHELL_FILES) > len(ENTRIES)
    assert len(list(TESTS.glob("*.bats"))) > 1


def test_shellcheck() -> None:
    """Of the tests' own bash: `make lint` has the scripts, which take three times as long."""
    run(tool("shellcheck"), "-x", *TEST_FILES)


def test_format() -> None:
    run(tool("shfmt"), "-d", "-i", "2", "-ci", *SHELL_FILES, *TEST_FILES)


@pytest.mark.parametrize("entry", ENTRIES)
def test_entry_is_executable(entry: str) -> None:
    path = SCRIPTS / entry
    assert path.stat().st_mode & 0o111 == 0o111
    assert path.read_text().startswith("#!/usr/bin/env bash\n")


def test_a_script_is_executable_where_it_has_an_interpreter() -> None:
    """Nodes fetch scripts from S3, which keeps no modes, and compare them with a hash that has them."""
    for path in (path for path in SCRIPTS.rglob("*") if path.is_file()):
        assert bool(path.stat().st_mode & 0o100) == path.read_bytes().startswith(b"#!"), path


def steps_of(entry: str) -> list[str]:
    """What the table in lib/steps.sh has for an entry."""
    return run("bash", "-c", f'source "{SCRIPTS}/lib/steps.sh"; steps::of {entry}').split()


def test_every_step_has_its_verbs_and_is_used() -> None:
    used = {step for entry in ENTRIES for step in steps_of(entry.removesuffix(".sh"))}
    # `own` is where a team's own steps run
    assert used - {"own"} == {path.stem for path in (SCRIPTS / "steps").iterdir()}
    for path in (SCRIPTS / "steps").iterdir():
        for verb in ("detect", "install", "verify"):
            assert f"\n{path.stem}::{verb}() {{" in path.read_text(), f"{path.stem}::{verb}"


DEFINED = re.compile(r"^([a-z_]+::\w+)\(\)|^readonly (?:-\w+ )?(\w+)=", re.MULTILINE)
SOURCED = re.compile(r"^for library in (.+); do$|/(\w+)\.sh\"$", re.MULTILINE)


@pytest.mark.parametrize("step", sorted((SCRIPTS / "steps").iterdir()), ids=lambda path: path.stem)
def test_a_step_lists_the_libraries_that_it_calls(step: Path) -> None:
    """`# Libraries:` is all that run_verb.sh sources: another function would be missing on the node."""
    text = step.read_text()
    line = re.search(r"^# Libraries:(.*)$", text.partition("\n\n")[0], re.MULTILINE)
    assert line, "no line `# Libraries:` in its header"
    libraries = {path.stem: path.read_text() for path in (SCRIPTS / "lib").iterdir()}
    sourced = [*line[1].split(), "answer", "lock", "log"]
    for name in sourced:
        words = " ".join(loop or one for loop, one in SOURCED.findall(libraries[name])).split()
        sourced += [word for word in words if word not in sourced]
    used = set(re.findall(r"[a-z_]+::\w+|\b[A-Z][A-Z_]+\b", text)) - set(sum(DEFINED.findall(text), ()))
    called = {name: used & set(sum(DEFINED.findall(code), ())) for name, code in libraries.items()}
    missing = {
        name: sorted(words) for name, words in called.items() if words and name not in [*sourced, "step"]
    }
    assert not missing
    assert all(called[name] for name in line[1].split() if name != "health_gpu"), "one that it does not call"


@pytest.mark.parametrize("entry", ENTRIES)
def test_entry_runs_its_own_steps(entry: str) -> None:
    name = entry.removesuffix(".sh")
    assert re.search(rf"(^|\) )entry::run {name}( |$)", (SCRIPTS / entry).read_text(), re.MULTILINE)
    steps = steps_of(name)
    assert len(steps) == len(set(steps))


def test_order_of_steps() -> None:
    """What is built on something comes after it, in every entry."""
    order = [
        ("nvidia_driver", "cuda_runtime"),
        ("nvidia_driver", "slurm"),
        ("efa", "libfabric"),
        ("efa", "ofi_nccl"),
        ("gdrcopy", "ofi_nccl"),
        ("efa", "lustre_efa"),
        ("cuda_runtime", "gdrcopy"),
        ("nccl", "nccl_tests"),
        ("lustre_client", "lustre_efa"),
        ("lustre_client", "filesystems"),
        # options of modules, before these are loaded
        ("lustre_tuning", "lustre_efa"),
        ("nvidia_fs", "lustre_efa"),
        ("lustre_efa", "filesystems"),
        ("filesystems", "homes"),
        ("homes", "session_user"),
        ("scratch", "container_storage"),
        ("scratch", "enroot_config"),
        ("enroot", "enroot_config"),
        ("container_toolkit", "enroot"),
        ("enroot", "pyxis"),
        ("limits", "slurm"),
        ("container_toolkit", "holds"),
    ]
    for entry in ENTRIES:
        steps = steps_of(entry.removesuffix(".sh"))
        for first, second in order:
            if first in steps and second in steps:
                assert steps.index(first) < steps.index(second), (entry, first, second)


def test_metadata_are_closed_before_anything_is_downloaded() -> None:
    """It takes no file of the release; what does states it in `needs`."""
    texts = {path.stem: path.read_text() for path in (SCRIPTS / "steps").iterdir()}
    needs = {name for name, text in texts.items() if f"\n{name}::needs() {{" in text}
    brings = {name for name, text in texts.items() if re.search(r"software::(unpack|install|fetch) ", text)}
    # on a plain system, from a repository
    assert brings - needs == {"nvidia_driver"}
    assert not needs & {"metadata", "limits", "job_ssh", "job_access"}
    for entry in ENTRIES:
        steps = steps_of(entry.removesuffix(".sh"))
        if "metadata" in steps:
            assert steps[0] == "metadata", entry


def test_nothing_that_hyperpod_refuses() -> None:
    assert not list(SCRIPTS.rglob("provisioning_parameters.json"))


def test_downloads_only_in_one_place() -> None:
    downloads = re.compile(r"\b(curl|wget|aws s3|git clone|pip3? install|rsync|scp)\b")
    # the second one fetches the folder in which the first one is
    allowed = {SCRIPTS / "lib" / "fetch.sh", SCRIPTS / "files" / "from_s3.sh"}
    for path in SHELL_FILES:
        if path in allowed:
            continue
        code = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
        assert not [line for line in code if downloads.search(line)], path


HANGS_UP = re.compile(r"\|\s*(awk [^|]*\bexit\b|grep (-\S+ )*-\w*q)")


def test_nobody_hangs_up_on_a_program_that_still_writes() -> None:
    """With `pipefail` its SIGPIPE is a failure, now and then: `awk` reads to the end, `grep -q` a string."""
    assert HANGS_UP.search("ldconfig -p | awk '/x/ { print; exit }'") and HANGS_UP.search(
        "cat x | grep -s -qF y"
    )
    early = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in SHELL_FILES
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if not line.strip().startswith("#") and HANGS_UP.search(line.replace("||", ""))
    ]
    assert early == []


def test_no_windows_line_ends() -> None:
    for path in [path for path in SCRIPTS.rglob("*") if path.is_file() and path.suffix != ".pyc"]:
        assert b"\r" not in path.read_bytes(), path


@pytest.mark.parametrize("scenario", sorted(path.stem for path in TESTS.glob("*.bats")))
def test_bats(scenario: str) -> None:
    folder = in_memory()
    environment = {"TMPDIR": folder} if folder else {}
    assert "\nok 1 " in run(tool("bats"), "--tap", TESTS / f"{scenario}.bats", **environment)
