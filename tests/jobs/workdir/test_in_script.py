"""The step that unpacks a folder on Lustre, run by bash with a stand-in for the AWS command line."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes_support import environment
from needs import need

from ultracluster.jobs.request import Wishes, job_text
from ultracluster.jobs.workdir.bucket import Workdir
from ultracluster.jobs.workdir.folder import read_folder, write_archive
from ultracluster.jobs.workdir.in_script import with_workdir
from ultracluster.model import Cluster, resolve
from ultracluster.model.job_access import workdir_place

pytestmark = pytest.mark.slow  # starts programs or listens

BUCKETS = [{"bucket": "example-data"}, {"bucket": "example-runs", "prefix": "team-a/", "write": True}]
SLURM = resolve(environment({"storage.job_buckets": BUCKETS}, base="prod"))
AWS = """\
#!/bin/bash
# takes what the AWS command line takes: aws s3 cp --only-show-errors --region R s3://... FILE
echo "$*" >>"$WORLD/calls"
[[ $1 == s3 && $2 == cp && $3 == --only-show-errors && $4 == --region && $5 == us-* && $# == 7 ]] || exit 252
[[ $AWS_CONFIG_FILE == /opt/ultracluster/jobs/aws_config ]] || exit 253
cp "$WORLD/s3/${6#s3://}" "$7" || exit 1
if [[ -e $WORLD/slow ]]; then touch "$WORLD/asked" && read -r _ <"$WORLD/slow"; fi
"""
BODY = """\
cat train.py
echo "at $PWD"
touch new 2>/dev/null && echo written
./run.sh
"""


@dataclass
class World:
    """A Lustre file system, a bucket, and who runs scripts."""

    root: Path
    workdir: Workdir

    @property
    def lustre(self) -> Path:
        return self.root / "fsx"

    @property
    def object(self) -> Path:
        return self.root / "s3" / self.workdir.place.bucket.bucket / self.workdir.key

    @property
    def place(self) -> Path:
        return self.lustre / f".ultracluster-workdirs-{os.getuid()}"

    def script(self, body: str = BODY, cluster: Cluster = SLURM) -> str:
        text = f"#!/bin/bash\n#SBATCH --nodes=1\n\n# what it does\n{body}"
        return with_workdir(cluster, text, self.workdir).replace("=/fsx/", f"={self.lustre}/")

    def start(self, text: str = "") -> subprocess.Popen[str]:
        path = f"{self.root / 'bin'}:/usr/bin:/bin"
        return subprocess.Popen(
            ["bash", "-c", text or self.script()],
            env={"PATH": path, "HOME": str(self.root / "home"), "WORLD": str(self.root)},
            cwd=self.root / "home", text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip

    def run(self, text: str = "") -> tuple[int, str, str]:
        child = self.start(text)
        out, errors = child.communicate(timeout=60)
        return child.returncode, out, errors

    @property
    def calls(self) -> int:
        file = self.root / "calls"
        return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.fixture
def world(tmp_path: Path) -> World:
    for name in ("bin", "home", "fsx", "code"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "aws").write_text(AWS)
    (tmp_path / "bin" / "aws").chmod(0o755)
    (tmp_path / "code" / "train.py").write_text("first\n")
    (tmp_path / "code" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "code" / "run.sh").chmod(0o755)
    folder, file = read_folder(tmp_path / "code", limit_mb=1), io.BytesIO()
    place = workdir_place(SLURM)
    assert place
    made = World(tmp_path, Workdir(file, write_archive(folder, file), 2, folder.size, place))
    made.object.parent.mkdir(parents=True)
    made.object.write_bytes(file.getvalue())
    return made


def test_a_job_begins_in_its_folder_which_is_read_only(world: World) -> None:
    status, out, errors = world.run()
    here = world.place / world.workdir.digest
    expected = [one for one in ("first", f"at {here}", "written" if os.getuid() == 0 else "", "ran") if one]
    assert (status, out.splitlines()) == (0, expected), errors
    kept = {one.name: one.stat().st_mode & 0o222 for one in (here, *here.rglob("*")) if one.name != "new"}
    assert kept == {world.workdir.digest: 0, "train.py": 0, "run.sh": 0}
    assert world.place.stat().st_mode & 0o077 == 0
    assert {one.name for one in world.place.iterdir()} == {".lock", world.workdir.digest}


def test_a_job_that_starts_again_runs_the_same_code_and_fetches_nothing(world: World) -> None:
    first = world.run()
    (world.root / "code" / "train.py").write_text("second\n")
    world.object.unlink()
    assert world.run()[:2] == first[:2]
    assert world.calls == 1


def test_what_is_gone_from_the_file_system_is_fetched_again(world: World) -> None:
    first = world.run()
    subprocess.run(["chmod", "-R", "u+w", world.place], check=True)
    subprocess.run(["rm", "-r", world.place], check=True)
    assert world.run()[:2] == first[:2]
    assert world.calls == 2


def test_jobs_that_start_together_fetch_once(world: World) -> None:
    os.mkfifo(world.root / "slow")
    children = [world.start() for _ in range(4)]
    with (world.root / "slow").open("w") as gate:  # opens when the first one fetches
        (world.root / "slow").unlink()
        gate.write("\n")
    for child in children:
        out, errors = child.communicate(timeout=60)
        assert child.returncode == 0 and "first" in out, errors
    assert world.calls == 1


def test_a_job_that_is_killed_leaves_nothing_half_done(world: World) -> None:
    os.mkfifo(world.root / "slow")
    child = world.start()
    with (world.root / "slow").open("w"):
        (world.root / "slow").unlink()
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
    assert not (world.place / world.workdir.digest).exists()
    assert world.run()[0] == 0
    assert {one.name for one in world.place.iterdir()} == {".lock", world.workdir.digest}


def breaks(world: World, what: str) -> None:
    match what:
        case "changed":
            world.object.write_bytes(world.object.read_bytes().replace(b"first", b"other"))
        case "absent":
            world.object.unlink()
        case "cut":
            world.object.write_bytes(world.object.read_bytes()[:600])
        case "link":
            world.place.symlink_to(world.root / "home")
        case "file":
            world.lustre.joinpath(world.place.name).write_text("")
        case _:
            (world.root / "bin" / "aws").unlink()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("changed", "is not what was submitted"),
        ("cut", "is not what was submitted"),
        ("absent", "cannot be read"),
        ("no command line", "cannot be read"),
        ("link", "is not your folder"),
        ("file", "cannot be made"),
    ],
)
def test_the_job_ends_before_its_own_lines(what: str, said: str, world: World) -> None:
    breaks(world, what)
    status, out, errors = world.run()
    assert (status, out) == (1, "")
    assert errors.splitlines()[-1].startswith("workdir: ") and said in errors.splitlines()[-1]
    assert not (world.place / world.workdir.digest).exists()


def test_a_folder_of_somebody_else_is_refused(world: World) -> None:
    need(root=True)
    world.place.mkdir()
    os.chown(world.place, 1234, 1234)
    status, out, errors = world.run()
    assert (status, out) == (1, "") and "is not your folder" in errors


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("#!/bin/bash\n#SBATCH -N1\n# words\n#SBATCH -J a\n", "\n# first\nset -e\n#SBATCH -t 1\n"),
        ("#!/usr/bin/env bash\n", "# words\nsrun a\n"),
        ("#!/bin/bash -l\n\n#SBATCH -N1\n", ""),
        ("#!/bin/bash\n", "srun a"),
    ],
)
def test_the_step_stands_behind_the_options(head: str, body: str, world: World) -> None:
    """sbatch reads options up to the first line that is no comment."""
    text = with_workdir(SLURM, head + body, world.workdir)
    assert text.startswith(f"{head}\n# The submitted folder") and text.endswith(body)
    assert text.count("ultracluster_workdir()") == 1


@pytest.mark.parametrize(
    ("cluster", "text", "said"),
    [
        (SLURM, "#!/usr/bin/env python3\n", "begin it with `#!/bin/bash`"),
        (SLURM, "#!/bin/sh\n", "begin it with `#!/bin/bash`"),
        (resolve(environment({"storage.lustre": None}, base="prod")), "#!/bin/bash\n", "storage.lustre"),
    ],
)
def test_a_script_that_cannot_unpack_is_refused(cluster: Cluster, text: str, said: str, world: World) -> None:
    with pytest.raises(ValueError, match=said):
        with_workdir(cluster, text, world.workdir)


@pytest.mark.parametrize("wishes", [{}, {"image": "a/b:1"}, {"framework": "jax"}])
def test_a_job_that_is_written_starts_its_program_there(wishes: dict[str, Any], world: World) -> None:
    made = job_text(SLURM, Wishes(nodes=1, **wishes), workdir=True).text
    text = with_workdir(SLURM, made, world.workdir)
    assert "train.py" in text and "/fsx/train.py" not in text
    assert ('--container-workdir="$ULTRACLUSTER_WORKDIR"' in text) is ("image" in wishes)
    subprocess.run(["shellcheck", "-"], input=text, text=True, check=True)
    subprocess.run(["shfmt", "-d", "-i", "2", "-ci"], input=text, text=True, check=True)
    assert f"s3://example-runs/team-a/ultracluster-workdirs/{world.workdir.digest}.tar" in text
    assert hashlib.sha256(world.object.read_bytes()).hexdigest() == world.workdir.digest
