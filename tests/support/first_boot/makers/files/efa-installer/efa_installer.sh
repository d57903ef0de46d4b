#!/usr/bin/env bash
# -y [--minimal | --mpi=openmpi4|openmpi5|all]
set -euo pipefail
minimal='' yes=''
for option in "$@"; do
  case $option in
    -y) yes=yes ;;
    --minimal) minimal=yes ;;
    --mpi=openmpi4 | --mpi=openmpi5 | --mpi=all) ;;
    *) echo "invalid option: $option" >&2 && exit 1 ;;
  esac
done
[[ -n $yes ]] || { echo "nobody answers whether to go on" >&2 && exit 1; }
amazon=$ULTRACLUSTER_ROOT/opt/amazon
echo @EFA_MODULE@ >"$FAKE/modules/efa"
mkdir -p "$ULTRACLUSTER_ROOT/sys/class/infiniband"
[[ ! -e $FAKE/infiniband ]] || mv "$FAKE"/infiniband/* "$ULTRACLUSTER_ROOT/sys/class/infiniband"
[[ -z $minimal ]] || exit 0
plugin=$ULTRACLUSTER_ROOT/@PLUGIN_PATH@ libfabric=$ULTRACLUSTER_ROOT/@LIBFABRIC_PATH@
mkdir -p "$amazon"/{efa/include/rdma,efa/bin,openmpi/include} "${plugin%/*}" "${libfabric%/*}"
touch "$amazon/efa/include/rdma/fabric.h" "$amazon/openmpi/include/mpi.h" "$libfabric"
cp fi_info "$amazon/efa/bin/fi_info"
chmod +x "$amazon/efa/bin/fi_info"
echo @LIBFABRIC@ >"$amazon/efa/bin/fi_info.version"
printf '\0NET/OFI Initializing aws-ofi-nccl @PLUGIN@\0' >"$plugin"
printf '# EFA installer version: @VERSION@\n' >"$amazon/efa_installed_packages"
