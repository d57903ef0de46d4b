"""Rotation of logs on a node, by the real logrotate."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from needs import need
from project import ROOT

SCRIPTS = ROOT / "lifecycle_scripts"


def _configuration(root: Path, family: str = "pcs") -> str:
    """What the step would write for Slurm on a node with this root."""
    libraries = "; ".join(f"source {SCRIPTS}/lib/{name}.sh" for name in ("log", "files"))
    command = f"set -euo pipefail; {libraries}; source {SCRIPTS}/steps/logs.sh; logs::slurm"
    environment = {
        "PATH": os.environ["PATH"],
        "ULTRACLUSTER_ROOT": str(root),
        "ULTRACLUSTER_HOME": str(SCRIPTS),
        "NODE_FAMILY": family,
    }
    return subprocess.run(
        ["bash", "-c", command], env=environment, text=True, capture_output=True, check=True
    ).stdout


def _within(root: Path, text: str) -> str:
    return re.sub(r"(?<![\w.])/var/log/", f"{root}/var/log/", text)


def _rotate(root: Path, text: str) -> None:
    """Run logrotate over the text, with a `pkill` that writes down how it was called."""
    (root / "bin").mkdir(exist_ok=True)
    pkill = root / "bin/pkill"
    pkill.write_text(f'#!/bin/sh\necho "$*" >>{root}/signals\nexit 1\n')
    pkill.chmod(0o755)
    need("logrotate")
    logrotate = shutil.which("logrotate", path=f"{os.environ['PATH']}:/usr/sbin")
    assert logrotate
    file = root / "logrotate.conf"
    file.write_text(_within(root, text).replace("size 20M", "size 1k"))
    file.chmod(0o644)
    subprocess.run(
        [logrotate, "--state", str(root / "state"), str(file)],
        env={"PATH": f"{root / 'bin'}:{os.environ['PATH']}"},
        text=True,
        capture_output=True,
        check=True,
    )


def _log(root: Path, path: str, size: int = 2000) -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x" * size + "\n")
    file.chmod(0o640)
    return file


def test_slurm_is_asked_to_open_its_logs_again(tmp_path: Path) -> None:
    (tmp_path / "opt/slurm/etc").mkdir(parents=True)
    (tmp_path / "opt/slurm/etc/slurm.conf").write_text("SlurmdLogFile=/var/log/own/slurmd.log # ours\n")
    own, usual, small = (
        _log(tmp_path, "/var/log/own/slurmd.log"),
        _log(tmp_path, "/var/log/slurm/slurmctld.log"),
        _log(tmp_path, "/var/log/slurmdbd.log", 10),
    )
    opened = own.open("a")
    _rotate(tmp_path, _configuration(tmp_path))
    for file in (own, usual):
        assert not file.stat().st_size
        assert file.stat().st_mode & 0o777 == 0o640
        assert file.with_name(f"{file.name}.1.gz").exists()
    assert small.stat().st_size == 11
    # renamed, not copied: what a daemon writes until it has the signal is not cut
    assert os.fstat(opened.fileno()).st_ino != own.stat().st_ino
    opened.close()
    assert (tmp_path / "signals").read_text().splitlines() == [
        f"-x --signal SIGUSR2 {name}" for name in ("slurmctld", "slurmd", "slurmdbd")
    ]


def test_our_logs_are_rotated_and_a_fifth_old_one_is_gone(tmp_path: Path) -> None:
    text = (SCRIPTS / "files/logrotate.conf").read_text()
    for _ in range(6):
        _log(tmp_path, "/var/log/ultracluster/report.jsonl")
        _log(tmp_path, "/var/log/provision/provisioning.log")
        _rotate(tmp_path, text)
    assert len(list((tmp_path / "var/log/ultracluster").glob("report.jsonl.*"))) == 4
    assert (tmp_path / "var/log/provision/provisioning.log.1").stat().st_size == 2001


@pytest.mark.parametrize(
    "pattern",
    [
        "/var/log/slurm*.log",
        '"/var/log/slurmd.log" /var/log/slurmctld.log',
        "'/var/log/slurmd.log' \"/var/log/slurmctld.log\"",
    ],
)
def test_what_the_image_rotates_is_left_to_it(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "etc/logrotate.d").mkdir(parents=True)
    (tmp_path / "etc/logrotate.d/slurm").write_text(f"{pattern} {{\n  weekly\n}}\n")
    (tmp_path / "etc/logrotate.d/other").write_text("/var/log/other.log {\n}\n")
    paths = _configuration(tmp_path).splitlines()[1]
    assert not {"/var/log/slurmd.log", "/var/log/slurmctld.log"} & set(paths.split())
    assert "/var/log/slurm/slurmd.log" in paths
    assert _configuration(tmp_path, "eks-al2023") == ""
