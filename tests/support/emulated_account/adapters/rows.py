"""Types whose API moto has and whose CloudFormation it has not: a row each."""

from __future__ import annotations

import json
import secrets
import string
from typing import Any

from emulated_account import api_model
from emulated_account.adapter import ACCOUNT
from emulated_account.adapters.by_api import ByApi, row
from emulated_account.refusal import ApiError


def _budget(own: dict[str, Any]) -> dict[str, Any]:
    request = api_model.known_to("budgets", "CreateBudget", own)
    request["Budget"].setdefault("BudgetName", "budget")
    return request | {"AccountId": ACCOUNT}


def _secret(own: dict[str, Any]) -> dict[str, Any]:
    request = api_model.known_to("secretsmanager", "CreateSecret", own)
    request.setdefault("Name", f"secret-{secrets.token_hex(6)}")
    if (generate := own.get("GenerateSecretString")) is not None:
        excluded = generate.get("ExcludeCharacters", "")
        letters = [one for one in string.ascii_letters + string.digits if one not in excluded]
        password = "".join(secrets.choice(letters) for _ in range(int(generate.get("PasswordLength", 32))))
        template = json.loads(generate.get("SecretStringTemplate", "{}"))
        key = generate.get("GenerateStringKey")
        request["SecretString"] = json.dumps(template | {key: password}) if key else password
    return request


PROTOCOLS = {"http", "https", "email", "email-json", "sms", "sqs", "application", "lambda", "firehose"}


def _subscription(own: dict[str, Any]) -> dict[str, Any]:
    if own["Protocol"] not in PROTOCOLS:
        raise ApiError("InvalidParameter", f"Invalid parameter: unknown protocol {own['Protocol']}")
    return api_model.known_to("sns", "Subscribe", own)


def _parameter(own: dict[str, Any]) -> dict[str, Any]:
    request = api_model.known_to("ssm", "PutParameter", own)
    tags = own.get("Tags") or {}
    return request | ({"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]} if tags else {})


def _topic_policy(own: dict[str, Any]) -> dict[str, Any]:
    policy = json.dumps(own["PolicyDocument"])
    return {"TopicArn": own["Topics"][0], "AttributeName": "Policy", "AttributeValue": policy}


def _metric_filter(own: dict[str, Any]) -> dict[str, Any]:
    request = api_model.known_to("logs", "PutMetricFilter", own)
    for one in request["metricTransformations"]:
        if isinstance(one.get("dimensions"), list):
            one["dimensions"] = {item["Key"]: item["Value"] for item in one["dimensions"]}
    return {"filterName": f"filter-{secrets.token_hex(6)}"} | request


def _alarm(own: dict[str, Any]) -> dict[str, Any]:
    return {"AlarmName": f"alarm-{secrets.token_hex(6)}"} | api_model.known_to(
        "cloudwatch", "PutMetricAlarm", own
    )


def _destination(own: dict[str, Any]) -> dict[str, Any]:
    request = api_model.known_to("logs", "PutDeliveryDestination", own)
    arn = {"destinationResourceArn": own["DestinationResourceArn"]} if "DestinationResourceArn" in own else {}
    return request | {"deliveryDestinationConfiguration": arn}


def _rules(own: dict[str, Any]) -> dict[str, Any]:
    workspace = own["Workspace"].rpartition("/")[2]
    return {"workspaceId": workspace, "name": own["Name"], "data": own["Data"].encode()}


ROWS: tuple[type[ByApi], ...] = (
    row(
        "AWS::EC2::VPCCidrBlock",
        "ec2:AssociateVpcCidrBlock",
        "DisassociateVpcCidrBlock",
        {"AssociationId": ...},
        "CidrBlockAssociation.AssociationId",
        {"Id": "CidrBlockAssociation.AssociationId"},
    ),
    row(
        "AWS::APS::Workspace",
        "amp:CreateWorkspace",
        "DeleteWorkspace",
        {"workspaceId": ".WorkspaceId"},
        "arn",
        {"Arn": "arn", "WorkspaceId": "workspaceId"},
    ),
    row(
        "AWS::APS::RuleGroupsNamespace",
        "amp:CreateRuleGroupsNamespace",
        "DeleteRuleGroupsNamespace",
        {"workspaceId": ".WorkspaceId", "name": ".Name"},
        "arn",
        {"Arn": "arn", "WorkspaceId": "request.workspaceId"},
        _rules,
    ),
    row(
        "AWS::Budgets::Budget",
        "budgets:CreateBudget",
        "DeleteBudget",
        {"AccountId": ACCOUNT, "BudgetName": ...},
        "own.Budget.BudgetName || 'budget'",
        {},
        _budget,
    ),
    row(
        "AWS::SNS::Subscription",
        "sns:Subscribe",
        "Unsubscribe",
        {"SubscriptionArn": ...},
        "SubscriptionArn",
        {"Arn": "SubscriptionArn"},
        _subscription,
    ),
    row(
        "AWS::SSM::Parameter",
        "ssm:PutParameter",
        "DeleteParameter",
        {"Name": ...},
        "request.Name",
        {"Type": "request.Type", "Value": "request.Value"},
        _parameter,
    ),
    row(
        "AWS::SNS::TopicPolicy",
        "sns:SetTopicAttributes",
        "SetTopicAttributes",
        {"TopicArn": ..., "AttributeName": "Policy", "AttributeValue": ""},
        "own.Topics[0]",
        {},
        _topic_policy,
    ),
    row(
        "AWS::SecretsManager::Secret",
        "secretsmanager:CreateSecret",
        "DeleteSecret",
        {"SecretId": ..., "ForceDeleteWithoutRecovery": True},
        "ARN",
        {"Id": "ARN"},
        _secret,
    ),
    row(
        "AWS::Logs::DeliveryDestination",
        "logs:PutDeliveryDestination",
        "DeleteDeliveryDestination",
        {"name": ...},
        "deliveryDestination.name",
        {"Arn": "deliveryDestination.arn"},
        _destination,
    ),
    row(
        "AWS::Logs::MetricFilter",
        "logs:PutMetricFilter",
        "DeleteMetricFilter",
        {"logGroupName": ".LogGroupName", "filterName": ...},
        "request.filterName",
        {},
        _metric_filter,
    ),
    row(
        "AWS::CloudWatch::Alarm",
        "cloudwatch:PutMetricAlarm",
        "DeleteAlarms",
        {"AlarmNames": [...]},
        "request.AlarmName",
        {},
        _alarm,
    ),
)
