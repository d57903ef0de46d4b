"""Actions that cost money or cannot be undone: one at a time, an intent before the call, a ledger after it.

Beside `environments/prod.yaml` stand `prod.ledger.jsonl`, which stays and belongs into version control, and
`.prod.intent`, which names the process at work and the action whose answer has not come.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ultracluster.config.file_text import text_of
from ultracluster.config.file_write import sync_folder
from ultracluster.config.plain_text import one_line
from ultracluster.project.place import ProjectError


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """An action that was about to be asked for."""

    action: str
    """As in the command: `capacity buy`."""
    subject: str
    """An offer or nodes."""
    settle: str
    """The command that finds out what became of it."""
    account: str
    region: str
    usd: float = 0.0
    details: dict[str, Any]
    """Values that `settle` needs to recognise the result."""
    process: int = 0
    host: str = ""
    time: str = ""
    """Set by `Ledger.begin`."""

    def __str__(self) -> str:
        return f"`{self.action}` of {self.subject} (process {self.process} on {self.host}, {self.time})"


class Ledger:
    """The ledger of an environment, held by this process."""

    def __init__(self, environment_file: Path, holder: _Holder) -> None:
        self.file = ledger_of(environment_file)
        self._holder = holder
        self.entries = _entries(self.file)
        self.intent = holder.intent
        """An action of an earlier process whose answer never came."""

    @property
    def usd(self) -> float:
        """Money spent by entries, and perhaps by the open intent."""
        return sum(float(one.get("usd") or 0) for one in self.entries) + (
            self.intent.usd if self.intent else 0
        )

    def begin(self, intent: Intent) -> None:
        """Record the intent on disk; the call comes after it.

        Raises:
            ProjectError: it cannot be written; the call must not be made.
        """
        document = {**asdict(intent), **_whoami()}
        self.intent = Intent(**document)
        try:
            self._holder.write({**_whoami(), "command": intent.action, "intent": document})
        except OSError as error:
            raise ProjectError(f"Nothing changed: the intent cannot be recorded: {error.strerror}") from None

    def complete(self, result: str) -> None:
        """Add a line for the open intent, and close it.

        Args:
            result: what the action led to: an id.

        Raises:
            OSError: the line cannot be written; the intent stays open.
        """
        assert self.intent
        kept = ("time", "action", "subject", "usd", "account", "region")
        entry = {"id": result, **{name: getattr(self.intent, name) for name in kept}}
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.file.parent)
        self.entries.append(entry)
        self.withdraw()

    def withdraw(self) -> None:
        """Close the open intent: nothing came of it."""
        self.intent = None
        self._holder.write({})


class _Holder:
    """The file that names the process at work; its lock ends with the process, however that ends."""

    def __init__(self, file: Path, number: int) -> None:
        self._file = file
        self._number = number
        self.before = self._read()
        self.intent = self._intent()

    def write(self, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode() if document else b""
        os.lseek(self._number, 0, os.SEEK_SET)
        os.write(self._number, data + b" " * 8)  # what a crash leaves of an older text is no JSON
        os.ftruncate(self._number, len(data))
        os.fsync(self._number)

    def _read(self) -> str:
        os.lseek(self._number, 0, os.SEEK_SET)
        return os.read(self._number, 1 << 20).decode("utf-8", "replace").strip()

    def _intent(self) -> Intent | None:
        if not self.before:
            return None
        try:
            document: dict[str, Any] | None = json.loads(self.before)["intent"]
            return Intent(**document) if document else None
        except (ValueError, TypeError, KeyError):
            raise ProjectError(
                f"{self._file} cannot be read, and may record an action whose answer never came: look in the "
                "account, then delete the file"
            ) from None


@contextmanager
def exclusive(environment_file: Path, command: str) -> Generator[Ledger]:
    """Hold the ledger of an environment: no other process on this machine acts on it meanwhile.

    Args:
        command: for who comes second: `capacity buy`.

    Raises:
        ProjectError: another process holds it, or it cannot be opened.
    """
    place = environment_file.resolve()
    file = place.with_name(f".{place.stem}.intent")
    try:
        number = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    except OSError as error:
        raise ProjectError(f"Nothing changed: {file} cannot be opened: {error.strerror}") from None
    try:
        _lock(number, file)
        holder = _Holder(file, number)
        ledger = Ledger(place, holder)
        if not holder.intent:
            holder.write({**_whoami(), "command": command, "intent": None})
        try:
            yield ledger
        finally:
            if not ledger.intent:
                with suppress(OSError):
                    holder.write({})
    finally:
        os.close(number)


def ledger_of(environment_file: Path) -> Path:
    """Return the path of an environment file's ledger."""
    place = environment_file.resolve()
    return place.with_name(f"{place.stem}.ledger.jsonl")


def _lock(number: int, file: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held = "another process"
        with suppress(OSError, ValueError, TypeError):
            one = json.loads(os.read(number, 1 << 20))
            held = f"`{one['command']}` (process {one['process']} on {one['host']}, {one['time']})"
        raise ProjectError(f"Nothing changed: {one_line(held)} is at work. Wait until it ends.") from None
    except OSError as error:
        raise ProjectError(
            f"Nothing changed: {file.parent} is on a file system without locks ({error.strerror}); use "
            "another checkout"
        ) from None


def _entries(file: Path) -> list[dict[str, Any]]:
    """
    Raises:
        ProjectError: a line is not JSON: money may have been spent that is not counted.
    """
    if file.is_symlink():  # a line would be written elsewhere, after money was spent
        raise ProjectError(f"Nothing changed: {file} is a link: replace it by the file that it leads to")
    try:
        lines = text_of(file).splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError(f"{file} cannot be read: {error}") from None
    entries: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            entry: dict[str, Any] = json.loads(line)
            float(entry.get("usd") or 0)
        except (ValueError, TypeError, AttributeError):
            raise ProjectError(f"{file}:{number}: not a line of the ledger; restore the file") from None
        entries.append(entry)
    return entries


def _whoami() -> dict[str, Any]:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {"process": os.getpid(), "host": socket.gethostname(), "time": now}
