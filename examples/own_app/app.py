"""A Lustre file system over EFA in another team's own app and VPC."""

from aws_cdk import App, Stack
from aws_cdk import aws_ec2 as ec2

from ultracluster import EfaSecurityGroup, LustreFileSystem

app = App()
stack = Stack(app, "research")
vpc = ec2.Vpc(stack, "Vpc", max_azs=1, flow_logs={"Flow": ec2.FlowLogOptions()})

nodes = EfaSecurityGroup(stack, "Nodes", vpc=vpc)
scratch = LustreFileSystem(
    stack, "Scratch", vpc=vpc, subnet=vpc.private_subnets[0], capacity_gib=38_400, efa=True
)
scratch.connections.allow_default_port_from(nodes)
app.synth()
