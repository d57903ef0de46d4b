#!/usr/bin/python3 -IS
"""People's accounts from a directory: writes SSSD's configuration, and says whether the directory answers.

    ultracluster-directory apply    write what directory.json says; restart SSSD where that changes anything
    ultracluster-directory check    what is not as it should be, one thing per line
    ultracluster-directory probe    ask each server as SSSD does: one line, and status 1 if none answers well

`apply` fetches the password from Secrets Manager, with the node's role, where there is none or the
directory refuses it: a timer calls it, because passwords are rotated. The password is in /etc/sssd/sssd.conf,
which only root reads, and nowhere else: never an argument of a command, never in a log.

Runs with the Python of Ubuntu 22.04, 24.04 and Amazon Linux 2023: 3.9 and newer.
"""

import grp
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = os.environ.get("ULTRACLUSTER_ROOT", "")
SETTINGS = ROOT + "/etc/ultracluster/directory.json"
CA = "/etc/ultracluster/directory-ca.pem"
CONF = ROOT + "/etc/sssd/sssd.conf"
DOMAIN = "directory"
AUTHTOK = "ldap_default_authtok"
# Before SSSD 2.10 it runs as root and refuses a file that others may read; since then it may be another user.
OWN_USER_SINCE = (2, 10)
# The distributions' own groups whose members may become root; those of the node are added.
PRIVILEGED = {"root", "sudo", "wheel", "admin", "adm", "docker", "lxd", "disk"}
SECRET_TRIES = 3
BESIDE = Path(__file__).with_name("directory_probe.py")
PROBE = BESIDE if BESIDE.exists() else Path("/usr/local/sbin/ultracluster-directory-probe")
REFUSED = 3


class DirectoryError(Exception):
    """One line that says what is wrong."""


class RefusedError(DirectoryError):
    """The directory does not take the name or the password."""


def run(*command, **options):
    """A command, and what it says; what it is asked has no secret in it."""
    options = {"capture_output": True, "text": True, "timeout": 60, "check": False, **options}
    return subprocess.run(command, **options)


def is_running():
    return run("systemctl", "is-active", "--quiet", "sssd.service").returncode == 0


# --- SSSD's configuration ---


def text_of(value):
    """A value of sssd.conf: a line break would begin another setting."""
    text = str(value)
    if any(ord(character) < 32 for character in text) or text != text.strip():
        raise DirectoryError("a value of the directory's settings has a line break or blanks around it")
    return text


def local_names():
    """Users and groups of this node: a directory's group `sudo` is not its own, nor is a user `ubuntu`."""
    return sorted(names_in("passwd") | {"root"}), sorted(names_in("group") | PRIVILEGED)


def names_in(file):
    lines = Path(ROOT + "/etc/" + file).read_text(encoding="utf-8", errors="replace").splitlines()
    return {line.split(":")[0] for line in lines if ":" in line and re.match(r"[A-Za-z_]", line)}


def conf_of(settings, password):
    """The text of sssd.conf."""
    users, groups = local_names()
    low, high = settings["id_range"]
    active_directory = settings["kind"] == "microsoft-ad"
    from_sid = settings["ids"] == "from-sid"
    domain = {
        "id_provider": "ldap",
        "auth_provider": "ldap",
        "chpass_provider": "none",
        "access_provider": "ldap",
        "sudo_provider": "none",
        "autofs_provider": "none",
        "ldap_uri": ", ".join(settings["uris"]),
        "ldap_id_use_start_tls": str(settings["start_tls"]).lower(),
        "ldap_tls_reqcert": "demand",
        "ldap_search_base": settings["search_base"],
        "ldap_default_bind_dn": settings["bind_dn"],
        "ldap_default_authtok_type": "password",
        AUTHTOK: password,
        "ldap_schema": "ad" if active_directory else settings["schema"],
        "ldap_referrals": "false",
        # Of one domain the mapping depends on the SID only: a user has the same id on every node.
        "ldap_id_mapping": str(from_sid).lower(),
        "min_id": low,
        "max_id": high,
        "ldap_access_order": "filter, expire" if settings.get("access_filter") else "expire",
        "ldap_account_expire_policy": "ad" if active_directory else "shadow",
        "override_homedir": settings["home"],
        "default_shell": settings["shell"],
        # Nodes that cannot reach the directory go on with whom they know: jobs are not stopped by it.
        "cache_credentials": "true",
        "account_cache_expiration": 0,
        "entry_cache_timeout": 600,
        "entry_negative_timeout": 15,
        "refresh_expired_interval": 450,
        "enumerate": "false",
        "ldap_network_timeout": 3,
        "ldap_opt_timeout": 8,
        "ldap_search_timeout": 10,
        "offline_timeout": 30,
        "offline_timeout_max": 300,
    }
    if tls_file(settings):
        domain["ldap_tls_cacert"] = tls_file(settings)
    if settings.get("access_filter"):
        domain["ldap_access_filter"] = settings["access_filter"]
    if active_directory:
        domain["case_sensitive"] = "false"
    if from_sid:
        domain["ldap_idmap_range_min"], domain["ldap_idmap_range_max"] = low, high
        domain["ldap_idmap_range_size"] = 200000
    sections = {
        "sssd": {"config_file_version": 2, "services": "nss, pam", "domains": DOMAIN},
        "nss": {
            "filter_users": ", ".join(users),
            "filter_groups": ", ".join(groups),
            "allowed_shells": "*",
            "shell_fallback": settings["shell"],
        },
        "pam": {"offline_credentials_expiration": 7, "pam_id_timeout": 5},
        f"domain/{DOMAIN}": domain,
    }
    lines = ["# Ultracluster: `directory` of the environment file. Written by ultracluster-directory."]
    for name, values in sections.items():
        lines += ["", f"[{name}]", *(f"{key} = {text_of(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def tls_file(settings):
    """Path of the certificates that are trusted; empty for those of the image."""
    given = settings.get("ca") or ""
    return given if given.startswith("/") else CA if given else ""


def password_here():
    """The password in sssd.conf; None where there is none."""
    try:
        lines = Path(CONF).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = [value for key, _, value in (line.partition("=") for line in lines) if key.strip() == AUTHTOK]
    return found[0].strip() or None if found else None


def read_settings():
    try:
        return json.loads(Path(SETTINGS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DirectoryError(f"{SETTINGS} cannot be read: {error}") from None


def fetch_password(settings):
    """From Secrets Manager. What the CLI says of an error goes on, what it prints otherwise does not."""
    arn = settings["secret"]
    ask = ["aws", "secretsmanager", "get-secret-value", "--output", "json", "--secret-id", arn]
    said = ""
    for attempt in range(SECRET_TRIES):
        if attempt:
            time.sleep(float(os.environ.get("ULTRACLUSTER_RETRY_PAUSE", 3)))
        try:
            answer = run(*ask, "--region", arn.split(":")[3])
        except FileNotFoundError:
            raise DirectoryError("the AWS CLI is not here, and the password is in Secrets Manager") from None
        except subprocess.TimeoutExpired:
            said = "no answer: without a way to the internet it takes a VPC endpoint of secretsmanager"
            continue
        if answer.returncode == 0:
            return password_in(answer.stdout, arn)
        said = " ".join(answer.stderr.split())[-300:]
    raise DirectoryError(f"the password cannot be read from {arn}: {said}")


def password_in(text, arn):
    """Text, or JSON with the key `password`."""
    try:
        secret = json.loads(text).get("SecretString") or ""
    except ValueError:
        secret = ""
    try:
        keys = json.loads(secret)
    except ValueError:
        keys = None
    if isinstance(keys, dict):
        secret = keys.get("password")
    if not isinstance(secret, str) or not secret.strip("\r\n"):
        raise DirectoryError(f"{arn} has no text, nor JSON with the key password")
    secret = secret.rstrip("\r\n")
    try:
        return text_of(secret)
    except DirectoryError:
        raise DirectoryError(f"the password in {arn} has a line break, or blanks around it") from None


# --- what is written ---


def write(path, text, mode, group=0):
    """Written beside its place and renamed; nobody else reads it on the way."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.ultracluster-new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        if os.geteuid() == 0:
            os.fchown(descriptor, 0, group)
        os.fchmod(descriptor, mode)
    new.replace(path)


def sssd_group():
    """Group that must read sssd.conf; 0 where SSSD runs as root."""
    try:
        group = grp.getgrnam("sssd").gr_gid
        pwd.getpwnam("sssd")
        said = run("sssd", "--version").stdout
    except (KeyError, OSError, subprocess.TimeoutExpired):
        return 0
    version = tuple(int(number) for number in re.findall(r"\d+", said)[:2])
    return group if version >= OWN_USER_SINCE else 0


def same(path, text, mode):
    try:
        return Path(path).read_text(encoding="utf-8") == text and (Path(path).stat().st_mode & 0o7777) == mode
    except OSError:
        return False


def own_ca(settings):
    given = settings.get("ca") or ""
    return "" if given.startswith("/") else given


def todo(settings):
    """What is not as it should be."""
    password = password_here()
    group = sssd_group()
    if own_ca(settings) and not same(ROOT + CA, own_ca(settings), 0o644):
        yield CA
    if password is None or not same(CONF, conf_of(settings, password), 0o640 if group else 0o600):
        yield "/etc/sssd/sssd.conf"
    if not is_running():
        yield "sssd.service does not run"


def apply(settings):
    """Make it so; returns what was done."""
    password = password_here()
    if password is not None:
        try:
            probe(settings, password)
        except RefusedError:
            password = None
        except DirectoryError:
            pass  # not a reason to fetch another
    if password is None:
        password = fetch_password(settings)
    group = sssd_group()
    mode = 0o640 if group else 0o600
    changed = False
    if own_ca(settings) and not same(ROOT + CA, own_ca(settings), 0o644):
        write(ROOT + CA, own_ca(settings), 0o644)
        changed = True
    conf = conf_of(settings, password)
    if not same(CONF, conf, mode):
        write(CONF, conf, mode, group)
        changed = True
    running = is_running()
    if changed or not running:
        if running and shutil.which("sss_cache"):
            run("sss_cache", "-E")  # what is known stays, and is asked again
        run("systemctl", "enable", "sssd.service")
        if run("systemctl", "restart", "sssd.service").returncode:
            raise DirectoryError("sssd does not start: see journalctl -u sssd")
    return "written" if changed else "as it was"


def probe(settings, password):
    """What the servers answer, by files/directory_probe.py; raises where none does."""
    if password is None:
        raise DirectoryError("there is no password yet")
    asked = {**settings, "password": password, "ca": tls_file(settings) and ROOT + tls_file(settings)}
    answer = run(sys.executable, "-IS", str(PROBE), input=json.dumps(asked), timeout=300)
    if answer.returncode == 0:
        return answer.stdout.strip()
    said = answer.stderr.strip().splitlines()
    kind = RefusedError if answer.returncode == REFUSED else DirectoryError
    raise kind(said[-1] if said else f"{PROBE} ended with status {answer.returncode}")


def main(arguments):
    settings = read_settings()
    command = arguments[0] if len(arguments) == 1 else ""
    if command == "apply":
        print(apply(settings))
    elif command == "check":
        print("\n".join(todo(settings)))
    elif command == "probe":
        print(probe(settings, password_here()))
    else:
        raise DirectoryError("ultracluster-directory apply | check | probe")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except DirectoryError as error:
        sys.exit(str(error))
