"""`ultracluster job submit --workdir`: what travels, what is said of it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_queue import SCRIPT, Fake, opened, run
from project import ROOT

from ultracluster.cli import job_queue

BUCKETS = """  job_buckets:
    - bucket: example-runs
      write: true
"""


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Fake:
    return opened(monkeypatch)


@pytest.fixture
def folder(queue: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """A project with an environment whose jobs write to a bucket; what is stored there."""
    stored: list[Any] = []
    monkeypatch.setattr(job_queue, "upload", lambda _, workdir: not stored.append(workdir))
    text = (ROOT / "environments" / "dev.yaml").read_text()
    assert text.count("\nstorage:\n") == 1
    (tmp_path / "env.yaml").write_text(text.replace("\nstorage:\n", f"\nstorage:\n{BUCKETS}"))
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(tmp_path)
    return stored


def test_a_folder_travels_with_a_job_and_its_size_is_said(queue: Fake, folder: list[Any]) -> None:
    told = run("submit", "env.yaml", "-", "--workdir", "code", stdin=SCRIPT).stderr
    (workdir,), (sent,) = folder, queue.submitted
    assert f"workdir: code, 1 file, 9 bytes, as s3://example-runs/{workdir.key}" in told
    assert "workdir: stored" in told and sent.workdir is workdir
    assert workdir.digest in sent.text and sent.text.startswith(SCRIPT.removesuffix("true\n"))
    run("submit", "env.yaml", "--nodes", "1", "--workdir", "code")
    assert "/train.py" not in queue.submitted[1].text and "train.py" in queue.submitted[1].text


def test_a_folder_of_a_dry_run_is_not_stored(queue: Fake, folder: list[Any]) -> None:
    shown = run("submit", "env.yaml", "--nodes", "1", "--workdir", "code", "--dry-run")
    assert "1 file, 9 bytes" in shown.stderr and "ultracluster-workdirs" in shown.stdout
    assert not folder and not queue.submitted


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("env.yaml", "-", "--workdir", "absent"), "absent: No such file"),
        (("env.yaml", "-", "--workdir", "big", "--workdir-limit", "1"), "has more than 1 MB"),
        (("env.yaml", "-", "--workdir", "code", "--workdir-limit", "0"), "--workdir-limit: it should be"),
        ((str(ROOT / "environments" / "dev.yaml"), "-", "--workdir", "code"), "storage.job_buckets"),
    ],
)
def test_a_folder_that_cannot_travel_is_refused(
    words: tuple[str, ...], said: str, queue: Fake, folder: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "data").write_bytes(bytes(2_000_000))
    assert said in " ".join(run("submit", *words, stdin=SCRIPT, code=2).output.split())
    assert not queue.submitted and not folder


def test_a_script_that_is_not_for_bash_takes_no_folder(queue: Fake, folder: list[Any]) -> None:
    script = "#!/usr/bin/env python3\nprint(1)\n"
    refused = run("submit", "env.yaml", "-", "--workdir", "code", stdin=script, code=2)
    assert "begin it with `#!/bin/bash`" in refused.output and not folder
