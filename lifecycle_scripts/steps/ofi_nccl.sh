# shellcheck shell=bash
# The NCCL plugin for EFA (aws-ofi-nccl). The EFA installer brings one; where that is older than the release, the release's
# own is built beside it, and the loader finds it first.

readonly OFI_NCCL_LOADER=/etc/ld.so.conf.d/099-ultracluster-ofi-nccl.conf # before the image's 100_ofinccl.conf

ofi_nccl::detect() {
  software::for aws-ofi-nccl compute
  ((NODE_EFA_INTERFACES > 0)) || step::not_applicable "no EFA interfaces"
  ofi_nccl::find
  software::settle aws-ofi-nccl "$VERSION"
  ofi_nccl::is_known || step::absent "the loader does not know $LIBRARY"
  step::present "plugin $VERSION"
}

# Where our own build goes
ofi_nccl::own() {
  printf '/opt/ultracluster/aws-ofi-nccl-%s' "${RELEASE['aws-ofi-nccl.version']}"
}

# Sets VERSION and LIBRARY. Paths and names changed with EFA installer 1.44.0; the library carries its version.
ofi_nccl::find() {
  local path
  VERSION='' LIBRARY=''
  for path in "$(ofi_nccl::own)"/lib/libnccl-net-ofi.so \
    /opt/amazon/ofi-nccl/lib{,64}/libnccl-net-ofi.so \
    /opt/amazon/ofi-nccl/lib/{x86_64,aarch64}-linux-gnu/libnccl-net.so \
    /opt/aws-ofi-nccl/{lib,install/lib}/libnccl-net.so; do
    [[ -e $ULTRACLUSTER_ROOT$path ]] || continue
    LIBRARY=$path
    VERSION=$({ grep --text --only-matching --max-count 1 'Initializing aws-ofi-nccl [0-9][0-9.]*' "$ULTRACLUSTER_ROOT$path" || true; } |
      head -n 1 | sed 's/.* //')
    break
  done
  [[ -n $LIBRARY ]] || return 0
  # A build from git has no number in it, the package has.
  [[ -n $VERSION ]] || VERSION=$(packages::version libnccl-ofi)
  VERSION=${VERSION:-$CONTRACT_UNKNOWN}
}

# Our own build is of no use until the loader knows it.
ofi_nccl::is_known() {
  [[ $LIBRARY != /opt/ultracluster/* ]] || { software::loader_knows "${LIBRARY%/*}" && software::readable "$LIBRARY"; }
}

# The EFA installer may still bring it.
ofi_nccl::fetch() {
  release::facts
  ofi_nccl::find
  [[ ${RELEASE['aws-ofi-nccl.kind']} == bundled && -z $LIBRARY ]] || software::fetch aws-ofi-nccl
}

ofi_nccl::install() {
  local own
  release::facts
  own=$(ofi_nccl::own)
  software::require aws-ofi-nccl
  [[ -e $ULTRACLUSTER_ROOT/opt/amazon/efa/include/rdma/fabric.h ]] ||
    step::fail "the plugin is built against the libfabric of EFA, and /opt/amazon/efa has none"
  [[ -e $ULTRACLUSTER_ROOT/usr/local/cuda/include/cuda.h ]] || step::fail "the plugin is built with /usr/local/cuda, and there is none"
  software::needs make g++
  software::unpack aws-ofi-nccl
  cd "$UNPACKED" || exit
  # NCCL itself is not needed; hwloc and a compiler for C++20 are. Its tests take a third of the build, and would want MPI.
  # shellcheck disable=SC2046 # one option or none, without spaces
  ./configure --prefix="$own" --with-libfabric="$ULTRACLUSTER_ROOT/opt/amazon/efa" --with-cuda="$ULTRACLUSTER_ROOT/usr/local/cuda" \
    $(ofi_nccl::gdrcopy) --enable-platform-aws --disable-tests || step::fail "the plugin cannot be built here: see the lines of its configure above"
  make --jobs "$(getconf _NPROCESSORS_ONLN)"
  make install DESTDIR="$UNPACKED/staged"
  cd /
  software::publish "$UNPACKED/staged$own" "$own"
  files::write "$OFI_NCCL_LOADER" <<<"$own/lib"
  ldconfig
  software::clean aws-ofi-nccl
}

# GIN through GDRCopy is only in a plugin that was built with its header. Where compilers look anyway, configure finds it.
ofi_nccl::gdrcopy() {
  local folder
  for folder in "/opt/ultracluster/gdrcopy-${RELEASE['gdrcopy.version']:-none}" /opt/gdrcopy; do
    [[ ! -e $ULTRACLUSTER_ROOT$folder/include/gdrapi.h ]] || { printf -- '--with-gdrcopy=%s' "$ULTRACLUSTER_ROOT$folder" && return; }
  done
}

ofi_nccl::verify() {
  release::facts
  ofi_nccl::find
  if [[ -n $LIBRARY ]]; then
    software::readable "$LIBRARY" || step::fail "users cannot read $LIBRARY, NCCL would fall back to TCP: see the modes of its folders"
    ofi_nccl::is_known || step::fail "the loader does not know $LIBRARY"
  fi
  software::proven aws-ofi-nccl "$VERSION" "$LIBRARY"
}
