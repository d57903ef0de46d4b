"""What `make plan` installs is enough for every command that needs neither an account nor the CDK."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from importlib.metadata import files
from pathlib import Path

from project import ROOT

ANSWERED = """plan dev
plan prod --markdown
plan prod --json
plan prod --html {out}/prod.html
plan prod --picture {out}/prod.svg
validate environments
validate environments/dev.yaml --json
cost prod
choose --slurm --instance-type 64xH100
init --accelerators 64xH100 --orchestrator pcs --region us-east-1 -o {out}/train.yaml
rules FSX002
rules
permissions read
schema plan
software show
software show --images
move prod --to use2-az1""".splitlines()
REFUSED = {"preflight dev": "boto3", "synth dev -o {out}/cdk.out": "aws_cdk"}
PROGRAM = '''
import json, sys


class Heavy:
    """Records who asks for what takes a second to load, also where a missing package would be no error."""

    tried = []

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("aws_cdk", "boto3", "botocore", "cdk_nag", "jsii"):
            self.tried.append(name)


sys.meta_path.insert(0, Heavy())
from ultracluster.cli import main

codes = []
for command in json.loads(sys.argv[1]):
    print("==", command, file=sys.stderr)
    sys.argv[1:] = command.split()
    try:
        main()
    except SystemExit as end:
        codes.append(end.code)
print(json.dumps(Heavy.tried), file=sys.stderr)
print(json.dumps(codes), file=sys.stderr)
'''


def run(commands: Sequence[str], folder: Path) -> tuple[list[int], list[str], str]:
    """Exit codes, heavy modules asked for, and standard error of commands in one process, which finds only
    what the lock installs."""
    packages = folder / "packages"
    packages.mkdir()
    pinned = re.findall(r"^(\S+)==\S+ \\$", (ROOT / "requirements-plan.lock").read_text(), re.MULTILINE)
    library = Path(sysconfig.get_path("purelib"))
    for name in {path.parts[0] for one in [*pinned, "ultracluster"] for path in files(one) or ()}:
        if name.partition("-")[0] in {"..", "__pycache__"} or name.endswith(".pth"):
            continue
        (packages / name).symlink_to(library / name)
    words = json.dumps([one.format(out=folder) for one in commands])
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{packages}{os.pathsep}{ROOT / 'constructs'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *printed, tried, codes = done.stderr.splitlines()
    return json.loads(codes), json.loads(tried), "\n".join(printed)


def test_the_lock_has_what_the_commands_import(tmp_path: Path) -> None:
    codes, tried, printed = run(ANSWERED, tmp_path)

    assert dict(zip(ANSWERED, codes, strict=True)) == dict.fromkeys(ANSWERED, 0), printed
    assert tried == [], "light commands answer in a blink: neither the CDK nor the SDK of AWS is asked for"


def test_what_is_missing_is_said_with_its_remedy(tmp_path: Path) -> None:
    codes, tried, printed = run(list(REFUSED), tmp_path)

    assert codes == [2, 2]
    assert {"aws_cdk", "boto3"} <= set(tried)
    for package in REFUSED.values():
        assert f"Python package {package}, which is not installed. Run `make setup`" in printed
    assert "Traceback" not in printed
