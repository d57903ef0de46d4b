# shellcheck shell=bash
# Libraries: files software
# nvidia-fs, the kernel module of GPUDirect Storage, where Lustre uses EFA and FSx supports it on the instance type. FSx has
# it built for 128 peers: the default of 64 is too few for the network cards and disks of these types, and is fixed when it
# is compiled (FSx for Lustre User Guide, "Configuring EFA clients"; NVIDIA/gds-nvidia-fs, src/dkms.conf). An image's own
# module stays.

# DKMS reads it after the module's own dkms.conf, also for a later kernel.
readonly NVIDIA_FS_DKMS=/etc/dkms/nvidia-fs.conf

nvidia_fs::detect() {
  local found
  [[ -n ${LUSTRE_EFA:-} ]] || step::not_applicable "the Lustre file system does not use EFA"
  case ${NODE_GDS:-} in
    yes) ;;
    no) step::not_applicable "$NODE_INSTANCE_TYPE has no GPUDirect Storage" ;;
    *)
      log::warn "whether FSx supports GPUDirect Storage on $NODE_INSTANCE_TYPE is not known: it is left out"
      step::not_applicable "GPUDirect Storage on $NODE_INSTANCE_TYPE is not known"
      ;;
  esac
  software::for nvidia-fs compute
  found=$(software::module nvidia_fs)
  software::settle nvidia-fs "$found"
  nvidia_fs::is_loaded || step::absent "nvidia_fs is not loaded"
  step::present "nvidia-fs $found"
}

nvidia_fs::is_loaded() {
  [[ -n ${NODE_BAKE:-} || -e $ULTRACLUSTER_ROOT/sys/module/nvidia_fs ]]
}

nvidia_fs::needs() { [[ -n $(software::module nvidia_fs) ]] || echo nvidia-fs; }

nvidia_fs::install() {
  local license
  license=$(modinfo --field license nvidia 2>/dev/null) || true
  [[ $license != NVIDIA ]] || step::fail "GPUDirect Storage needs NVIDIA's open driver, this image has the closed one"
  if [[ -z $(software::module nvidia_fs) ]]; then
    compgen -G "$ULTRACLUSTER_ROOT/usr/src/nvidia-*" >/dev/null ||
      step::fail "nvidia-fs is built with the driver's sources in /usr/src/nvidia-*, and this image has none"
    nvidia_fs::dkms | files::write "$NVIDIA_FS_DKMS"
    NVFS_MAX_PEER_DEVS=128 NVFS_MAX_PCI_DEPTH=16 software::install nvidia-fs
    [[ -n $(software::module nvidia_fs) ]] || step::fail "nvidia-fs was not built for kernel $(uname -r): see the lines of DKMS above"
  fi
  files::write /etc/modules-load.d/ultracluster-nvidia-fs.conf <<<nvidia_fs
  nvidia_fs::is_loaded || modprobe nvidia_fs || step::fail "nvidia_fs does not load: see the kernel's log"
  software::clean nvidia-fs
}

nvidia_fs::dkms() {
  cat <<'EOT'
# Ultracluster: as FSx for Lustre wants it
MAKE[0]="${MAKE[0]/NVFS_MAX_PEER_DEVS=64/NVFS_MAX_PEER_DEVS=128}"
EOT
}

nvidia_fs::verify() {
  nvidia_fs::is_loaded || step::fail "nvidia_fs is not loaded"
  software::proven nvidia-fs "$(software::module nvidia_fs)" "nvidia_fs is loaded"
}
