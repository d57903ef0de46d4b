# shellcheck shell=bash
# Libraries: software
# The programs of nccl-tests, which the acceptance job runs. Those that an image brings do as well.

nccl_tests::detect() {
  local path
  software::for nccl-tests compute
  path=$(nccl_tests::path)
  [[ -n $path ]] || step::absent "no all_reduce_perf"
  step::present "$path"
}

nccl_tests::own() {
  printf '/opt/ultracluster/nccl-tests-%s' "${RELEASE['nccl-tests.version']}"
}

nccl_tests::path() {
  local file
  for file in "$ULTRACLUSTER_ROOT$(nccl_tests::own)"/all_reduce_perf "$ULTRACLUSTER_ROOT"/opt/nccl-tests/build/all_reduce_perf \
    "$ULTRACLUSTER_ROOT"/usr/local/cuda*/efa/test-cuda-*/all_reduce_perf; do
    [[ ! -x $file ]] || { echo "${file#"$ULTRACLUSTER_ROOT"}" && return; }
  done
}

nccl_tests::needs() { echo nccl-tests; }

nccl_tests::install() {
  local -r root=$ULTRACLUSTER_ROOT
  local own
  own=$(nccl_tests::own)
  software::needs make g++
  [[ -x $root/usr/local/cuda/bin/nvcc ]] || step::fail "nccl-tests is built with /usr/local/cuda/bin/nvcc, and there is none"
  software::unpack nccl-tests
  cd "$UNPACKED" || exit
  make --jobs "$(getconf _NPROCESSORS_ONLN)" MPI=1 MPI_HOME="$root/opt/amazon/openmpi" CUDA_HOME="$root/usr/local/cuda" BUILDDIR="$UNPACKED/staged" ||
    step::fail "nccl-tests cannot be built here: see the lines of make above"
  cd /
  software::publish "$UNPACKED/staged" "$own"
  software::clean nccl-tests
}

nccl_tests::verify() {
  local path
  path=$(nccl_tests::path)
  [[ -n $path ]] || step::fail "there is no all_reduce_perf after the set-up"
  [[ $path != /opt/ultracluster/* ]] || step::version "${RELEASE['nccl-tests.version']}"
  step::message "$path"
}
