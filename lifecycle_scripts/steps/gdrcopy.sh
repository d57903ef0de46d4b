# shellcheck shell=bash
# Libraries: contract files packages software version
# GDRCopy: libgdrapi, and the kernel module gdrdrv through DKMS. From 2.6 on and with a driver of CUDA 13.3 or newer the
# library can do without the module: there its absence is a warning. On Kubernetes the module is all that a node needs.

readonly GDRCOPY_LOADER=/etc/ld.so.conf.d/099-ultracluster-gdrcopy.conf

gdrcopy::detect() {
  software::for gdrcopy compute
  if gdrcopy::only_module; then
    [[ -n $(software::module gdrdrv) ]] || ! gdrcopy::works_without_module || step::not_applicable "the library of containers needs no module with this driver"
    software::settle gdrcopy "$(gdrcopy::module_version)"
    gdrcopy::is_loaded || step::absent "gdrdrv is not loaded"
    step::present "gdrdrv $(software::module gdrdrv)"
  fi
  software::settle gdrcopy "$(gdrcopy::version)"
  gdrcopy::is_known || step::absent "the loader does not know $(gdrcopy::path)"
  gdrcopy::has_module || step::absent "no gdrdrv module for this kernel"
  gdrcopy::is_loaded || step::absent "gdrdrv is not loaded"
  step::present "GDRCopy $(gdrcopy::version)"
}

# Containers bring the library; a module they cannot.
gdrcopy::only_module() {
  [[ $NODE_FAMILY == eks-al2023 || $NODE_FAMILY == hyperpod-eks ]]
}

# 2.5.1 calls its module 2.5
gdrcopy::module_version() {
  local -r preferred=${RELEASE['gdrcopy.version']}
  local version
  version=$(software::module gdrdrv)
  if [[ -n $version && $preferred == "$version".* ]]; then echo "$preferred"; else echo "$version"; fi
}

gdrcopy::is_known() {
  local -r path=$(gdrcopy::path)
  [[ $path != /opt/ultracluster/* ]] || { software::loader_knows "${path%/*}" && software::readable "$path"; }
}

gdrcopy::has_module() {
  [[ -n $(software::module gdrdrv) ]] || gdrcopy::works_without_module
}

gdrcopy::is_loaded() {
  [[ -n ${NODE_BAKE:-} || -z $(software::module gdrdrv) || -e $ULTRACLUSTER_ROOT/sys/module/gdrdrv ]]
}

gdrcopy::own() {
  printf '/opt/ultracluster/gdrcopy-%s' "${RELEASE['gdrcopy.version']}"
}

# Of the newest libgdrapi.so.2.6; older images have theirs in /opt/gdrcopy.
gdrcopy::path() {
  local file newest='' path=''
  for file in "$ULTRACLUSTER_ROOT$(gdrcopy::own)"/lib/libgdrapi.so.*.* "$ULTRACLUSTER_ROOT"/usr/lib*/{,*-linux-gnu/}libgdrapi.so.*.* \
    "$ULTRACLUSTER_ROOT"/{usr/local,opt/gdrcopy}/lib*/libgdrapi.so.*.*; do
    [[ -e $file ]] || continue
    VERSION_ORDER=newer
    [[ -z $newest ]] || version::compare "${file##*.so.}" "$newest"
    [[ $VERSION_ORDER == newer ]] || continue
    newest=${file##*.so.} path=${file#"$ULTRACLUSTER_ROOT"}
  done
  printf '%s' "$path"
}

# 2.5.1 calls its library and its module 2.5. The rest is known of our own build, and of a package; where nothing tells it,
# the release is believed.
gdrcopy::version() {
  local -r path=$(gdrcopy::path) wanted=${RELEASE['gdrcopy.version']}
  local version=${path##*.so.} package
  [[ -n $path ]] || return 0
  if [[ $path == "$(gdrcopy::own)"/* ]]; then
    version=$wanted
  else
    package=$(packages::version libgdrapi gdrcopy)
    [[ $package != "$version"[.-]* ]] || version=$package
    [[ $wanted != "$version".* ]] || version=$wanted
  fi
  printf '%s' "$version"
}

# Older than that, and a missing module is a failure.
gdrcopy::works_without_module() {
  local cuda
  version::compare "${RELEASE['gdrcopy.version']}" 2.6
  [[ $VERSION_ORDER != older ]] || return 1
  # The first line that names a version: "CUDA Version: 13.3", newer ones "CUDA UMD Version: 13.3".
  cuda=$({ timeout 60 "$ULTRACLUSTER_ROOT/usr/bin/nvidia-smi" 2>/dev/null || true; } | sed -n 's/.*CUDA[A-Z ]* Version *: *\([0-9.]*\).*/\1/p')
  [[ -n $cuda ]] || return 1
  version::compare "${cuda%%$'\n'*}" 13.3
  [[ $VERSION_ORDER != older ]]
}

gdrcopy::needs() {
  if gdrcopy::only_module; then
    software::lacking gdrcopy "$(gdrcopy::module_version)"
  else
    gdrcopy::is_here || echo gdrcopy
  fi
}

gdrcopy::install() {
  if gdrcopy::only_module; then
    if ! contract::fits gdrcopy "$(gdrcopy::module_version)"; then
      software::unpack gdrcopy
      gdrcopy::module
    fi
  elif ! gdrcopy::is_here; then
    if [[ ${RELEASE['gdrcopy.kind']} == source ]]; then
      gdrcopy::build
    else
      software::install gdrcopy
      ldconfig
    fi
  fi
  gdrcopy::is_loaded || modprobe gdrdrv || log::warn "gdrdrv is built, but was not loaded"
  software::clean gdrcopy
}

# Is there nothing to build?
gdrcopy::is_here() {
  local -r version=$(gdrcopy::version)
  contract::fits gdrcopy "$version" && gdrcopy::is_known && gdrcopy::has_module
}

gdrcopy::build() {
  local own
  own=$(gdrcopy::own)
  software::needs make gcc
  [[ -e $ULTRACLUSTER_ROOT/usr/local/cuda/include/cuda.h ]] || step::fail "GDRCopy is built with /usr/local/cuda, and there is none"
  software::unpack gdrcopy
  cd "$UNPACKED" || exit
  make prefix="$UNPACKED/staged" CUDA="$ULTRACLUSTER_ROOT/usr/local/cuda" lib lib_install
  # What verify/fabric.sh proves it with; the library is as good without.
  if make -C tests CUDA="$ULTRACLUSTER_ROOT/usr/local/cuda" gdrcopy_sanity gdrcopy_copylat; then
    mkdir -p staged/bin
    cp -- tests/gdrcopy_{sanity,copylat} staged/bin
  else
    log::warn "GDRCopy's test programs cannot be built here"
  fi
  [[ -n $(software::module gdrdrv) ]] || gdrcopy::module
  cd /
  software::publish "$UNPACKED/staged" "$own"
  files::write "$GDRCOPY_LOADER" <<<"$own/lib"
  ldconfig
}

# DKMS builds it again for every kernel. It takes the driver's headers from /usr/src/nvidia-*.
gdrcopy::module() {
  local -r name=gdrdrv version=${RELEASE['gdrcopy.version']}
  local -r sources=$ULTRACLUSTER_ROOT/usr/src/$name-$version
  if ! command -v dkms >/dev/null || ! compgen -G "$ULTRACLUSTER_ROOT/usr/src/nvidia-*" >/dev/null; then
    if gdrcopy::only_module || ! gdrcopy::works_without_module; then
      step::fail "gdrdrv cannot be built: it needs dkms and the driver's sources in /usr/src/nvidia-*"
    fi
    log::warn "no dkms or no driver sources: GDRCopy works without gdrdrv here"
    return 0
  fi
  mkdir -p "$UNPACKED/module"
  cp -a "$UNPACKED"/src/gdrdrv/. "$UNPACKED/module"
  cat >"$UNPACKED/module/dkms.conf" <<EOT
PACKAGE_NAME="$name"
PACKAGE_VERSION="$version"
MAKE[0]="make KVER=\$kernelver"
CLEAN="make clean"
BUILT_MODULE_NAME[0]="$name"
DEST_MODULE_LOCATION[0]="/updates/dkms"
AUTOINSTALL="yes"
EOT
  software::publish "$UNPACKED/module" "/usr/src/$name-$version"
  files::write /etc/modules-load.d/ultracluster-gdrdrv.conf <<<"$name"
  dkms install --force -m "$name" -v "$version" || step::fail "DKMS could not build gdrdrv for this kernel: see $sources and its log"
}

gdrcopy::verify() {
  local module path
  module=$(software::module gdrdrv)
  if gdrcopy::only_module; then
    [[ -z $module ]] || gdrcopy::is_loaded || step::fail "gdrdrv $module is here, but cannot be loaded"
    software::proven gdrcopy "$(gdrcopy::module_version)" "gdrdrv $module; containers bring the library"
    return
  fi
  path=$(gdrcopy::path)
  [[ -z $path ]] || software::readable "$path" || step::fail "users cannot read $path: see the modes of its folders"
  if [[ -z $module ]]; then
    gdrcopy::works_without_module || step::fail "no gdrdrv module for this kernel, which this driver needs"
    log::warn "no gdrdrv module: this driver can do without"
  elif [[ -z ${NODE_BAKE:-} && ! -e $ULTRACLUSTER_ROOT/dev/gdrdrv ]]; then
    log::warn "gdrdrv $module is here, /dev/gdrdrv is not: the module is not loaded"
  fi
  software::proven gdrcopy "$(gdrcopy::version)" "$(gdrcopy::path), gdrdrv ${module:-not needed}"
}
