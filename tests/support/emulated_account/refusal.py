"""What the account refuses, in the words of CloudFormation's events."""

from __future__ import annotations


class ApiError(Exception):
    """A request that AWS would refuse: an error code as the service documents it, and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} (Error Code: {code})")
        self.code = code


not_judged: set[str] = set()


def say_not_judged(what: str) -> None:
    """Prints what the emulator does not judge, each once."""
    if what not in not_judged:
        not_judged.add(what)
        print(f"not judged: {what}", flush=True)
