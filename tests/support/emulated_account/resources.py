"""Resources of a stack: created after what they depend on, changed, replaced, deleted the other way."""

# Moto has no types for what is replaced here.
# pyright: reportAttributeAccessIssue=false, reportIncompatibleMethodOverride=false, reportAssignmentType=false
# pyright: reportPrivateImportUsage=false, reportOptionalMemberAccess=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportIncompatibleVariableOverride=false
from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from moto.backends import get_backend
from moto.cloudformation import parsing
from moto.core.exceptions import ServiceException

from emulated_account import schemas
from emulated_account.adapter import Adapter, Place
from emulated_account.adapters import ADAPTERS, deletions
from emulated_account.custom import CustomResource, is_custom
from emulated_account.refusal import ApiError, say_not_judged

if TYPE_CHECKING:
    from emulated_account.engine import Stack

# Resources that have no life of their own.
NOTHING = ("AWS::CDK::Metadata", "AWS::CloudFormation::WaitConditionHandle")


class ResourceMap(parsing.ResourceMap):
    """Resources of a stack, created after what they depend on and deleted in the opposite order."""

    stack: Stack
    # Moto's map creates what it is asked for, by whoever reads it; this one only while its stack changes.
    creating = False

    def __getitem__(self, key: str) -> Any:
        definition = self._resource_json_map.get(key)
        if key in self._parsed_resources or definition is None:
            return super().__getitem__(key)
        if not self.creating:
            raise ApiError("ValidationError", f"Template error: {key} does not exist")
        needed = definition.get("DependsOn", [])
        for name in [needed] if isinstance(needed, str) else needed:
            self[name]
        condition = definition.get("Condition")
        if definition["Type"] in NOTHING or (condition and not self.lazy_condition_map[condition]):
            return None
        return self._create(key, definition)

    def _create(self, key: str, definition: dict[str, Any]) -> Any:
        kind = definition["Type"]
        try:
            properties = parsing.clean_json(definition.get("Properties", {}), self)
            self.stack.event(key, kind, "CREATE_IN_PROGRESS")
            if not is_custom(kind):
                schemas.judge(self._region_name, kind, properties)
            resource = self._adapter(key, kind, properties) or super().__getitem__(key)
            if isinstance(resource, Adapter):
                resource.create()
            else:
                resource.get_cfn_attribute = functools.partial(attribute, self._region_name, resource)
        except FailedError:
            raise
        except Exception as error:
            raise FailedError(key, kind, why(error)) from error
        self._parsed_resources[key] = resource
        self.stack.event(key, kind, "CREATE_COMPLETE", physical_id=identifier(resource))
        return resource

    def _adapter(self, key: str, kind: str, properties: dict[str, Any]) -> Adapter | None:
        place = Place(self._account_id, self._region_name, self.stack_id, key)
        if is_custom(kind):
            return CustomResource(place, properties, kind)
        return ADAPTERS[kind](place, properties) if kind in ADAPTERS else None

    def update(self, template: dict[str, Any], parameters: dict[str, Any] | None = None) -> None:
        """Additions and changes in the order of dependencies; removals last, as CloudFormation does."""
        old = dict(self._resource_json_map)
        self._template, self._resource_json_map = template, template["Resources"]
        if parameters:
            self.input_parameters = parameters
        self.load_mapping()
        self.load_parameters()
        self.load_conditions()
        for key, definition in template["Resources"].items():
            if (
                key in old
                and old[key].get("Properties") != definition.get("Properties")
                and key in self._parsed_resources
            ):
                self._change(key, definition)
            else:
                self[key]
        for key in [
            key for key in reversed(self._parsed_resources) if key in old and key not in template["Resources"]
        ]:
            self._remove(key, old[key])

    def _change(self, key: str, definition: dict[str, Any]) -> None:
        kind, resource = definition["Type"], self._parsed_resources[key]
        self.stack.event(key, kind, "UPDATE_IN_PROGRESS", physical_id=identifier(resource))
        try:
            properties = parsing.clean_json(definition.get("Properties", {}), self)
            if not is_custom(kind):
                schemas.judge(self._region_name, kind, properties)
            if isinstance(resource, Adapter):
                self._parsed_resources[key] = self._updated(key, resource, properties)
            else:
                changed = parsing.parse_and_update_resource(
                    key, definition, self, self._account_id, self._region_name
                )
                if changed is None:
                    say_not_judged(f"an update of {kind}: moto has none")
                self._parsed_resources[key] = changed or resource
        except Exception as error:
            raise FailedError(key, kind, why(error), "UPDATE") from error
        self.stack.event(key, kind, "UPDATE_COMPLETE", physical_id=identifier(self._parsed_resources[key]))

    def _updated(self, key: str, resource: Adapter, properties: dict[str, Any]) -> Adapter:
        """The resource after a change: another one where a property changed that is set at creation only."""
        kind = resource.resource_type
        fixed = [] if is_custom(kind) else schemas.names(self._region_name, kind, "createOnlyProperties")
        if all(resource.properties.get(name) == properties.get(name) for name in fixed):
            resource.update(properties)
            resource.properties = properties
            return resource
        new = self._adapter(key, kind, properties)
        assert new is not None
        new.create()
        resource.remove()
        return new

    def delete(self) -> None:
        for key in list(reversed(self._parsed_resources)):
            if key in self._resource_json_map:
                self._remove(key, self._resource_json_map[key])

    def _remove(self, key: str, definition: dict[str, Any], *, failed_creation: bool = False) -> None:
        kind, resource = definition["Type"], self._parsed_resources[key]
        policy = definition.get("DeletionPolicy", "Delete")
        if policy == "Retain" or (policy == "RetainExceptOnCreate" and not failed_creation):
            self.stack.event(key, kind, "DELETE_SKIPPED", physical_id=identifier(resource))
            return
        self.stack.event(key, kind, "DELETE_IN_PROGRESS", physical_id=identifier(resource))
        try:
            self._delete_resource(resource, definition)
        except Exception as error:
            raise FailedError(key, kind, why(error), "DELETE") from error
        if (
            not isinstance(resource, Adapter)
            and getattr(resource, "state", "") not in ("deleted", "deleting")
            and self._is_stored(kind, resource)
        ):
            say_not_judged(f"the deletion of {kind}: moto keeps it")
        del self._parsed_resources[key]
        self.stack.event(key, kind, "DELETE_COMPLETE", physical_id=identifier(resource))

    def _is_stored(self, kind: str, resource: Any) -> bool:
        """Whether moto's service still has a resource that it was asked to delete."""
        backend = get_backend(type(resource).__module__.split(".")[1])[self._account_id]
        return any(
            _holds(vars(backend[place]), resource) for place in (self._region_name, "aws") if place in backend
        )

    def _delete_resource(self, parsed_resource: Any, resource_json: dict[str, Any]) -> None:
        if isinstance(parsed_resource, Adapter):
            parsed_resource.remove()
        else:
            definition = parsing.clean_json(resource_json, self)
            place = Place(self._account_id, self._region_name, self.stack_id, "")
            if not deletions.delete(place, definition, parsed_resource):
                super()._delete_resource(parsed_resource, definition)


def _holds(store: Any, resource: Any, depth: int = 4) -> bool:
    values = store.values() if isinstance(store, dict) else store if isinstance(store, list) else ()
    return any(one is resource or (depth and _holds(one, resource, depth - 1)) for one in list(values))


class FailedError(Exception):
    """A resource that could not be created, changed or deleted."""

    def __init__(self, key: str, kind: str, reason: str, action: str = "CREATE") -> None:
        super().__init__(f"{key} ({kind}): {reason}")
        self.key, self.kind, self.reason, self.action = key, kind, reason, action


def why(error: Exception) -> str:
    if isinstance(error, ApiError | ClientError | BotoCoreError):
        return str(error)
    if isinstance(error, ServiceException):
        return f"{error.message} (Error Code: {error.code})"
    return f"{type(error).__name__}: {error}"


def identifier(resource: Any) -> str:
    return getattr(resource, "physical_resource_id", "") or ""


def attribute(region: str, resource: Any, name: str) -> Any:
    """An attribute of a resource of moto, whose models lack some that are the identifier of their type."""
    kind = resource.cf_resource_type
    if schemas.schema(region, kind).get("primaryIdentifier") == [f"/properties/{name}"]:
        return resource.physical_resource_id
    try:
        return type(resource).get_cfn_attribute(resource, name)
    except AttributeError:
        raise ApiError("ValidationError", f"moto has no attribute {name} of {kind}") from None
