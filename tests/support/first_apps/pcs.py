"""AWS PCS as a CDK author writes it first: sizes by the CDK's classes, constructs as they are."""

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2

from ultracluster import EfaSecurityGroup, NodeGroup, PcsCluster

IMAGE = "/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id"

app = App()
stack = Stack(app, "research", env=Environment(account="111122223333", region="us-east-2"))
vpc = ec2.Vpc(stack, "Vpc", flow_logs={"Flow": ec2.FlowLogOptions()})
nodes = EfaSecurityGroup(stack, "Nodes", vpc=vpc)
small = ec2.InstanceType.of(ec2.InstanceClass.M5, ec2.InstanceSize.XLARGE)
cluster = PcsCluster(
    stack,
    "Cluster",
    vpc=vpc,
    subnet=vpc.private_subnets[0],
    security_groups=[nodes],
    node_groups={
        "login": NodeGroup(role="login", instance_type=small, count=1, image=IMAGE),
        "train": NodeGroup(
            role="compute",
            instance_type=ec2.InstanceType("p5.48xlarge"),
            count=2,
            image=IMAGE,
            partition="train",
        ),
    },
)
assert cluster.security_groups == [nodes.security_group]
app.synth()
