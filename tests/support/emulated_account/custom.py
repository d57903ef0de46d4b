"""Custom resources: the code that the template uploads runs as a process, against this account.

The process sees what a function of Lambda sees: its code in /var/task, its layers in /opt, credentials of its
role, and an address for its answer. It runs in mount namespaces of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import uuid
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

from emulated_account.adapter import Adapter, Place
from emulated_account.refusal import ApiError

# Packages of the SDK for JavaScript, which Lambda's Node brings and its functions do not.
NODE_MODULES = Path(__file__).parents[2] / "emulated_account" / "node_modules"
START_PYTHON = """
import importlib, json, os, sys
sys.path.insert(0, "/var/task")
module, _, name = os.environ["_HANDLER"].rpartition(".")
class Context:
    log_stream_name = "log"; log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
    aws_request_id = os.environ["REQUEST"]; function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
    invoked_function_arn = os.environ["FUNCTION_ARN"]
    def get_remaining_time_in_millis(self): return 60000
getattr(importlib.import_module(module), name)(json.load(sys.stdin), Context())
"""
# Functions of the CDK send their answer to port 443 of a host, whatever the address says.
START_NODE = """
const https = require("https"), http = require("http"), send = https.request;
https.request = (to, ...more) =>
  to.hostname === "localhost"
    ? http.request({...to, port: process.env.ANSWER_PORT}, ...more) : send(to, ...more);
const [module, name] = process.env._HANDLER.split(".");
const context = {logStreamName: "log", functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
  invokedFunctionArn: process.env.FUNCTION_ARN, awsRequestId: process.env.REQUEST,
  getRemainingTimeInMillis: () => 60000};
const event = JSON.parse(require("fs").readFileSync(0, "utf8"));
Promise.resolve(require("/var/task/" + module)[name](event, context))
  .catch(e => { console.error(e); process.exit(1); });
"""
# Lambda's folders are laid over the machine's own, for this process and its children alone.
ENTER = """set -eu
mount -t overlay overlay -o "lowerdir=$1/var:/var" /var
mount -t overlay overlay -o "lowerdir=$1/opt:/opt" /opt
shift
exec "$@"
"""


# A function ends with the account, whatever ends that.
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")


def is_custom(kind: str) -> bool:
    return kind.startswith("Custom::") or kind == "AWS::CloudFormation::CustomResource"


class CustomResource(Adapter):
    """A resource whose life is the answers of a function."""

    resource_type = "Custom::"

    def __init__(self, place: Place, properties: dict[str, Any], kind: str) -> None:
        super().__init__(place, properties)
        self.resource_type = self.cf_resource_type = kind  # type: ignore[misc]

    @classmethod
    def has_cfn_attr(cls, attr: str) -> bool:
        return True

    def get_cfn_attribute(self, name: str) -> Any:
        if name not in self.attributes:
            raise ApiError(
                "ValidationError",
                f"CustomResource attribute error: Vendor response doesn't contain {name} attribute",
            )
        return self.attributes[name]

    def create(self) -> None:
        self._take(self._ask("Create", self.properties))

    def update(self, properties: dict[str, Any]) -> None:
        before = self.physical_resource_id
        old = {"OldResourceProperties": _text(self.properties)}
        self._take(self._ask("Update", properties, **old))
        if self.physical_resource_id != before:
            self._ask("Delete", self.properties, PhysicalResourceId=before)

    def remove(self) -> None:
        self._ask("Delete", self.properties)

    def _take(self, answer: dict[str, Any]) -> None:
        self.physical_resource_id = answer["PhysicalResourceId"]
        self.attributes = answer.get("Data") or {}

    def _ask(self, request: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
        if "ServiceToken" not in properties:
            raise ApiError("ValidationError", "Property validation failure: ServiceToken is required")
        event = {
            "RequestType": request,
            "ServiceToken": properties["ServiceToken"],
            "StackId": self.place.stack,
            "RequestId": str(uuid.uuid4()),
            "LogicalResourceId": self.place.logical_id,
            "ResourceType": self.cf_resource_type,
            "ResourceProperties": _text(properties),
        } | more
        if request != "Create":
            event.setdefault("PhysicalResourceId", self.physical_resource_id)
        with Answer() as answer:
            said = run(self.place, properties["ServiceToken"], event | {"ResponseURL": answer.address})
        body = answer.body
        if body is None:
            raise ApiError("NotStabilized", f"the function ended without an answer: {said[-300:]}")
        if body.get("Status") != "SUCCESS":
            raise ApiError(
                "GeneralServiceException",
                f"Received response status [FAILED] from custom resource. {body.get('Reason')}",
            )
        return body


def _text(value: Any) -> Any:
    """Properties as CloudFormation sends them: every value is text."""
    if isinstance(value, dict):
        return {key: _text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_text(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


class Answer:
    """An address on loopback that receives one answer."""

    body: dict[str, Any] | None = None

    def __enter__(self) -> Answer:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                outer.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://localhost:{self.server.server_port}/answer"
        self.server.timeout = 0.2
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def run(place: Place, token: str, event: dict[str, Any]) -> str:
    """Runs the function that a token names, to its end; returns what it printed."""
    client = place.client("lambda")
    configuration = client.get_function(FunctionName=token)["Configuration"]
    role = place.client("sts").assume_role(RoleArn=configuration["Role"], RoleSessionName="function")[
        "Credentials"
    ]
    with tempfile.TemporaryDirectory(prefix="function-") as folder:
        root = Path(folder)
        _unpack(place, token, root / "var/task")
        (root / "opt").mkdir()
        for layer in configuration.get("Layers", []):
            _unpack(place, layer["Arn"], root / "opt")
        (root / "var/lang/bin").mkdir(parents=True)
        (root / "var/lang/bin/python").symlink_to(sys.executable)
        (root / "enter").write_text(ENTER, encoding="utf-8")
        node = configuration["Runtime"].startswith("nodejs")
        start = (
            [shutil.which("node") or "node", "-e", START_NODE]
            if node
            else [sys.executable, "-c", START_PYTHON]
        )
        done = subprocess.run(
            [
                *ENDS_WITH_US,
                "unshare",
                "--map-root-user",
                "--mount",
                "--fork",
                "--kill-child",
                "sh",
                root / "enter",
                root,
                *start,
            ],
            input=json.dumps(event),
            text=True,
            capture_output=True,
            timeout=configuration["Timeout"],
            env=_environment(configuration, role, event, place.region),
            check=False,
        )
    return done.stdout + done.stderr


def _environment(
    configuration: dict[str, Any], role: dict[str, str], event: dict[str, Any], region: str
) -> dict[str, str]:
    own = configuration.get("Environment", {}).get("Variables", {})
    return own | {
        "PATH": os.environ["PATH"],
        "HOME": "/tmp",  # noqa: S108
        "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_ACCESS_KEY_ID": role["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": role["SecretAccessKey"],
        "AWS_SESSION_TOKEN": role["SessionToken"],
        "AWS_LAMBDA_FUNCTION_NAME": configuration["FunctionName"],
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{configuration['FunctionName']}",
        "FUNCTION_ARN": configuration["FunctionArn"],
        "REQUEST": event["RequestId"],
        "ANSWER_PORT": str(urllib.parse.urlsplit(event["ResponseURL"]).port),
        "NODE_PATH": str(NODE_MODULES),
        "_HANDLER": configuration["Handler"],
    }


def _unpack(place: Place, arn: str, into: Path) -> None:
    from moto.awslambda.models import lambda_backends

    backend = lambda_backends[place.account][place.region]
    stored = backend.layers_versions_by_arn(arn) if ":layer:" in arn else backend.get_function(arn)
    assert stored is not None
    into.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(BytesIO(stored.code_bytes)) as archive:
        for one in archive.infolist():
            path = Path(archive.extract(one, into))
            if path.is_file():
                path.chmod((one.external_attr >> 16) & 0o777 or 0o644)
