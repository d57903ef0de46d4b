"""Actions that cost money or cannot be undone: one at a time, an intent before the call, a ledger after it.

Beside `environments/prod.yaml` stand `prod.ledger.jsonl`, which stays and belongs into version control, and
`.prod.intent`, which names the process at work and the action whose answer has not come.
"""

from __future__ import annotations

import json
import math
import os
import socket
import stat
from collections.abc import Generator, Mapping
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
        return sum(_usd(entry) for entry in self.entries) + (self.intent.usd if self.intent else 0)

    def begin(self, intent: Intent) -> None:
        """Record the intent on disk; the call comes after it.

        Raises:
            ProjectError: it cannot be written; the call must not be made.
        """
        document = {**asdict(intent), **_whoami()}
        try:
            self._holder.write({**_whoami(), "command": intent.action, "intent": document})
        except OSError as error:
            raise ProjectError(f"Nothing changed: the intent cannot be recorded: {error.strerror}") from None
        self.intent = Intent(**document)

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
        _append(self.file, json.dumps(entry))
        sync_folder(self.file.parent)
        self.entries.append(entry)
        self.withdraw()

    @contextmanager
    def details(self) -> Generator[Mapping[str, Any]]:
        """Values of the open intent for `settle`; one that is missing or of another type ends the command.

        Raises:
            ProjectError: somebody changed the intent by hand.
        """
        assert self.intent
        try:
            yield self.intent.details
        except (LookupError, TypeError, ValueError, AttributeError):
            raise self._holder.unreadable() from None

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
        """Replace the content; where it does not fit, nothing is left of it."""
        data = json.dumps(document).encode() if document else b""
        try:
            if data:
                os.lseek(self._number, 0, os.SEEK_SET)
                _write_all(self._number, data + b" " * 8)  # what a crash leaves of an older text is no JSON
            os.ftruncate(self._number, len(data))
            os.fsync(self._number)
        except OSError:
            os.ftruncate(self._number, 0)
            raise

    def _read(self) -> str:
        os.lseek(self._number, 0, os.SEEK_SET)
        return os.read(self._number, 1 << 20).decode("utf-8", "replace").strip()

    def _intent(self) -> Intent | None:
        if not self.before:
            return None
        try:
            document: dict[str, Any] | None = json.loads(self.before)["intent"]
            return None if document is None else _checked(document)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self.unreadable() from None

    def unreadable(self) -> ProjectError:
        return ProjectError(
            f"{self._file} cannot be read, and may record an action whose answer never came: look in the "
            "account, then delete the file"
        )


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
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ProjectError(f"Nothing changed: {file} is a pipe or a device, not a file: remove it")
        _lock(number, file)
        holder = _Holder(file, number)
        ledger = Ledger(place, holder)
        if not holder.intent:
            try:
                holder.write({**_whoami(), "command": command, "intent": None})
            except OSError as error:
                raise ProjectError(f"Nothing changed: {file} cannot be written: {error.strerror}") from None
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
            _usd(entry)
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ProjectError(f"{file}:{number}: not a line of the ledger; restore the file") from None
        entries.append(entry)
    return entries


def _checked(document: dict[str, Any]) -> Intent:
    """The intent, with texts that print as one line.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    values: dict[str, Any] = {
        name: one_line(one) if isinstance(one, str) else one for name, one in document.items()
    }
    texts = ("action", "subject", "settle", "account", "region", "host", "time")
    if not all(isinstance(values[name], str) for name in texts) or not isinstance(values["details"], dict):
        raise TypeError
    if not isinstance(values["usd"], int | float) or datetime.fromisoformat(values["time"]).tzinfo is None:
        raise TypeError
    _usd(document)
    return Intent(**values)


def _usd(entry: dict[str, Any]) -> float:
    """
    Raises:
        ValueError: its price is none, and would raise the limit of what may be spent.
    """
    usd: Any = entry.get("usd") or 0
    if not isinstance(usd, int | float) or not math.isfinite(usd) or usd < 0:
        raise ValueError(usd)
    return float(usd)


def _append(file: Path, line: str) -> None:
    """Add a line on disk; where it does not fit, none of it is left.

    Raises:
        OSError: it cannot be written.
    """
    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o644)
    try:
        size = os.fstat(number).st_size
        os.lseek(number, max(size - 1, 0), os.SEEK_SET)
        start = "" if os.read(number, 1) in (b"", b"\n") else "\n"  # whoever edited it left the line end out
        try:
            _write_all(number, f"{start}{line}\n".encode())
            os.fsync(number)
        except OSError:
            os.ftruncate(number, size)
            raise
    finally:
        os.close(number)


def _write_all(number: int, data: bytes) -> None:
    """`os.write` writes as much as fits, without an error."""
    while data:
        data = data[os.write(number, data) :]


def _whoami() -> dict[str, Any]:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {"process": os.getpid(), "host": socket.gethostname(), "time": now}
