"""Files that jobs write about themselves: whose they are, what is believed of them, and how many."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from depth import examples
from expositions import series
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metrics_node import METRICS, NOW, TRAINING, Node, module

from ultracluster.catalog.metrics import metrics

FOLDER = "run/ultracluster/training"
training: Any = module("training")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    found = Node(tmp_path)
    found.job()
    return found


def told(node: Node, now: float = NOW) -> tuple[list[tuple[str, dict[str, str], float]], dict[str, float]]:
    """Series of jobs, and how many files were refused for what."""
    all_of_them = list(series(node.text("training", now)))
    refused = {
        labels["reason"]: value
        for name, labels, value in all_of_them
        if name == "ultracluster_training_files_refused" and value
    }
    return [one for one in all_of_them if one[0] != "ultracluster_training_files_refused"], refused


def written(node: Node, **training: Any) -> None:
    node.document(f"{FOLDER}/4711.0.json", {"version": 1, "training": training})


def test_figures_of_all_ranks(node: Node) -> None:
    node.training(0, 1)

    found, refused = told(node)

    assert refused == {}
    assert ("ultracluster_training_step_seconds", {"job_id": "4711", "rank": "1"}, 1.31) in found
    assert ("ultracluster_training_loss", {"job_id": "4711", "rank": "0"}, 2.31) in found
    assert {labels["rank"] for name, labels, _ in found if name == "ultracluster_training_mfu_ratio"} == {"0"}


def test_what_a_training_script_writes_with_our_module_is_taken_as_a_whole(node: Node) -> None:
    """`files/ultracluster_metrics.py`, in a process of its own, as in a job."""
    (node.root / FOLDER).mkdir(parents=True)
    program = f"""
import pathlib, time
import ultracluster_metrics as metrics
metrics.FOLDER = pathlib.Path({str(node.root / FOLDER)!r})
metrics.start(flops_per_token=6e9, accelerator="h100")
for number in range(3):
    with metrics.step(number, tokens=1024):
        with metrics.waiting():
            time.sleep(0.01)
metrics.loss(2.5)
with metrics.checkpoint():
    pass
metrics.first_token(0.2)
metrics.next_token(0.02, model="llama")
metrics.stop()
"""
    modules = METRICS.parent / "files"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(modules), "SLURM_JOB_ID": "4711", "RANK": "0",
             "WORLD_SIZE": "1"},
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert done.stderr == ""

    found, refused = told(node, time.time())

    names = {name for name, _, _ in found}
    wanted = {
        one.name
        for one in metrics().values()
        if one.exporter == "collectors/training" and one.type != "histogram"
    }
    assert wanted - names <= {"ultracluster_training_files_refused"}, sorted(wanted - names)
    assert refused == {}
    models = {labels["model"] for name, labels, _ in found if name.endswith("_count")}
    assert models == {"", "llama"}
    assert len([one for one in found if one[0].startswith("ultracluster_inference_time_to_first")]) <= 2 * 18


def test_a_job_of_another_user_is_not_believed(node: Node) -> None:
    node.job(4712, uid=os.getuid() + 1)
    node.training(0, job=4712)
    node.training(1, job=9999)

    assert told(node) == ([], {"no_job": 2})


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "inf"])
def test_a_loss_that_is_no_number_any_more_is_a_fault_and_no_value(node: Node, text: str) -> None:
    written(node, loss=text)

    names = {name: value for name, _, value in told(node)[0]}

    assert names["ultracluster_training_loss_finite"] == 0
    assert "ultracluster_training_loss" not in names


def test_a_number_that_no_float_holds_costs_nobody_else_their_metrics(node: Node) -> None:
    huge = "1" + "0" * 400
    node.write(f"{FOLDER}/4711.0.json", f'{{"version": 1, "training": {{"loss": {huge}, "step": 3}}}}')

    names = {name: value for name, _, value in told(node)[0]}

    assert "ultracluster_training_loss_finite" not in names and names["ultracluster_training_step"] == 3


def test_a_loss_as_json_of_python_writes_it(node: Node) -> None:
    node.write(f"{FOLDER}/4711.0.json", '{"version": 1, "training": {"loss": NaN, "step": 3}}')

    assert {name: value for name, _, value in told(node)[0]}["ultracluster_training_loss_finite"] == 0


@pytest.mark.parametrize(
    ("age", "there", "kept"), [(100, True, True), (300, False, True), (4000, False, False)]
)
def test_an_old_file_says_nothing_and_goes_after_an_hour(
    node: Node, age: int, there: bool, kept: bool
) -> None:
    node.training(0)

    assert bool(told(node, NOW + age)[0]) == there
    assert (node.root / FOLDER / "4711.0.json").exists() == kept


def test_links_pipes_folders_and_large_files_are_not_read(node: Node, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"version": 1, "training": TRAINING}))
    os.utime(secret, (NOW, NOW))
    folder = node.root / FOLDER
    folder.mkdir(parents=True)
    (folder / "4711.0.json").symlink_to(secret)
    os.link(secret, folder / "4711.1.json")
    os.mkfifo(folder / "4711.2.json")
    (folder / "4711.3.json").mkdir()
    node.write(
        f"{FOLDER}/4711.4.json", json.dumps({"version": 1, "training": TRAINING, "more": "x" * 70_000})
    )

    assert told(node) == ([], {"type": 5})


def test_a_folder_that_is_a_link_is_not_read(node: Node, tmp_path: Path) -> None:
    node.training(0)
    (node.root / FOLDER).rename(tmp_path / "elsewhere")
    (node.root / FOLDER).symlink_to(tmp_path / "elsewhere")

    assert told(node)[0] == []


@pytest.mark.parametrize(
    "name",
    ["4711.0.json.new", ".4711.0.json.1.tmp", "a b.0.json", "4711.x.json", "4711.0.json\n", "é.0.json"],
)
def test_other_names_are_left_alone(node: Node, name: str) -> None:
    node.document(f"{FOLDER}/{name}", {"version": 1, "training": TRAINING})

    assert told(node) == ([], {})


def test_one_user_has_so_many_files_and_a_node_too(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MOST_OF_ONE", 3)
    node.training(*range(8))

    found, refused = told(node)

    assert len({labels["rank"] for _, labels, _ in found}) == 3
    assert refused == {"number": 5}


def test_names_of_models_are_bounded(node: Node) -> None:
    node.training(0, inference=True)
    file = node.root / FOLDER / "4711.0.json"
    document = json.loads(file.read_text())
    one = document["inference"]["llama"]
    document["inference"] |= {f"m{number}": one for number in range(9)} | {'a"b': one, "x" * 99: one, "": one}
    node.document(f"{FOLDER}/4711.0.json", document)

    models = Counter(labels["model"] for name, labels, _ in told(node)[0] if name.endswith("_count"))

    assert len(models) <= training.MOST_MODELS and all(name.isalnum() or not name for name in models)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just("NaN"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
OF_TRAINING = st.dictionaries(st.sampled_from([*TRAINING, "other"]), JSON, max_size=8)
HISTOGRAM = st.fixed_dictionaries(
    {},
    optional={
        "buckets": JSON | st.lists(st.lists(st.integers(), max_size=3), max_size=3),
        "sum": JSON,
        "count": JSON,
    },
)
MODELS = st.dictionaries(
    st.text(max_size=4) | st.just("llama"),
    JSON
    | st.dictionaries(
        st.sampled_from(["time_to_first_token_seconds", "inter_token_seconds"]), HISTOGRAM | JSON
    ),
    max_size=3,
)
DOCUMENTS = st.fixed_dictionaries(
    {"version": st.just(1)},
    optional={"training": OF_TRAINING | JSON, "inference": MODELS | JSON, "rank": JSON},
)


@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(DOCUMENTS | JSON, min_size=1, max_size=3))
def test_nothing_that_a_user_writes_breaks_the_file(node: Node, documents: list[Any]) -> None:
    for rank, document in enumerate(documents):
        node.document(f"{FOLDER}/4711.{rank}.json", document)

    text, _ = module("exposition").render(training.METRICS, training.collect(node.host()))

    found = [(name, tuple(sorted(labels.items()))) for name, labels, _ in series(text)]
    assert len(found) == len(set(found))
    for name, labels, value in series(text):
        assert name == "ultracluster_training_files_refused" or labels["job_id"] == "4711"
        assert value == value and abs(value) < 1e300, name
