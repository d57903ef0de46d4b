"""People of a directory on a node: a real slapd with TLS, a real sssd, logins through sshd and PAM."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator

import pytest
from debian_root import make_root
from directory_node import (
    ARN,
    BASE,
    READER,
    SECRET,
    SERVER,
    DirectoryNode,
    settings,
)

CONF = "etc/sssd/sssd.conf"
SSSD_OWN = "/var/lib/sss/db/config.ldb"


def user(name: str, uid: int, more: str = "employeeType: hpc\n") -> str:
    return (
        f"dn: uid={name},{BASE}\nobjectClass: inetOrgPerson\nobjectClass: posixAccount\ncn: {name}\n"
        f"sn: {name}\nuid: {name}\nuidNumber: {uid}\ngidNumber: 7100\nhomeDirectory: /nowhere/{name}\n"
        f"userPassword: {name}-word\n{more}\n"
    )


def group(name: str, gid: int, *members: str) -> str:
    lines = "".join(f"memberUid: {one}\n" for one in members)
    return f"dn: cn={name},{BASE}\nobjectClass: posixGroup\ncn: {name}\ngidNumber: {gid}\n{lines}\n"


def sid(last: int, domain: tuple[int, ...] = (21, 1004336348, 1177238915, 682003330)) -> str:
    """An objectSid of one domain, as Active Directory has it (MS-DTYP, 2.4.2.2), for LDIF."""
    numbers = (*domain, last)
    data = bytes([1, len(numbers), 0, 0, 0, 0, 0, 5]) + b"".join(one.to_bytes(4, "little") for one in numbers)
    return base64.b64encode(data).decode()


def ad_user(name: str, last: int, control: int = 512) -> str:
    return (
        f"dn: cn={name},{BASE}\nobjectClass: user\ncn: {name}\n"
        f"sn: {name}\nsAMAccountName: {name}\nobjectSid:: {sid(last)}\nprimaryGroupID: 513\n"
        f"userAccountControl: {control}\n"
        f"userPassword: {name}-word\n\n"
    )


def ad_group(name: str, last: int, *members: str) -> str:
    lines = "".join(f"member: cn={one},{BASE}\n" for one in members)
    return (
        f"dn: cn={name},{BASE}\nobjectClass: group\ncn: {name}\n"
        f"sAMAccountName: {name}\nobjectSid:: {sid(last)}\ngroupType: -2147483646\n{lines}\n"
    )


ENTRIES = (
    f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\no: Example\ndc: example\n\n"
    f"dn: {READER}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: reader\n"
    f"userPassword: {SECRET}\n\n"
    + user("anna", 7001)
    + user("bert", 7002)
    + user("carl", 7003)
    + user("dora", 7004, more="")
    + user("low", 900)
    + user("ubuntu", 7009)
    + group("hpc", 7100, "anna", "bert")
    + group("sudo", 7777, "anna")
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DirectoryNode]:
    root = tmp_path_factory.mktemp("directory") / "root"
    make_root(root, tools=["ip", "nsenter"])
    made = DirectoryNode(root)
    try:
        made.run("useradd", "--uid", "1000", "--no-create-home", "ubuntu")
        made.load(ENTRIES)
        made.serve()
        made.secret(SECRET)
        sshd = made.run("/usr/sbin/sshd", "-o", "PasswordAuthentication=yes")
        assert sshd.returncode == 0, sshd.stdout
        yield made
    finally:
        made.end()


def test_two_users_log_in_and_find_their_homes(node: DirectoryNode) -> None:
    done = node.step("directory", settings(ca=node.ca))
    assert (done["state"], done["message"]) == ("installed", f"{SERVER}:636"), done["said"]
    for name, uid in (("anna", 7001), ("bert", 7002)):
        found = node.ssh(name, f"{name}-word", "id -u; pwd; stat -c '%U %a' . .bashrc").stdout.split("\n")
        assert found[:4] == [str(uid), f"/home/{name}", f"{name} 700", f"{name} 644"]
    assert node.ssh("anna", "another").returncode != 0
    su = ("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "su", "-", "anna", "-c", "id -un; pwd")
    assert node.run(*su, text="anna-word\n").stdout.endswith("anna\n/home/anna\n")
    assert node.run(*su, text="another\n").returncode != 0
    # not of those who may log in; and never one whose id an image may have
    assert node.ssh("dora", "dora-word").returncode != 0
    assert node.run("getent", "passwd", "low").returncode != 0
    again = node.step("directory", settings(ca=node.ca))
    assert (again["state"], again["end"].split()[0]) == ("already", "READY")


def test_a_directory_gives_nobody_the_rights_of_the_nodes_own(node: DirectoryNode) -> None:
    node.has(settings(ca=node.ca))
    assert node.run("id", "-Gn", "anna").stdout.split() == ["hpc"]
    assert node.run("getent", "group", "7777").stdout == ""
    assert node.run("id", "-u", "ubuntu").stdout == "1000\n"


def test_only_root_reads_the_password_and_nothing_else_has_it(node: DirectoryNode) -> None:
    done = node.step("directory", settings(ca=node.ca))
    conf = node.root / CONF
    assert (conf.stat().st_mode & 0o7777, conf.stat().st_uid) == (0o600, 0)
    assert SECRET in conf.read_text()
    assert SECRET not in done["said"]
    places = ["/etc", "/run", "/var/log", "/var/lib/ultracluster", "/var/lib/sss", "/home", "/scripts"]
    # besides it sssd's own copy, and what stands for Secrets Manager here
    found = node.run("grep", "-rlF", "--", SECRET, *places).stdout.split("\n")
    assert sorted(one for one in found if one.startswith("/")) == ["/etc/secret.json", f"/{CONF}", SSSD_OWN]
    own = (node.root / SSSD_OWN[1:]).stat()
    assert (own.st_mode & 0o7777, own.st_uid) == (0o600, 0)
    assert f"--secret-id {ARN} --region eu-north-1" in (node.run("cat", "/run/aws").stdout)


def test_who_is_removed_is_out_though_the_node_knew_him(node: DirectoryNode) -> None:
    node.has(settings(ca=node.ca))
    node.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/root/key")
    public = node.run("cat", "/root/key.pub").stdout
    put = f"mkdir -p .ssh && echo '{public.strip()}' >.ssh/authorized_keys"
    assert node.ssh("carl", "carl-word", put).returncode == 0
    assert node.ssh("carl", "", "id -un", "-i", "/root/key").stdout == "carl\n"
    node.delete("uid=carl")
    assert node.ssh("carl", "carl-word").returncode != 0
    # with a key as well: the account is asked for, not only the password
    assert node.ssh("carl", "", "id -un", "-i", "/root/key").returncode != 0
    assert node.ssh("anna", "anna-word").returncode == 0


def test_a_directory_that_is_gone_stops_nobody_whom_the_node_knows(node: DirectoryNode) -> None:
    node.has(settings(ca=node.ca))
    assert node.ssh("anna", "anna-word").returncode == 0
    node.stop_serving()
    try:
        done = node.step("directory", settings(ca=node.ca))
        assert done["state"] == "degraded"
        assert done["end"].startswith("DEGRADED directory"), done["end"]
        assert f"{SERVER}:636" in done["message"] and "refused" in done["message"]
        assert node.run("getent", "passwd", "anna").stdout.startswith("anna:*:7001:7100:")
        assert node.run("id", "-Gn", "anna").stdout.split() == ["hpc"]
        assert node.ssh("anna", "anna-word", "id -un").stdout == "anna\n"
        assert node.ssh("anna", "another").returncode != 0
    finally:
        node.serve()


def test_a_wrong_password_of_the_reader_is_said_and_a_new_one_is_fetched(node: DirectoryNode) -> None:
    (node.root / CONF).unlink(missing_ok=True)
    node.secret("not it")
    try:
        done = node.step("directory", settings(ca=node.ca))
        assert done["state"] == "degraded"
        assert f"refuses {READER}: the name or its password is wrong" in done["end"]
        assert "not it" not in done["said"]
    finally:
        node.secret(json.dumps({"username": "reader", "password": SECRET}))
    # what the timer calls: the password was changed meanwhile
    renewed = node.run("/usr/local/sbin/ultracluster-directory", "apply")
    assert (renewed.returncode, renewed.stdout) == (0, "written\n")
    assert node.step("directory", settings(ca=node.ca))["state"] == "already"


def test_a_secret_that_may_not_be_read_degrades_the_node_only(node: DirectoryNode) -> None:
    (node.root / CONF).unlink(missing_ok=True)
    node.secret(None)
    try:
        done = node.step("directory", settings(ca=node.ca))
        assert done["state"] == "degraded"
        assert f"the password cannot be read from {ARN}" in done["end"] and "AccessDenied" in done["end"]
        assert not (node.root / CONF).exists()
    finally:
        node.secret(SECRET)
    # the timer is there, and does it later
    assert (
        "enable ultracluster-directory.timer ultracluster-home.socket"
        in node.run("cat", "/run/systemctl").stdout
    )
    assert node.run("/usr/local/sbin/ultracluster-directory", "apply").stdout == "written\n"


def test_a_server_that_another_authority_signed_gets_no_password(node: DirectoryNode) -> None:
    node.forget()
    done = node.step("directory", settings(ca=node.other_ca))
    assert done["state"] == "degraded"
    assert f"{SERVER}:636: its certificate is not trusted" in done["end"]
    assert node.run("getent", "passwd", "anna").returncode != 0
    assert node.step("directory", settings(ca=node.ca))["state"] == "installed"


def test_start_tls_and_further_servers(node: DirectoryNode) -> None:
    uris = [f"ldap://{SERVER}", "ldap://gone.example.com"]
    done = node.step("directory", settings(ca=node.ca, uris=uris, start_tls=True))
    assert done["state"] == "installed", done["said"]
    assert done["message"].startswith(f"{SERVER}:389 (but gone.example.com:389: no address of that name")
    assert node.ssh("bert", "bert-word", "id -un").stdout == "bert\n"


def test_ids_worked_out_of_sids_are_the_same_on_every_node(node: DirectoryNode) -> None:
    node.stop_serving()
    node.load(
        ad_user("Erika", 1104) + ad_user("frank", 1105, control=514) + ad_group("Domain Users", 513)
        + ad_group("research", 1110, "Erika")
    )  # fmt: skip
    node.serve()
    asked = settings(
        ca=node.ca, kind="microsoft-ad", ids="from-sid", id_range=[200_000, 2_000_200_000], access_filter=None
    )
    found = []
    for _ in range(2):
        node.forget()
        done = node.step("directory", asked)
        assert done["state"] == "installed" or found, done["said"]
        # in another order on another node
        for name in ("research", "Erika") if found else ("Erika", "research"):
            node.run("getent", "passwd", name)
            node.run("getent", "group", name)
        found.append(node.run("id", "erika").stdout)
    assert found == [found[0]] * len(found)
    uid = int(node.run("id", "-u", "erika").stdout)
    assert uid % 200_000 == 1104 and uid >= 200_000
    assert "(research)" in found[0]
    assert node.ssh("erika", "Erika-word", "id -un").stdout == "erika\n"
    # disabled in the directory (userAccountControl, ACCOUNTDISABLE)
    assert node.ssh("frank", "frank-word").returncode != 0


def test_what_is_no_longer_asked_for_goes_and_the_password_with_it(node: DirectoryNode) -> None:
    node.has(settings(ca=node.ca))
    done = node.step("directory")
    assert (done["state"], done["message"]) == ("installed", "taken away")
    assert not (node.root / CONF).exists() and not (node.root / SSSD_OWN[1:]).exists()
    assert node.run("pgrep", "-x", "sssd").returncode != 0
    assert node.run("grep", "-rl", "ultracluster", "/etc/pam.d").stdout == ""
    assert node.step("directory")["state"] == "skipped"


def test_a_shell_without_pam_gets_its_home_and_many_nodes_make_one(node: DirectoryNode) -> None:
    node.has(settings(ca=node.ca))
    node.run("rm", "-rf", "/home/bert")
    tool = "/usr/local/sbin/ultracluster-home"
    runs = [threading.Thread(target=node.run, args=(tool, "bert")) for _ in range(8)]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    assert node.run("sh", "-c", "ls -A /home | grep -c ultracluster").stdout == "0\n"
    listed = node.run("sh", "-c", "stat -c '%U %a' /home/bert; ls -A /home/bert").stdout.split("\n")
    assert listed[0] == "bert 700" and ".bashrc" in listed
    node.run("touch", "/home/bert/kept")
    node.run(tool, "bert")
    assert node.run("ls", "/home/bert").stdout == "kept\n"
    # nobody else's, and none where the shared file system is not mounted
    for other in ("ubuntu", "root", "../x"):
        node.run(tool, other)
    assert set(node.run("ls", "/home").stdout.split()) <= {"anna", "bert", "carl", "erika"}
    node.run("umount", "/home")
    refused = node.run(tool, "bert")
    assert refused.returncode == 1 and "/home is not mounted" in refused.stdout
    node.run("mount", "-t", "tmpfs", "home", "/home")


def test_who_asks_for_a_home_is_what_the_kernel_says(node: DirectoryNode) -> None:
    node.has(settings(ca=node.ca))
    serve = (
        "import os,socket,subprocess\n"
        "server=socket.socket(socket.AF_UNIX); server.bind('/run/ask'); os.chmod('/run/ask',0o777)\n"
        "server.listen(); caller,_=server.accept()\n"
        "subprocess.run(['/usr/local/sbin/ultracluster-home-service'],stdin=caller)\n"
    )
    ask = "import socket; s=socket.socket(socket.AF_UNIX); s.connect('/run/ask'); print(s.recv(16))"
    node.run("rm", "-rf", "/home/anna", "/home/bert")
    server = threading.Thread(target=node.run, args=("python3", "-c", serve))
    server.start()
    node.until(lambda: node.run("test", "-S", "/run/ask").returncode == 0, "the socket")
    said = node.run("setpriv", "--reuid=7002", "--regid=7100", "--clear-groups", "python3", "-c", ask)
    server.join()
    assert said.stdout == "b'done\\n'\n"
    assert node.run("ls", "/home").stdout.split() == ["bert"]
