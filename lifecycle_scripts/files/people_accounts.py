"""Changes of accounts, with the tools of the image: what is right already is left alone.

Runs with the Python of Ubuntu 22.04, 24.04 and Amazon Linux 2023: 3.9 and newer.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

ROOT = os.environ.get("ULTRACLUSTER_ROOT", "")


def here(path):
    """The path below the root of a test, or as it is."""
    return Path(f"{ROOT}{path}")


PASSWD, GROUP = here("/etc/passwd"), here("/etc/group")
KEYS = here("/etc/ssh/ultracluster_keys")
SSHD = here("/etc/ssh/sshd_config")
DROP_INS = "/etc/ssh/sshd_config.d"
DROP_IN = here(f"{DROP_INS}/00-ultracluster-keys.conf")
DROP_IN_TEXT = """# Ultracluster: keys of the environment's users, and those in their homes
AuthorizedKeysFile /etc/ssh/ultracluster_keys/%u .ssh/authorized_keys
"""
HOME_TOOL = here("/opt/ultracluster/people/home.sh")
# How long processes of a user who goes have to end by themselves
GRACE_SECONDS = 5
LEFT_BEHIND = ("/var/spool/cron/crontabs", "/var/spool/cron", "/var/lib/systemd/linger")


def run(*words):
    """The tool, whose last words are told where it fails."""
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)


def name_of(table, key):
    """Name that a name or number has in any source of names (`passwd` or `group`); None where it is free."""
    try:
        return run("getent", table, key).stdout.split(":")[0]
    except subprocess.CalledProcessError:
        return None


def local_users():
    """Users of this node's own file, by name; those of a directory are not in it."""
    rows = [line.split(":") for line in PASSWD.read_text(encoding="utf-8").splitlines()]
    return {
        row[0]: {"uid": int(row[2]), "gid": int(row[3]), "home": row[5]}
        for row in rows
        if len(row) == 7 and row[2].isdigit() and row[3].isdigit()
    }


def local_groups():
    """Ids by name."""
    rows = [line.split(":") for line in GROUP.read_text(encoding="utf-8").splitlines()]
    return {row[0]: int(row[2]) for row in rows if len(row) == 4 and row[2].isdigit()}


def groups_of(name):
    """Names of the further groups of a local user, sorted."""
    rows = [line.split(":") for line in GROUP.read_text(encoding="utf-8").splitlines()]
    return sorted(row[0] for row in rows if len(row) == 4 and name in row[3].split(","))


def make_user(name, user, groups):
    # `*`: no password is right, and sshd lets keys in, which it does not for a locked account without PAM
    run(
        "useradd", "--uid", user["uid"], "--gid", user["gid"], "--groups", ",".join(groups),
        "--no-create-home", "--no-user-group", "--home-dir", user["home"], "--shell", "/bin/bash",
        "--password", "*", name,
    )  # fmt: skip


def change_user(name, found, user, groups):
    """What was changed. Exactly these groups: nobody keeps sudo or docker."""
    done = []
    if found["gid"] != user["gid"] or found["home"] != user["home"]:
        set_entry(name, gid=user["gid"], home=user["home"])
        if found["home"] != user["home"]:
            done.append(f"{name} has the home {user['home']} now; what was in {found['home']} stays there")
        else:
            done.append(f"{name} is of the group {user['gid']} now; files of {found['gid']} stay so")
    if groups_of(name) != sorted(groups):
        run("usermod", "--groups", ",".join(groups), name)
        done.append(f"{name}: groups {', '.join(groups) or 'none'}")
    return done


def set_entry(name, *, gid, home):
    """Group and home in /etc/passwd. usermod would give all files of the home to the new group, on every node
    at once, and refuses the home of somebody who is logged in."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.lckpwdf() != 0:
        raise OSError(ctypes.get_errno(), "/etc/passwd is locked by another tool")
    try:
        lines = PASSWD.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            row = line.split(":")
            if row[0] == name and len(row) == 7:
                row[3], row[5] = str(gid), home
                lines[number] = ":".join(row)
        new = PASSWD.with_name("passwd.ultracluster-new")
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
        shutil.copystat(PASSWD, new)
        new.rename(PASSWD)
    finally:
        libc.ulckpwdf()


def write_keys(name, keys):
    """What was changed. Root's own file, which the user cannot write."""
    path = KEYS / name
    text = "".join(f"{key}\n" for key in keys)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if text == before:
        return []
    if not text:
        path.unlink()
    else:
        KEYS.mkdir(mode=0o755, exist_ok=True)
        new = KEYS / f".{name}.new"
        new.write_text(text, encoding="utf-8")
        new.chmod(0o644)
        new.rename(path)
    return [f"{name}: {len(keys)} keys"]


def let_sshd_read_keys():
    """Why sshd does not read them; empty where it does, and where there are none."""
    if not KEYS.is_dir() or not any(KEYS.iterdir()) or not SSHD.exists():
        return ""
    if DROP_IN.exists() and DROP_IN.read_text(encoding="utf-8") == DROP_IN_TEXT:
        return ""
    rows = [line.split() for line in SSHD.read_text(encoding="utf-8").splitlines()]
    includes = [word for row in rows if row[:1] and row[0].lower() == "include" for word in row[1:]]
    if f"{DROP_INS}/*.conf" not in includes:
        return f"keys: {SSHD} includes no {DROP_INS}/*.conf"
    new = DROP_IN.with_name(f".{DROP_IN.name}.new")  # which sshd does not read
    new.write_text(DROP_IN_TEXT, encoding="utf-8")
    new.chmod(0o644)
    new.rename(DROP_IN)
    try:
        here("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        run(shutil.which("sshd") or "/usr/sbin/sshd", "-t")
    except (OSError, subprocess.CalledProcessError) as error:
        DROP_IN.unlink()
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        return f"keys: sshd refuses {DROP_IN}: {said[-1] if said else error}"
    for unit in ("ssh", "sshd"):
        try:
            run("systemctl", "reload", unit)
        except (OSError, subprocess.CalledProcessError):
            continue  # the other name of it; one that does not run reads it when it starts
    return ""


def is_mounted(path):
    """Whether a file system is mounted there; a look at the path mounts one that waits for it."""
    try:
        here(f"{path}/lost+found").exists()
        here(path).stat()
    except OSError:
        return False
    for line in here("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, _, right = line.partition(" - ")
        if left.split()[4] == path and not right.startswith("autofs "):
            return True
    return False


def home_of_other(root, uid, besides):
    """Folder of somebody else among the homes that this id owns already."""
    for entry in os.scandir(root):
        if entry.name == besides or entry.name.startswith("."):
            continue
        try:
            if entry.stat(follow_symlinks=False).st_uid == uid and entry.is_dir(follow_symlinks=False):
                return entry.path
        except OSError:
            continue
    return None


def make_home(home, skeleton, uid, gid):
    made = subprocess.run(
        ["/bin/bash", HOME_TOOL, home, skeleton, f"{uid}:{gid}"],
        check=False,
        capture_output=True,
        text=True,
    )
    if made.returncode == 2:
        raise OSError(f"the file system of {home} does not let root give folders away (root squash)")
    if made.returncode != 0:
        raise OSError(f"{home} cannot be made: {made.stderr.strip()[-200:]}")
    owner = here(home).lstat().st_uid
    if owner != uid:
        raise OSError(f"{home} was made by somebody else meanwhile, for the id {owner}")


def remove_user(name, uid, *, ends_jobs):
    """Number of processes that do not end; with 0 the user is gone. Files stay."""
    run("usermod", "--lock", "--expiredate", "1", "--shell", "/usr/sbin/nologin", "--groups", "", name)
    (KEYS / name).unlink(missing_ok=True)
    for folder in LEFT_BEHIND:
        if here(f"{folder}/{name}").is_file():
            here(f"{folder}/{name}").unlink()
    if ends_jobs and (scancel := shutil.which("scancel")):
        subprocess.run([scancel, f"--user={name}"], check=False, capture_output=True, timeout=60)
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + GRACE_SECONDS
        for process in processes_of(uid):
            try:
                os.kill(process, number)
            except ProcessLookupError:
                continue
        while processes_of(uid) and time.monotonic() < until:
            time.sleep(0.1)
    if left := len(processes_of(uid)):
        return left
    run("userdel", name)
    return 0


def processes_of(uid):
    """Processes that run as this user, but for those that have ended and wait for their parent."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if str(uid) in fields.get("Uid", "").split()[:3] and fields.get("State", " ").split()[0] not in "ZX":
            found.append(int(entry.name))
    return found
