"""`make twin`: what it tells is what happens."""

from __future__ import annotations

import inspect
import os
import re
import sys

import pytest
from slurm_twin import story
from slurm_twin.__main__ import main
from slurm_twin.root import NoTwinError
from tutorials.page import FOLDER, differs, read


def test_two_lost_gpus_close_their_nodes_under_the_default_limits_and_both_jobs_run_elsewhere() -> None:
    said: list[str] = []
    try:
        found = story.tell(4, said.append)
    except NoTwinError as error:
        pytest.skip(str(error))

    assert found.reasons == ["ultracluster:xid:79", "ultracluster:xid:79"]
    assert found.other_reasons == []
    assert 0 < found.drain < found.requeue < found.again
    assert 0 < found.closed < found.again
    assert sum("its repair waits for the share" in line for line in said) == 1, "one is out, and one waits"
    assert sum("was queued again, and runs on" in line for line in said) == 2
    assert all(re.match(r" *[0-9]+\.[0-9] s  ", line) for line in said), "each with its time"
    assert any("vision" in line and "alice" in line and "speech" in line and "bob" in line for line in said)
    assert any("4 nodes idle, gpu:h100:8" in line for line in said)
    assert not differs(shown("bad-node.md"), "\n".join(said)), "the tutorial shows another story"
    assert len(said) <= 24, "one screen"
    assert max(map(len, said)) <= 120


def shown(page: str) -> tuple[str, ...]:
    """What a tutorial says that `make twin NODES=4` prints."""
    steps = [step for block in read(FOLDER / page).blocks for step in block.steps if block.needs == "twin"]
    (found,) = [step.output for step in steps if step.command == "make twin NODES=4"]
    assert found
    return found


@pytest.mark.parametrize("arguments", [[], ["many"], ["1"]])
def test_a_number_that_is_none_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "make twin NODES=64" in capsys.readouterr().err


def test_each_line_is_out_when_it_is_said_also_through_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with os.fdopen(reader, "rb", buffering=0) as lines, os.fdopen(writer, "w") as out:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", out)
            inspect.signature(story.tell).parameters["say"].default("   1.0 s  up")
        assert lines.read() == b"   1.0 s  up\n"
