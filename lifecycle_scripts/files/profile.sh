# shellcheck shell=sh
# Ultracluster. The NCCL plugin sets what it needs for each instance type by itself, and what guides once asked for
# (FI_PROVIDER, NCCL_PROTO, NCCL_BUFFSIZE, NCCL_NET_GDR_LEVEL and others) is useless or harmful today. What still helps:
# the bootstrap over TCP must not pick a bridge of containers. Interfaces that only do EFA have no address.
export NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-^docker,lo,veth}"
