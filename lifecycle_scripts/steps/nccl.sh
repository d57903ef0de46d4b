# shellcheck shell=bash
# Libraries: packages software
# NCCL for programs that do not bring their own, as the wheels of frameworks do.

nccl::detect() {
  software::for nccl compute
  software::settle nccl "$(nccl::version)"
  step::present "NCCL $(nccl::version)"
}

# HyperPod's images have one per CUDA folder, others the package.
nccl::version() {
  local file package
  package=$(packages::version libnccl2 libnccl)
  {
    [[ -z $package ]] || echo "${package%%-*}"
    for file in "$ULTRACLUSTER_ROOT"/usr/local/cuda*/lib*/libnccl.so.2.*.* "$ULTRACLUSTER_ROOT"/usr/lib*/{,*-linux-gnu/}libnccl.so.2.*.*; do
      [[ ! -e $file ]] || echo "${file##*libnccl.so.}"
    done
  } | software::newest
}

nccl::needs() { software::lacking nccl "$(nccl::version)"; }

nccl::install() {
  software::install nccl
  software::clean nccl
}

nccl::verify() {
  software::proven nccl "$(nccl::version)" "libnccl.so.2"
}
