"""A Lustre file system over EFA in another team's own app and VPC."""

from aws_cdk import App, Stack
from aws_cdk import aws_ec2 as ec2

from ultracluster import ClusterKey, EfaSecurityGroup, LustreFileSystem
from ultracluster.config.storage import Persistent2SsdLustre

app = App()
stack = Stack(app, "research")
vpc = ec2.Vpc(stack, "Vpc", max_azs=1)

nodes = EfaSecurityGroup(stack, "Nodes", vpc=vpc)
scratch = LustreFileSystem(
    stack,
    "Scratch",
    vpc=vpc,
    subnet=vpc.private_subnets[0],
    key=ClusterKey(stack, "Key").key,
    config=Persistent2SsdLustre(
        deployment="persistent-2-ssd", capacity_gib=38_400, throughput_mbps_per_tib=125, efa=True
    ),
)
scratch.admit(stack, "NodesMount", clients=nodes.security_group.security_group_id)
app.synth()
