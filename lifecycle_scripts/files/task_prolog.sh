#!/bin/bash
# Ultracluster: the same as /etc/profile.d/ultracluster.sh, for tasks that no login shell starts. Slurm takes what is printed.
[[ -n ${NCCL_SOCKET_IFNAME:-} ]] || echo "export NCCL_SOCKET_IFNAME=^docker,lo,veth"
