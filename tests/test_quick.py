"""`pytest --quick`: what it leaves out, and what it cannot do. Every shell finds our tools."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT
from quick import Imports, NoCdk, no_process

FILES = {
    "constructs/ultracluster/__init__.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ultracluster.cluster import Cluster\n"
    ),
    "constructs/ultracluster/rules/__init__.py": "from ultracluster import facts\n",
    "constructs/ultracluster/facts.py": "import subprocess\n\ndef later():\n    import aws_cdk\n",
    "constructs/ultracluster/cluster.py": "from aws_cdk import (\n    Stack,  # one\n)\n",
    "stacks/nodes.py": "import aws_cdk\n",
    "tests/conftest.py": (
        "def made():\n    return helper()\n\ndef helper():\n    from aws_cdk import App\n\n"
        "def plain():\n    import json\n"
    ),
    "tests/support/near.py": "import ultracluster.cluster as far\n",
    "tests/below/conftest.py": "import subprocess\n\ndef server():\n    pass\n",
}


@pytest.mark.parametrize(
    ("text", "slow"),
    [
        ("import json\nfrom ultracluster.rules import check\n", False),
        ("def test(plain): ...\n", False),
        ("# ultracluster.cluster\nx = 'aws_cdk'\n", False),
        ("import json, jsii\n", True),
        ("from ultracluster.cluster import Cluster\n", True),
        ("from ultracluster import (\n    facts,\n    Cluster,\n)\n", True),
        ("def test():\n    from near import far\n", True),
        ("def test(made): ...\n", True),
        ("def test(server): ...\n", True),
        ("import subprocess\n", True),
        ("from moto import mock_aws\n", True),
        ("from ultracluster.stacks.nodes import Nodes\n", True),
    ],
)
def test_what_a_file_imports_tells_whether_it_is_left_out(text: str, slow: bool, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    file = tmp_path / "tests" / "below" / "test_it.py"
    file.write_text(text)

    assert Imports(tmp_path).slow(file) is slow


def test_a_quick_run_cannot_import_the_cdk_or_start_anything() -> None:
    with pytest.raises(
        ImportError, match=r"needs `aws_cdk\.aws_s3`: tests/support/quick\.py did not expect it"
    ):
        NoCdk().find_spec("aws_cdk.aws_s3", None)
    assert NoCdk().find_spec("aws_cdk_like", None) is None
    for event in ("subprocess.Popen", "socket.bind"):
        with pytest.raises(RuntimeError, match=event):
            no_process(event, ())
    no_process("open", ())


def test_the_quick_run_is_found_and_has_no_file_with_the_cdk() -> None:
    """Nobody imports the CDK while it is collected: the guard would end it."""
    plain = ["-q", "-n0", "-p", "no:cacheprovider", "--snapshot-warn-unused"]
    command = [sys.executable, "-m", "pytest", "--quick", "--collect-only", *plain]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert found.returncode == 0, found.stdout[-2000:] + found.stderr
    files = {ROOT / name for name in re.findall(r"^(\S+\.\w+)::", found.stdout, re.MULTILINE)}
    assert len(files) > 40
    assert {"test_storage.py", "test_solver.py"} <= {file.name for file in files}
    assert not {"test_environments.py", "test_quick.py", "README.md"} & {file.name for file in files}
    assert not [
        file for file in files if re.search(r"^\s*(from|import) aws_cdk", file.read_text(), re.MULTILINE)
    ]


def test_tools_are_found_from_any_shell() -> None:
    tools = ["cfn-lint", "shellcheck", "node", "cdk"]
    code = f"import runpy, shutil; runpy.run_path('conftest.py'); print(*map(shutil.which, {tools}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    *python, npm = (Path(path).parent for path in done.stdout.split())

    assert npm == ROOT / "node_modules" / ".bin"
    assert python[:2] == [Path(sys.executable).parent] * 2
