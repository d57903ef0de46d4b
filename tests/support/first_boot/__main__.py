"""`make rehearse ENV=prod`: what the first boot of every group keeps, installs and lacks, tried in a folder.

With `--all` instead of environments: what `ultracluster init` drafts for every accelerated type on every
orchestrator; that takes a while.

The last line is READY; DEGRADED, with what `plan` names already; or FAILED, with the first cause. It counts
the files and packages of the releases that a public record confirms: the sandbox itself fetches none of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from first_boot.judge import differences, lacking, prediction
from first_boot.rehearsal import Boot, NoRecordError, Outcome, boots, rehearsed
from project import ROOT

from ultracluster.config import Environment, InvalidEnvironmentError, load
from ultracluster.model.own_steps import steps_of_group
from ultracluster.rules import enforce
from ultracluster.software.first_boot import release_of
from ultracluster.software.fit import Fit
from ultracluster.software.lock import release_file
from ultracluster.software.records import Checked, checked

AS_ROOT = "REHEARSE_AS_ROOT"
"""Set where a team's own steps may be run by root."""


def main(arguments: list[str]) -> int:
    """Rehearse, print, and end with a word; status 1 for FAILED, 2 for bad input."""
    try:
        environments = list(_drafts()) if arguments == ["--all"] else [_load(name) for name in arguments]
        for environment in environments:
            _refuse_root(environment)
    except InvalidEnvironmentError as error:
        print(error, file=sys.stderr)
        return 2
    except PermissionError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        every = [(environment, list(boots(environment))) for environment in environments]
    except NoRecordError as error:
        print(error, file=sys.stderr)
        return 2
    ready = total = 0
    seen: dict[str, Verdict] = {}
    verdicts: dict[str, Verdict] = {}
    for environment, its_boots in every:
        rehearsed_groups = set()
        for boot in its_boots:
            rehearsed_groups.add(boot.group)
            total += 1
            name = f"{environment.name}/{boot.group}"
            if boot.key in seen:
                twin = next(one for one, verdict in verdicts.items() if verdict is seen[boot.key])
                print(f"{name}: its nodes differ from those of {twin} in names only")
            else:
                seen[boot.key] = _rehearse(boot)
            verdicts[name] = seen[boot.key]
            ready += not seen[boot.key].wrong
        for group in environment.node_groups.keys() - rehearsed_groups:
            total, ready = total + 1, ready + 1
            print(f"{environment.name}/{group}: nothing of ours runs on its nodes")
    print(f"ready: {ready} of {total} groups")
    word, line = last_line(verdicts, _records(environments))
    print(line)
    return 1 if word == "FAILED" else 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rehearsal of one group came to."""

    lacks: tuple[str, ...]
    """Without these components its nodes join, as `plan` says."""
    wrong: str = ""
    """What went otherwise than `plan` says; empty where nothing did."""


def last_line(verdicts: Mapping[str, Verdict], records: Sequence[Checked]) -> tuple[str, str]:
    """The word for all of them, and the line that begins with it."""
    checked, rows = sum(one.checked for one in records), sum(one.total for one in records)
    counted = f"{checked} of {rows} artefacts checked against a record"
    causes = [text for one in records for text in one.contradictions]
    causes += [one.wrong for one in verdicts.values() if one.wrong]
    lacks = [f"{name} without {', '.join(one.lacks)}" for name, one in verdicts.items() if one.lacks]
    if causes:
        more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
        return "FAILED", f"FAILED: {causes[0]}{more}; {counted}"
    if lacks:
        return "DEGRADED", f"DEGRADED as plan says: {'; '.join(lacks)}; {counted}"
    return "READY", f"READY, {counted}"


def _records(environments: Sequence[Environment]) -> list[Checked]:
    """The releases of the environments, as these complete them, held against public records."""
    found: dict[Path, Checked] = {}
    for environment in environments:
        release = release_of(environment)
        file = release_file(release.release)
        if file not in found or found[file].contradictions == ():
            found[file] = checked(file, release)
    for one in found.values():
        for text in one.contradictions:
            print(f"contradicts its record: {text}")
    return list(found.values())


def _rehearse(boot: Boot) -> Verdict:
    outcome = rehearsed(boot)
    predicted = prediction(boot)
    print(f"{boot.config.name}/{boot.group}: {boot.node.kind.name} on {boot.image.id}")
    for title, rows in [*_rows(outcome, predicted), *_own_rows(boot, outcome)]:
        print(f"  {title:<9} {', '.join(rows) or '-'}")
    print(f"  {'ends':<9} {outcome.last_line}")
    wrong = list(differences(boot, outcome, predicted))
    for line in wrong:
        print(f"  {'differs':<9} {line}")
    if outcome.status:
        wrong.insert(0, f"{boot.config.name}/{boot.group}: {outcome.last_line}")
    return Verdict(tuple(sorted(lacking(boot, predicted))), wrong[0] if wrong else "")


def _rows(outcome: Outcome, predicted: tuple[Fit, ...]) -> Iterator[tuple[str, list[str]]]:
    minutes = {one.component: one.minutes for one in predicted}
    said = outcome.components
    yield (
        "keeps",
        [f"{name} {row['found']}".strip() for name, row in said.items() if row["outcome"] == "kept"],
    )
    yield (
        "installs",
        [
            f"{name} {row['found']} ({minutes.get(name, 0):g} min)"
            for name, row in said.items()
            if row["outcome"] == "installed"
        ],
    )
    yield (
        "lacks",
        [
            f"{name} ({row['detail']})"
            for name, row in said.items()
            if row["outcome"] in ("degraded", "refused")
        ],
    )


def _own_rows(boot: Boot, outcome: Outcome) -> Iterator[tuple[str, list[str]]]:
    """What became of the team's own steps; one that did not run is `not reached`."""
    ran = outcome.steps(boot)
    for step in steps_of_group(boot.config, boot.group):
        state, message = ran.get(step.name, ("not reached", ""))
        yield "yours", [f"{step.name} ({step.need}) {state}" + (f": {message}" if message else "")]


def _load(name: str) -> Environment:
    """An environment that breaks no rule, by its name or the path of its file."""
    file = Path(name) if name.endswith(".yaml") else ROOT / "environments" / f"{name}.yaml"
    loaded = load(file)
    enforce(loaded)
    return loaded.environment


def _refuse_root(environment: Environment) -> None:
    """Own steps are run as they are: one that writes to a plain path would write to this machine.

    Raises:
        PermissionError: it could, because this is root, and nobody said that the machine may be changed.
    """
    if environment.lifecycle_steps and os.geteuid() == 0 and not os.environ.get(AS_ROOT):
        raise PermissionError(
            f"{environment.name} has node steps of its own, and they would run here as root: what they write "
            "must begin with $ULTRACLUSTER_ROOT, or it changes this machine. Rehearse as another user, or in "
            f"a container with {AS_ROOT}=yes"
        )


def _drafts() -> Iterator[Environment]:
    from first_boot.drafts import drafts

    return drafts()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
