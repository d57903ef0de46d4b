"""What the pytest plugin says of templates and of the reviewed ones, with a synth that is given."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ultracluster import testing
from ultracluster.testing import EnvironmentFile

NAME = "dev-storage.template.json"


def template(deployment: str) -> str:
    properties = {"FileSystemType": "LUSTRE", "LustreConfiguration": {"DeploymentType": deployment}}
    return json.dumps({"Resources": {"Lustre": {"Type": "AWS::FSx::FileSystem", "Properties": properties}}})


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EnvironmentFile:
    def synth_each(root: Path, files: list[tuple[str, Path]], scratch: Path) -> list[Path]:
        assert root == tmp_path and files == [("dev", tmp_path / "environments" / "dev.yaml")]
        (scratch / NAME).write_text(template("PERSISTENT_2"))
        (scratch / "manifest.json").write_text("{}")
        return [scratch]

    monkeypatch.setattr(testing, "synth_each", synth_each)
    return EnvironmentFile(file=tmp_path / "environments" / "dev.yaml", root=tmp_path)


def fails(file: EnvironmentFile) -> str:
    with pytest.raises(pytest.fail.Exception) as failure:
        file.check_templates()
    return str(failure.value)


@pytest.mark.slow
def test_snapshots_are_written_once_asked_for_and_then_compared(file: EnvironmentFile) -> None:
    assert "`pytest --update-snapshots` writes them to snapshots/dev/" in fails(file)
    arguments: dict[str, Any] = {"file": file.file, "root": file.root}
    EnvironmentFile(**arguments, update=True).check_templates()
    reviewed = file.root / "snapshots" / "dev"
    assert [one.name for one in reviewed.iterdir()] == [NAME]
    file.check_templates()

    (reviewed / NAME).write_text(template("PERSISTENT_1"))
    (reviewed / "dev-old.template.json").write_text('{"Resources": {}}')
    said = fails(file)
    assert "dev is not as reviewed: dev-old.template.json, dev-storage.template.json" in said
    assert "DATA LOSS" in said
    EnvironmentFile(**arguments, update=True).check_templates()
    assert [one.name for one in reviewed.iterdir()] == [NAME]


@pytest.mark.parametrize("update", [False, True])
def test_the_option_reaches_each_file(update: bool, tmp_path: Path) -> None:
    for name in ("app.py", "cdk.json", "environments/dev.yaml", "environments/prod.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    taken: list[tuple[str, list[EnvironmentFile], list[str]]] = []
    config = SimpleNamespace(rootpath=tmp_path, getoption={"--update-snapshots": update}.__getitem__)
    metafunc: Any = SimpleNamespace(
        fixturenames=["environment_file"],
        config=config,
        parametrize=lambda name, files, ids: taken.append((name, files, ids)),
    )
    testing.pytest_generate_tests(metafunc)
    ((name, files, ids),) = taken
    assert (name, ids) == ("environment_file", ["dev", "prod"])
    assert [one.update for one in files] == [update, update]
