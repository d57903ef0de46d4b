"""Names of nodes as Slurm writes several at once: `ip-10-1-0-[1-3,7],login1`. Python 3.9 and newer."""

import itertools
import re

_PART = re.compile(r"\[([0-9,-]+)\]|([^\[\],]+)")
MOST = 20_000


def expanded(text, most=MOST):
    """One after the other; at most so many, and nothing of what cannot be read."""
    return list(itertools.islice(itertools.chain.from_iterable(map(_of_one, _split(text))), most))


def _split(text):
    """At commas that are outside of brackets."""
    return [one for one in re.findall(r"(?:\[[^\[\]]*\]|[^,])+", text) if one.strip()]


def _of_one(text):
    parts, at = [], 0
    for match in _PART.finditer(text):
        if match.start() != at:
            return
        at = match.end()
        parts.append(list(_numbers(match[1])) if match[1] else [match[2]])
    if at == len(text):
        for one in itertools.islice(itertools.product(*parts), MOST):
            yield "".join(one)


def _numbers(text):
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not dash:
            yield first
        elif first.isdigit() and last.isdigit() and 0 <= int(last) - int(first) <= MOST:
            for number in range(int(first), int(last) + 1):
                yield str(number).zfill(len(first))
