#!/usr/bin/python3 -ISB
"""Makes, changes and removes the accounts of users.json, whose path is the argument; however often it runs.

Only what this made is ever changed or removed. Who cannot be made (an id that is taken, a home that is
somebody else's) is refused and told, and others go on. Data is never touched: a home that is there stays as
it is, also when its user goes. The last line says what was done and what is missing; status 1 where something
is missing.

Runs with the Python of Ubuntu 22.04, 24.04 and Amazon Linux 2023: 3.9 and newer.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, f"{os.environ.get('ULTRACLUSTER_ROOT', '')}/opt/ultracluster/people")

import people_accounts as accounts
import people_document as documents

RECORD = accounts.here("/var/lib/ultracluster/people.json")
CONFIG = accounts.here("/etc/ultracluster/pull")
SKELETON = "/etc/skel"


class RefusedError(Exception):
    """Why one user or group is not as the document says."""


class Record:
    """What was made here: users and groups with their ids, and where those who are gone left their files."""

    def __init__(self):
        try:
            found = json.loads(RECORD.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = {}
        self.users = dict(found.get("users", {}))
        self.groups = dict(found.get("groups", {}))
        self.gone = dict(found.get("gone", {}))

    def keep(self):
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        new = RECORD.with_suffix(".new")
        text = {"users": self.users, "groups": self.groups, "gone": self.gone}
        new.write_text(json.dumps(text, sort_keys=True, indent=1) + "\n", encoding="utf-8")
        new.rename(RECORD)


class Node:
    """This node, brought to a document."""

    def __init__(self, document, place):
        self.document = document
        self.role = place.get("ROLE", "")
        # where root administers Slurm; AWS PCS runs the controller itself
        self.ends_jobs = self.role == "controller" or (self.role, place.get("ORCHESTRATOR")) == (
            "login",
            "pcs",
        )
        self.record = Record()
        self.done = []
        self.missing = []

    def apply(self):
        self.remove()
        groups = [name for name, gid in self.document["groups"].items() if self._tried(name, self.group, gid)]
        for user in self.document["users"].values():
            self._tried(user["name"], self.user, user, groups)
        self.remove_groups()
        if problem := accounts.let_sshd_read_keys():
            self.missing.append(problem)

    def _tried(self, name, make, *arguments):
        try:
            make(name, *arguments)
        except RefusedError as refused:
            self.missing.append(f"{name}: {refused}")
            return False
        except subprocess.CalledProcessError as error:
            said = (error.stderr or error.stdout or "").strip().splitlines()
            self.missing.append(f"{name}: {error.cmd[0]}: {said[-1] if said else error.returncode}")
            return False
        except OSError as error:
            self.missing.append(f"{name}: {error}")
            return False
        return True

    def group(self, name, gid):
        if reason := documents.why_reserved(name, gid):
            raise RefusedError(reason)
        here = accounts.local_groups()
        other = next((one for one, number in here.items() if number == gid and one != name), None)
        other = other or _somebody("group", gid, name)
        if other:
            raise RefusedError(f"the group id {gid} is that of `{other}` on this node")
        if name not in here:
            if accounts.name_of("group", name):
                raise RefusedError("a directory has a group of that name")
            self._remember("groups", name, gid)
            accounts.run("groupadd", "--gid", gid, name)
            self.done.append(f"group {name}")
        elif here[name] != gid:
            if name not in self.record.groups:
                raise RefusedError(f"this node has a group of that name with the id {here[name]}")
            accounts.run("groupmod", "--gid", gid, name)
            self._remember("groups", name, gid)
            self.done.append(f"group {name} is {gid} now; files of the group {here[name]} stay so")
        else:
            self._remember("groups", name, gid)

    def user(self, name, user, groups):
        if reason := documents.why_reserved(name, user["uid"]):
            raise RefusedError(reason)
        own = next(one for one, gid in self.document["groups"].items() if gid == user["gid"])
        if own not in groups:
            raise RefusedError(f"without the group {own}")
        here = accounts.local_users()
        found = here.get(name)
        other = next((one for one, row in here.items() if row["uid"] == user["uid"] and one != name), None)
        other = other or _somebody("passwd", user["uid"], name)
        if other:
            raise RefusedError(f"the id {user['uid']} is that of `{other}` on this node")
        if found is None and accounts.name_of("passwd", name):
            raise RefusedError("a directory has a user of that name")
        if found and found["uid"] != user["uid"]:
            raise RefusedError(
                f"this node has a user of that name with the id {found['uid']}: ids never change, because "
                "files stay with the old one"
            )
        self._home(user)
        further = [one for one in user["groups"] if one in groups and one != own]
        self._remember("users", name, user["uid"])
        if found is None:
            accounts.make_user(name, user, further)
            self.record.gone.pop(name, None)
            self.done.append(f"made {name}")
        else:
            self.done += accounts.change_user(name, found, user, further)
        self.done += accounts.write_keys(name, user["keys"])
        if lacking := [one for one in user["groups"] if one not in groups]:
            raise RefusedError(f"is there, without the group {', '.join(lacking)}")

    def _home(self, user):
        """A home that is the user's, or none is taken."""
        homes, home = self.document["homes"], accounts.here(user["home"])
        serves = homes["by_controller"] and self.role == "controller"
        if homes["mount"] and not serves and not accounts.is_mounted(homes["mount"]):
            raise RefusedError(f"{homes['mount']}, where homes are, is not mounted")
        root = accounts.here(homes["root"])
        root.mkdir(mode=0o755, parents=True, exist_ok=True)
        mode = root.stat()
        others = mode.st_mode & (0o022 if mode.st_gid else 0o002)
        if mode.st_uid != 0 or (others and not mode.st_mode & 0o1000):
            raise RefusedError(f"{root} is not only root's: others could put up homes there for anybody")
        if other := accounts.home_of_other(root, user["uid"], home.name):
            raise RefusedError(
                f"the id {user['uid']} owns {other}: its files would be {user['name']}'s. Take another id, "
                "or give that folder to somebody else"
            )
        try:
            found = home.lstat()
        except FileNotFoundError:
            accounts.make_home(user["home"], SKELETON, user["uid"], user["gid"])
            self.done.append(f"home {user['home']}")
            return
        if not home.is_dir() or home.is_symlink():
            raise RefusedError(f"{home} is no folder")
        if found.st_uid != user["uid"]:
            raise RefusedError(f"{home} belongs to the id {found.st_uid}, and never becomes another user's")
        if found.st_gid != user["gid"]:
            os.chown(home, -1, user["gid"], follow_symlinks=False)

    def remove(self):
        """Those who are no longer in the document, unless that would be most of those who are here."""
        here = accounts.local_users()
        gone = sorted(set(self.record.users) - set(self.document["users"]))
        # what was begun, and never made
        for name in [one for one in gone if one not in here]:
            self._forget("users", name)
        gone = [one for one in gone if one in here]
        if gone and self.document["removals"] != "any" and 2 * len(gone) > len(self.record.users):
            self.missing.append(
                f"{len(gone)} of {len(self.record.users)} users are not in the document: "
                f"{', '.join(gone)[:200]} stay until `ultracluster apply users ENV --remove-all` says that "
                "it is meant"
            )
            return
        for name in gone:
            self._tried(name, self._remove, here[name])
        # their ids may be those of others in the document
        self.remove_groups()

    def remove_groups(self):
        """Those that are no longer in the document, and nobody's own."""
        for name in sorted(set(self.record.groups) - set(self.document["groups"])):
            self._tried(name, self._remove_group)

    def _remove(self, name, row):
        if row["uid"] != self.record.users[name]:
            raise RefusedError(f"stays: its id is {row['uid']} by now, which somebody else gave it")
        if left := accounts.remove_user(name, row["uid"], ends_jobs=self.ends_jobs):
            raise RefusedError(f"is locked, and {left} of its processes do not end")
        self.record.gone[name] = {"uid": row["uid"], "home": row["home"]}
        self._forget("users", name)
        self.done.append(f"removed {name}: files of the id {row['uid']} stay, in {row['home']} and elsewhere")

    def _remove_group(self, name):
        here = accounts.local_groups()
        if name in here and here[name] == self.record.groups[name]:
            if any(row["gid"] == here[name] for row in accounts.local_users().values()):
                return
            accounts.run("groupdel", name)
        self._forget("groups", name)

    def _remember(self, kind, name, number):
        table = getattr(self.record, kind)
        if table.get(name) != number:
            table[name] = number
            self.record.keep()

    def _forget(self, kind, name):
        getattr(self.record, kind).pop(name, None)
        self.record.keep()

    def summary(self):
        words = [f"{len(set(self.record.users) & set(accounts.local_users()))} users"]
        words += [f"{name} is gone, its files are in {row['home']}" for name, row in self.record.gone.items()]
        return "; ".join([*words, *(f"NOT {one}" for one in self.missing)])


def _somebody(table, number, besides):
    """Name that the number has in any source of names; None where it is free or the one that asks."""
    name = accounts.name_of(table, number)
    return None if name == besides else name


def place():
    """Role and orchestrator of this node, as step state_pull wrote them."""
    try:
        lines = CONFIG.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return dict(line.split("=", 1) for line in lines if "=" in line)


def main(path):
    try:
        document = documents.load(path)
    except documents.MalformedError as error:
        print(f"the document is not taken: {error}")
        return 1
    node = Node(document, place())
    node.apply()
    for line in node.done:
        print(line)
    print(node.summary())
    return 1 if node.missing else 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(sys.argv[1]))
