# shellcheck shell=bash
# Libraries: contract files packages software
# The NCCL plugin for EFA (aws-ofi-nccl). The EFA installer brings one; where that is older than the release, the release's
# own is built beside it, and the loader finds it first.

readonly OFI_NCCL_PROFILE=/etc/profile.d/zz-ultracluster-nccl.sh
readonly OFI_NCCL_LOADER=/etc/ld.so.conf.d/099-ultracluster-ofi-nccl.conf # before the image's 100_ofinccl.conf

ofi_nccl::detect() {
  software::for aws-ofi-nccl compute
  ((NODE_EFA_INTERFACES > 0)) || step::not_applicable "no EFA interfaces"
  ofi_nccl::find
  software::settle aws-ofi-nccl "$VERSION"
  ofi_nccl::is_known || step::absent "the loader does not know $LIBRARY"
  ofi_nccl::wins || step::absent "LD_LIBRARY_PATH of $(ofi_nccl::shadows) leads to another plugin than $LIBRARY"
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

# Files that put a plugin of the image into LD_LIBRARY_PATH, which goes before the loader's configuration: the image's plugin
# would be loaded, and nothing would say so.
ofi_nccl::shadows() {
  local file
  for file in "$ULTRACLUSTER_ROOT"/etc/environment "$ULTRACLUSTER_ROOT"/etc/profile.d/*.sh; do
    [[ ! -e $file || $file == *"$OFI_NCCL_PROFILE" ]] || ! grep -Eqs 'LD_LIBRARY_PATH.*ofi-nccl' "$file" || printf '%s ' "${file#"$ULTRACLUSTER_ROOT"}"
  done
}

# Does our own build go before those, in login shells and so in the jobs that they submit?
ofi_nccl::wins() {
  [[ $LIBRARY != /opt/ultracluster/* || -z $(ofi_nccl::shadows) ]] || cmp --silent <(ofi_nccl::profile) "$ULTRACLUSTER_ROOT$OFI_NCCL_PROFILE"
}

# Read after the image's, which are named after what they are for
ofi_nccl::profile() {
  cat <<EOT
# shellcheck shell=sh
# Ultracluster: the image has an older NCCL plugin in LD_LIBRARY_PATH, where the loader's configuration does not count.
case "\${LD_LIBRARY_PATH:-}" in
  "" | $(ofi_nccl::own)/lib:*) ;;
  *) export LD_LIBRARY_PATH="$(ofi_nccl::own)/lib:\$LD_LIBRARY_PATH" ;;
esac
EOT
}

# An EFA installer that is still to come may bring it: what that lacks is downloaded when it is known.
ofi_nccl::needs() {
  ofi_nccl::find
  [[ ${RELEASE['aws-ofi-nccl.kind']} != bundled || -n $LIBRARY ]] || return 0
  ofi_nccl::is_here || echo aws-ofi-nccl
}

# Is there nothing to build?
ofi_nccl::is_here() {
  contract::fits aws-ofi-nccl "$VERSION" && ofi_nccl::is_known
}

ofi_nccl::install() {
  ofi_nccl::find
  ofi_nccl::is_here || { ofi_nccl::build && ofi_nccl::find; }
  ofi_nccl::wins || ofi_nccl::profile | files::write "$OFI_NCCL_PROFILE"
  software::clean aws-ofi-nccl
}

ofi_nccl::build() {
  local -r own=$(ofi_nccl::own)
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
}

# GIN through GDRCopy is only in a plugin that was built with its header. Where compilers look anyway, configure finds it.
ofi_nccl::gdrcopy() {
  local folder
  for folder in "/opt/ultracluster/gdrcopy-${RELEASE['gdrcopy.version']:-none}" /opt/gdrcopy; do
    [[ ! -e $ULTRACLUSTER_ROOT$folder/include/gdrapi.h ]] || { printf -- '--with-gdrcopy=%s' "$ULTRACLUSTER_ROOT$folder" && return; }
  done
}

# The first that the loader knows is the one that NCCL gets.
ofi_nccl::is_first() {
  local first
  [[ $LIBRARY == /opt/ultracluster/* ]] || return 0
  first=$(ldconfig -p 2>/dev/null | awk -v name="${LIBRARY##*/}" '$1 == name && !found { found = $NF } END { print found }')
  [[ -z $first || $first == "$LIBRARY" ]]
}

ofi_nccl::verify() {
  ofi_nccl::find
  if [[ -n $LIBRARY ]]; then
    software::readable "$LIBRARY" || step::fail "users cannot read $LIBRARY, NCCL would fall back to TCP: see the modes of its folders"
    ofi_nccl::is_known || step::fail "the loader does not know $LIBRARY"
    ofi_nccl::wins || step::fail "LD_LIBRARY_PATH of $(ofi_nccl::shadows) leads to another plugin than $LIBRARY"
    ofi_nccl::is_first || step::fail "the loader finds another NCCL plugin before $LIBRARY: see /etc/ld.so.conf.d"
  fi
  software::proven aws-ofi-nccl "$VERSION" "$LIBRARY"
}
