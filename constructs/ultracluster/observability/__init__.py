"""What watches a cluster: metrics, dashboards, alarms, and the add-ons that collect them.

What belongs here: constructs that send measurements of nodes, jobs, file systems and fabric somewhere
(CloudWatch, Amazon Managed Service for Prometheus, Grafana), and those that raise alarms from them. What does
not: logs of one resource, which are made with it (`clusters.eks.logs`, `network.cluster_egress`), and checks
that run on nodes (`lifecycle_scripts/health`).

The room lies below `lifecycle` and `clusters`: a construct here takes names and ARNs of what it watches, and
never a cluster. What an environment requests of it belongs in `config`, its stack in `stacks`.
"""
