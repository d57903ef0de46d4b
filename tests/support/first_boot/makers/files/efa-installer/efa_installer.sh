#!/usr/bin/env bash
set -euo pipefail
amazon=$ULTRACLUSTER_ROOT/opt/amazon
mkdir -p "$amazon/efa/include/rdma" "$amazon/efa/bin" "$amazon/efa/lib" "$amazon/ofi-nccl/lib"
echo 3.3.0 >"$FAKE/modules/efa"
[[ $* != *--minimal* ]] || exit 0
touch "$amazon/efa/include/rdma/fabric.h" "$amazon/efa/lib/libfabric.so.1"
cp fi_info "$amazon/efa/bin/fi_info"
chmod +x "$amazon/efa/bin/fi_info"
echo 2.6.0amzn1.0 >"$amazon/efa/bin/fi_info.version"
printf '\0NET/OFI Initializing aws-ofi-nccl 1.21.1\0' >"$amazon/ofi-nccl/lib/libnccl-net-ofi.so"
printf '# EFA installer version: @VERSION@\n' >"$amazon/efa_installed_packages"
