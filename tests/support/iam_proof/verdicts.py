"""Rows of both tables in one environment, answered by the evaluator in one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from iam_proof.calls import Call, NoWayError, following, request
from iam_proof.evaluator import Answer, Document, Evaluator, Request
from iam_proof.names import names_of
from iam_proof.rows import Row, calls_of
from iam_proof.world import World


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call of a row, or of a call of KMS that follows from it."""

    call: Call
    asked: Request | None
    """None where there is no way to AWS."""
    allowed: bool
    because: str
    """Which policies denied, what the evaluator could not judge, or why there is no way."""
    wrong: bool = False
    """The question made no sense: neither answer counts."""

    def __str__(self) -> str:
        asked = self.asked or self.call
        return f"{self.call.who.label}: {asked.action} on {asked.resource}: {self.because or 'allowed'}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A row in one environment."""

    row: Row
    outcomes: tuple[Outcome, ...]
    missing: str = ""
    """Who or what the row speaks of and the environment does not have."""

    @property
    def surprises(self) -> list[str]:
        """What is not as the table says; a row about nothing is a surprise, too."""
        if self.missing:
            return [self.missing]
        if not self.outcomes:
            return ["the row asks about nothing here: `when` is too wide, or a name has no value"]
        expected, by = self.row.table == "allowed", self.row.by
        found = [str(one) for one in self.outcomes if one.wrong or one.allowed is not expected]
        denied = [one for one in self.outcomes if not one.allowed and not one.wrong]
        return found + [f"{one}, and not by {by}" for one in denied if by and by not in one.because]


def verdicts(
    world: World,
    evaluator: Evaluator,
    rows: Sequence[Row],
    *,
    others: Sequence[World] = (),
    instead: Mapping[str, Document] | None = None,
) -> dict[str, Verdict]:
    """By the names of the rows.

    Args:
        world: the environment.
        evaluator: answers.
        rows: that are about the environment.
        others: environments in the same account; the first is what rows call `other_`.
        instead: documents that take the place of policies of the same names: wrong ones, to be found.
    """
    names = names_of(world, others[0] if others else None)
    worlds = (world, *others)
    asked: list[tuple[Row, Call, Request | str]] = []
    missing: dict[str, str] = {}
    for row in rows:
        try:
            calls = list(calls_of(row, world, names))
        except LookupError as error:
            missing[row.row] = f"the environment has nobody or nothing of this name: {error}"
            continue
        asked += [(row, call, one) for call in calls for one in _requests(call, worlds, row)]
    policies = {name: document for one in worlds for name, document in one.policies.items()}
    requests = [one for _, _, one in asked if isinstance(one, Request)]
    answers = iter(evaluator.ask({**policies, **(instead or {})}, requests))
    found: dict[str, list[Outcome]] = {row.row: [] for row in rows}
    for row, call, one in asked:
        denied = Outcome(call, None, allowed=False, because=str(one))
        found[row.row].append(_outcome(call, one, next(answers)) if isinstance(one, Request) else denied)
    return {row.row: Verdict(row, tuple(found[row.row]), missing.get(row.row, "")) for row in rows}


def _requests(call: Call, worlds: Sequence[World], row: Row) -> list[Request | str]:
    """The call; where it must be allowed, those that follow from it as well. A text where there is no way.

    What must be denied is asked from outside of the network, too, unless the network is what must deny it:
    credentials leave it, in a log or on a laptop, and what is not allowed has to be so without its help.
    """
    if row.table == "denied" and row.by != "vpce" and call.who.at == "vpc":
        outside = request(replace(call, who=replace(call.who, at="internet")), worlds)
        try:
            return [request(call, worlds), outside]
        except NoWayError:
            return [outside]
    try:
        first = request(call, worlds)
    except NoWayError as error:
        return [str(error)]
    return [first, *following(call, worlds)] if row.table == "allowed" else [first]


def _outcome(call: Call, asked: Request, answer: Answer) -> Outcome:
    told = {key for key, value in call.context.items() if value is not None}
    unknown = sorted(set(answer.ignored) & told) if asked.action == call.action else []
    if answer.error or unknown:
        because = answer.error or f"the action has no {', '.join(unknown)}"
        return Outcome(call, asked, answer.allowed, because, wrong=True)
    if answer.allowed:
        return Outcome(call, asked, allowed=True, because="")
    because = f"denied by {' and '.join(answer.by)}" if answer.by else "nothing allows it"
    return Outcome(call, asked, allowed=False, because=because)
