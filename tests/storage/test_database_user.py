"""The functions that make slurmdbd's user, run against a real server over TLS."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pymysql
import pytest
from needs import need
from slurm_database import needed
from tls_database import TOOLS, Server, certificates, slurmdbd, tls_database

from ultracluster.security.deletion_protection import ANSWER
from ultracluster.storage import accounting_user
from ultracluster.storage.accounting_user import write_code

FUNCTIONS = Path(accounting_user.__file__).parent / "database_user"
MASTER = {"username": "slurm", "password": "master-Pa55"}
USER = {"username": "slurmdbd", "password": "first-Pa55"}
SCHEMA = "slurm_acct_db"
PATTERN = SCHEMA.replace("_", r"\_")
FULL = f"GRANT ALL PRIVILEGES ON `{PATTERN}`.* TO `slurmdbd`@`%`"


def module(name: str) -> ModuleType:
    """A function as Lambda loads it: it is no module of the package."""
    spec = importlib.util.spec_from_file_location(name, FUNCTIONS / f"{name}.py")
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


with pytest.MonkeyPatch.context() as patched:
    patched.syspath_prepend(str(ANSWER.parent))
    writer, broker = module("writer"), module("broker")


class Context:
    """What Lambda tells a function of its time."""

    def __init__(self, seconds: float = 21) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> float:
        return self.seconds * 1000


@pytest.fixture(scope="module")
def strict() -> Iterator[Server]:
    """A server that refuses connections without TLS, with a master user as RDS has."""
    needed()
    need(*TOOLS)
    with tls_database("--require-secure-transport=ON") as server:
        server.root("delete from mysql.global_priv where user = ''; flush privileges")  # RDS has no nameless
        server.root(f"create user slurm@'%' identified by '{MASTER['password']}'")
        server.root("grant all on *.* to slurm@'%' with grant option")
        yield server


@pytest.fixture
def server(strict: Server) -> Server:
    strict.root(f"drop user if exists slurmdbd@'%'; drop database if exists {SCHEMA}")
    return strict


def request(server: Server, **changes: Any) -> dict[str, Any]:
    return {
        "host": "localhost",
        "port": server.port,
        "schema": SCHEMA,
        "require_tls": True,
        "authorities": server.authority.read_text(),
        "master": MASTER,
        "user": USER,
        **changes,
    }


def rights(server: Server) -> list[str]:
    """What the user may do besides logging in, without its password's hash."""
    lines = server.root("show grants for slurmdbd@'%'").splitlines()
    return sorted(line.split(" IDENTIFIED BY")[0] for line in lines if not line.startswith("GRANT USAGE"))


def ask(server: Server, who: dict[str, str], statement: str) -> list[Any]:
    """What a user is told over TLS."""
    with pymysql.connect(
        host="localhost", port=server.port, user=who["username"], password=who["password"],
        ssl=ssl.create_default_context(cafile=str(server.authority)),
    ) as connection, connection.cursor() as cursor:  # fmt: skip
        cursor.execute(statement)
        return list(cursor.fetchall())


def test_the_user_has_all_rights_on_its_schema_and_no_others(server: Server) -> None:
    outcome = writer.handler(request(server), Context())

    assert outcome == {"user": "slurmdbd", "rights": f"all on {SCHEMA}"}
    assert rights(server) == [FULL]
    ask(server, USER, f"create database {SCHEMA}")  # as slurmdbd does
    for other in (
        "create database slurmXacctXdb",
        "select * from mysql.global_priv",
        "show grants for slurm",
    ):
        with pytest.raises(pymysql.MySQLError, match="denied"):
            ask(server, USER, other)


def test_a_second_run_changes_nothing_and_a_new_password_is_taken_over(server: Server) -> None:
    writer.handler(request(server), Context())
    before = server.root("select * from mysql.db where user = 'slurmdbd'")
    writer.handler(request(server), Context())
    assert server.root("select * from mysql.db where user = 'slurmdbd'") == before

    later = {**USER, "password": "second-Pa55"}
    writer.handler(request(server, user=later), Context())

    assert ask(server, later, "select 1") == [(1,)]
    with pytest.raises(pymysql.MySQLError, match="Access denied"):
        ask(server, USER, "select 1")
    assert rights(server) == [FULL]


@pytest.mark.parametrize(
    "wrong",
    [
        "grant select on *.* to slurmdbd@'%'",
        "grant all on mysql.* to slurmdbd@'%'",
        "create or replace role readers; grant readers to slurmdbd@'%'",
        f"grant all on {SCHEMA}.* to slurmdbd@'%' with grant option",
        f"revoke insert on `{PATTERN}`.* from slurmdbd@'%'",
    ],
)
def test_other_rights_are_put_right(server: Server, wrong: str) -> None:
    writer.handler(request(server), Context())
    server.root(wrong)
    assert rights(server) != [FULL]

    writer.handler(request(server), Context())

    assert rights(server) == [FULL]


@pytest.mark.parametrize(("required", "asked"), [(True, "ANY"), (False, "")])
def test_tls_is_asked_of_the_user_where_it_is_required(server: Server, required: bool, asked: str) -> None:
    writer.handler(request(server, require_tls=required), Context())

    assert server.root("select ssl_type from mysql.user where user = 'slurmdbd'").strip() == asked


def test_a_certificate_of_someone_else_is_not_trusted(server: Server, tmp_path: Path) -> None:
    other = certificates(tmp_path, "localhost").read_text()

    with pytest.raises(writer.RefusedError, match="certificate of localhost is not trusted"):
        writer.handler(request(server, authorities=other), Context())


def test_a_certificate_for_another_host_is_not_trusted(server: Server) -> None:
    with pytest.raises(writer.RefusedError, match=r"127\.0\.0\.1 is not trusted"):
        writer.handler(request(server, host="127.0.0.1"), Context())


def test_a_server_without_tls_hears_no_password() -> None:
    """Not even the user's name: the connection ends at the greeting."""
    needed()
    with tls_database("--skip-ssl") as plain:
        plain.root("set global general_log = 'ON'; set global log_output = 'TABLE'")
        with pytest.raises(writer.RefusedError, match="could not log in"):
            writer.handler(request(plain), Context(1))
        heard = plain.root("select argument from mysql.general_log where command_type = 'Connect'")
    assert "slurm" not in heard


def test_it_waits_for_a_database_that_is_still_starting(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def started(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            server.root("alter user slurm@'%' identified by 'master-Pa55'")

    monkeypatch.setattr(writer.time, "sleep", started)
    server.root("alter user slurm@'%' identified by 'not yet'")

    writer.handler(request(server), Context())

    assert waits == [writer.PAUSE_S] * 2 and rights(server) == [FULL]


def test_nothing_that_is_said_holds_a_password(server: Server) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        returned = writer.handler(request(server), Context())
        errors: list[BaseException] = []
        for broken in (
            {"user": {**USER, "password": "third-Pa55", "username": "x" * 200}},  # refused as a statement
            {"master": {**MASTER, "password": "third-Pa55"}},
            {"port": 1},
        ):
            with pytest.raises(writer.RefusedError) as caught:
                writer.handler(request(server, **broken), Context(1))
            errors.append(caught.value)

    told = (
        json.dumps(returned)
        + said.getvalue()
        + "".join(f"{one} {one.__suppress_context__}" for one in errors)
    )
    assert "Pa55" not in told and "False" not in told
    assert "MySQL error 1470" in str(errors[0]) and "1045" in str(errors[1]) and "2003" in str(errors[2])


def test_slurmdbd_goes_over_from_the_master_user_to_its_own(server: Server) -> None:
    """As in an upgrade of a cluster whose slurmdbd was the master user; its records stay."""
    tls = f"SSL_CA={server.authority}"
    with slurmdbd(server, user="slurm", password=MASTER["password"], parameters=tls) as old:
        old.run("add", "cluster", "example")
        old.run("add", "account", "research")
    writer.handler(request(server), Context())

    with slurmdbd(server, user="slurmdbd", password=USER["password"], parameters=tls) as new:
        new.run("add", "user", "alice", "account=research")

        shown = new.run("show", "assoc", "format=cluster,account,user")
    assert "example|research|alice" in shown


def test_a_slurmdbd_that_is_not_told_of_tls_may_not_reach_a_server_that_requires_it(server: Server) -> None:
    """Why TLS is not required of HyperPod's, whose client library and settings are not published: Debian's is
    linked with MariaDB Connector/C before 3.4."""
    writer.handler(request(server, require_tls=False), Context())

    with slurmdbd(server, user="slurmdbd", password=USER["password"]) as blind:
        blind.logs("mysql_real_connect failed")
        try:
            server.root("set global require_secure_transport = OFF")
            assert blind.run("show", "cluster") == ""  # it tries again by itself
        finally:
            server.root("set global require_secure_transport = ON")


class Said:
    """S3's answer."""

    def __enter__(self) -> Said:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, server: Server) -> dict[str, Any]:
    """Secrets Manager, Lambda and CloudFormation, as the function outside of the VPC meets them."""
    secrets = {
        "master": {**MASTER, "engine": "mysql", "host": "localhost", "port": server.port},
        "user": dict(USER),
    }
    state: dict[str, Any] = {"secrets": secrets, "answers": [], "payloads": []}

    class Client:
        def __init__(self, service: str, **_: Any) -> None:
            self.service = service

        def get_secret_value(self, *, SecretId: str) -> dict[str, str]:  # noqa: N803
            return {"SecretString": json.dumps(secrets[SecretId])}

        def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803
            state["payloads"].append(Payload)
            try:
                outcome, failed = writer.handler(json.loads(Payload), Context(1)), {}
            except writer.RefusedError as error:
                outcome, failed = {"errorMessage": str(error)}, {"FunctionError": "Unhandled"}
            return {"Payload": io.BytesIO(json.dumps(outcome).encode()), **failed}

    def urlopen(asked: Any, **_: Any) -> Any:
        if isinstance(asked, str):
            return io.BytesIO(server.authority.read_bytes())
        state["answers"].append(json.loads(asked.data))
        return Said()

    for name, value in {
        "SCHEMA": SCHEMA, "REQUIRE_TLS": "yes", "WAIT_S": "1",
        "MASTER_SECRET": "master", "USER_SECRET": "user", "WRITER": "writer", "AWS_REGION": "us-west-2",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(broker.boto3, "client", Client)
    monkeypatch.setattr(broker.urllib.request, "urlopen", urlopen)
    monkeypatch.setattr(broker.time, "sleep", lambda _: None)
    return state


EVENT = {
    "RequestType": "Create", "StackId": "stack", "RequestId": "request", "LogicalResourceId": "User",
    "ResponseURL": "https://cloudformation-custom-resource-response-uswest2.s3.us-west-2.amazonaws.com/x",
}  # fmt: skip


def test_cloudformation_hears_that_the_user_is_there(account: dict[str, Any], server: Server) -> None:
    broker.handler(EVENT, Context())

    (answer,) = account["answers"]
    assert answer["Status"] == "SUCCESS" and "Pa55" not in json.dumps(answer)
    assert rights(server) == [FULL]


def test_cloudformation_hears_why_it_failed(
    account: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    account["secrets"]["master"] |= {"password": "wrong-Pa55"}

    broker.handler(EVENT, Context())

    (answer,) = account["answers"]
    assert answer["Status"] == "FAILED" and "slurm could not log in at localhost" in answer["Reason"]
    assert "Pa55" not in json.dumps(answer) + capsys.readouterr().out


def test_a_secret_of_another_form_is_named_but_not_shown(account: dict[str, Any]) -> None:
    account["secrets"]["user"] = "plain-Pa55"

    broker.handler(EVENT, Context())

    (answer,) = account["answers"]
    assert answer["Reason"] == "user is not JSON with username, password"


def test_deletion_drops_nothing(account: dict[str, Any], server: Server) -> None:
    broker.handler(EVENT, Context())
    broker.handler({**EVENT, "RequestType": "Delete", "PhysicalResourceId": "it"}, Context())

    assert [one["Status"] for one in account["answers"]] == ["SUCCESS"] * 2 and len(account["payloads"]) == 1
    assert rights(server) == [FULL]


def test_a_person_runs_it_after_a_new_password(account: dict[str, Any], server: Server) -> None:
    broker.handler(EVENT, Context())
    account["secrets"]["user"] |= {"password": "second-Pa55"}

    assert broker.handler({}, Context())["user"] == "slurmdbd"

    assert ask(server, {**USER, "password": "second-Pa55"}, "select 1") == [(1,)]


def test_no_caller_decides_where_passwords_go(account: dict[str, Any]) -> None:
    elsewhere = {"Host": "evil.example", "HOST": "evil.example", "host": "evil.example"}

    broker.handler({**EVENT, **elsewhere, "ResourceProperties": elsewhere}, Context())
    with pytest.raises(ValueError, match="not S3's"):
        broker.handler({**EVENT, "ResponseURL": "https://evil.example/"}, Context())

    assert {json.loads(one)["host"] for one in account["payloads"]} == {"localhost"}
    assert len(account["answers"]) == 1


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-west-2", "truststore.pki.rds.amazonaws.com"),
        ("us-gov-east-1", "truststore.pki.us-gov-west-1.rds.amazonaws.com"),
    ],
)
def test_certificates_come_from_rds(region: str, host: str) -> None:
    assert broker._bundles(region)[0] == f"https://{host}/{region}/{region}-bundle.pem"


def test_without_certificates_nothing_is_sent(
    account: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = broker.urllib.request.urlopen

    def urlopen(asked: Any, **words: Any) -> Any:
        if isinstance(asked, str):
            raise OSError("no way")
        return sent(asked, **words)

    monkeypatch.setattr(broker.urllib.request, "urlopen", urlopen)
    broker.handler(EVENT, Context())

    assert "certificates cannot be had" in account["answers"][0]["Reason"] and not account["payloads"]


def test_the_function_is_its_module_and_the_installed_driver(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write_code(tmp_path / folder)

    def files(folder: str) -> dict[str, bytes]:
        base = tmp_path / folder
        return {str(one.relative_to(base)): one.read_bytes() for one in base.rglob("*") if one.is_file()}

    found = files("one")
    assert found == files("two") and not any("__pycache__" in name for name in found)
    assert {"writer.py", "pymysql/connections.py", "pymysql/LICENSE"} <= found.keys()
