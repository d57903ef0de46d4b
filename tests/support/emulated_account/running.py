"""The account as a process of its own, for the time of a test or a command, and the CDK's CLI against it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from processes import until

from emulated_account.custom import ENDS_WITH_US

ROOT = Path(__file__).parents[3]
ACCOUNT = "123456789012"


@dataclass(frozen=True)
class Account:
    """A running account."""

    address: str
    log: Path
    process: subprocess.Popen[bytes]
    region: str = "us-west-2"

    def environment(self) -> dict[str, str]:
        """The variables of a command that talks to this account and to nobody else."""
        path = f"{Path(sys.executable).parent}:{ROOT / 'node_modules/.bin'}:{os.environ['PATH']}"
        own = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
        return own | {
            "PATH": path,
            "AWS_ENDPOINT_URL": self.address,
            # The CLI remembers the account of an access key there.
            "CDK_HOME": str(self.log.parent),
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self, service: str) -> Any:
        return _client(service, self.region, self.address)

    def cdk(self, *arguments: str, app: Path | str = "") -> str:
        """What the CDK's CLI prints; raises with it where the CLI ends with an error."""
        command = ["cdk", *(["--app", str(app)] if app else []), "--no-color", *arguments]
        done = subprocess.run(
            [*ENDS_WITH_US, *command],
            cwd=self.log.parent,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-6000:]}")
        return done.stdout

    def deploy(self, app: Path) -> str:
        """All stacks of a synthesised app, side by side."""
        return self.cdk("deploy", "--all", "--concurrency", "8", "--require-approval", "never", app=app)

    def create(self, name: str, resources: dict[str, Any], **more: Any) -> str:
        """Creates a stack, and returns what refused it; nothing where it is complete."""
        client = self.client("cloudformation")
        body = json.dumps({"Resources": resources} | more)
        try:
            stack = client.create_stack(StackName=name, TemplateBody=body)["StackId"]
        except client.exceptions.ClientError as error:
            return str(error)
        return self.settled(stack)

    def update(self, name: str, resources: dict[str, Any], **more: Any) -> str:
        """The same for a change of a stack, by a change set."""
        client = self.client("cloudformation")
        body = json.dumps({"Resources": resources} | more)
        one = client.create_change_set(
            StackName=name, ChangeSetName="change", TemplateBody=body, ChangeSetType="UPDATE"
        )
        client.execute_change_set(ChangeSetName=one["Id"])
        return self.settled(one["StackId"])

    def delete(self, name: str) -> str:
        """The same for a deletion; a stack that does not exist is deleted."""
        client = self.client("cloudformation")
        stacks = [one for one in client.describe_stacks()["Stacks"] if one["StackName"] == name]
        if not stacks:
            return ""
        stack = stacks[0]["StackId"]
        client.delete_stack(StackName=name)
        return self.settled(stack)

    def settled(self, stack: str) -> str:
        """Waits for a stack; returns the reasons of what failed."""
        client = self.client("cloudformation")
        status = until(lambda: self._status(stack))
        if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_COMPLETE"):
            return ""
        events = client.describe_stack_events(StackName=stack)["StackEvents"]
        return "; ".join(e["ResourceStatusReason"] for e in events if "FAILED" in e["ResourceStatus"])

    def _status(self, stack: str) -> str:
        status = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
        return "" if status.endswith("IN_PROGRESS") else status

    def lines(self) -> list[str]:
        """What the account has printed."""
        return self.log.read_text(encoding="utf-8").splitlines()

    def cpu_seconds(self) -> float:
        """CPU seconds of the account and of the functions that it ran."""
        values = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rsplit(") ", 1)[1].split()
        return sum(int(value) for value in values[11:15]) / os.sysconf("SC_CLK_TCK")


@functools.cache
def _client(service: str, region: str, address: str) -> Any:
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=address,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # noqa: S106
    )


@contextlib.contextmanager
def account(region: str = "us-west-2", number: str = ACCOUNT) -> Iterator[Account]:
    """Starts an account on a free port of loopback, and ends it whatever happens."""
    with tempfile.TemporaryDirectory(prefix="account-") as folder:
        ready, write = os.pipe()
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*ENDS_WITH_US, sys.executable, "-m", "emulated_account", "--ready", str(write)],
                env=os.environ | {"PYTHONPATH": str(ROOT / "tests/support"), "MOTO_ACCOUNT_ID": number},
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[write],
            )
        os.close(write)
        try:
            with os.fdopen(ready, encoding="utf-8") as answer:
                address = answer.readline().strip()
            if not address:
                raise RuntimeError(f"the account did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")
            yield Account(address, log, process, region)
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            finally:
                process.kill()
                process.wait()


def children_cpu_seconds() -> float:
    """CPU seconds of the children of this process that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
