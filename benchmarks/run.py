"""Performance as ratios beside their budgets (`make bench`). A ratio over its budget is marked.

Every figure is the median over several fresh processes, so that start-up counts as it does for a user.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from critical_path import budgets

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = int(os.environ.get("ROUNDS", "5"))

# the same process shape: the same modules, validators and checks, but nothing in the stack
EMPTY_APP = """
import sys
sys.path.insert(0, {root!r})
import ultracluster.stacks.hyperpod_slurm, ultracluster.rules
from aws_cdk import App, Stack, Validations
from cdk_nag import AwsSolutionsChecks
app = App(); Stack(app, "empty")
Validations.of(app).add_plugins(AwsSolutionsChecks(app)); app.synth()
"""
SYNTH = """
import sys
sys.path.insert(0, {root!r})
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks
from ultracluster.stacks import build
from ultracluster.config import parse
from ultracluster.config.source import Source, read
from ultracluster.rules import check
source = read(__import__("pathlib").Path({file!r}))
for number in range({groups}):
    gpu = source.data["node_groups"]["gpu"]
    source.data["node_groups"][f"more{{number}}"] = dict(gpu, partition=f"p{{number}}")
loaded = parse(source); check(loaded)
app = App(); build(app, loaded.environment)
Validations.of(app).add_plugins(AwsSolutionsChecks(app)); app.synth()
"""


def seconds(command: list[str], rounds: int = ROUNDS) -> float:
    """Median wall-clock seconds of a fresh process."""
    taken: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            # what containers set makes each start compile our code: not what a user waits for
            kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
            environment = {**kept, "CDK_OUTDIR": folder}
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment, cwd=ROOT)
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def row(what: str, ratio: float, budget: float, unit: str = "x") -> None:
    mark = "" if ratio <= budget else "   OVER"
    print(f"{what:<62} {ratio:7.2f} {unit}   budget {budget:g} {unit}{mark}")


def node_seconds() -> dict[str, float]:
    """Seconds of the entry script in a sandbox: all to install with instant downloads, then nothing to do."""
    with tempfile.NamedTemporaryFile("r") as file:
        bats = [
            str(ROOT / "node_modules/bats/bin/bats"),
            "--filter",
            "a bare node is brought",
            "release.bats",
        ]
        environment = {**os.environ, "ULTRACLUSTER_BENCH": file.name}
        folder = ROOT / "tests" / "lifecycle_scripts"
        subprocess.run(bats, check=True, capture_output=True, env=environment, cwd=folder)
        return {
            what: int(taken) / 1000 for what, taken in (line.split() for line in file.read().splitlines())
        }


def critical_paths() -> None:
    """Minutes of a first deploy as modelled; those without a budget have no templates of AWS beside them."""
    names = sorted(file.stem for file in (ROOT / "environments").glob("*.yaml"))
    for name, together, one_by_one, budget in budgets(names):
        what = f"first deploy of {name} ({one_by_one:.1f} one by one)"
        if budget is None:
            print(f"{what:<62} {together:7.2f} min")
        else:
            row(what, together, budget, "min")


# Nothing but the metrics of a step, with its loss and its waiting; a warm-up first, as any training has.
TRAINING_STEPS = """
import sys, time
sys.path.insert(0, {folder!r})
import ultracluster_metrics as metrics
metrics.start(folder=sys.argv[1], job_id="bench", flops_per_token=6e9, accelerator="h100", accelerators=8)
for _ in range(2):
    began = time.perf_counter()
    for number in range({steps}):
        with metrics.step(number, tokens=65536):
            with metrics.waiting():
                pass
        metrics.loss(2.0)
    taken = time.perf_counter() - began
print(taken)
"""


def training_step_microseconds(steps: int = 1000) -> float:
    """What telling a step costs the program, on the average of so many."""
    code = TRAINING_STEPS.format(folder=str(ROOT / "lifecycle_scripts" / "files"), steps=steps)
    taken: list[float] = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([*python(code), folder], check=True, capture_output=True, text=True)
        taken.append(float(done.stdout) / steps * 1e6)
    return statistics.median(taken)


def main() -> None:
    def synth(name: str, groups: int = 0) -> float:
        code = SYNTH.format(root=str(ROOT), file=str(ROOT / "environments" / f"{name}.yaml"), groups=groups)
        return seconds(python(code))

    empty = seconds(python(EMPTY_APP.format(root=str(ROOT))))
    full, dev, wide = synth("prod"), synth("dev"), synth("dev", groups=90)
    row("synth of prod / synth of an empty app, same imports", full / empty, 1.5)
    row("each of 90 further node groups / synth of dev", (wide - dev) / 90 / dev * 100, 2, "%")
    base = seconds(python("import pydantic, yaml"))
    row(
        "ultracluster validate / import pydantic, yaml",
        seconds(["ultracluster", "validate", "prod"]) / base,
        3,
    )
    row("ultracluster plan / import pydantic, yaml", seconds(["ultracluster", "plan", "prod"]) / base, 3)

    node = node_seconds()
    row("node entry script, the image holds the release, all 20 steps", node["no-op"], 5, "s")
    print(f"{'the same, everything missing and downloads instant':<62} {node['full-install']:7.2f} s")
    row(
        "metrics of a training step / 100 microseconds, over 1,000 steps",
        training_step_microseconds() / 100,
        1,
    )
    critical_paths()
    twin()


def twin(nodes: int = 16) -> None:
    """A real Slurm on this machine, with as many nodes as have namespaces of their own in tests."""
    done = subprocess.run(
        [sys.executable, "-m", "slurm_twin", str(nodes), "--json"],
        capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests/support")},
    )  # fmt: skip
    if done.returncode != 0:
        print(f"no figures of Slurm: {' '.join(done.stderr.splitlines()[-1:])}")
        return
    found = json.loads(done.stdout)
    row(f"Slurm with {nodes} nodes: a job over all of them has a task on each", found["gang"], 5, "s")
    row("from the kernel's line of a lost GPU to the drained node", found["drain"], 10, "s")
    row("from there to the job in the queue again", found["requeue"], 20, "s")
    print(f"{'until its nodes, controller and database are up':<62} {found['up']:7.2f} s")


if __name__ == "__main__":
    main()
