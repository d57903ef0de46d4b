"""In the place of the AWS CLI and its plugin: `aws ssm start-session`, into a twin. See `laptop.py`.

    aws_session.py FOLDER ssm start-session --region R --document-name D --target T

FOLDER has `sessions.json` (region, target, user by document, command by user) and, where a session is to end
early, `fault`; `asked` gets the words of each call.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
import termios
import time
import tty
from pathlib import Path


def main() -> int:
    folder, words = Path(sys.argv[1]), sys.argv[2:]
    sessions = json.loads((folder / "sessions.json").read_text())
    with (folder / "asked").open("a") as asked:
        asked.write(json.dumps(words) + "\n")
    start = ["ssm", "start-session", "--region", sessions["region"], "--document-name"]
    users = sessions["documents"]
    document = words[len(start)] if len(words) > len(start) else ""
    if words != [*start, document, "--target", sessions["target"]] or document not in users:
        print(
            "\nAn error occurred (AccessDeniedException) when calling the StartSession operation: not "
            f"authorized to perform: ssm:StartSession on {document}",
            file=sys.stderr,
        )
        return 254
    user = users[document]
    if os.isatty(0):
        tty.setcbreak(0)  # as the plugin does
    print(f"\nStarting session with SessionId: {user}-0123456789abcdef0", flush=True)
    relay(sessions["enter"][user], folder / "fault")
    print(f"\n\nExiting session with sessionId: {user}-0123456789abcdef0.\n", flush=True)
    return 0


def relay(command: list[str], fault: Path) -> None:
    """Between this terminal and one on the node."""
    child, agent = pty.fork()
    if child == 0:
        os.execvp(command[0], command)  # noqa: S606, no shell is wanted
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(os.kill(child, signal.SIGKILL)))
    heard, ends = b"", 0.0
    if os.isatty(0):
        termios.tcsetwinsize(agent, termios.tcgetwinsize(0))
    while not ends or time.monotonic() < ends:
        ready = select.select([0, agent], [], [], 0.2)[0]
        if agent in ready:
            try:
                said = os.read(agent, 65536)
            except OSError:
                break
            if not said:
                break
            while said and not ends:
                said = said[os.write(1, said) :]
        if 0 in ready:
            typed = os.read(0, 1024)
            if not typed:
                break
            heard = (heard + typed)[-4096:]
            if b":ultracluster job submit" in heard and fault.exists():
                wrong = fault.read_text()
                fault.unlink()
                if wrong == "unsent":
                    break
                ends = time.monotonic() + 3  # lost: it arrives, and its answer does not
            while typed:
                typed = typed[os.write(agent, typed) :]
    os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
