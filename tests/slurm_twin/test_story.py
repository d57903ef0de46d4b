"""`make twin`: what it tells is what happens."""

from __future__ import annotations

import pytest
from slurm_twin import story
from slurm_twin.__main__ import main
from slurm_twin.root import NoTwinError
from tutorials.page import FOLDER, differs, read


def test_a_lost_gpu_drains_its_node_until_it_has_rebooted_and_the_gang_runs_again() -> None:
    said: list[str] = []
    try:
        found = story.tell(4, said.append)
    except NoTwinError as error:
        pytest.skip(str(error))

    assert found.reason == "ultracluster:xid:79"
    assert found.other_reasons == []
    assert 0 < found.drain < found.requeue < found.again
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
