"""SageMaker HyperPod, with Slurm and on EKS."""
