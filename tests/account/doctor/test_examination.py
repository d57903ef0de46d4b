"""Questions put to the sources side by side: one that is slow or broken takes nothing from the others."""

from __future__ import annotations

from threading import Barrier, Event

from ultracluster.account.doctor import Fact
from ultracluster.account.doctor.examination import Inquiry


def test_sources_are_asked_side_by_side() -> None:
    together = Barrier(8)
    inquiry = Inquiry()

    def question() -> list[Fact]:
        together.wait(20)  # breaks unless all eight are being asked
        return []

    for number in range(8):
        inquiry.ask(f"source {number}", question)
    found = inquiry.collect()
    assert [(source.name, source.state) for source in found.sources] == [
        (f"source {n}", "read") for n in range(8)
    ]


def test_a_source_that_does_not_answer_in_time_is_a_line_and_the_others_answer() -> None:
    never, late = Event(), []
    inquiry = Inquiry(budget=0.5, progress=late.append)
    slow = inquiry.ask("slow", lambda: None if never.wait(30) else [Fact("slow", "x", "too late")])
    inquiry.ask("after it", lambda: [Fact("after it", "x", "never asked")], needs=[slow])
    inquiry.ask("quick", lambda: [Fact("quick", "x", "seen")])
    inquiry.ask("nothing to ask", list, when=lambda: False)
    inquiry.ask("broken", lambda: [Fact("", "", {}["key"])])
    found = inquiry.collect()
    never.set()
    states = {source.name: (source.state, source.why) for source in found.sources}
    assert list(states) == ["slow", "after it", "quick", "broken"]
    assert states["slow"][0] == "not readable" and "no answer within 0.5 seconds" in states["slow"][1]
    assert states["after it"][0] == "not readable" and states["quick"] == ("read", "")
    assert states["broken"] == ("not readable", "KeyError: 'key'")
    assert [fact.text for fact in found.facts] == ["seen"] and late[0] == "slow" and not found.healthy
