"""What starts a notebook: its token is in one file of its owner, and nowhere else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ultracluster.jobs.notebook import PORTS, address, new_port, new_token, notebook_script

pytestmark = pytest.mark.slow

JUPYTER = """\
#!/bin/sh
stat -c %a "$JUPYTER_TOKEN_FILE" >"$SEEN.mode"
cat "$JUPYTER_TOKEN_FILE" >"$SEEN.token"
echo "$JUPYTER_TOKEN_FILE" >"$SEEN.place"
for one in $PPID/cmdline $$/cmdline $$/environ; do tr '\\0' ' ' </proc/$one; done >"$SEEN.shown"
pwd >"$SEEN.folder"
exit "${ENDS:-0}"
"""


def run(folder: Path, script: str, token: str, **more: str) -> subprocess.CompletedProcess[str]:
    (folder / "jupyter").write_text(JUPYTER)
    (folder / "jupyter").chmod(0o755)
    env = {"PATH": f"{folder}:/usr/bin:/bin", "SEEN": str(folder / "seen"), **more}
    words = ["sh", "-c", script]
    return subprocess.run(
        words, env=env, input=f"{token}\n", capture_output=True, text=True, timeout=30, check=False
    )


def test_the_token_is_read_and_shown_nowhere(tmp_path: Path) -> None:
    token = new_token()
    done = run(tmp_path, notebook_script(new_port(), folder=str(tmp_path), root=True), token)
    assert done.returncode == 0, done.stderr
    seen = {name: (tmp_path / f"seen.{name}").read_text() for name in ("mode", "token", "place", "shown")}
    assert (seen["mode"], seen["token"]) == ("600\n", token)
    assert token not in seen["shown"] + done.stdout + done.stderr
    assert "--ip=127.0.0.1" in seen["shown"] and "--ServerApp.port_retries=0 --allow-root" in seen["shown"]
    assert (tmp_path / "seen.folder").read_text() == f"{tmp_path}\n"
    assert not Path(seen["place"].strip()).exists(), "it goes with the notebook"


def test_how_the_notebook_ends(tmp_path: Path) -> None:
    assert run(tmp_path, notebook_script(1), "a", ENDS="7").returncode == 7
    (tmp_path / "bin").mkdir()
    for name in ("mktemp", "rm"):
        (tmp_path / "bin" / name).symlink_to(f"/usr/bin/{name}")
    env = {"PATH": str(tmp_path / "bin"), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["/bin/sh", "-c", notebook_script(1)],
        env=env,
        input="a\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 127 and "There is no jupyter here" in done.stderr
    assert {one.name for one in tmp_path.iterdir()} <= {"bin", "jupyter", *(f"seen.{one}" for one in SEEN)}


SEEN = ("mode", "token", "place", "shown", "folder")


def test_the_script_is_clean_in_any_shell(tmp_path: Path) -> None:
    file = tmp_path / "notebook.sh"
    file.write_text("#!/bin/sh\n" + notebook_script(1, folder="/fsx"))
    subprocess.run(["shellcheck", file], check=True)


def test_each_has_a_port_and_a_token_of_its_own() -> None:
    ports = {new_port() for _ in range(50)}
    assert len(ports) > 40 and min(ports) >= PORTS[0] and max(ports) < PORTS[1]
    assert new_token() != new_token() and len(new_token()) == 48
    assert address(8888, "ab") == "http://127.0.0.1:8888/lab?token=ab"
