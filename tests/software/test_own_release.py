"""A team's own release, which an environment names by the path of its lock file."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from first_boot.rehearsal import boots, rehearse
from project import ROOT
from templates import assembly

from ultracluster import scripts_folder
from ultracluster.config import InvalidEnvironmentError, load
from ultracluster.lifecycle.bundles import NodeFiles
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configuration
from ultracluster.plan.environment_plan import plan
from ultracluster.rules import check
from ultracluster.software import load_release

pytestmark = pytest.mark.slow

NAME = "mine-2026.11"


@pytest.fixture(autouse=True)
def none_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts_folder, "_OWN_RELEASES", {})


def write(folder: Path, release: str, name: str = NAME) -> Path:
    """An environment beside a release of its own."""
    text = (ROOT / "environments" / "dev.yaml").read_text()
    shipped = load(ROOT / "environments" / "dev.yaml").environment.software.release
    lock = json.loads((ROOT / "lifecycle_scripts" / "releases" / f"{shipped}.lock").read_text())
    (folder / "releases").mkdir(exist_ok=True)
    (folder / "releases" / f"{name}.lock").write_text(json.dumps({**lock, "release": name}))
    file = folder / "env.yaml"
    file.write_text(text.replace(shipped, release))
    assert release in file.read_text()
    return file


@pytest.mark.parametrize("suffix", ["lock", "yaml"])
def test_it_is_used_like_one_of_this_package(suffix: str, tmp_path: Path) -> None:
    loaded = load(write(tmp_path, f"./releases/{NAME}.{suffix}"))
    environment = loaded.environment

    assert environment.software.release == NAME
    assert load_release(NAME).release == NAME
    assert not [one for one in check(loaded) if one.blocks]
    assert plan(resolve(environment)).software == NAME
    assert script_configuration(resolve(environment))["release"] == NAME
    entries = ["hyperpod_on_init_complete"]
    files = NodeFiles.of(*entries, release=NAME).in_folder(script_configuration(resolve(environment))).files
    assert json.loads(files[f"releases/{NAME}.lock"])["release"] == NAME
    assert [name for name in files if name.startswith("releases/")] == [f"releases/{NAME}.lock"]


def test_it_is_synthesised_and_rehearsed_like_one_of_this_package(tmp_path: Path) -> None:
    environment = load(write(tmp_path, f"./releases/{NAME}.lock")).environment
    boot = next(one for one in boots(environment) if one.group == "gpu")
    outcome = rehearse(boot, tmp_path / "node")
    assert outcome.status == 0, outcome.log
    assert outcome.report[-1]["release"] == NAME

    made = assembly(environment, checked=False)
    (archive,) = [
        file for file in made.folder.glob("asset.*.zip") if f"releases/{NAME}.lock" in str(_names(file))
    ]
    locks = {name.rpartition("/")[2] for name in _names(archive) if "/releases/" in name}
    assert locks == {f"{NAME}.lock"}


def _names(file: Path) -> list[str]:
    with zipfile.ZipFile(file) as archive:
        return archive.namelist()


@pytest.mark.parametrize(
    ("release", "name", "message"),
    [
        ("./releases/other-2026.11.lock", NAME, "other-2026.11.lock does not exist"),
        ("./releases/2026.11.lock", "2026.11", "a release of this package is called 2026.11"),
    ],
)
def test_a_path_that_names_no_release_of_ones_own(
    release: str, name: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidEnvironmentError) as caught:
        load(write(tmp_path, release, name))

    (finding,) = caught.value.findings
    assert (finding.code, finding.dotted) == ("CFG008", "software.release")
    assert message in finding.message
