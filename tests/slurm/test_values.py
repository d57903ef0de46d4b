"""Values of slurm.conf that depend on the cluster; test_configuration.py has what becomes of them."""

from __future__ import annotations

import pytest

from ultracluster.slurm.values import minutes, value_of


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("7-00:00:00", 10080), ("1-12", 2160), ("12:00:00", 720), ("90", 90), ("90:30", 91),
     ("UNLIMITED", None), ("INFINITE", None), ("-1", None), ('"2-00:00:00"', 2880)],
)  # fmt: skip
def test_slurms_times_are_read(limit: str, expected: int | None) -> None:
    assert minutes(limit) == expected


def test_a_setting_is_found_in_any_case() -> None:
    assert value_of({"killwait": 60}, "KillWait") == "60"
    assert value_of({"killwait": 60}, "KillWai") is None
