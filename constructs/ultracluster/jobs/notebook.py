"""Script that starts a notebook where a job runs: only its own token opens it, on the node's own 127.0.0.1.

The token is the first line of its input. So it stands in no list of processes, in no manifest, and in no log:
it is kept in a file of its owner until the notebook ends, and JupyterLab reads it there (jupyter_server,
auth/identity.py: JUPYTER_TOKEN_FILE; a token from there is not printed).
"""

from __future__ import annotations

import secrets
import shlex

PORTS = (20000, 30000)
"""Below those that the system gives to connections; several notebooks may be on one node."""

_SCRIPT = """\
umask 077
file=$(mktemp) || exit 1
trap 'rm -f "$file"' EXIT
trap 'exit 143' TERM HUP INT
IFS= read -r token
printf %s "$token" >"$file"
unset token
command -v jupyter >/dev/null || {
  echo "There is no jupyter here: pip install jupyterlab, or another image." >&2
  exit 127
}
@folder@export JUPYTER_TOKEN_FILE="$file"
jupyter lab --no-browser --ip=127.0.0.1 --port=@port@ --ServerApp.port_retries=0@root@
"""


def notebook_script(port: int, *, folder: str = "", root: bool = False) -> str:
    """For `sh -c`.

    Args:
        folder: in which it begins; where it is by default.
        root: the container may have no other user.
    """
    text = _SCRIPT.replace("@port@", str(port)).replace("@root@", " --allow-root" if root else "")
    return text.replace("@folder@", f"cd {shlex.quote(folder)} || exit 1\n" if folder else "")


def new_token() -> str:
    """Token of one notebook."""
    return secrets.token_hex(24)


def new_port() -> int:
    """A port there; where it is in use, the notebook ends with that error."""
    return PORTS[0] + int(secrets.token_hex(4), 16) % (PORTS[1] - PORTS[0])


def address(port: int, token: str) -> str:
    """Address for a browser on this machine."""
    return f"http://127.0.0.1:{port}/lab?token={token}"
