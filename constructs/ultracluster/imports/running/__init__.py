"""Clusters that run, made by whatever tool: what AWS says of them, for `ultracluster import --cluster`."""
