"""Accounts in real Debian roots: useradd, usermod, userdel, sshd and homes that two nodes share."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from debian_root import make_root
from depth import DEEP
from project import ROOT

FILES = ROOT / "lifecycle_scripts"
HANDLER = "opt/ultracluster/state.d/10_users"
PLACES = {
    HANDLER: "files/people.py",
    "opt/ultracluster/people/people_document.py": "files/people_document.py",
    "opt/ultracluster/people/people_accounts.py": "files/people_accounts.py",
    "opt/ultracluster/people/home.sh": "lib/home.sh",
}
AT_WORK = """setpriv --reuid 2001 --clear-groups sleep 600 &
until grep -q '^Uid:.2001' /proc/$!/status; do sleep 0.02; done"""
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5c0g1n3Zr8yq4o4l7bY9d3b1o8yQm2c2wV0y5o6b7k alice@example.com"
# A file system at /home that both nodes have, and a /proc of their own
ENTER = """mount -t proc proc "$0/proc" && { [ "$1" = - ] || mount --bind "$1" "$0/home"; } || exit
shift && exec chroot "$0" "$@"
"""


def user(name: str, uid: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "uid": uid, "gid": uid, "groups": [], "home": f"/home/{name}", "keys": []} | more


def document(*users: Mapping[str, Any], removals: str = "few", **groups: int) -> dict[str, Any]:
    """With a group for each id that has no other name."""
    rows = [{"name": name, "gid": gid} for name, gid in groups.items()]
    rows += [{"name": one["name"], "gid": one["gid"]} for one in users if one["gid"] not in groups.values()]
    homes = {"root": "/home", "mount": "/home", "by_controller": False}
    return {
        "schema": 1, "document": "users", "cluster": "dev",
        "homes": homes, "groups": rows, "users": [dict(one) for one in users], "removals": removals,
    }  # fmt: skip


@dataclass
class Node:
    """A root, and what it shares."""

    root: Path
    homes: Path
    mounted: bool = True

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, str(self.root)]
        made = subprocess.run(
            [*words, str(self.homes) if self.mounted else "-", *command],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
        )
        assert not check or made.returncode == 0, made.stdout + made.stderr
        return made

    def apply(self, given: object, *, before: str = "", complete: bool = True) -> list[str]:
        """Lines that the handler prints.

        Args:
            given: the document.
            before: what a shell does first, in the same set of processes.
            complete: whether all of it can be done.
        """
        text = given if isinstance(given, str) else json.dumps(given)
        (self.root / "users.json").write_text(text)
        made = self.run("sh", "-c", f"{before}\n/{HANDLER} /users.json", check=False)
        assert made.returncode == (0 if complete else 1), made.stdout + made.stderr
        assert "Traceback" not in made.stderr, made.stderr
        return made.stdout.splitlines()

    def accounts(self) -> dict[str, str]:
        """What every tool of this node reads, without the dates of passwords."""
        names = ("etc/passwd", "etc/group", "etc/gshadow")
        shadow = (self.root / "etc/shadow").read_text().splitlines()
        return {name: (self.root / name).read_text() for name in names} | {
            "shadow": "\n".join(":".join(line.split(":")[:2]) for line in shadow)
        }

    def passwd(self, name: str) -> str:
        lines = (self.root / "etc/passwd").read_text().splitlines()
        return next((line for line in lines if line.startswith(f"{name}:")), "")

    def groups(self, name: str) -> list[str]:
        return sorted(self.run("id", "--groups", "--name", name).stdout.split())


def homes_in(node: Node) -> list[str]:
    return sorted(path.name for path in node.homes.iterdir())


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of two nodes, and the `etc` that both begin with."""
    folder = tmp_path_factory.mktemp("people")
    root = folder / "one"
    make_root(root, tools=["chroot"])
    for place, source in PLACES.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FILES / source, root / place)
    # on a node without SSSD
    switch = root / "etc/nsswitch.conf"
    switch.write_text(switch.read_text().replace(" sss", ""))
    # who may sudo in the image, and a service of it
    with (root / "etc/passwd").open("a") as passwd:
        passwd.write("ubuntu:x:1000:1000::/home/ubuntu:/bin/bash\nmonitor:x:2050:2050::/:/bin/false\n")
    with (root / "etc/group").open("a") as group:
        group.write("ubuntu:x:1000:\nmonitor:x:2050:\ndocker:x:999:\n")
    copy = ["cp", "-a", "--reflink=auto"]
    subprocess.run([*copy, root, folder / "two"], check=True)
    subprocess.run([*copy, root / "etc", folder / "etc"], check=True)
    return [root, folder / "two", folder / "etc"]


@pytest.fixture
def nodes(roots: list[Path], tmp_path: Path) -> list[Node]:
    """Two nodes with the image's accounts, and an empty file system for homes."""
    *places, etc = roots
    return [_fresh(root, etc, tmp_path) for root in places]


@pytest.fixture
def node(roots: list[Path], tmp_path: Path) -> Node:
    return _fresh(roots[0], roots[-1], tmp_path)


def _fresh(root: Path, etc: Path, folder: Path) -> Node:
    homes = folder / "homes"
    homes.mkdir(exist_ok=True)
    homes.chmod(0o755)
    for changed in ("etc", "var/lib/ultracluster", "run/ultracluster", "var/spool/cron", "home"):
        shutil.rmtree(root / changed, ignore_errors=True)
    (root / "home").mkdir()
    (root / "home").chmod(0o755)
    subprocess.run(["cp", "-a", etc, root], check=True)
    return Node(root=root, homes=homes)


def test_the_same_accounts_on_every_node_and_one_home(nodes: list[Node]) -> None:
    given = document(
        user("alice", 2001, groups=["vision"], keys=[KEY]),
        user("bob", 2002, gid=3000),
        vision=3000,
        data=3001,
    )
    for node in nodes:
        lines = node.apply(given)
        assert lines[-1] == "2 users"
        assert node.passwd("alice") == "alice:x:2001:2001::/home/alice:/bin/bash"
        assert node.passwd("bob") == "bob:x:2002:3000::/home/bob:/bin/bash"
        assert node.groups("alice") == ["alice", "vision"]
        assert (node.root / "etc/ssh/ultracluster_keys/alice").read_text() == f"{KEY}\n"
    assert homes_in(nodes[0]) == ["alice", "bob"]
    home = (nodes[0].homes / "alice").stat()
    assert (home.st_uid, home.st_gid, home.st_mode & 0o7777) == (2001, 2001, 0o700)
    assert (nodes[0].homes / "alice/.bashrc").exists()
    shadow = (nodes[0].root / "etc/shadow").read_text()
    assert "\nalice:*:" in shadow  # no password, and not locked


def test_the_same_document_again_changes_nothing(node: Node) -> None:
    given = document(user("alice", 2001, groups=["vision"], keys=[KEY]), vision=3000)
    node.apply(given)
    before = node.accounts()
    (node.homes / "alice/mine").write_text("x")
    assert node.apply(given) == ["1 users"]
    assert node.accounts() == before
    # what another tool changed comes back: sudo and docker go
    node.run("usermod", "--append", "--groups", "sudo,docker", "alice")
    node.apply(given)
    assert node.groups("alice") == ["alice", "vision"]
    assert (node.homes / "alice/mine").read_text() == "x"


def test_groups_keys_and_own_group_change_also_of_somebody_at_work(node: Node) -> None:
    node.apply(document(user("alice", 2001, groups=["vision"], keys=[KEY]), vision=3000))
    file = node.homes / "alice/mine"
    file.write_text("x")
    os.chown(file, 2001, 2001)
    other = KEY.replace("alice@example.com", "new")
    given = document(user("alice", 2001, gid=3000, groups=["data"], keys=[other]), vision=3000, data=3001)
    lines = node.apply(given, before=f"{AT_WORK}\n")
    assert node.passwd("alice") == "alice:x:2001:3000::/home/alice:/bin/bash"
    assert node.groups("alice") == ["data", "vision"]
    assert (node.root / "etc/ssh/ultracluster_keys/alice").read_text() == f"{other}\n"
    assert (node.homes / "alice").stat().st_gid == 3000
    assert file.stat().st_gid == 2001, "files of a home are not walked through"
    assert any("files of 2001 stay so" in line for line in lines)
    assert "alice:" not in (node.root / "etc/group").read_text(), "the group that nobody has is gone"
    node.apply(document(user("alice", 2001, gid=3000), vision=3000))
    assert not (node.root / "etc/ssh/ultracluster_keys/alice").exists()
    assert node.groups("alice") == ["vision"]


def test_a_group_gets_another_id(node: Node) -> None:
    node.apply(document(user("alice", 2001, groups=["vision"]), vision=3000))
    lines = node.apply(document(user("alice", 2001, groups=["vision"]), vision=3005))
    assert "group vision is 3005 now; files of the group 3000 stay so" in lines
    assert node.groups("alice") == ["alice", "vision"]


def test_who_goes_leaves_data_and_nothing_else(nodes: list[Node]) -> None:
    users = [user("alice", 2001), user("bob", 2002, keys=[KEY]), user("carol", 2003)]
    for node in nodes:
        node.apply(document(*users))
    (nodes[0].homes / "bob/results").write_text("years of work")
    node = nodes[0]
    crontab = node.root / "var/spool/cron/crontabs/bob"
    crontab.parent.mkdir(parents=True, exist_ok=True)
    crontab.write_text("* * * * * true\n")
    stays = f"{AT_WORK}\necho $! >/alice.pid"
    goes = "setpriv --reuid 2002 --clear-groups sh -c 'trap : TERM; echo >/ready; sleep 600; sleep 600' &"
    lines = node.apply(
        document(users[0], users[2]),
        before=f"{stays}\n: >/ready; chmod 666 /ready\n{goes}\necho $! >/bob.pid\n"
        "until [ -s /ready ]; do sleep 0.02; done\ntrap 'ls -d /proc/[0-9]* >/left' EXIT",
    )
    left = (node.root / "left").read_text().split()
    assert f"/proc/{(node.root / 'alice.pid').read_text().strip()}" in left
    assert f"/proc/{(node.root / 'bob.pid').read_text().strip()}" not in left
    assert "removed bob: files of the id 2002 stay, in /home/bob and elsewhere" in lines
    assert lines[-1] == "2 users; bob is gone, its files are in /home/bob"
    assert not node.passwd("bob") and "bob:" not in (node.root / "etc/group").read_text()
    assert not (node.root / "etc/ssh/ultracluster_keys/bob").exists() and not crontab.exists()
    assert (node.homes / "bob/results").read_text() == "years of work"
    assert (node.homes / "bob").stat().st_uid == 2002
    # nobody else gets his files by his id, whether the node knew him before or not
    for one in nodes:
        lines = one.apply(document(*users[::2], user("dave", 2002)), complete=False)
        assert "NOT dave: the id 2002 owns /home/bob: its files would be dave's" in lines[-1]
        assert not one.passwd("dave") and not one.passwd("bob")
    # he comes back to his files
    assert nodes[0].apply(document(*users))[-1] == "3 users"


def test_who_cannot_be_made_is_refused_and_others_are_made(node: Node) -> None:
    (node.homes / "erin").mkdir()
    os.chown(node.homes / "erin", 7777, 7777)
    (node.homes / "frank").symlink_to("/etc")
    (node.homes / "old").mkdir()
    os.chown(node.homes / "old", 2011, 2011)
    given = document(
        user("ubuntu", 1000), user("low", 500), user("nobody", 65534), user("taken", 2050),
        user("sessions", 4999), user("erin", 2009), user("frank", 2010), user("grace", 2011),
        user("monitor", 2060), user("alice", 2001, groups=["docker"]), docker=3500,
    )  # fmt: skip
    before = node.accounts()
    lines = node.apply(given, complete=False)
    last = lines[-1]
    for name, why in (
        ("ubuntu", "is of the image"), ("low", "ids below 1000"), ("nobody", "is of the image"),
        ("docker", "is of the image"), ("taken", "the group id 2050 is that of `monitor`"),
        ("sessions", "id of the sessions' user"), ("erin", "belongs to the id 7777, and never becomes"),
        ("frank", "/home/frank is no folder"), ("grace", "the id 2011 owns /home/old"),
        ("monitor", "this node has a group of that name with the id 2050"),
        ("alice", "is there, without the group docker"),
    ):  # fmt: skip
        assert f"NOT {name}: " in last and why in last, (name, last)
    assert node.groups("alice") == ["alice"]
    for name in ("ubuntu", "monitor"):
        assert f"\n{name}:" in before["etc/passwd"] and node.passwd(name) in before["etc/passwd"]
    assert (node.homes / "erin").stat().st_uid == 7777
    assert last.startswith("1 users; ")


@pytest.mark.parametrize(
    ("place", "ended"),
    [
        ("ROLE=controller", True),
        ("ROLE=login\nORCHESTRATOR=pcs", True),
        ("ROLE=login", False),
        ("ROLE=compute", False),
    ],
)
def test_jobs_of_who_goes_end_where_root_administers_slurm(node: Node, place: str, ended: bool) -> None:
    (node.root / "etc/ultracluster").mkdir(exist_ok=True)
    (node.root / "etc/ultracluster/pull").write_text(f"{place}\n")
    scancel, asked = node.root / "usr/local/bin/scancel", node.root / "asked"
    scancel.write_text("#!/bin/sh\necho $* >>/asked\n")
    scancel.chmod(0o755)
    asked.unlink(missing_ok=True)
    node.apply(document(user("alice", 2001), user("bob", 2002)))
    node.apply(document(user("alice", 2001)))
    assert asked.exists() == ended
    assert not ended or asked.read_text() == "--user=bob\n"


def test_an_id_never_changes(node: Node) -> None:
    node.apply(document(user("alice", 2001)))
    lines = node.apply(document(user("alice", 2101)), complete=False)
    assert "ids never change" in lines[-1]
    assert node.passwd("alice").startswith("alice:x:2001:")


MALFORMED: list[dict[str, Any]] = [
    {"users": None}, {"users": {}}, {"users": [None]}, {"groups": []}, {"removals": "all"}, {"schema": 2},
    {"homes": None}, {"homes": {"root": "/home/../etc", "mount": "/home"}},
    {"users": [user("alice", 2001), user("alice", 2002)]},
    {"users": [user("alice", 2001), user("bob", 2001)]},
    {"users": [user("Alice", 2001)]}, {"users": [user("alice", "2001")]},
    {"users": [user("alice", True)]}, {"users": [user("alice", -1)]},
    {"users": [user("alice", 2001, home="/etc")]}, {"users": [user("alice", 2001, groups=["none"])]},
    {"users": [user("alice", 2001, keys=["command=\"x\" " + KEY])]},
    {"users": [user("alice", 2001, keys=[KEY + "\n" + KEY])]}, {"users": [user("a\nb", 2001)]},
]  # fmt: skip
NO_DOCUMENTS = ["", "{", "[]", "null", '{"users": [', "[" * 100_000]


def test_a_malformed_document_changes_nothing(node: Node) -> None:
    node.apply(document(user("alice", 2001), user("bob", 2002)))
    before = node.accounts()
    texts = [json.dumps(document(user("alice", 2001)) | change) for change in MALFORMED]
    for text in [*texts, *NO_DOCUMENTS]:
        lines = node.apply(text, complete=False)
        assert lines[-1].startswith("the document is not taken: "), text[:200]
        assert node.accounts() == before, text[:200]


def test_an_empty_document_removes_nobody_unless_it_says_so(node: Node) -> None:
    users = [user(f"u{number}", 2000 + number) for number in range(5)]
    node.apply(document(*users))
    lines = node.apply(document(), complete=False)
    assert "5 of 5 users are not in the document" in lines[-1] and "--remove-all" in lines[-1]
    assert node.apply(document(*users[:2]), complete=False)[-1].startswith("5 users; NOT 3 of 5")
    assert node.apply(document(*users[:3]))[-1].startswith("3 users; ")
    assert node.apply(document(removals="any"))[-1].startswith("0 users; ")
    assert homes_in(node) == [one["name"] for one in users]
    assert node.passwd("ubuntu")


def test_no_home_beneath_a_file_system_that_is_not_mounted(node: Node) -> None:
    node.mounted = False
    lines = node.apply(document(user("alice", 2001)), complete=False)
    assert "/home, where homes are, is not mounted" in lines[-1]
    assert not node.passwd("alice") and not (node.root / "home/alice").exists()
    node.mounted = True
    assert node.apply(document(user("alice", 2001)))[-1] == "1 users"


def test_the_node_that_shares_homes_has_them_itself(node: Node) -> None:
    node.mounted = False
    (node.root / "etc/ultracluster").mkdir(parents=True, exist_ok=True)
    (node.root / "etc/ultracluster/pull").write_text("URI=s3://b/c/state\nROLE=controller\n")
    given = document(user("alice", 2001))
    given["homes"]["by_controller"] = True
    node.apply(given)
    assert (node.root / "home/alice").stat().st_uid == 2001


def test_a_folder_of_homes_that_others_may_write_is_not_used(node: Node) -> None:
    node.homes.chmod(0o777)
    assert "others could put up homes" in node.apply(document(user("alice", 2001)), complete=False)[-1]
    node.homes.chmod(0o775)
    os.chown(node.homes, 0, 3000)
    assert "others could put up homes" in node.apply(document(user("alice", 2001)), complete=False)[-1]
    node.homes.chmod(0o755)
    os.chown(node.homes, 2001, 2001)
    assert "others could put up homes" in node.apply(document(user("alice", 2001)), complete=False)[-1]


def test_an_account_of_the_same_name_and_id_is_taken_over(node: Node) -> None:
    """One that an administrator or HyperPod's own script made before, or whose record was lost."""
    node.run("groupadd", "--gid", "2001", "alice")
    node.run("useradd", "--uid", "2001", "--gid", "2001", "--groups", "sudo,docker", "alice")
    node.apply(document(user("alice", 2001)))
    assert node.groups("alice") == ["alice"]
    assert (node.homes / "alice").stat().st_uid == 2001


def test_sshd_reads_the_keys_and_a_configuration_that_it_refuses_goes_again(node: Node) -> None:
    given = document(user("alice", 2001, keys=[KEY]))
    node.apply(given)
    node.run("ssh-keygen", "-A")
    node.run("mkdir", "-p", "/run/sshd")
    shown = node.run("/usr/sbin/sshd", "-T", "-C", "user=alice,host=x,addr=10.0.0.1").stdout
    assert "authorizedkeysfile /etc/ssh/ultracluster_keys/%u .ssh/authorized_keys" in shown.splitlines()
    drop_in = node.root / "etc/ssh/sshd_config.d/00-ultracluster-keys.conf"
    drop_in.unlink()
    with (node.root / "etc/ssh/sshd_config").open("a") as settings:
        settings.write("Nonsense yes\n")
    assert "keys: sshd refuses" in node.apply(given, complete=False)[-1]
    assert not drop_in.exists()


AWS = """#!/bin/sh
# s3api get-object of the AWS CLI: the last argument is the file, the fourth the bucket
for last; do :; done
[ "$4" = bucket ] && [ "$6" = dev/state/users.json ] && cp /document.json "$last" && echo '"etag"'
"""


def test_from_the_bucket_to_the_account(node: Node) -> None:
    """The tool that a timer calls each minute, with nothing but the document's place, and its status."""
    places = {"usr/local/sbin/ultracluster-state": (FILES / "files/state_pull.sh").read_text()}
    places |= {"usr/local/bin/aws": AWS, "document.json": json.dumps(document(user("alice", 2001)))}
    places["etc/ultracluster/pull"] = "URI=s3://bucket/dev/state\nREGION=\nCLUSTER=dev\nROLE=login\n"
    for place, text in places.items():
        file = node.root / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    node.run("ultracluster-state")
    assert node.passwd("alice") and homes_in(node) == ["alice"]
    status = node.run("setpriv", "--reuid", "2001", "--clear-groups", "ultracluster-state", "status")
    assert status.stdout.startswith("users: document ") and status.stdout.endswith(": 1 users\n")
    (node.root / "document.json").write_text("{}")
    node.run("ultracluster-state")
    assert "PROBLEM: the newest document is not taken" in node.run("ultracluster-state", "status").stdout
    assert node.passwd("alice")


STOPPED = f"""
import os, runpy, signal, sys
count, last = 0, int(sys.argv[1])
def hook(event, args):
    global count
    starts = event == "subprocess.Popen" and args[1][0] != "getent"
    writes = event == "open" and str(args[1])[0] in "wax"
    if starts or writes or event in ("os.rename", "os.remove", "os.mkdir", "os.chmod", "os.chown"):
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)
sys.argv = ["/{HANDLER}", sys.argv[2]]
sys.addaudithook(hook)
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    if not last:
        print(count)
"""


def test_killed_anywhere_the_next_run_completes_it(node: Node) -> None:
    """The record is written before what it records, so that no account is left that nobody knows.

    Each run is killed before its Nth change: each third one, all of them in a deep run.
    """
    given = document(user("alice", 2001, groups=["vision"], keys=[KEY]), user("bob", 2002), vision=3000)
    nobody = document(removals="any")
    (node.root / "stopped.py").write_text(STOPPED)
    counts: list[int] = []
    for name, content in (("given", given), ("nobody", nobody)):
        (node.root / f"{name}.json").write_text(json.dumps(content))
        done = node.run("python3", "-B", "/stopped.py", "0", f"/{name}.json")
        counts.append(int(done.stdout.split()[-1]))
    assert min(counts) > 5
    for number in range(1, max(counts) + 1, 1 if DEEP else 3):
        stop = f"python3 -B /stopped.py {number} /given.json || true"
        node.apply(given, before=stop)
        assert node.groups("alice") == ["alice", "vision"]
        node.apply(nobody, before=f"python3 -B /stopped.py {number} /nobody.json || true")
        assert not node.passwd("alice") and not node.passwd("bob")
        node.apply(nobody, before=stop)
        left = node.accounts()["etc/passwd"] + node.accounts()["etc/group"]
        assert not {"alice", "bob", "vision"} & {line.split(":")[0] for line in left.splitlines()}
