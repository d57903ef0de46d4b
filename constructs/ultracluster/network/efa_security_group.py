"""The security group of EFA nodes (EC2 User Guide, "Get started with EFA and MPI", step 1)."""

from __future__ import annotations

import jsii
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.network.admission import NOWHERE

WEB_PORTS = (80, 443)
BETWEEN_NODES = "EFA and everything else between nodes"


@jsii.implements(ec2.IConnectable)
class EfaSecurityGroup(Construct):
    """All traffic in from, and out to, the group itself; out to the web for package mirrors and AWS APIs.

    Both self rules are resources of their own, because the CDK drops the self-referencing egress rule
    of a group that allows all outbound traffic, and EFA then does not come up. Nothing else may come in.

    Attributes:
        security_group: the group, made here or given.
        self_ingress: the rule that lets members in; what needs it must depend on it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        web_ports: tuple[int, ...] = WEB_PORTS,
    ) -> None:
        """Make the group.

        Args:
            vpc: the VPC of the nodes.
            web_ports: TCP ports open to any IPv4 address, outbound. Without an internet route only S3 and the
                VPC's endpoints answer there. There is no rule for all traffic to 0.0.0.0/0: HyperPod's
                prerequisites warn that it may fail the EFA health checks.
        """
        super().__init__(scope, construct_id)
        group = ec2.CfnSecurityGroup(
            self,
            "Resource",
            group_description="EFA nodes: all traffic within the group",
            vpc_id=vpc.vpc_id,
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    ip_protocol="tcp", from_port=port, to_port=port, cidr_ip="0.0.0.0/0",
                    description="Package mirrors and AWS APIs",
                )
                for port in web_ports
            ]
            # an empty list makes EC2 add its default rule, all traffic to 0.0.0.0/0
            or [NOWHERE],
        )  # fmt: skip
        self.security_group = ec2.SecurityGroup.from_security_group_id(
            self, "Group", group.attr_group_id, allow_all_outbound=False
        )
        self.self_ingress = ec2.CfnSecurityGroupIngress(
            self, "SelfIngress", group_id=group.attr_group_id, ip_protocol="-1",
            source_security_group_id=group.attr_group_id, description=BETWEEN_NODES,
        )  # fmt: skip
        self.self_egress = ec2.CfnSecurityGroupEgress(
            self, "SelfEgress", group_id=group.attr_group_id, ip_protocol="-1",
            destination_security_group_id=group.attr_group_id, description=BETWEEN_NODES,
        )  # fmt: skip
        self._connections = ec2.Connections(security_groups=[self.security_group])

    @property
    def connections(self) -> ec2.Connections:
        return self._connections
