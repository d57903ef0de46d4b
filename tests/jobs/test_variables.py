"""What people write into jobs: the variables that do harm, and a backslash that continues nothing."""

from __future__ import annotations

import pytest

from ultracluster.jobs.variables import SET_BETTER, text_notes, variable_note


@pytest.mark.parametrize("name", SET_BETTER)
def test_each_variable_has_its_reason_once(name: str) -> None:
    text = f"export {name}=1\n{name}=1 srun a\n"
    assert list(text_notes(text, nvidia=True)) == [(1, f"{name} is better left out: {SET_BETTER[name]}")]
    assert variable_note(f"MY_{name}", "1", nvidia=True) == ""


@pytest.mark.parametrize("name", ["FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA"])
def test_trainium_needs_what_gpus_do_without(name: str) -> None:
    assert variable_note(name, "efa", nvidia=False) == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("srun a \\ # b", True),
        ("srun a \\ ", True),
        ("srun a \\", False),
        ("# srun a \\ # b", False),
        ("echo 'a \\ b'", False),
    ],
)
def test_a_backslash_continues_nothing_where_text_stands_behind_it(line: str, says: bool) -> None:
    assert bool(list(text_notes(line, nvidia=True))) == says
