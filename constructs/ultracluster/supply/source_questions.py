"""Describe what the sources of the release have today, of what nodes could install from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ultracluster.account.preflight.rows import Level, Question, Row
from ultracluster.config import Environment
from ultracluster.software import InvalidLockError, UnknownReleaseError
from ultracluster.software.first_boot import release_of
from ultracluster.supply import online
from ultracluster.supply.artifacts import default_cache
from ultracluster.supply.downloads import Limits
from ultracluster.supply.environment_lock import needs_of
from ultracluster.supply.online import SourceQuestion

_AGAIN = "`ultracluster software show --check --online` says more"


def questions(environment: Environment, limits: Limits, cache: Path | None = None) -> Iterator[Question]:
    """One question for each file and repository; none where nodes fetch from a mirror, or nothing at all.

    Args:
        limits: how long the sources may take.
        cache: folder that keeps indexes of package repositories; None is the user's own.
    """
    if environment.software.mirror or environment.network.egress == "closed":
        return
    try:
        release = release_of(environment)
    except (InvalidLockError, UnknownReleaseError):  # rules say so
        return
    needs = {need.component: need for need in needs_of(environment, release)}
    places = {name: need.places for name, need in needs.items()}
    for question in online.questions(release, cache or default_cache(), limits, needs=places):
        parts = [needs[name] for name in question.components]
        stops = any(need.part.need == "required" and need.installed for need in parts)
        yield Question(
            "software",
            f"source of {', '.join(question.components)}",
            lambda asked=question, stops=stops: _rows(asked, stops),
        )


def _rows(question: SourceQuestion, stops: bool) -> Iterator[Row]:
    """One row for a source: the worst of what it said."""
    answers = question.ask()
    what = f"{question.what} ({', '.join(question.components)})"
    bad = [answer for answer in answers if answer.bad]
    silent = [answer for answer in answers if answer.state == "unanswered"]
    if bad:
        level: Level = "red" if stops else "yellow"
        more = f"; {len(bad) - 1} more" if len(bad) > 1 else ""
        yield Row(what, level, f"{bad[0].detail}{more}", _AGAIN)
    elif silent:
        # nodes ask from where they are: what this machine cannot reach stops nothing
        yield Row(what, "unknown", silent[0].detail, "nodes fetch it themselves; try again from elsewhere")
    elif proofs := [answer for answer in answers if answer.state in ("proven", "there")]:
        yield Row(what, "green", proofs[0].detail)
    elif answers:
        yield Row(what, "unknown", answers[0].detail)
