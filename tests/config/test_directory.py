"""What `directory` of an environment may say, and its defaults."""

from __future__ import annotations

from typing import Any

import pytest
from directory_cases import DIRECTORY
from rules_support import changed, environment_data, loaded

from ultracluster.config import InvalidEnvironmentError
from ultracluster.config.directory import SID_RANGE, Directory

SECRET = "directory.password_secret_arn"  # noqa: S105 (where it stands)


def directory(**changes: Any) -> Directory:
    found = loaded(changed(environment_data("dev"), {"directory": DIRECTORY | changes})).environment.directory
    assert found
    return found


def test_ids_come_from_where_the_kind_has_them() -> None:
    assert (directory().id_source, directory().id_range) == ("posix", (5000, 4_294_967_294))
    assert directory(lowest_id=9000, highest_id=9999).id_range == (9000, 9999)
    windows = directory(kind="microsoft-ad")
    assert (windows.id_source, windows.id_range) == ("from-sid", SID_RANGE)
    assert directory(kind="microsoft-ad", ids="posix").id_range[0] == 5000


def test_ports_are_those_of_the_servers_once_each() -> None:
    uris = [
        "ldaps://a.example.com",
        "ldaps://b.example.com",
        "ldap://c.example.com",
        "ldaps://d.example.com:3269",
    ]
    assert directory(uris=uris).ports == (636, 389, 3269)


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({"uris": ["http://ldap.example.com"]}, "directory.uris[0]"),
        ({"uris": ["ldaps://ldap.example.com/dc=example"]}, "directory.uris[0]"),
        ({"uris": ["ldaps://a b"]}, "directory.uris[0]"),
        ({"bind_dn": "cn=reader\nldap_uri = ldap://elsewhere"}, "directory.bind_dn"),
        ({"search_base": "dc=example\ndc=com"}, "directory.search_base"),
        ({"access_filter": "memberOf=cn=hpc"}, "directory.access_filter"),
        ({"access_filter": "(a=1)\n[sssd]"}, "directory.access_filter"),
        ({"password_secret_arn": "arn:aws:ssm:us-east-1:111122223333:parameter/x"}, SECRET),
        # without its end IAM lets nobody read it
        (
            {"password_secret_arn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:reader"},
            SECRET,
        ),
        ({"home": "/home/people"}, "directory.home"),
        ({"home": "/home/%u/../root"}, "directory.home"),
        ({"shell": "bash"}, "directory.shell"),
        ({"lowest_id": 500}, "directory.lowest_id"),
        ({"password": "secret"}, "directory.password"),
    ],
)  # fmt: skip
def test_what_no_node_could_use_is_refused(changes: dict[str, Any], at: str) -> None:
    with pytest.raises(InvalidEnvironmentError) as error:
        directory(**changes)
    assert [one.dotted for one in error.value.findings] == [at]
