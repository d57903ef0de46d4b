"""Amazon EKS in a VPC of its own."""

from aws_cdk import Annotations, App, Environment, Stack
from aws_cdk import aws_ec2 as ec2

from ultracluster import EksCluster, NodeGroup

app = App()
stack = Stack(app, "research", env=Environment(account="111122223333", region="us-east-2"))
vpc = ec2.Vpc(stack, "Vpc", flow_logs={"Flow": ec2.FlowLogOptions()})
system = NodeGroup(role="system", instance_type="m5.xlarge", count=2)
train = NodeGroup(role="compute", instance_type="p5.48xlarge", count=2)
cluster = EksCluster(
    stack, "Cluster", vpc=vpc, subnet=vpc.private_subnets[0], node_groups={"system": system, "train": train},
    admins=["arn:aws:iam::111122223333:role/researchers"],
)  # fmt: skip
Annotations.of(cluster).acknowledge_warning("ultracluster:IMG007", "New nodes boot EKS's newest image.")
app.synth()
