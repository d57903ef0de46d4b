"""HyperPod with Slurm over EFA, and a Lustre file system, in a VPC that exists."""

from aws_cdk import App, CfnOutput, Environment, Stack
from aws_cdk import aws_ec2 as ec2

from ultracluster import EfaSecurityGroup, HyperPodSlurmCluster, LustreFileSystem, NodeGroup

app = App()
stack = Stack(app, "research", env=Environment(account="111122223333", region="us-east-2"))
vpc = ec2.Vpc.from_vpc_attributes(
    stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-east-2a"],
    private_subnet_ids=["subnet-0123456789abcdef0"], private_subnet_route_table_ids=["rtb-0123456789abcdef0"],
)  # fmt: skip
subnet = vpc.private_subnets[0]
nodes = EfaSecurityGroup(stack, "Nodes", vpc=vpc)
scratch = LustreFileSystem(stack, "Scratch", vpc=vpc, subnet=subnet, capacity_gib=38_400, efa=True)
head = NodeGroup(role="controller", instance_type="m5.xlarge", count=1)
train = NodeGroup(role="compute", instance_type="p5.48xlarge", count=16, partition="train")
cluster = HyperPodSlurmCluster(
    stack, "Cluster", vpc=vpc, subnet=subnet, security_groups=[nodes],
    lustre=scratch, node_groups={"head": head, "train": train},
)  # fmt: skip
CfnOutput(stack, "ClusterArn", value=cluster.cluster_arn)
app.synth()
