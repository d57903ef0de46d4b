"""The judges of tests that live in an environment of their own (tests/support/judges)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from needs import need_setup
from project import ROOT

PYTHON = ROOT / ".venv-judges" / "bin" / "python"


def answer(script: str, question: Any) -> Any:
    """What a script in tests/support/judges says. Skips where their environment is not there."""
    need_setup("Checkov and cel-python", PYTHON.exists())
    done = subprocess.run(
        [str(PYTHON), str(ROOT / "tests" / "support" / "judges" / script)],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def cel(expression: str, cases: Sequence[dict[str, Any]]) -> list[bool]:
    """An expression in CEL, evaluated by cel-python (PyPI) with each of the mappings as its variables."""
    return answer("expressions.py", {"expression": expression, "cases": list(cases)})
