"""Moto's CloudFormation, with what it leaves out: exports of change sets, refusals, events, deletions.

Moto registers exports in `create_stack` alone and gives a stack that a change set creates no exports to
import, so that nothing that the CDK CLI deploys can refer to another stack. It looks change sets up by name
alone, and the CDK gives all of them one name: stacks that are deployed at once would execute each other's.
"""

# Moto has no types for what is replaced here.
# pyright: reportAttributeAccessIssue=false, reportIncompatibleMethodOverride=false, reportAssignmentType=false
# pyright: reportPrivateImportUsage=false, reportOptionalMemberAccess=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportIncompatibleVariableOverride=false
from __future__ import annotations

import ipaddress
import itertools
import json
import re
import sys
import threading
from typing import Any

from moto.cloudformation import models, parsing, responses, urls
from moto.cloudformation.exceptions import AlreadyExistsException, ValidationError
from moto.s3.models import FakeBucket

from emulated_account import schemas
from emulated_account.adapter import client
from emulated_account.adapters import ADAPTERS
from emulated_account.adapters.bucket_policy import permission
from emulated_account.custom import is_custom
from emulated_account.refusal import ApiError, say_not_judged
from emulated_account.resources import NOTHING, FailedError, ResourceMap, why

REFERENCE = re.compile(r"\{\{resolve:(ssm|secretsmanager):([^}]+)\}\}")
moto_clean_json = parsing.clean_json
# Such a stack can be deleted only: user guide, "Stack status codes", Unverified for DELETE_FAILED.
NOT_UPDATABLE = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED", "CREATE_FAILED")
# Types that some template asked for and nobody emulates: the run ends with an error.
without_adapter: set[str] = set()


def check_types(region: str, template: dict[str, Any]) -> None:
    """Refuses a template with a type that does not exist; a type without an adapter fails the run."""
    kinds = {one["Type"] for one in template["Resources"].values()}
    unknown = sorted(kind for kind in kinds if not _exists(region, kind))
    if unknown:
        raise ValidationError(
            message=f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]"
        )
    moto = parsing.get_model_map()
    missing = sorted(
        k for k in kinds if k not in ADAPTERS and k not in moto and k not in NOTHING and not is_custom(k)
    )
    if missing:
        without_adapter.update(missing)
        print(f"no adapter: {', '.join(missing)}", file=sys.stderr, flush=True)
        raise ValidationError(message=f"the emulated account has no adapter for {', '.join(missing)}")


def _exists(region: str, kind: str) -> bool:
    return is_custom(kind) or kind in NOTHING or kind in schemas.types(region)


class Stack(models.Stack):
    """A stack that a change set creates, with exports, outputs and events of its resources."""

    # Outputs and exports as they were after the last change: resources may be on their way out.
    settled: tuple[list[dict[str, Any]] | None, list[parsing.Export]] = (None, [])

    def _create_resource_map(self) -> ResourceMap:
        made = ResourceMap(
            self.stack_id,
            self.name,
            self.parameters,
            self.tags,
            account_id=self.account_id,
            region_name=self.region_name,
            template=self.template_dict,
            cross_stack_resources=self.cross_stack_resources,
        )
        made.stack = self
        made.load()
        return made

    def event(
        self, key: str, kind: str, status: str, reason: str | None = None, physical_id: str = ""
    ) -> None:
        self.events.append(
            models.Event(self.stack_id, self.name, key, physical_id, kind, status, reason, None)
        )
        if "FAILED" in status:
            print(f"{self.name}: {status} {key} {kind}: {reason}", flush=True)

    def settle(self, status: str, reason: str | None = None) -> None:
        self._add_stack_event(status, reason)
        self.status = status
        self.stack_status_reason = reason

    @property
    def stack_resources(self) -> list[Any]:
        """Resources that exist, whatever state the stack is in."""
        own = self.resource_map
        return [one for key, one in list(own._parsed_resources.items()) if key in own._resource_json_map]

    @property
    def outputs(self) -> list[dict[str, Any]] | None:
        return self.settled[0]

    @property
    def exports(self) -> list[parsing.Export]:
        return self.settled[1]

    def settle_outputs(self) -> None:
        self.output_map = self._create_output_map()
        self.settled = (None, self.output_map.exports)
        self.settled = (super().outputs, self.settled[1])

    def imported(self) -> set[str]:
        """Names of the exports that the stack's template imports."""
        return set(_imports(self.template_dict, self.resource_map))


def _imports(value: Any, resources: parsing.ResourceMap) -> list[str]:
    if isinstance(value, list):
        return [name for item in value for name in _imports(item, resources)]
    if not isinstance(value, dict):
        return []
    own = [parsing.clean_json(value["Fn::ImportValue"], resources)] if "Fn::ImportValue" in value else []
    return own + [name for item in value.values() for name in _imports(item, resources)]


class Backend(models.CloudFormationBackend):
    """CloudFormation of one region: change sets are executed aside, and exports guard their stack."""

    # Moto finds addresses of a backend by the module of its class.
    _url_module = urls

    def create_change_set(self, *args: Any, **kwargs: Any) -> tuple[str, str]:
        template = models.Stack.parse_template(kwargs["template"])
        check_types(self.region_name, template)
        found = next((s for s in self.stacks.values() if s.name == kwargs["stack_name"]), None)
        if found and kwargs["change_set_type"] == "CREATE":
            if found.status != "REVIEW_IN_PROGRESS":
                raise ValidationError(
                    message=f"Stack [{found.name}] already exists and cannot be created again"
                )
            del self.stacks[found.stack_id]
        elif found and found.status in NOT_UPDATABLE:
            message = f"Stack:{found.stack_id} is in {found.status} state and can not be updated."
            raise ValidationError(message=message)
        return super().create_change_set(*args, **kwargs)

    def create_stack(self, name: str, template: str, parameters: dict[str, Any], **more: Any) -> models.Stack:
        """The same way as a change set, so that one engine judges both."""
        if any(stack.name == name for stack in self.stacks.values()):
            raise AlreadyExistsException(f"Stack [{name}] already exists")
        identity, stack = self.create_change_set(
            stack_name=name,
            change_set_name="create-stack",
            template=template,
            parameters=parameters,
            description="",
            change_set_type="CREATE",
            notification_arns=more.get("notification_arns"),
            tags=more.get("tags"),
            role_arn=more.get("role_arn"),
        )
        self.execute_change_set(identity)
        return self.stacks[stack]

    def execute_change_set(self, change_set_name: str, stack_name: str | None = None) -> None:
        change_set = self.describe_change_set(change_set_name)
        assert change_set is not None
        stack = self.stacks[change_set.stack_id]
        if stack.status.endswith("IN_PROGRESS") and stack.status != "REVIEW_IN_PROGRESS":
            raise ValidationError(
                message=f"Stack:{stack.stack_id} is in {stack.status} state and can not be updated."
            )
        action = change_set.change_set_type
        change_set.execution_status = "EXECUTE_IN_PROGRESS"
        stack.settle(f"{action}_IN_PROGRESS", "User Initiated")
        threading.Thread(target=self._execute, args=(change_set, stack, action), daemon=True).start()

    def _execute(self, change_set: models.ChangeSet, stack: Stack, action: str) -> None:
        resources = stack.resource_map
        resources.cross_stack_resources = self.exports
        resources.creating = True
        try:
            change_set.apply()
            resources.creating = False
            stack.template, stack.template_dict = change_set.template, change_set.template_dict
            stack.parameters, stack.tags = change_set.parameters, change_set.tags or stack.tags
            stack.description = stack.template_dict.get("Description")
            stack.settle_outputs()
            self._export(stack)
        except Exception as error:
            self._roll_back(stack, _failure(stack, error), change_set)
            return
        change_set.execution_status = "EXECUTE_COMPLETE"
        stack.settle(f"{action}_COMPLETE")

    def _export(self, stack: Stack) -> None:
        exports = {export.name: export for export in stack.exports}
        for name in exports:
            other = self.exports.get(name)
            if other and other.exporting_stack_id != stack.stack_id:
                raise ApiError(
                    "ValidationError",
                    f"Export with name {name} is already exported by stack {other.exporting_stack_id}",
                )
        gone = [
            name
            for name, one in self.exports.items()
            if one.exporting_stack_id == stack.stack_id and name not in exports
        ]
        for name in gone:
            self._check_unused(name, stack)
            del self.exports[name]
        self.exports.update(exports)

    def _check_unused(self, name: str, stack: Stack) -> None:
        users = [one.name for one in self.stacks.values() if one is not stack and name in one.imported()]
        if users:
            raise ApiError(
                "ValidationError", f"Export {name} cannot be deleted as it is in use by {' and '.join(users)}"
            )

    def _roll_back(self, stack: Stack, failure: FailedError, change_set: models.ChangeSet) -> None:
        stack.resource_map.creating = False
        stack.event(failure.key, failure.kind, f"{failure.action}_FAILED", failure.reason)
        change_set.execution_status = "EXECUTE_FAILED"
        if change_set.change_set_type == "UPDATE":
            say_not_judged("the rollback of a failed update: resources stay as the failure left them")
            stack.settle("UPDATE_ROLLBACK_COMPLETE", failure.reason)
            return
        stack.settle("ROLLBACK_IN_PROGRESS", f"The following resource(s) failed to create: [{failure.key}].")
        resources = stack.resource_map
        try:
            for key in list(reversed(resources._parsed_resources)):
                if key in resources._resource_json_map:
                    resources._remove(key, resources._resource_json_map[key], failed_creation=True)
        except Exception as error:
            failed = _failure(stack, error)
            stack.event(failed.key, failed.kind, "DELETE_FAILED", failed.reason)
            stack.settle("ROLLBACK_FAILED", failed.reason)
            return
        stack.settle("ROLLBACK_COMPLETE")

    def delete_stack(self, name_or_stack_id: str) -> None:
        stack = next((s for s in self.stacks.values() if name_or_stack_id in (s.name, s.stack_id)), None)
        if stack is None:
            return
        if stack.enable_termination_protection:
            raise ValidationError(
                message=f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
            )
        stack.settle("DELETE_IN_PROGRESS", "User Initiated")
        threading.Thread(target=self._delete, args=(stack,), daemon=True).start()

    def _delete(self, stack: Stack) -> None:
        try:
            names = [name for name, one in self.exports.items() if one.exporting_stack_id == stack.stack_id]
            for name in names:
                self._check_unused(name, stack)
            stack.resource_map.delete()
        except Exception as error:
            failed = _failure(stack, error)
            if isinstance(error, FailedError):
                stack.event(failed.key, failed.kind, "DELETE_FAILED", failed.reason)
            stack.settle("DELETE_FAILED", failed.reason)
            return
        for name in names:
            del self.exports[name]
        stack.settle("DELETE_COMPLETE")
        self.deleted_stacks[stack.stack_id] = self.stacks.pop(stack.stack_id)


def _failure(stack: Stack, error: Exception) -> FailedError:
    """Whatever ended the work on a stack: an error of ours must not leave it in progress for ever."""
    if isinstance(error, FailedError):
        return error
    return FailedError(stack.name, "AWS::CloudFormation::Stack", why(error))


class Response(responses.CloudFormationResponse):
    """Finds a change set by the name of its stack as well as its own."""

    def _get_param(self, param_name: str, if_none: Any = None) -> Any:
        value = super()._get_param(param_name, if_none)
        if (
            param_name != "ChangeSetName"
            or self._get_action() == "CreateChangeSet"
            or str(value).startswith("arn:")
        ):
            return value
        stack = super()._get_param("StackName")
        sets = self.cloudformation_backend.change_sets.values()
        found = [
            one for one in sets if one.change_set_name == value and stack in (one.stack_name, one.stack_id)
        ]
        return found[-1].change_set_id if found else value

    def update_termination_protection(self) -> Any:
        stack = self.cloudformation_backend.get_stack(self._get_param("StackName"))
        stack.enable_termination_protection = self._get_bool_param("EnableTerminationProtection", False)
        return responses.ActionResult({"StackId": stack.stack_id})


def _referred(match: re.Match[str], region: str) -> str:
    """What a dynamic reference stands for; a parameter of AWS's own stands for some image of the account."""
    service, name = match.groups()
    if service == "secretsmanager":
        secret, _, rest = name.partition(":SecretString:")
        text = client(service, region).get_secret_value(SecretId=secret)["SecretString"]
        key = rest.partition(":")[0]
        return str(json.loads(text)[key]) if key else text
    known = client("ssm", region)
    try:
        return known.get_parameter(Name=name)["Parameter"]["Value"]
    except known.exceptions.ParameterNotFound:
        if not name.startswith("/aws/service/") or not name.endswith(("ami-id", "image_id", "image-id")):
            raise ApiError("ValidationError", f"Parameters: [{name}] cannot be found.") from None
    say_not_judged(f"the public parameter {name}: some image of moto stands for it")
    return client("ec2", region).describe_images(Owners=["amazon"])["Images"][0]["ImageId"]


def clean_json(value: Any, resources: ResourceMap) -> Any:
    """Moto's intrinsic functions, Fn::Cidr and dynamic references."""
    if not isinstance(value, dict) or "Fn::Cidr" not in value:
        plain = moto_clean_json(value, resources)
        if not isinstance(plain, str) or "{{resolve:" not in plain:
            return plain
        return REFERENCE.sub(lambda match: _referred(match, resources._region_name), plain)
    block, count, *bits = moto_clean_json(value["Fn::Cidr"], resources)
    size = 32 - int(bits[0] if bits else 8)
    networks = ipaddress.ip_network(block).subnets(new_prefix=size)
    return [str(one) for one in itertools.islice(networks, int(count))]


def install() -> None:
    """Puts these classes where moto looks for its own, in this process only."""
    say_not_judged("conditions of bucket policies, and permissions of roles: moto knows neither")
    FakeBucket.get_permission = permission
    parsing.clean_json = clean_json
    models.Stack = Stack
    models.cloudformation_backends.backend = Backend
    urls.url_paths["{0}/$"] = Response.dispatch
