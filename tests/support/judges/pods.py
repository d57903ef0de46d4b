"""Run in the judges' own environment: pods as JSON on stdin, and what Checkov says of each on stdout."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

logging.disable(logging.CRITICAL)

from checkov.kubernetes.runner import Runner  # noqa: E402
from checkov.runner_filter import RunnerFilter  # noqa: E402

with TemporaryDirectory() as folder:
    files = []
    for number, pod in enumerate(json.load(sys.stdin)):
        files.append(Path(folder) / f"{number}.json")
        files[-1].write_text(json.dumps(pod))
    report = Runner().run(
        root_folder=None,
        files=[str(file) for file in files],
        runner_filter=RunnerFilter(framework=["kubernetes"]),
    )
    found: list[dict[str, list[str]]] = [{"failed": [], "passed": []} for _ in files]
    for key, checks in (("failed", report.failed_checks), ("passed", report.passed_checks)):
        for check in checks:
            found[int(Path(check.file_path).stem)][key].append(check.check_id)
answers = [{key: sorted(set(ids)) for key, ids in one.items()} for one in found]
sys.stdout.write(json.dumps(answers) + "\n")
