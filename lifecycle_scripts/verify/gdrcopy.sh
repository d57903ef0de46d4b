# shellcheck shell=bash
# GDRCopy: does the CPU reach GPU memory without a copy by the driver.
[[ -z ${ULTRACLUSTER_VERIFY_GDRCOPY:-} ]] || return 0
ULTRACLUSTER_VERIFY_GDRCOPY=1

# shellcheck source-path=SCRIPTDIR source=efa.sh
source "${BASH_SOURCE[0]%/*}/efa.sh"

# gdrcopy::check BY_DESIGN: not empty where hosts bring none (EKS images)
gdrcopy::check() {
  local -r by_design=$1
  local program version status=0 text note=''
  if [[ ! -e $ULTRACLUSTER_ROOT/proc/driver/nvidia/version ]]; then
    check::skip gdrcopy "no NVIDIA driver on this node"
    return
  fi
  if efa::module_loaded gdrdrv; then
    if [[ ! -e $ULTRACLUSTER_ROOT/dev/gdrdrv ]]; then
      check::fail gdrcopy "gdrdrv is loaded, but /dev/gdrdrv is missing"
      return
    fi
  else
    gdrcopy::without_module "$by_design" || return 0
    note=', without gdrdrv: this driver lets GDRCopy map through DMA-BUF'
  fi
  program=$(gdrcopy::program)
  if [[ -z $program ]]; then
    if version=$(gdrcopy::opens); then
      check::warn gdrcopy "libgdrapi $version opens$note; no gdrcopy_sanity on this node to prove more"
    else
      check::unknown gdrcopy "no gdrcopy_sanity on this node, so nothing is proven$note"
    fi
    return
  fi
  text=$(timeout 300 "$program" -v 2>&1) || status=$?
  if ((status != 0)); then
    check::fail gdrcopy "${program##*/} ended with status $status: $(tail -n 1 <<<"$text")"
  elif [[ -n $note ]]; then
    check::warn gdrcopy "${program##*/} passed$note"
  else
    check::pass gdrcopy "${program##*/} passed"
  fi
}

# Status 0 if GDRCopy can do without: release 2.6 or newer with a CUDA driver of 13.3 or newer (NVIDIA/gdrcopy, v2.6).
gdrcopy::without_module() {
  local -r by_design=$1
  local cuda library
  cuda=$({ timeout 60 nvidia-smi 2>/dev/null || true; } | sed -nE 's/.*CUDA (UMD )?Version *: *([0-9]+\.[0-9]+).*/\2/p' | head -n 1)
  library=$(gdrcopy::library)
  if [[ -n $by_design && -z $library ]]; then
    check::skip gdrcopy "neither gdrdrv nor GDRCopy on this host, as on EKS images of before September 2026; pods bring the library"
  elif [[ -z $cuda ]]; then
    check::unknown gdrcopy "gdrdrv is not loaded; whether it is needed depends on the CUDA version, which nvidia-smi does not tell"
  elif ! gdrcopy::at_least "$cuda" 13.3; then
    check::fail gdrcopy "gdrdrv is not loaded, and a driver for CUDA $cuda needs it (from 13.3 on it does not)"
  elif [[ -z $library ]]; then
    check::unknown gdrcopy "gdrdrv is not loaded, and the release of GDRCopy is not known (2.6 or newer could do without)"
  elif ! gdrcopy::at_least "$library" 2.6; then
    check::fail gdrcopy "gdrdrv is not loaded, and GDRCopy $library needs it (from 2.6 on it does not)"
  else
    return 0
  fi
  return 1
}

# gdrcopy::at_least FOUND WANTED: both MAJOR.MINOR
gdrcopy::at_least() {
  local -r found=$1 wanted=$2
  ((${found%%.*} > ${wanted%%.*})) || ((${found%%.*} == ${wanted%%.*} && ${found#*.} >= ${wanted#*.}))
}

# MAJOR.MINOR of the newest library: it is the end of its file name.
gdrcopy::library() {
  local file
  for file in "$ULTRACLUSTER_ROOT"/{usr/lib,usr/lib64,usr/lib/*-linux-gnu,usr/local/lib,opt/gdrcopy/lib,opt/gdrcopy/lib64,opt/ultracluster/gdrcopy-*/lib}/libgdrapi.so.*; do
    [[ $file =~ libgdrapi\.so\.([0-9]+\.[0-9]+)$ ]] && printf '%s\n' "${BASH_REMATCH[1]}"
  done | sort -t . -k 1,1n -k 2,2n | tail -n 1
}

# Older packages call it `sanity`, older images keep it in a folder of its own, and so does our own build.
gdrcopy::program() {
  local program
  type -P gdrcopy_sanity && return 0
  for program in "$ULTRACLUSTER_ROOT"/opt/{ultracluster/gdrcopy-*,gdrcopy}/bin/{gdrcopy_sanity,sanity}; do
    [[ ! -x $program ]] || { printf '%s\n' "$program" && return; }
  done
}

# What is left to prove where nobody brought the test program: the loader finds the library, it opens (the version is what
# GDRCopy itself says), and the module's device is there where it is needed.
gdrcopy::opens() {
  timeout 60 python3 -IS -c '
import ctypes
major, minor = ctypes.c_int(), ctypes.c_int()
ctypes.CDLL("libgdrapi.so.2").gdr_runtime_get_version(ctypes.byref(major), ctypes.byref(minor))
print(f"{major.value}.{minor.value}")
' 2>/dev/null
}
