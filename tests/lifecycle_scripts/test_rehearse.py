"""`make rehearse`: its last line is a word, with what `plan` names or the first cause, and a count."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import first_boot.__main__ as command
import first_boot.rehearsal as rehearsal
import pytest
from first_boot.__main__ import Verdict, last_line
from project import ROOT

from ultracluster.config import Environment
from ultracluster.software.first_boot import GroupBoot, first_boot
from ultracluster.software.lock import read_lock, release_file
from ultracluster.software.records import Checked, Row, checked

RECORDS = Checked(
    Path("pcs.lock"),
    (Row("nccl", "libnccl2", 3, "checked", "its maker"), Row("enroot", "enroot", 9, "open", "nobody")),
)
COUNT = "1 of 2 artefacts checked against a record"


@pytest.mark.parametrize(
    ("verdicts", "line"),
    [
        ({"dev/gpu": Verdict(())}, f"READY, {COUNT}"),
        (
            {"prod/login": Verdict(()), "prod/train": Verdict(("dcgm-exporter", "nvidia-fs"))},
            f"DEGRADED as plan says: prod/train without dcgm-exporter, nvidia-fs; {COUNT}",
        ),
        (
            {
                "dev/gpu": Verdict(("nccl",), "dev/gpu: proof: efa is 0, 1 should be there"),
                "b": Verdict((), "c"),
            },
            f"FAILED: dev/gpu: proof: efa is 0, 1 should be there (and 1 more); {COUNT}",
        ),
    ],
)
def test_the_last_line(verdicts: dict[str, Verdict], line: str) -> None:
    assert last_line(verdicts, [RECORDS]) == (line.partition(" ")[0].strip(",:"), line)


def test_one_digit_of_a_recorded_digest_fails_and_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "eks-2026.10"
    known = {row.name for row in checked(release_file(name)).rows if row.state == "checked"}
    file = tmp_path / f"{name}.lock"
    text = release_file(name).read_text()
    line = next(row for row in text.splitlines() if '"name"' in row and any(one in row for one in known))
    digest = text[text.index(line) :].partition('"sha256": "')[2][:64]
    file.write_text(text.replace(digest, ("0" if digest[0] != "0" else "1") + digest[1:]))

    monkeypatch.setattr(command, "release_file", lambda _: file)
    monkeypatch.setattr(command, "release_of", lambda _: read_lock(file))
    monkeypatch.setattr(command, "_rehearse", lambda _: Verdict(()))
    assert command.main(["eks-trn2"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"FAILED: {file}:") and digest[1:16] in last


def test_an_image_of_an_unknown_system_is_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(environment: Environment) -> tuple[GroupBoot, ...]:
        groups = first_boot(environment)
        return tuple(replace(one, image=one.image and replace(one.image, os="haiku1")) for one in groups)

    monkeypatch.setattr(rehearsal, "first_boot", unknown)
    assert command.main(["dev"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("dev/controller: hyperpod-slurm-") and "operating system 'haiku1'" in said


def test_it_needs_what_the_plan_installs_and_no_more() -> None:
    """`make rehearse` on a fresh machine has neither the SDK of AWS nor the CDK."""
    absent = "import sys; sys.modules |= dict.fromkeys(('boto3', 'botocore', 'aws_cdk'))"
    done = subprocess.run(
        [sys.executable, "-c", f"{absent}; import first_boot.__main__"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests" / "support")},
        capture_output=True,
        check=False,
    )

    assert not done.returncode, done.stderr.decode()
