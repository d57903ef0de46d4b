"""Commands in one interactive session of a person, as `aws ssm start-session` opens it on the laptop.

What a session document opens is a login shell that somebody types into. So this types: first one line that
replaces the shell with a small loop, until the loop says that it is there (profiles take their time, and may
swallow what is typed meanwhile). From then on nothing is echoed. Scripts go there packed, in lines that are
shorter than the 4096 bytes of a terminal's line, with their digest; what they print comes back packed,
between marks that hold a key which only this session's two ends know. So neither a message of the day nor
what a job prints, nor what another user writes to the terminal, can pass for an answer.

What is not echoed is in no log of sessions, so the loop itself shows what it is about to run: a line that
says what it is, and the packed script.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import os
import re
import secrets
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ultracluster.account.aws import AccountError
from ultracluster.account.wait.sessions_shell import PROGRAMS, end_group, open_terminal
from ultracluster.account.wait.sessions_shell import missing_programs as programs_missing
from ultracluster.account.wait.shell import SLURM_FOLDERS
from ultracluster.config.file_text import gunzipped
from ultracluster.config.plain_text import one_line

OPEN_SECONDS = 60.0
"""For the shell to be there."""
AGAIN_SECONDS = 4.0
"""After which the first line is typed again."""
LINE = 900
"""Characters of a typed line."""
ATTEMPTS = 3
"""Of what may be asked again."""
_MOST_ANSWER = 64 << 20
"""Bytes of one answer of a node, unpacked: a node may send anything."""
LOOP = r"""
stty -echo -onlcr -ixon 2>/dev/null; mesg n 2>/dev/null; trap "" INT QUIT TSTP;
PATH=$PATH:/usr/sbin:/sbin; for f in @folders@; do PATH=$PATH:$f; done; export PATH;
say() { printf "\n%s:%s:%s\n" "$k" "$1" "$2"; }; r=$(printf "\r"); k=; b=; set -f;
printf "\n%s:%s:%s:%s:%s\n" ultracluster-session open "$1" "$(id -u)" "$(id -un)";
while IFS= read -r l; do l=${l%"$r"}; case $l in
key:*) k=${l#key:}; b=; say key known;;
+*) b+=${l#+};;
run:*) IFS=:; set -- $l; unset IFS; h=$(printf %s "$b" | sha256sum);
if [ "${h%% *}" != "$3" ]; then say "$2" garbled; b=; continue; fi;
printf "# %s\n%s\n" "$5" "$b"; say "$2" begin;
{ e=$({ timeout -k 5 "$4" bash <(printf %s "$b" | base64 -d | gunzip) </dev/null | gzip -c | base64;
exit "${PIPESTATUS[0]}"; } 2>&1 >&3); s=$?; } 3>&1; say "$2" errors;
printf %s "$e" | head -c 8000 | base64; say "$2" "end-$s"; b=;;
become:*) IFS=:; set -- $l; unset IFS; h=$(printf %s "$b" | sha256sum);
if [ "${h%% *}" = "$3" ]; then printf "# %s\n%s\n" "$7" "$b"; say "$2" begin;
b=$(printf %s "$b" | base64 -d | gunzip);
[ "$4" != person ] || stty sane rows "$5" cols "$6" 2>/dev/null; trap - INT QUIT TSTP; set +f;
exec bash -c "$b"; fi; say "$2" garbled; b=;;
quit:) exit 0;; esac; done
"""
"""What answers in the session. It stands between single quotes, and so has none."""
_BASE64 = re.compile(r"^[A-Za-z0-9+/]+={0,2}$", re.MULTILINE)


class SessionEndedError(AccountError):
    """The session ended, or said nothing any more, before the answer was there."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a script printed."""

    out: bytes
    errors: str
    status: int

    @property
    def text(self) -> str:
        return self.out.decode(errors="replace")


def first_line(word: str) -> str:
    """Return what is typed first: a shell of any kind takes it.

    Args:
        word: that the loop says when it is there: what was shown before does not have it.
    """
    loop = " ".join(LOOP.replace("@folders@", SLURM_FOLDERS).split("\n")).strip()
    return f" exec bash -c '{loop}' ultracluster {word}"


class PersonSession:
    """One session, opened when something is to run, and again where it has ended."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        user: str = "",
        open_seconds: float = OPEN_SECONDS,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Nothing is opened yet.

        Args:
            command: of the session, one argument each.
            user: as whom it must be; anybody but root where empty.
            say: told in a line what takes its time.
        """
        self._command, self._user, self._seconds, self._say = list(command), user, open_seconds, say
        self._child: subprocess.Popen[bytes] | None = None
        self._terminal = -1
        self._heard = ""
        self._key, self._number, self._word = "", 0, ""
        self.who = user

    def run(self, script: str, *, what: str, seconds: int = 60, again: bool = True) -> Said:
        """Run a bash script there, as the person.

        Args:
            what: the line by which the session's log says what this was: letters, digits, blanks, `-`.
            seconds: how long it may take.
            again: it does nothing twice where it runs twice, and may be asked again.

        Raises:
            SessionEndedError: no answer; it may have run.
            AccountError: no session could be opened, so nothing ran.
        """
        packed = base64.b64encode(gzip.compress(script.encode(), mtime=0)).decode()
        for attempt in range(ATTEMPTS if again else 1):
            try:
                self._open()
                return self._ask(packed, what, seconds)
            except SessionEndedError:
                self.close(gently=False)
                if not again or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def become(self, script: str, *, what: str, size: tuple[int, int] | None = None) -> bytes:
        """Let a script take the loop's place, and the terminal; what it printed already.

        Args:
            size: rows and columns, where a person types into it; else nothing is echoed, line by line.

        Raises:
            AccountError: no session could be opened, or it ended.
        """
        packed = base64.b64encode(gzip.compress(script.encode(), mtime=0)).decode()
        self.open()
        rows, columns = size or (24, 80)
        rest = f"{'person' if size else 'program'}:{rows}:{columns}"
        mark = self._send(packed, "become", rest, what, 30)
        data = self._heard.partition(f"{mark}begin\n")[2]
        self._heard = ""
        return data.encode("latin-1")

    @property
    def terminal(self) -> int:
        """File descriptor of our side, for who talks with what took the loop's place."""
        return self._terminal

    def type(self, text: str) -> None:
        """Type into what took the loop's place.

        Raises:
            SessionEndedError: it has ended.
        """
        self._type(text)

    def hear(self, seconds: float) -> list[str]:
        """Whole lines of it that came within so many seconds, or before.

        Raises:
            SessionEndedError: it has ended.
        """
        if "\n" not in self._heard:
            self._hear(seconds)
        *lines, self._heard = self._heard.split("\n")
        return lines

    def open(self) -> None:
        """Open it, so that what follows is asked in it.

        Raises:
            AccountError: it cannot be opened.
        """
        for attempt in range(ATTEMPTS):
            try:
                return self._open()
            except SessionEndedError as error:
                self.close(gently=False)
                if attempt == ATTEMPTS - 1:
                    raise AccountError(str(error)) from None
        raise AssertionError("unreachable")

    def close(self, *, gently: bool = True) -> None:
        """End the session: gently, because one whose plugin is killed stays open until its time is up."""
        child, self._child = self._child, None
        if child is None:
            return
        terminal, self._terminal = self._terminal, -1
        try:
            if gently:
                with contextlib.suppress(OSError):
                    os.write(terminal, b"\nquit:\n")
                end = time.monotonic() + 3
                while time.monotonic() < end and child.poll() is None:
                    with contextlib.suppress(OSError):
                        if select.select([terminal], [], [], 0.1)[0] and not os.read(terminal, 65536):
                            break
        finally:
            os.close(terminal)
            end_group(child)

    # ---- the two ends

    def _open(self) -> None:
        if self._child is not None:
            return
        self._child, self._terminal = open_terminal(self._command, raw=True)
        os.set_blocking(self._terminal, False)
        self._heard, self._key, self._number = "", secrets.token_hex(12), 0
        self._word = secrets.token_hex(4)
        there = re.compile(rf"ultracluster-session:open:{self._word}:(\d+):([^\n:]*)\n")
        found, typed, end = None, 0.0, time.monotonic() + self._seconds
        while found is None:
            if time.monotonic() > end:
                raise SessionEndedError(f"no shell answered in {self._seconds:.0f} seconds{self._last()}")
            # before the plugin has said anything nobody reads what is typed
            if self._heard.strip() and time.monotonic() - typed > AGAIN_SECONDS:
                self._type(first_line(self._word) + "\n")
                typed = time.monotonic()
            self._hear(0.3)
            found = there.search(self._heard)
        number, name = found[1], found[2]
        if number == "0" or (self._user and name != self._user):
            self.close()
            wanted = f"`{self._user}`" if self._user else "an ordinary user"
            raise AccountError(
                f"the session is as {one_line(name)!r} and not as {wanted}: nothing was run in it. Deploy "
                "the environment, and look at its session documents and at tags SSMSessionRunAs"
            )
        self.who = name
        self._heard = ""
        self._type(f"key:{self._key}\n")
        self._until(f"\n{self._key}:key:known\n", 20)

    def _ask(self, packed: str, what: str, seconds: int) -> Said:
        mark = self._send(packed, "run", str(seconds), what, 30)
        end = f"{mark}end-"
        self._until(end, seconds + 30)
        self._until_line(end)
        return self._unpack(mark)

    def _send(self, packed: str, order: str, rest: str, what: str, seconds: int) -> str:
        """Send a script with an order for it, until it has arrived; how marks of the answer begin."""
        lines = [f"+{packed[at : at + LINE]}\n" for at in range(0, len(packed), LINE)]
        digest = hashlib.sha256(packed.encode()).hexdigest()
        label = re.sub(r"[^A-Za-z0-9 ._-]", " ", what)[:100]
        for _ in range(ATTEMPTS):  # what arrived otherwise than it was sent has not run
            self._number += 1
            self._heard = ""
            self._type("".join(lines) + f"{order}:{self._number}:{digest}:{rest}:ultracluster {label}\n")
            mark = f"\n{self._key}:{self._number}:"
            patience = seconds + len(packed) / 2000
            if self._until(f"{mark}begin\n", patience, other=f"{mark}garbled\n").endswith("begin\n"):
                return mark
        raise SessionEndedError("what is typed does not arrive there as it is")

    def _unpack(self, mark: str) -> Said:
        rest = self._heard.partition(f"{mark}begin\n")[2]
        out, _, rest = rest.partition(f"{mark}errors\n")
        errors, _, rest = rest.partition(f"{mark}end-")
        status = rest.split("\n", 1)[0]
        try:
            data = gunzipped(_decode(out), _MOST_ANSWER)
            return Said(data, _decode(errors).decode(errors="replace"), int(status))
        except (OSError, ValueError):
            raise SessionEndedError("the answer was mixed with something else on its way") from None

    def _until(self, text: str, seconds: float, other: str = "\0") -> str:
        """Hear until one of the texts is there, and which."""
        end = time.monotonic() + seconds
        looked = 0
        while True:
            for one in (text, other):
                if self._heard.find(one, looked) >= 0:
                    return one
            looked = max(0, len(self._heard) - 200)
            if time.monotonic() > end:
                raise SessionEndedError(f"no answer in {seconds:.0f} seconds")
            self._hear(min(1.0, max(0.0, end - time.monotonic()) + 0.01))

    def _until_line(self, mark: str) -> None:
        """Hear the rest of the line that begins with the mark."""
        end = time.monotonic() + 10
        while "\n" not in self._heard[self._heard.index(mark) + len(mark) :]:
            if time.monotonic() > end:
                raise SessionEndedError("the answer stopped before its end")
            self._hear(0.3)

    def _hear(self, seconds: float) -> None:
        if not select.select([self._terminal], [], [], seconds)[0]:
            return
        try:
            part = os.read(self._terminal, 65536)
        except OSError:  # Linux says so when the other side has closed
            part = b""
        if not part:
            raise SessionEndedError(f"the session ended{self._last()}")
        self._heard += part.decode("latin-1").replace("\r", "")

    def _type(self, text: str) -> None:
        """Type, and hear meanwhile: who only writes would wait for who only writes."""
        left = text.encode()
        end = time.monotonic() + 60 + len(left) / 2000
        while left:
            if time.monotonic() > end:
                raise SessionEndedError("the session takes no input any more")
            reads, writes, _ = select.select([self._terminal], [self._terminal], [], 1.0)
            if reads:
                self._hear(0)
            if writes:
                try:
                    left = left[os.write(self._terminal, left[:1024]) :]
                except BlockingIOError:
                    continue
                except OSError:
                    raise SessionEndedError(f"the session ended{self._last()}") from None

    def _last(self) -> str:
        """Return what was said last, for a sentence about it."""
        words = one_line(" ".join(self._heard.split()))
        words = words.replace(one_line(" ".join(first_line(self._word).split())), "").strip()
        return f": {words[-300:]}" if words else ""


def _decode(lines: str) -> bytes:
    return base64.b64decode("".join(_BASE64.findall(lines)), validate=True)


def missing_programs() -> str:
    """Return what is not on this machine, in a sentence; empty where all is."""
    missing = programs_missing(PROGRAMS)
    return missing and (
        f"{missing}, and people reach a Slurm cluster through sessions: install the AWS CLI and its Session "
        "Manager plugin"
    )


__all__ = ["PersonSession", "Said", "SessionEndedError", "first_line", "missing_programs"]
