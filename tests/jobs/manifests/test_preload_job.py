"""`ultracluster job write --preload` on Kubernetes: a Job that its schema takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crd_fields import problems
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner

from ultracluster.cli.main import app

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("base", "changes", "queue"),
    [
        ("eks-p5en", {}, "everyone"),
        ("eks-p5en", {"orchestrator.scheduler": "volcano"}, None),
        ("hyperpod-eks-p5", {}, "everyone"),
    ],
)
def test_a_job_of_kubernetes(base: str, changes: dict[str, Any], queue: str | None, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    with file.open("w") as stream:
        YAML().dump(changed(environment_data(base), changes), stream)
    words = ["/fsx/checkpoints/a", "--nodes", "2", "--image", "a/b:1"]
    result = CliRunner().invoke(app, ["job", "write", str(file), "--preload", *words])
    assert result.exit_code == 0, result.stderr
    found = YAML(typ="safe").load(result.stdout)
    assert problems(found) == []
    assert found["metadata"].get("labels", {}).get("kueue.x-k8s.io/queue-name") == queue
    spec = found["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert (spec["completions"], spec["completionMode"]) == (2, "Indexed")
    assert container["args"] == ["/fsx/checkpoints/a", "2"]
    assert "nvidia" not in str(container["resources"])
    assert {"name": "lustre", "mountPath": "/fsx"} in container["volumeMounts"]
