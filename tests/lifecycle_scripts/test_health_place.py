"""Where the health loop keeps what it has: below a root that a test gives it, never this machine's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from health_modules import health_module
from machine_log import FOLDER, MachineLogError

place = health_module("place")


def test_a_test_has_a_folder_of_its_own() -> None:
    assert Path("/") != place.ROOT and place.ROOT.is_dir()
    for path in (place.HOME, place.STATE, place.RUN, place.LOG):
        assert path.is_relative_to(place.ROOT)
    place.say("said by a test")
    assert "said by a test" in place.LOG.read_text(encoding="utf-8")


def test_a_write_into_the_log_of_this_machine_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path(FOLDER) / "no-such.log"
    monkeypatch.setattr(place, "LOG", file)
    with pytest.raises(MachineLogError, match="ULTRACLUSTER_ROOT"):
        place.say("x")
    for write in (
        lambda: file.open("w"),
        lambda: os.open(file, os.O_WRONLY | os.O_CREAT),
        lambda: os.mkdir(str(file)),  # noqa: PTH102
        lambda: file.touch(),
    ):
        with pytest.raises(MachineLogError):
            write()
    assert not file.exists()
    Path(f"{FOLDER}-of-another").exists()  # a neighbour's name, and reading, are free
