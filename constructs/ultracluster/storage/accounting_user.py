"""slurmdbd's own user in the accounting database, made by two functions when the database is made.

The master user's password stays with one function outside of the VPC, which hands it to one inside that
reaches the database and nothing else: no node reads it, and the database's subnets need no way out.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

from aws_cdk import CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IDependable

from ultracluster.network.admission import isolated_group
from ultracluster.security.acknowledgements import acknowledge
from ultracluster.security.cluster_key import allow_use
from ultracluster.security.deletion_protection import ANSWER
from ultracluster.security.principals import trusted

WAIT_S = 300
"""How long the function in the VPC tries: some minutes after it was made a database may still restart."""
REVISION = 1
"""Of what the functions do in the database: raise it where they have to run again at the next deploy."""
_FUNCTIONS = Path(__file__).parent / "database_user"
_INTERFACES = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
]


class AccountingUser(Construct):
    """A user with all rights on one schema of a MySQL instance; it is kept when the construct goes.

    Attributes:
        security_group: of the function in the VPC: the database has to admit it.
        function_name: of the one that a person runs after a password was changed.
        resource: the custom resource that makes the user.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        host: str,
        port: int,
        schema: str,
        require_tls: bool,
        master: secretsmanager.ISecret,
        user: secretsmanager.ISecret,
        key: kms.IKey,
    ) -> None:
        """Make the functions, and the user.

        Args:
            vpc: of the database.
            subnets: of the function in the VPC; they need no route out of it.
            host: of the database; the functions read it from the master's secret, and wait for no database.
            port: of the database.
            schema: on which the user has all rights.
            require_tls: the user must log in over TLS.
            master: `username` and `password` of a user that may make others, `host` and `port`.
            user: those of the user that is made.
            key: encrypts the logs.
        """
        super().__init__(scope, construct_id)
        allow_use(self, key, "logs")
        group = isolated_group(
            self, "Group", vpc_id=vpc.vpc_id, description="Makes the user of slurmdbd in the database"
        )
        self.security_group = ec2.SecurityGroup.from_security_group_id(
            self, "SecurityGroup", group.attr_group_id, mutable=False
        )
        writer_logs, broker_logs = (_log_group(self, name, key) for name in ("WriterLogs", "BrokerLogs"))
        inside = self._writer(vpc, subnets, writer_logs)
        outside = self._broker(
            inside,
            broker_logs,
            {
                "SCHEMA": schema,
                "REQUIRE_TLS": "yes" if require_tls else "no",
                "MASTER_SECRET": master.secret_arn,
                "USER_SECRET": user.secret_arn,
                "WRITER": inside.function_name,
                "WAIT_S": str(WAIT_S),
            },
            secrets=(master, user),
        )
        self.function_name = outside.function_name
        # the properties only say when to run again; the function does not read them
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::AccountingUser",
            service_token=outside.function_arn,
            service_timeout=Duration.minutes(15),
            properties={
                "Host": host,
                "Port": port,
                "Schema": schema,
                "RequireTls": require_tls,
                "Secret": user.secret_arn,
                "Revision": REVISION,
            },
        )

    def wait_for(self, *dependencies: IDependable) -> None:
        """Make the user only after these."""
        self.resource.node.add_dependency(*dependencies)

    def _writer(
        self, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet], log_group: logs.ILogGroup
    ) -> lambda_.Function:
        role = _role(self, "WriterRole", "Makes the user of slurmdbd, inside of the VPC", log_group)
        role.add_to_policy(iam.PolicyStatement(sid="RunInVpc", actions=_INTERFACES, resources=["*"]))
        # Lambda makes the interfaces, the code never does; only a call of the code names a function (Lambda
        # Developer Guide, "Giving Lambda functions access to resources in an Amazon VPC")
        role.add_to_policy(
            iam.PolicyStatement(
                sid="NotFromCode",
                effect=iam.Effect.DENY,
                actions=[*_INTERFACES, "ec2:DetachNetworkInterface"],
                resources=["*"],
                conditions={"Null": {"lambda:SourceFunctionArn": "false"}},
            )
        )
        acknowledge(
            role,
            {
                "AwsSolutions-IAM5[Resource::*]": "Lambda asks for calls about interfaces on all resources "
                "to attach the function (Lambda Developer Guide); the function's code is refused them."
            },
        )
        with tempfile.TemporaryDirectory() as folder:  # the CDK copies it at once
            write_code(Path(folder))
            function = lambda_.Function(
                self,
                "Writer",
                runtime=lambda_.Runtime.PYTHON_3_14,
                handler="writer.handler",
                code=lambda_.Code.from_asset(folder),
                description="Makes the user of slurmdbd in the accounting database",
                role=role.without_policy_updates(),
                vpc=vpc,
                vpc_subnets=ec2.SubnetSelection(subnets=list(subnets)),
                security_groups=[self.security_group],
                timeout=Duration.seconds(WAIT_S),
                memory_size=256,
                log_group=log_group,
            )
        function.node.add_dependency(role)
        return function

    def _broker(
        self,
        inside: lambda_.Function,
        log_group: logs.ILogGroup,
        environment: dict[str, str],
        *,
        secrets: Sequence[secretsmanager.ISecret],
    ) -> lambda_.Function:
        role = _role(self, "BrokerRole", "Hands over what makes the user of slurmdbd", log_group)
        stack = Stack.of(self)
        statements = [
            iam.PolicyStatement(
                sid="ReadSecrets",
                actions=["secretsmanager:GetSecretValue"],
                resources=[read_secret.secret_arn for read_secret in secrets],
            ),
            iam.PolicyStatement(
                sid="MakeUser", actions=["lambda:InvokeFunction"], resources=[inside.function_arn]
            ),
        ]
        if keys := [secret.encryption_key.key_arn for secret in secrets if secret.encryption_key]:
            via = {"kms:ViaService": f"secretsmanager.{stack.region}.{stack.url_suffix}"}
            statements.append(
                iam.PolicyStatement(
                    sid="DecryptSecrets",
                    actions=["kms:Decrypt"],
                    resources=list(dict.fromkeys(keys)),
                    conditions={"StringEquals": via},
                )
            )
        for statement in statements:
            role.add_to_policy(statement)
        with tempfile.TemporaryDirectory() as folder:
            for code in (_FUNCTIONS / "broker.py", ANSWER):
                shutil.copyfile(code, Path(folder) / code.name)
            function = lambda_.Function(
                self,
                "Broker",
                runtime=lambda_.Runtime.PYTHON_3_14,
                handler="broker.handler",
                code=lambda_.Code.from_asset(folder),
                description="Hands over what makes the user of slurmdbd; run it after a password was changed",
                role=role.without_policy_updates(),
                timeout=Duration.minutes(10),
                memory_size=256,
                log_group=log_group,
                environment=environment,
            )
        function.node.add_dependency(role)
        return function


def _role(scope: Construct, construct_id: str, description: str, log_group: logs.ILogGroup) -> iam.Role:
    role = iam.Role(
        scope, construct_id, assumed_by=trusted(scope, "lambda.amazonaws.com"), description=description
    )
    role.add_to_policy(
        iam.PolicyStatement(
            sid="WriteLogs",
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[log_group.log_group_arn],
        )
    )
    return role


def _log_group(scope: Construct, construct_id: str, key: kms.IKey) -> logs.LogGroup:
    return logs.LogGroup(
        scope,
        construct_id,
        encryption_key=key,
        retention=logs.RetentionDays.THREE_MONTHS,
        removal_policy=RemovalPolicy.DESTROY,
    )


def write_code(folder: Path) -> None:
    """Write what the function in the VPC consists of: its module, and PyMySQL as it is installed.

    Nothing is fetched or built at synth, and the same release of PyMySQL gives the same hash everywhere.
    """
    shutil.copyfile(_FUNCTIONS / "writer.py", folder / "writer.py")
    installed = distribution("PyMySQL")
    for file in installed.files or ():
        licence = "licenses" in file.parts or file.name.startswith("LICENSE")
        if file.suffix != ".py" and not licence:
            continue  # what installers write beside: records, byte code
        target = folder / "pymysql" / file.name if licence else folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(installed.locate_file(file)), target)
