"""Recorded expositions hold every name of the catalogue.

A metric that an exporter renames is found when its new release is recorded, not by an alert that is silent.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from expositions import dcgm, kube_state, kueue, series
from metrics_node import RECORDED, ROOT, recordings
from needs import path_of

from ultracluster.catalog.metrics import exporters, metrics

EXPORTERS = {exporter.name: exporter for exporter in exporters().values() if exporter.recorded}
RECORDINGS = {
    (exporter.name, exporter.version): exporter.recorded
    for exporter in EXPORTERS.values()
    if exporter.recorded
} | {
    (exporter.name, version): file
    for exporter in EXPORTERS.values()
    for version, file in exporter.also_recorded.items()
}
OF_OTHERS = {"Hostname", "DCGM_FI_DRIVER_VERSION", "goarch", "goos", "tags"}
"""Labels that nothing of ours reads: dcgm-exporter's and those of `*_build_info` differ between releases."""


def text_of(name: str, version: str) -> str:
    return (RECORDED / RECORDINGS[name, version]).read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "version"), RECORDINGS)
def test_a_recording_has_every_name_of_its_exporter_with_its_labels(name: str, version: str) -> None:
    wanted = {
        series: metric
        for metric in metrics().values()
        if metric.exporter == name and not metric.until
        for series in metric.series_names
    }
    found: dict[str, set[str]] = {}
    for one, labels, _ in series(text_of(name, version)):
        if one in wanted:
            found.setdefault(one, set()).update(labels)

    assert not sorted(set(wanted) - set(found)), "renamed, or gone"
    for one, labels in found.items():
        newer = set(wanted[one].newer_labels)
        assert labels - {"le"} - OF_OTHERS - newer == set(wanted[one].labels), one


@pytest.mark.parametrize(("name", "version"), RECORDINGS)
def test_types_are_those_that_the_exporter_says(name: str, version: str) -> None:
    said = {
        words[2]: words[3]
        for line in text_of(name, version).splitlines()
        if line.startswith("# TYPE ") and len(words := line.split(" ")) == 4
    }

    wanted = {
        metric.name: metric.type
        for metric in metrics().values()
        if metric.exporter == name and not metric.until
    }
    assert {key: kind for key, kind in said.items() if key in wanted} == wanted


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), RECORDINGS)
def test_promtool_can_read_a_recording(name: str, version: str) -> None:
    complaints = promtool(text_of(name, version))

    assert not [line for line in complaints if "error" in line], complaints


@pytest.mark.slow
def test_promtool_has_nothing_against_ours_but_names_of_others() -> None:
    """`node_amazonefa_*` are the field's names: counters without `_total`."""
    for name, version in RECORDINGS:
        if not name.startswith("collectors/"):
            continue
        left = [
            line
            for line in promtool(text_of(name, version))
            if not line.startswith("node_amazonefa_") and "ultracluster_gpu_count " not in line
        ]
        assert left == [], name


def promtool(text: str) -> list[str]:
    """Return what `promtool check metrics` says, a line each."""
    program = path_of("promtool")
    done = subprocess.run(
        [program, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.slow
def test_recordings_of_ours_are_what_collectors_write(tmp_path: Path) -> None:
    for name, text in recordings(tmp_path).items():
        assert (RECORDED / name).read_text(encoding="utf-8") == text, (
            f"{name}: python tests/support/metrics_node.py"
        )


@pytest.mark.parametrize(
    ("file", "text"),
    [("dcgm", dcgm(8, job="4711")), ("kueue", kueue()), ("kube_state_metrics", kube_state())],
)
def test_constructed_recordings_are_what_the_generators_write_and_say_so(file: str, text: str) -> None:
    recorded = (RECORDED / f"{file}.prom").read_text(encoding="utf-8")

    assert "Constructed from" in recorded.splitlines()[0]
    assert [
        line for line in recorded.splitlines() if not line.startswith("# Con") and "job 4711." not in line
    ] == text.splitlines()


def test_every_recording_is_of_an_exporter() -> None:
    assert {file.name for file in RECORDED.iterdir()} == set(RECORDINGS.values())


@pytest.mark.parametrize("name", [exporter.name for exporter in EXPORTERS.values() if exporter.constructed])
def test_what_was_constructed_says_so(name: str) -> None:
    version = EXPORTERS[name].version
    assert "not recorded" in "".join(text_of(name, version).splitlines()[:2])


@pytest.mark.parametrize("name", [exporter.name for exporter in EXPORTERS.values() if exporter.pinned])
def test_releases_have_the_version_whose_names_are_known(name: str) -> None:
    """A release that lifts an exporter asks for a recording first: metrics are renamed without a word."""
    pinned = EXPORTERS[name].pinned
    assert pinned
    locked = {
        file.name: json.loads(file.read_text())["components"].get(pinned["component"], {}).get("version")
        for file in (ROOT / "lifecycle_scripts" / "releases").glob("*.lock")
    }

    assert {
        file: version for file, version in locked.items() if version not in (None, pinned["version"])
    } == {}
    assert set(locked.values()) - {None}, f"no release has {pinned['component']}"
