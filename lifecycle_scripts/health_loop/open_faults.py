"""Faults that are open: each fault of this boot is a row until the node has been rebooted or replaced, or
the check that found it proves that it is over. What was refused is tried again until it is answered.

Pure functions over `Book`, and its file. A line of the kernel has no check that proves it gone.
"""

import contextlib
import json
from dataclasses import asdict, dataclass, field, replace

import place
from decide import action_for
from known import DAY, ORDER, Finding
from place import say

VERSION = 1
SAME_SECONDS = 60
"""Lines of one fault within this time are one occurrence."""
UNANSWERED = ("", "share", "hour", "foreign", "lock", "slurm", "name")
"""Answers after which a row is tried again."""
STUCK = "stuck"
"""Answer where nothing that was asked has had an effect: a person has to look."""
_TAKEN = ("drain", "reboot", "remember", "ours", "waiting", STUCK)
"""Answers after which the node is out of work."""
_MOST_PAUSES = 8
_MOST_ROWS, _MOST_TIMES = 100, 200
_FILE = "open.json"


@dataclass(frozen=True)
class Row:
    """One open fault."""

    finding: Finding
    since: int
    """When it was found first."""
    tries: int = 0
    asked_at: int = 0
    asked: str = ""
    """The steps that were asked for last."""
    answer: str = ""
    """The result: one of `UNANSWERED`, or the step that was done."""
    requeued: tuple = ()
    """Jobs that were queued again for it: each at most once."""

    @property
    def open(self):
        return self.answer in UNANSWERED


@dataclass(frozen=True)
class Book:
    """Rows of this boot by their key, and what was seen within a day, earlier boots included."""

    boot: str = ""
    rows: dict = field(default_factory=dict)
    times: tuple = ()
    """(key, boot, user, seconds since 1970) of each occurrence."""

    def found(self, ignored=frozenset()):
        return [row.finding for row in self.rows.values() if not left_out(row.finding, ignored)]

    def event(self, ignored=frozenset()):
        """True where the kernel has reported something that only another boot ends."""
        return any(finding.event and rank(finding) >= ORDER.index("drain") for finding in self.found(ignored))

    def fatal(self, ignored=frozenset()):
        return any(finding.fatal for finding in self.found(ignored))

    def ends_jobs(self, ignored=frozenset()):
        """True where one of them keeps jobs away from the node."""
        return any(rank(finding) >= ORDER.index("drain") for finding in self.found(ignored))

    def of(self, finding):
        return self.rows.get(finding.key)


def is_new(book, finding):
    """True where it is no further look at what is known: a line that two readers have found is one."""
    row = book.of(finding)
    if row is None:
        return True
    return finding.event and finding.at > row.finding.at + SAME_SECONDS


def noted(book, findings, *, now, repeats=lambda fault: None):
    """The book with what was found now.

    Args:
        book: so far.
        findings: of one look or of the watcher, those that are well included.
        now: seconds since 1970.
        repeats: of a row of the fault table, `repeats` or None.
    """
    rows, times = dict(book.rows), [time for time in book.times if now - DAY < time[3] <= now + 60]
    present = {finding.key for finding in findings}
    for finding in findings:
        if not finding.event and finding.result != "unknown":
            for key, row in list(rows.items()):
                if _proves_gone(finding, row) and key not in present:
                    del rows[key]
    for finding in findings:
        if action_for(finding) == "none":
            continue
        known = rows.get(finding.key)
        if is_new(replace(book, rows=rows), finding):
            finding, times = _occurred(finding, book.boot, times, now, repeats)
            kept = known.requeued if known else ()
            rows[finding.key] = Row(finding, known.since if known else int(now), requeued=kept)
        else:
            rows[finding.key] = _again(known, finding)
    while len(rows) > _MOST_ROWS:
        rows.pop(min(rows, key=lambda key: (rank(rows[key].finding), rows[key].since)))
    return replace(book, rows=rows, times=tuple(times[-_MOST_TIMES:]))


def _proves_gone(finding, row):
    """A check prints all that it finds: what it does not find any more is over."""
    found = row.finding
    return not found.event and (found.check, found.verb) == (finding.check, finding.verb)


def _again(row, finding):
    """A further look at the same fault. What a check still finds is asked for again; for a line of the
    kernel there is something to do only where it is graver now."""
    graver = rank(finding) > rank(row.finding)
    finding = replace(
        finding if graver else row.finding,
        at=max(finding.at, row.finding.at),
        job=row.finding.job,
        user=row.finding.user,
    )
    due = graver or not finding.event
    return replace(row, finding=finding, answer="" if due and not row.open else row.answer)


def _occurred(finding, boot, times, now, repeats):
    """The finding with what it becomes because of earlier ones, and the times with this one."""
    before = [time for time in times if time[0] == finding.key]
    rule = repeats(finding.fault) if not finding.event else None
    apart = rule["apart_minutes"] * 60 if rule else 0
    if not before or before[-1][1] != boot or now - before[-1][3] >= apart:
        times = [*times, (finding.key, boot, finding.user, int(now))]
        before = [*before, times[-1]]
    if rule and sum(now - time[3] < rule["within_hours"] * 3600 for time in before) >= rule["times"]:
        return replace(finding, action=rule["action"], result=rule["severity"]), times
    # One program may be at fault; under the programs of two people it is rather the GPU.
    mild = action_for(finding) in ("requeue", "reboot-idle")
    if mild and finding.event and len({time[2] for time in before if time[2]}) > 1:
        return replace(finding, action="hold", result="critical", when_idle=""), times
    return finding, times


def rank(finding):
    return ORDER.index(action_for(finding))


def due(book, *, now, ignored=frozenset(), pause=15.0, all_open=False, enforce=True):
    """Findings that are to be acted on now, the gravest first. What was refused waits longer each time; what
    a dry run has met is open again when it is one no more."""
    rows = [
        row
        for row in book.rows.values()
        if (row.open or (enforce and row.answer == "dry-run")) and not left_out(row.finding, ignored)
    ]
    if not all_open:
        rows = [row for row in rows if not 0 <= now - row.asked_at < _pause(row, pause)]
    return [row.finding for row in sorted(rows, key=lambda row: -rank(row.finding))]


def _pause(row, pause):
    return pause * min(2 ** max(row.tries - 1, 0), _MOST_PAUSES) if row.tries else 0


def left_out(finding, ignored):
    """By its check, or by its row of the fault table."""
    return finding.check in ignored or finding.fault in ignored


def answered(book, finding, *, asked, answer, now, requeued=()):
    """The book with what was asked for a fault, and what came of it."""
    row = book.of(finding)
    if row is None:
        return book
    row = replace(
        row,
        tries=row.tries + 1,
        asked_at=int(now),
        asked=asked[:200],
        answer=answer,
        requeued=tuple(dict.fromkeys((*row.requeued, *requeued)))[-20:],
    )
    return replace(book, rows={**book.rows, finding.key: row})


def went_on(book):
    """The book of a node that has waited for the share, and may continue."""
    rows = {
        key: replace(row, answer="drain") if row.answer == "waiting" else row
        for key, row in book.rows.items()
    }
    return replace(book, rows=rows)


def stuck(book):
    """The book of a node that no request has repaired: reported until a person does."""
    rows = {
        key: replace(row, answer=STUCK)
        if row.answer in _TAKEN and rank(row.finding) >= ORDER.index("reboot-idle")
        else row
        for key, row in book.rows.items()
    }
    return replace(book, rows=rows)


def settled(book):
    """The book of a node that is back in service on the same boot: someone has decided so."""
    rows = {
        key: replace(row, answer="drain") if row.answer == STUCK else row for key, row in book.rows.items()
    }
    return replace(book, rows=rows)


def lost(book):
    """The book where slurmctld does not know that the node was taken out."""
    rows = {
        key: replace(row, answer="") if row.answer in _TAKEN and row.finding.event else row
        for key, row in book.rows.items()
    }
    return replace(book, rows=rows)


# --- its file ---


def repeats(fault):
    """The rule of the table for that fault when it comes again, or None."""
    rows = place.read(place.HOME / "health/faults.json", {}).get("faults")
    return next((row.get("repeats") for row in rows or () if row.get("id") == fault), None)


def load(boot):
    """The book of this boot. A file that is damaged or of another version is set aside, and this boot's log
    of the kernel is read again from its beginning: what is not known is not healthy."""
    # the copy of a node whose disk is full comes first
    for path in (place.RUN / _FILE, place.STATE / _FILE):
        try:
            return _book(json.loads(path.read_text(encoding="utf-8")), boot)
        except FileNotFoundError:
            continue
        except OSError as error:
            say(f"open faults: {path} cannot be read: {error}")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            say(f"open faults: {path} is damaged or of another version ({error}): it is set aside")
            with contextlib.suppress(OSError):
                path.replace(path.with_name(f"{_FILE}.damaged"))
            with contextlib.suppress(OSError):
                (place.STATE / "xid.state").unlink()
    return Book(boot)


def _book(document, boot):
    if document["version"] != VERSION:
        raise ValueError(f"version {document['version']}")
    rows = [
        Row(**{**row, "finding": Finding(**row["finding"]), "requeued": tuple(row["requeued"])})
        for row in document["rows"]
    ]
    times = tuple((str(key), str(of), str(user), int(at)) for key, of, user, at in document["times"])
    # a boot whose id cannot be read is never another one
    same = not boot or document["boot"] in ("", boot)
    return Book(boot or document["boot"], {row.finding.key: row for row in rows if same}, times)


def save(book):
    document = {
        "version": VERSION,
        "boot": book.boot,
        "rows": [asdict(row) for row in book.rows.values()],
        "times": book.times,
    }
    if place.write(place.STATE / _FILE, document):
        with contextlib.suppress(OSError):
            (place.RUN / _FILE).unlink()
    else:
        place.write(place.RUN / _FILE, document)
