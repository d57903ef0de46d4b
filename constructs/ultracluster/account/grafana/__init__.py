"""What CloudFormation cannot put into Amazon Managed Grafana: data sources, boards, administrators."""
