"""`ultracluster job ...` from a laptop, on a real Slurm: hostile jobs, lost answers, nodes that die."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import select
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from slurm_twin.configuration import CONTROLLER
from slurm_twin.laptop import Laptop, login_shell
from slurm_twin.twin import Twin

from tests.slurm_twin.conftest import Machines
from ultracluster.account.aws import AccountError
from ultracluster.jobs.queue.person_session import PersonSession
from ultracluster.jobs.queue.protocol import NoSuchJobError, NotSubmittedError, Submission
from ultracluster.jobs.queue.slurm_queue import SlurmQueue

FIRST = """name: first
account: "123456789012"
region: us-west-2
network: {zone_id: usw2-az2}
orchestrator: {kind: parallelcluster, os: ubuntu2204}
node_groups:
  head: {role: controller, instance_type: m7i.xlarge, count: 1}
  login: {role: login, instance_type: m7i.large, count: 1}
  gpu: {role: compute, instance_type: g6.xlarge, count: 2, partition: gpu}
users:
  alice: {uid: 2001, principals: ["arn:aws:iam::111122223333:role/alice"]}
  bob: {uid: 2002, principals: ["arn:aws:iam::111122223333:role/bob"]}
software: {release: parallelcluster-3.16.3}
"""
PROFILE = r"""printf '\033[31mWelcome\033[0m ultracluster-session:open:x:0:root\r\n'
stty echo 2>/dev/null
PS1='\[\033]0;title\007\]evil> '
PROMPT_COMMAND='printf "\nnoise $RANDOM\n"'
alias exit=true
sleep 1
"""
"""Of a login shell: colours, a title, noise before each prompt, what looks like an answer, and time."""
HOSTILE = r"""#!/bin/bash
#SBATCH --job-name='a;touch$IFS/shared/pwned;$(id)'
printf '\033]52;c;cGF3bmVk\007\033[2J\nend-0\nultracluster-session:open:0:root\n'
printf 'step 7 loss 0.5\rstep 8 loss 0.25\n::error::of a workflow\n\xff\xfe\u202eright to left\n'
head -c 700000 /dev/zero | tr '\0' x
printf '\nno line end'
"""


@pytest.fixture(scope="module")
def cluster(machines: Machines) -> Twin:
    return machines().fresh({"SchedulerParameters": "requeue_delay=1", "KillWait": "2"})


@pytest.fixture(scope="module")
def laptop(cluster: Twin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    folder = tmp_path_factory.mktemp("laptop")
    (folder / "first.yaml").write_text(FIRST)
    users = {
        "first-cluster-as-alice": "alice",
        "first-cluster-as-bob": "bob",
        "first-cluster-as-root": "root",
    }
    with Laptop(cluster, folder, folder / "first.yaml", users) as made:
        yield made


@pytest.fixture(autouse=True)
def _afterwards(cluster: Twin) -> Iterator[None]:
    yield
    cluster.run("scontrol update nodename=ALL state=resume 2>/dev/null", check=False)
    cluster.run("scancel --user=alice; scancel --user=bob; rm -rf /shared/*")
    cluster.wait(lambda: cluster.up() == 4, "nodes to be idle")


def queue_of(cluster: Twin, user: str, **more: object) -> SlurmQueue:
    """Without an account in front of it."""
    return SlurmQueue(PersonSession(login_shell(cluster, user), user=user), CONTROLLER)


@pytest.fixture(scope="module")
def alice(cluster: Twin) -> Iterator[SlurmQueue]:
    queue = queue_of(cluster, "alice")
    yield queue
    queue.close()


def submission(text: str, token: str, name: str = "work") -> Submission:
    return Submission(text if text.startswith("#!") else f"#!/bin/bash\n{text}", name, token)


def batch(laptop: Laptop, text: str) -> str:
    (laptop.folder / "work.sh").write_text(text if text.startswith("#!") else f"#!/bin/bash\n{text}")
    return "work.sh"


def states(cluster: Twin) -> dict[str, str]:
    """What Slurm has, by job."""
    said = cluster.run("squeue --noheader --states=all --format='%i %T'").stdout.splitlines()
    return dict(line.split() for line in said)


def test_a_job_is_seen_by_all_and_read_and_ended_by_its_owner(cluster: Twin, alice: SlurmQueue) -> None:
    bob = queue_of(cluster, "bob")
    job = alice.submit(submission("for i in 1 2 3; do echo line $i; done; sleep 600\n", "a1")).id
    cluster.wait(lambda: alice.job(job).state == "running", "the job to run")
    assert job in [one.id for one in alice.jobs()] and job not in [one.id for one in bob.jobs()]
    seen = next(one for one in bob.jobs(everyone=True) if one.id == job)
    assert (seen.user, seen.name, seen.nodes, seen.wanted_nodes) == ("alice", "work.sh", ("n1",), 1)
    cluster.wait(lambda: alice.log(job).data == b"line 1\nline 2\nline 3\n", "its lines")
    first = alice.log(job, lines=1)
    assert first.data == b"line 3\n" and alice.log(job, first.cursor).data == b""
    nothing = bob.log(job)
    assert nothing.data == b"" and ("may read" in nothing.note or "not there" in nothing.note)
    assert "Access" in bob.cancel([job])[job] or alice.job(job).state == "running"
    assert alice.cancel([job]) == {job: ""}
    cluster.wait(lambda: alice.job(job).state == "cancelled", "the job to end")
    bob.close()
    with pytest.raises(NoSuchJobError, match="knows no job 999"):
        alice.job("999")
    with pytest.raises(NoSuchJobError, match="is no job of Slurm"):
        alice.job("1; touch /shared/pwned")


def test_the_nodes_of_a_job_are_known_by_address_while_it_runs(cluster: Twin, alice: SlurmQueue) -> None:
    """For SSH to them: names of Slurm's are not those of AWS."""
    job = alice.submit(submission("#SBATCH --nodes=2\nsleep 600", "n2")).id
    late = alice.submit(submission("#SBATCH --begin=now+1hour\ntrue", "n3")).id
    cluster.wait(lambda: alice.job(job).state == "running", "the job to run")
    shown = cluster.run("scontrol --oneliner show node").stdout.splitlines()
    by_name = {dict(f.split("=", 1) for f in line.split() if "=" in f)["NodeName"]: line for line in shown}
    found = alice.addresses(job)
    nodes = alice.job(job).nodes
    assert len(found) == len(nodes) == 2
    assert all(f" NodeAddr={address} " in by_name[name] for address, name in zip(found, nodes, strict=True))
    assert list(alice.addresses(late)) == []
    with pytest.raises(AccountError, match="Invalid job id"):
        alice.addresses("999999")
    alice.cancel([job, late])
    cluster.wait(lambda: alice.job(job).state == "cancelled", "the job to end")
    assert list(alice.addresses(job)) == []


def test_what_a_job_is_called_and_prints_is_shown_and_obeyed_by_nobody(laptop: Laptop, cluster: Twin) -> None:
    """Also where the profile of the login shell makes noise, asks for the time, and looks like an answer."""
    cluster.run("cat >.bash_profile", "alice", stdin=PROFILE)
    try:
        done = laptop.run("job", "submit", "first", batch(laptop, HOSTILE), "--as", "alice", "--watch")
    finally:
        cluster.run("rm .bash_profile", "alice")
    assert "\x1b" not in done.stdout + done.stderr and "\u202e" not in done.stdout
    assert "\\x1b]52;c;cGF3bmVk\\x07" in done.stdout
    assert "step 8 loss 0.25" in done.stdout and done.stdout.count("x") >= 700_000
    assert done.stdout.endswith("no line end\n")
    assert "completed" in done.stderr and "step 8, loss 0.25" in done.stderr
    assert cluster.run("ls /shared").stdout == ""


def test_a_job_that_fails_is_a_code(laptop: Laptop) -> None:
    done = laptop.run("job", "submit", "first", batch(laptop, "echo no; exit 7"), "--as", "alice", "--watch",
                      "--json", code=1)  # fmt: skip
    told = json.loads(done.stdout)["job"]
    assert (told["state"], told["exit_code"], told["why"]) == ("failed", 7, "NonZeroExitCode")
    assert "no\n" in done.stderr


def test_a_submission_without_an_answer_is_found_and_one_that_never_came_never_comes(
    laptop: Laptop, cluster: Twin
) -> None:
    before = len(states(cluster))
    laptop.fault("lost")
    found = laptop.run("job", "submit", "first", batch(laptop, "sleep 600"), "--as", "alice").stdout.strip()
    assert len(states(cluster)) == before + 1 and found in states(cluster)
    laptop.fault("unsent")
    refused = laptop.run("job", "submit", "first", "work.sh", "--as", "alice", code=2)
    assert "Not submitted" in refused.stderr and "will not be. Submit it again" in refused.stderr
    assert len(states(cluster)) == before + 1


def test_nothing_is_submitted_twice_under_one_token(cluster: Twin, alice: SlurmQueue) -> None:
    one = submission("sleep 600", "t1")
    job = alice.submit(one).id
    assert alice.submit(one).id == job
    # a laptop that looks first seals the token: a submission that is still on its way ends there
    late = submission("sleep 600", "t2")
    with pytest.raises(NotSubmittedError, match="will not be"):
        alice._find(late, "no answer")
    with pytest.raises(NotSubmittedError, match="will not be"):
        alice.submit(late)
    cluster.run("cd ~/ultracluster-jobs/work-t1 && : >.job", "alice")  # the answer was not written
    assert alice.submit(one).id == job


def test_what_slurm_refuses_is_refused(alice: SlurmQueue, cluster: Twin) -> None:
    with pytest.raises(NotSubmittedError, match="invalid partition"):
        alice.submit(submission("#SBATCH --partition=nowhere\ntrue", "r1"))
    cluster.run("chmod 500 ~/ultracluster-jobs", "alice")
    try:
        with pytest.raises(NotSubmittedError):
            alice.submit(submission("true", "r2"))
    finally:
        cluster.run("chmod 700 ~/ultracluster-jobs", "alice")


def test_a_session_of_root_or_of_somebody_else_runs_nothing(cluster: Twin) -> None:
    for user, expected in (("root", "alice"), ("root", ""), ("bob", "alice")):
        session = PersonSession(login_shell(cluster, user), user=expected)
        with pytest.raises(AccountError, match=f"the session is as '{user}'.*nothing was run"):
            session.run("touch /shared/pwned", what="try")
    assert cluster.run("ls /shared").stdout == ""


def test_a_node_that_dies_starts_the_job_again_and_who_watches_may_stop(
    laptop: Laptop, cluster: Twin, alice: SlurmQueue
) -> None:
    text = "#SBATCH --requeue --open-mode=append\necho on $SLURMD_NODENAME; sleep 600"
    watching = laptop.start("job", "submit", "first", batch(laptop, text), "--as", "alice", "--watch")
    assert watching.stdout
    job = watching.stdout.readline().strip()
    assert watching.stdout.readline() == "on n1\n"
    cluster.run("scontrol update nodename=n1 state=down reason=gone")
    assert "DUE TO NODE FAILURE" in watching.stdout.readline()
    assert watching.stdout.readline() == "on n2\n"
    cluster.wait(lambda: alice.job(job).restarts == 1, "the second start")
    said = laptop.hears(watching, "started again 1 time")
    said += laptop.interrupt(watching)[1]
    assert watching.returncode == 130
    assert f"Job {job} goes on" in said and "Traceback" not in said
    assert alice.job(job).state == "running"


class Typist:
    """Somebody at a terminal."""

    def __init__(self, laptop: Laptop, *words: str) -> None:
        self.child, self.terminal = laptop.type_into(*words)
        self.seen = ""

    def until(self, pattern: str, seconds: float = 600) -> str:
        """What is seen up to there, which is then seen no more."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < end, f"no {pattern}: {self.seen}"
            if select.select([self.terminal], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.terminal, 65536).decode(errors="replace")
                except OSError:
                    assert re.search(pattern, self.seen), f"it ended: {self.seen}"
        text, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return text

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def ended(self) -> int:
        with contextlib.suppress(OSError):
            while os.read(self.terminal, 65536):
                pass
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])


def test_a_shell_in_an_allocation_and_a_port_of_its_own_address(laptop: Laptop, cluster: Twin) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["job", "shell", "first", "--as", "alice", "--time", "10", "--gpus", "1"]
    typist = Typist(laptop, *words, "--forward", f"{port}:8765")
    try:
        typist.until("Granted job allocation")
        typist.until("port 8765 of the first node's 127.0.0.1")
        typist.type("echo on $(hostname) as $(id -un) job $SLURM_JOB_ID rows $(stty size)\n")
        told = re.search(r"on (n\d) as alice job (\d+) rows", typist.until(r"as alice job \d+ rows \d+ \d+"))
        assert told
        job = cluster.job(int(told[2]))
        assert (job["job_state"], job["user_name"], job["time_limit"]["number"]) == (["RUNNING"], "alice", 10)
        typist.type("head -c 300000 /dev/urandom >page; sha256sum page\n")
        expected = typist.until(r"[0-9a-f]{64}")[-64:]
        typist.type("python3 -m http.server --bind 127.0.0.1 8765 >/dev/null 2>&1 &\n")
        typist.type("until curl --silent 127.0.0.1:8765 >/dev/null; do sleep 0.1; done; echo se''rves\n")
        typist.until("serves")
        url = f"http://127.0.0.1:{port}/page"
        with ThreadPoolExecutor(3) as pool:
            got = list(pool.map(lambda _: urllib.request.urlopen(url, timeout=60).read(), range(3)))
        assert [hashlib.sha256(one).hexdigest() for one in got] == [expected] * 3
        # nobody else's way in: the address is the node's own
        refused = cluster.run(f"curl --silent --max-time 3 http://{told[1]}:8765/page", "bob", check=False)
        assert refused.returncode == 7
        typist.type("\x03kill %1; exit\n")
        cluster.wait(lambda: cluster.job(int(told[2]))["job_state"] != ["RUNNING"], "the allocation to end")
        assert typist.ended() == 0
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(url, timeout=5)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(typist.child, signal.SIGKILL)


JUPYTER = r"""#!/usr/bin/python3
# In the place of JupyterLab: it answers who has its token, on 127.0.0.1.
import http.server, os, sys
given = dict(word[2:].split("=", 1) for word in sys.argv if "=" in word)
wanted = open(os.environ["JUPYTER_TOKEN_FILE"]).read()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == f"/lab?token={wanted}" else 403)
        self.end_headers()
    def log_message(self, *_): pass
print("Jupyter runs for", os.environ["USER"], "in job", os.environ["SLURM_JOB_ID"], flush=True)
http.server.HTTPServer((given["ip"], int(given["port"])), Page).serve_forever()
"""


def test_a_notebook_is_opened_by_its_token_and_given_back(laptop: Laptop, cluster: Twin) -> None:
    for node in cluster.nodes:
        cluster.put(node, "/usr/bin/jupyter", JUPYTER, mode=0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["job", "shell", "--notebook", "first", "--as", "alice", "--time", "10", "--forward", str(port)]
    typist = Typist(laptop, *words)
    try:
        token = typist.until(rf"http://127\.0\.0\.1:{port}/lab\?token=[0-9a-f]{{48}}")[-48:]
        shown = typist.until(r"Jupyter runs for alice in job \d+")
        number = int(shown.rpartition(" ")[2])
        typist.until("of the first node's 127.0.0.1")
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/lab?token={token}", timeout=60).status == 200
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/lab?token={token[::-1]}", timeout=60)
        # in no list of processes, and in no word of Slurm's
        processes = cluster.run(f"ps -eww -o args; scontrol show job {number}").stdout
        assert "jupyter lab --no-browser --ip=127.0.0.1" in processes and token not in processes
        typist.type("\x03")
        cluster.wait(lambda: cluster.job(number)["job_state"] != ["RUNNING"], "the allocation to end")
        assert token not in shown and typist.ended() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(typist.child, signal.SIGKILL)


def test_a_shell_in_a_job_that_runs(laptop: Laptop, cluster: Twin, alice: SlurmQueue) -> None:
    job = alice.submit(submission("sleep 600", "s1")).id
    cluster.wait(lambda: alice.job(job).state == "running", "the job to run")
    typist = Typist(laptop, "job", "shell", "first", "--as", "alice", "--job", job)
    typist.until(r"\$ ")
    typist.type("echo in $SLURM_JOB_ID on $SLURMD_NODENAME; exit\n")
    typist.until(rf"in {job} on n1")
    assert typist.ended() == 0 and alice.job(job).state == "running"


def test_a_shell_needs_a_terminal(laptop: Laptop) -> None:
    assert "needs a terminal" in laptop.run("job", "shell", "first", "--as", "alice", code=2).stderr
