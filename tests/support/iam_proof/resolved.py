"""Templates with their intrinsic functions resolved, as CloudFormation would in one account.

Every resource gets a physical name that is well-formed, invented, and the same in every run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Template = Mapping[str, Any]
ACCOUNT = "111122223333"

# What `Ref` gives, by type: {name} is what the template calls it, or invented; {hex} are 17 digits.
REFS = {
    "AWS::CloudFormation::Stack": "{arn:cloudformation}:stack/{name}/{uuid}",
    "AWS::EC2::CapacityReservation": "cr-{hex}",
    "AWS::EC2::EIP": "eipalloc-{hex}",
    "AWS::EC2::InternetGateway": "igw-{hex}",
    "AWS::EC2::LaunchTemplate": "lt-{hex}",
    "AWS::EC2::NatGateway": "nat-{hex}",
    "AWS::EC2::NetworkAcl": "acl-{hex}",
    "AWS::EC2::PrefixList": "pl-{hex}",
    "AWS::EC2::RouteTable": "rtb-{hex}",
    "AWS::EC2::SecurityGroup": "sg-{hex}",
    "AWS::EC2::Subnet": "subnet-{hex}",
    "AWS::EC2::VPC": "vpc-{hex}",
    "AWS::EC2::VPCEndpoint": "vpce-{hex}",
    "AWS::FSx::FileSystem": "fs-{hex}",
    "AWS::IAM::ManagedPolicy": "{arn:iam}:policy{path}{name}",
    "AWS::KMS::Key": "{uuid}",
    "AWS::Lambda::LayerVersion": "{arn:lambda}:layer:{name}:1",
    "AWS::SageMaker::Cluster": "{arn:sagemaker}:cluster/{id}",
    "AWS::SecretsManager::Secret": "{arn:secretsmanager}:secret:{name}-AbCdEf",
    "AWS::SNS::Topic": "{arn:sns}:{name}",
    "AWS::SQS::Queue": "{url:sqs}{name}",
}
# What `GetAtt` gives; `Arn` unless another attribute is named.
ATTRIBUTES = {
    "AWS::APS::Workspace": {
        "Arn": "{arn:aps}:workspace/ws-{uuid}",
        "PrometheusEndpoint": "https://aps-workspaces.{region}.{suffix}/workspaces/ws-{uuid}/",
        "WorkspaceId": "ws-{uuid}",
    },
    "AWS::DynamoDB::Table": {"Arn": "{arn:dynamodb}:table/{name}"},
    "AWS::ECR::Repository": {"Arn": "{arn:ecr}:repository/{name}"},
    "AWS::EKS::Cluster": {
        "Arn": "{arn:eks}:cluster/{name}",
        "ClusterSecurityGroupId": "sg-{hex}",
        "OpenIdConnectIssuerUrl": "https://oidc.eks.{region}.{suffix}/id/{HEX}",
    },
    "AWS::EC2::VPC": {"DefaultSecurityGroup": "sg-{hex}"},
    "AWS::EKS::Nodegroup": {"Arn": "{arn:eks}:nodegroup/{name}/{uuid}"},
    "AWS::Events::Rule": {"Arn": "{arn:events}:rule/{name}"},
    "AWS::FSx::FileSystem": {"ResourceARN": "{arn:fsx}:file-system/fs-{hex}"},
    "AWS::IAM::InstanceProfile": {"Arn": "{arn:iam}:instance-profile{path}{name}"},
    "AWS::IAM::OIDCProvider": {"Arn": "{arn:iam}:oidc-provider/{issuer}"},
    "AWS::IAM::Role": {"Arn": "{arn:iam}:role{path}{name}", "RoleId": "AROA{HEX}"},
    "AWS::KMS::Key": {"Arn": "{arn:kms}:key/{uuid}", "KeyId": "{uuid}"},
    "AWS::Lambda::Function": {"Arn": "{arn:lambda}:function:{name}"},
    "AWS::Logs::DeliveryDestination": {"Arn": "{arn:logs}:delivery-destination:{name}"},
    "AWS::Logs::LogGroup": {"Arn": "{arn:logs}:log-group:{name}:*"},
    "AWS::PCS::Cluster": {"Arn": "{arn:pcs}:cluster/pcs_{id}", "Id": "pcs_{id}"},
    "AWS::PCS::ComputeNodeGroup": {"Id": "pcs_{id}"},
    "AWS::RDS::DBInstance": {"DBInstanceArn": "{arn:rds}:db:{name}", "DbiResourceId": "db-{HEX}"},
    "AWS::S3::Bucket": {"Arn": "arn:{partition}:s3:::{name}"},
    "AWS::SageMaker::Cluster": {"ClusterArn": "{arn:sagemaker}:cluster/{id}"},
    "AWS::SNS::Topic": {"TopicArn": "{arn:sns}:{name}"},
    "AWS::SQS::Queue": {"Arn": "{arn:sqs}:{name}"},
    "AWS::StepFunctions::StateMachine": {"Arn": "{arn:states}:stateMachine:{name}"},
}
NAMED_BY = (
    "BucketName", "ClusterName", "DBInstanceIdentifier", "FunctionName", "LogGroupName", "Name", "RoleName",
)  # fmt: skip
LOWER = ("AWS::RDS::DBInstance", "AWS::S3::Bucket")
GLOBAL = ("iam", "s3")


@dataclass(frozen=True)
class Resolved:
    """The templates of one environment, in one account and Region."""

    templates: Mapping[str, Template]
    region: str
    account: str = ACCOUNT
    partition: str = "aws"
    suffix: str = "amazonaws.com"
    _made: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def resources(self, *kinds: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """(stack, logical id, resource) of some types; its properties as they stand in the template."""
        for stack, template in self.templates.items():
            for logical, resource in template["Resources"].items():
                if resource["Type"] in kinds:
                    yield stack, logical, resource

    def properties(self, stack: str, logical: str) -> dict[str, Any]:
        """A resource's properties, resolved."""
        if (stack, logical) not in self._made:
            raw = self.templates[stack]["Resources"][logical].get("Properties", {})
            self._made[stack, logical] = self.value(stack, raw)
        return self._made[stack, logical]

    def value(self, stack: str, value: Any) -> Any:
        """What CloudFormation makes of a value of a stack's template.

        Raises:
            LookupError: it holds a function that is not known here; whoever needs it adds it.
        """
        if isinstance(value, list):
            return [self.value(stack, one) for one in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name == "Ref":
                return self.ref(stack, argument)
            if name.startswith("Fn::"):
                return self._function(stack, name, argument)
        return {
            key: made
            for key, one in value.items()
            if (made := self.value(stack, one)) != {"Ref": "AWS::NoValue"}
        }

    def ref(self, stack: str, name: str) -> Any:
        pseudo = {
            "AWS::AccountId": self.account,
            "AWS::Region": self.region,
            "AWS::Partition": self.partition,
            "AWS::URLSuffix": self.suffix,
            "AWS::StackName": stack,
            "AWS::StackId": f"arn:aws:cloudformation:{self.region}:{self.account}:stack/{stack}/0",
            "AWS::NoValue": {"Ref": "AWS::NoValue"},
        }
        if name in pseudo:
            return pseudo[name]
        template = self.templates[stack]
        if name in template.get("Parameters", {}):
            return template["Parameters"][name].get("Default", f"parameter-{name}")
        resource = template["Resources"][name]
        if resource["Type"] == "AWS::SecretsManager::SecretTargetAttachment":
            return self.properties(stack, name)["SecretId"]
        return self._written(stack, name, REFS.get(resource["Type"], "{name}"))

    def attribute(self, stack: str, logical: str, name: str) -> str:
        kind = self.templates[stack]["Resources"][logical]["Type"]
        known = ATTRIBUTES.get(kind, {})
        if name in known:
            return self._written(stack, logical, known[name])
        # the identity of EC2's resources, e.g. SubnetId
        if kind.startswith("AWS::EC2::") and name.endswith("Id") and kind in REFS:
            return self._written(stack, logical, REFS[kind])
        # no policy may be made of what is invented here: as an ARN it would match nothing
        return f"unresolved:{kind}.{name}:{_hex(stack, logical)}"

    @cached_property
    def exports(self) -> dict[str, tuple[str, Any]]:
        """Stack and value by the name of an export."""
        return {
            self.value(stack, output["Export"]["Name"]): (stack, output["Value"])
            for stack, template in self.templates.items()
            for output in template.get("Outputs", {}).values()
            if "Export" in output
        }

    def _function(self, stack: str, name: str, argument: Any) -> Any:
        match name:
            case "Fn::GetAtt":
                logical, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
                return self.attribute(stack, logical, self.value(stack, attribute))
            case "Fn::Join":
                return argument[0].join(str(one) for one in self.value(stack, argument[1]))
            case "Fn::Sub":
                return self._substituted(stack, argument)
            case "Fn::ImportValue":
                return self.value(*self.exports[self.value(stack, argument)])
            case "Fn::Select":
                return self.value(stack, argument[1])[int(self.value(stack, argument[0]))]
            case "Fn::Split":
                return self.value(stack, argument[1]).split(argument[0])
            case "Fn::Base64":
                return self.value(stack, argument)  # left readable: user data is looked through
            case "Fn::GetAZs":
                return [f"{self.region}{letter}" for letter in "abc"]
            case _:
                raise LookupError(f"{stack}: {name} is not resolved by tests/support/iam_proof/resolved.py")

    def _substituted(self, stack: str, argument: Any) -> str:
        text, given = (argument, {}) if isinstance(argument, str) else argument

        def one(match: re.Match[str]) -> str:
            name = match[1]
            if name in given:
                return str(self.value(stack, given[name]))
            return str(self.attribute(stack, *name.split(".", 1)) if "." in name else self.ref(stack, name))

        return re.sub(r"\$\{!", "${", re.sub(r"\$\{([^!}][^}]*)\}", one, text))

    def _name(self, stack: str, logical: str) -> str:
        """As CloudFormation invents it: policies name the beginning."""
        name = f"{stack}-{logical[:24]}-{_hex(stack, logical)[:8]}"
        return name.lower() if self.templates[stack]["Resources"][logical]["Type"] in LOWER else name

    def _written(self, stack: str, logical: str, form: str) -> str:
        raw = self.templates[stack]["Resources"][logical].get("Properties", {})
        given = next((raw[key] for key in NAMED_BY if key in raw), None)
        digits = _hex(stack, logical)

        def one(match: re.Match[str]) -> str:
            word, _, service = match[1].partition(":")
            match word:
                case "name":
                    return str(self.value(stack, given)) if given else self._name(stack, logical)
                case "path":
                    return raw.get("Path", "/")
                case "arn":
                    region = "" if service in GLOBAL else self.region
                    return f"arn:{self.partition}:{service}:{region}:{self.account}"
                case "issuer":
                    return str(self.value(stack, raw["Url"])).removeprefix("https://")
                case "url":
                    return f"https://{service}.{self.region}.{self.suffix}/{self.account}/"
                case "hex":
                    return digits[:17]
                case "HEX":
                    return digits[:17].upper()
                case "id":
                    return digits[:12]
                case "uuid":
                    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
                case _:
                    return str(getattr(self, word))

        return re.sub(r"\{([\w:]+)\}", one, form)


def _hex(stack: str, logical: str) -> str:
    return hashlib.sha256(f"{stack}/{logical}".encode()).hexdigest()
