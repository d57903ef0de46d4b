"""What a running cluster is doing, as rows: it may be half made, failing, or on its way out."""

from __future__ import annotations

from ultracluster.config.plain_text import clipped, one_line
from ultracluster.imports.ledger import Ledger

WELL = frozenset({"InService", "ACTIVE", "CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"})
"""States in which nothing goes on."""
_GOING = "delet"
_MOST_WORDS = 300


def state_row(ledger: Ledger, where: str, what: str, state: str, why: str = "") -> None:
    """A row for whatever is not in order.

    Args:
        why: AWS's own words, which anybody may have written.
    """
    if not state or state in WELL:
        return
    said = f" ({clipped(one_line(why), _MOST_WORDS)})" if why else ""
    if state.lower().startswith(_GOING):
        ledger.changed(
            where, f"{what} is {one_line(state)}{said}: what was there of it is in the file",
            "make sure that nothing else that it names is deleted with it",
        )  # fmt: skip
    elif "fail" in state.lower() or "rollback" in state.lower() or state.lower() in ("degraded", "suspended"):
        ledger.changed(
            where, f"{what} is {one_line(state)}{said}: it may lack parts that it should have",
            "compare with what you asked for, before you rely on it",
        )  # fmt: skip
    else:
        ledger.changed(
            where, f"{what} is {one_line(state)}{said}: it is changing while it is read",
            "import it again when it is done",
        )  # fmt: skip
