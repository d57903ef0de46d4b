"""From who calls what to the request that the evaluator gets: endpoint, context, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from iam_proof.evaluator import Request
from iam_proof.world import DEFAULT_KEY, OF_AWS, STRANGER, Principal, World

Context = Mapping[str, str | Sequence[str] | None]
ENDPOINT_OF = {
    "aps": "aps-workspaces",
    "cloudwatch": "monitoring",
    "ecr": "ecr.api",
    "sagemaker": "sagemaker.api",
}
"""Service of a VPC endpoint by the prefix of its actions, where they differ."""
ORGANIZATIONS = {STRANGER: "o-stranger00", OF_AWS: "o-awsitself0"}
OURS = "o-ours000000"
USER_ID = "AROAEXAMPLEEXAMPLE0:session"
ADDRESS = {"vpc": "10.0.0.10", "internet": "203.0.113.7"}


class NoWayError(Exception):
    """The network has neither an endpoint for the call nor a way to the internet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call, before it is looked at who has a say in it."""

    who: Principal
    action: str
    resource: str
    owner: str | None = None
    """Account of the resource where its ARN does not say it; ours by default."""
    through: str | None = None
    """Service of the endpoint, where it is not the action's own."""
    context: Context = field(default_factory=dict)


def request(call: Call, worlds: Sequence[World]) -> Request:
    """The request of a call.

    Args:
        call: who calls what.
        worlds: the environment from whose network the call comes, then others that are in the same account.

    Raises:
        NoWayError: it would not reach AWS.
    """
    world, who = worlds[0], call.who
    account, policy, blocked = _resource(call, worlds)
    way, endpoint = _way(call, world)
    context = {**_of_principal(who, world), **_of_resource(account, world), **way, **call.context}
    return Request(
        principal=who.arn,
        action=call.action,
        resource=call.resource,
        account=account,
        context={key: value for key, value in context.items() if value is not None},
        identity=who.identity,
        boundary=who.boundary,
        resourcePolicy=policy,
        endpoint=endpoint,
        blockPublicAccess=blocked,
    )


def following(call: Call, worlds: Sequence[World]) -> Iterator[Request]:
    """Calls of KMS that a service makes for the caller, with the caller's rights.

    S3 User Guide, "Using server-side encryption with AWS KMS keys" (a multipart upload decrypts, too);
    Secrets Manager User Guide, "Secret encryption and decryption".
    """
    world = worlds[0]
    service = call.action.partition(":")[0]
    needs = {
        "s3:GetObject": ["kms:Decrypt"],
        "s3:PutObject": ["kms:GenerateDataKey", "kms:Decrypt"],
        "secretsmanager:GetSecretValue": ["kms:Decrypt"],
        "secretsmanager:PutSecretValue": ["kms:GenerateDataKey", "kms:Decrypt"],
    }.get(call.action, [])
    bucket = call.resource.partition("/")[0]
    if service == "s3":
        key = world.key_of_bucket(bucket)
        about = {"kms:EncryptionContext:aws:s3:arn": bucket}
    else:
        key = world.key_of_secret(call.resource)
        about = {"kms:EncryptionContext:SecretARN": call.resource}
    if key is None or call.who.arn is None:
        return
    name = f"{service}.amazonaws.com"
    asked = {
        "kms:ViaService": f"{service}.{world.region}.amazonaws.com",
        "aws:ViaAWSService": "true",
        "aws:CalledVia": [name],
        "aws:CalledViaFirst": name,
        "aws:CalledViaLast": name,
        **world.tags_of_key(key),
        **about,
    }
    for action in needs:
        by_service = Call(who=replace(call.who, at="aws"), action=action, resource=key, context=asked)
        yield request(by_service, worlds)


def _resource(call: Call, worlds: Sequence[World]) -> tuple[str, str | None, bool]:
    """(account, name of the policy, whether S3 blocks public access) of a resource."""
    bucket = call.resource.partition("/")[0] if call.resource.startswith("arn:aws:s3:::") else None
    for world in worlds:
        policy = world.by_resource.get(bucket or call.resource)
        if policy or (bucket and bucket in world.buckets):
            blocks = world.buckets[bucket].get("PublicAccessBlockConfiguration", {}) if bucket else {}
            return world.account, policy, bool(blocks.get("RestrictPublicBuckets"))
    parts = call.resource.split(":")
    account = call.owner or (parts[4] if len(parts) > 4 else "") or worlds[0].account
    if account == "aws":
        account = OF_AWS
    if account == worlds[0].account:
        return account, DEFAULT_KEY if call.resource.startswith("arn:aws:kms:") else None, False
    # what strangers and AWS offer is open to all: only our own policies are in question
    return account, "open to all", False


def _way(call: Call, world: World) -> tuple[dict[str, str], str | None]:
    """Context of the way that the call takes, and the name of the endpoint's policy."""
    if call.who.at != "vpc":
        return ({"aws:SourceIp": ADDRESS["internet"]} if call.who.at == "internet" else {}), None
    prefix = call.action.partition(":")[0]
    service = call.through or ENDPOINT_OF.get(prefix, prefix)
    if service not in world.endpoints:
        if world.closed:
            raise NoWayError(f"{world.name} has no endpoint for {service}, and no way to the internet")
        return {"aws:SourceIp": ADDRESS["internet"]}, None
    endpoint, vpc, policy = world.endpoints[service]
    return {
        "aws:SourceVpce": endpoint,
        "aws:SourceVpc": vpc,
        "aws:VpcSourceIp": ADDRESS["vpc"],
        "aws:VpceAccount": world.account,
        "aws:VpceOrgID": OURS,
    }, policy


def _of_principal(who: Principal, world: World) -> dict[str, str]:
    """What IAM knows of the caller (IAM User Guide, "AWS global condition context keys")."""
    common = {"aws:SecureTransport": "true", "aws:RequestedRegion": world.region}
    if who.arn is None:
        return common
    if ":" not in who.arn:
        return {
            **common,
            "aws:PrincipalIsAWSService": "true",
            "aws:PrincipalServiceName": who.arn,
            "aws:SourceAccount": world.account,
            "aws:SourceOrgID": OURS,
        }
    account = str(who.account)
    return {
        **common,
        "aws:PrincipalIsAWSService": "false",
        "aws:ViaAWSService": "false",
        "aws:PrincipalType": "AssumedRole",
        "aws:userid": USER_ID,
        "aws:PrincipalArn": who.role or who.arn,
        "aws:PrincipalAccount": account,
        "aws:PrincipalOrgID": ORGANIZATIONS.get(account, OURS),
        "kms:CallerAccount": account,
        **{f"aws:PrincipalTag/{key}": value for key, value in who.tags.items()},
    }


def _of_resource(account: str, world: World) -> dict[str, str]:
    return {
        "aws:ResourceAccount": account,
        "aws:ResourceOrgID": ORGANIZATIONS.get(account, OURS),
        "s3:ResourceAccount": account,
    }
