"""VPC, subnets, endpoints and the EFA security group."""
