"""`make facts`: what of the catalogue is new, gone, too old or about to end."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from tools import facts

DAY = dt.date(2026, 11, 22)
CLASSES = {"classes": {"prices": {"days": 90, "files": ["a.json", "b.json"]}}}


def texts(lines: list[facts.Line]) -> list[str]:
    return [f"{line.kind}: {line.where}: {line.what}" for line in lines]


def test_a_fresh_catalogue_has_nothing_to_do() -> None:
    """What ends soon and is used by nothing of ours is told, and is no work."""
    found = facts.everything(DAY)
    assert [line for line in found if line.due] == []
    assert any("Kubernetes 1.34" in line.what for line in found)


def test_every_file_of_the_catalogue_has_a_class() -> None:
    assert not [line for line in facts.everything(DAY) if "tools/facts.json" in line.what]


def test_old_files_and_files_without_a_class_are_told() -> None:
    dates = {"a.json": "2026-08-24", "c.json": "2026-11-22"}
    assert texts(list(facts.ages(DAY, dates, CLASSES))) == [
        "new: c.json: no class in tools/facts.json says how old it may be",
        "gone: b.json: tools/facts.json has a class for it",
    ]
    found = texts(list(facts.ages(DAY + dt.timedelta(days=1), dates, CLASSES)))
    assert "too old: a.json: of 2026-08-24, 91 days; its class allows 90" in found


def test_a_year_from_now_there_is_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert facts.main(["--today", "2027-07-01"]) == 1
    out = capsys.readouterr().out
    assert "too old" in out and "standard support of Kubernetes 1.36 ends on 2027-08-02; used by" in out
    assert "environments/eks-p5en.yaml" in out


def test_rows_that_come_go_and_change_are_told() -> None:
    old = {"about": {}, "types": {"a": {"vcpu": 2}, "b": {"vcpu": 4}}}
    new = {"about": {"date": "x"}, "types": {"a": {"vcpu": 3}, "c": {"vcpu": 8}}}
    assert texts(list(facts.compared("t.json", old, new))) == [
        "new: t.json: types: c",
        "gone: t.json: types: b",
        "changed: t.json: types: a: vcpu 2 -> 3",
    ]


def test_an_ended_release_that_is_used_stays_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_used", lambda: {"1.33": ["environments/a.yaml"]})
    (line,) = [one for one in facts.everything(DAY) if one.due]
    assert line.what == "standard support of Kubernetes 1.33 ends on 2026-07-29; used by environments/a.yaml"


def test_types_that_are_left_out_exist_and_have_a_reason() -> None:
    left_out = json.loads(facts.CLASSES.read_text())["left_out"]
    assert all(left_out.values())
    assert left_out.keys() <= facts.authorities.enum("ec2", "InstanceType")
