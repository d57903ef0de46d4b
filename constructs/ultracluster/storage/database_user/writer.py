"""Makes the user of slurmdbd in a MySQL database: the function in the VPC, which reaches nothing else.

Its invoker sends what it needs and hears the outcome in words; no password is logged or returned. Every run
leaves the same: the user has the password that was sent, and all rights on its schema and on nothing else
(Slurm documentation, "Accounting and Resource Limits", MySQL Configuration).
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from typing import Any

import pymysql

ATTEMPT_S, PAUSE_S = 10, 5
"""Seconds that one attempt to connect may take, and between two."""
RESERVE_S = 15
"""Seconds of the function's time that are left for statements, and for saying what went wrong."""


class RefusedError(Exception):
    """The user could not be made; the message says why and holds no secret."""


def handler(event: Mapping[str, Any], context: Any) -> dict[str, str]:
    """Make or change the user.

    Args:
        event: `host`, `port`, `schema`, `require_tls`, `authorities` (certificates, PEM), and `master` and
            `user` with `username` and `password` each.
        context: of AWS Lambda; says how much time is left.

    Raises:
        RefusedError: it did not work.
    """
    until = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - RESERVE_S
    trusted = _trust(event["authorities"])
    user, schema = event["user"], event["schema"]
    connection = _connect(event, event["master"], trusted, until)
    with connection, connection.cursor() as cursor:
        try:
            _make(cursor, user, tls=event["require_tls"])
            _limit(cursor, user["username"], schema)
        except pymysql.MySQLError as error:
            # the statement of an error may hold the password: only its number is told
            raise RefusedError(f"MySQL error {_code(error)} when {user['username']} was made") from None
    _connect(event, user, trusted, until).close()  # as slurmdbd will
    return {"user": user["username"], "rights": f"all on {schema}"}


def _trust(authorities: str) -> ssl.SSLContext:
    """The database's certificate is verified by RDS's own authorities only, and its host name is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authorities)
    return context


def _connect(
    event: Mapping[str, Any], who: Mapping[str, str], trusted: ssl.SSLContext, until: float
) -> pymysql.Connection[Any]:
    """Log in over TLS; PyMySQL sends nothing to a server that has none.

    A database that has just been made, restarts or changes its password answers a little later.
    """
    while True:
        try:
            return pymysql.connect(
                host=event["host"],
                port=event["port"],
                user=who["username"],
                password=who["password"],
                ssl=trusted,
                connect_timeout=ATTEMPT_S,
                read_timeout=ATTEMPT_S,
                write_timeout=ATTEMPT_S,
                autocommit=True,
            )
        except pymysql.MySQLError as error:
            cause = getattr(error, "original_exception", None)
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise RefusedError(
                    f"the certificate of {event['host']} is not trusted: {cause.verify_message}"
                ) from None
            if time.monotonic() + PAUSE_S > until:
                raise RefusedError(
                    f"{who['username']} could not log in at {event['host']}:{event['port']}: "
                    f"MySQL error {_code(error)}"
                ) from None
        time.sleep(PAUSE_S)


def _make(cursor: Any, user: Mapping[str, str], *, tls: bool) -> None:
    """The user with this password, whether or not it was there."""
    require = "REQUIRE SSL" if tls else "REQUIRE NONE"
    for verb in ("CREATE USER IF NOT EXISTS", "ALTER USER"):
        cursor.execute(f"{verb} %s@'%%' IDENTIFIED BY %s {require}", (user["username"], user["password"]))


def _limit(cursor: Any, username: str, schema: str) -> None:
    """All rights on the schema and no others; left alone where that is so, as slurmdbd may be at work."""
    wanted = f"GRANT ALL PRIVILEGES ON {_pattern(cursor, schema)}.* TO "
    if (found := _grants(cursor, username)) != {wanted}:
        if found - {wanted}:
            cursor.execute("REVOKE ALL PRIVILEGES, GRANT OPTION FROM %s@'%%'", (username,))
        cursor.execute(f"{wanted}%s@'%%'", (username,))


def _grants(cursor: Any, username: str) -> set[str]:
    """What `SHOW GRANTS` tells of, up to the user; not the right to connect, which everyone has."""
    cursor.execute("SHOW GRANTS FOR %s@'%%'", (username,))
    lines = [str(row[0]) for row in cursor.fetchall()]
    told = {line[: line.index(" TO ") + 4] + _option(line) for line in lines}
    return told - {"GRANT USAGE ON *.* TO "}


def _option(line: str) -> str:
    return "WITH GRANT OPTION" if line.endswith("WITH GRANT OPTION") else ""


def _pattern(cursor: Any, schema: str) -> str:
    r"""The schema in a GRANT, where `_` stands for any character unless it is `\_`, or unless partial revokes
    are on (MySQL Reference Manual, "Privilege Restriction Using Partial Revokes"; MariaDB has none)."""
    cursor.execute("SHOW VARIABLES LIKE 'partial\\_revokes'")
    row = cursor.fetchone()
    literal = row is not None and str(row[1]).upper() == "ON"
    return f"`{schema}`" if literal else f"`{schema}`".replace("_", r"\_")


def _code(error: pymysql.MySQLError) -> str:
    return str(error.args[0]) if error.args and isinstance(error.args[0], int) else type(error).__name__
