#!/usr/bin/env bash
# What the image of this node brings, as one JSON object:
# {"schema", "asked", "os", "arch", "installed", "notes": {FIELD: TEXT}, "facts": {FIELD: VALUE}}.
# VALUE: a version; true: it is there, but does not tell its version; false: it is not there; null: it could not be asked.
# "installed" names the steps of Ultracluster that have installed something here: such a node shows more than its image.
# Changes nothing, needs no root, and nothing beside itself: ssh NODE 'bash -s' <record.sh
set -euo pipefail
ULTRACLUSTER_ROOT=${ULTRACLUSTER_ROOT:-}
readonly ROOT=$ULTRACLUSTER_ROOT
export LC_ALL=C
# A login through SSH or Systems Manager may lack these; a test's PATH is its own.
[[ -n $ROOT ]] || export PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin:/opt/slurm/bin

NAMES=() VALUES=() NOTES=()

# fact FIELD VALUE [NOTE]: yes and no are true and false; an empty VALUE is null.
fact() {
  NAMES+=("$1")
  VALUES+=("${2:-}")
  NOTES+=("${3:-}")
}

# said COMMAND...: what it prints, on one line; nothing if it is not there or fails
said() {
  command -v "$1" >/dev/null || return 0
  { timeout 20 "$@" 2>/dev/null || true; } | tr '\n\t' '  '
}

has() { command -v "$1" >/dev/null; }

# number TEXT: the first thing in it that looks like a version (1.2, 2.15.6, 2.6.0amzn1.0, 595.91.07)
number() {
  local -r form='[0-9]+(\.[0-9]+)+([a-z]+[0-9.]*)?'
  [[ ! $1 =~ $form ]] || printf '%s' "${BASH_REMATCH[0]}"
}

# The package manager of the system; a machine may carry the other one's query tool, too.
packages() {
  if has dpkg-query && [[ $(os) == ubuntu* || $(os) == debian* ]]; then
    echo dpkg
  elif has rpm; then
    echo rpm
  fi
}

# package NAME...: the version of the first that is installed, without epoch; NAME may end in * for Debian's
package() {
  local name found=''
  for name in "$@"; do
    case $PACKAGES in
      dpkg)
        found=$({ dpkg-query --show --showformat='${db:Status-Status} ${Version}\n' "$name" 2>/dev/null || true; } | sed -n 's/^installed //p')
        ;;
      rpm) [[ $name == *'*' ]] || found=$(rpm --query --queryformat '%{VERSION}-%{RELEASE}\n' "$name" 2>/dev/null) || found='' ;;
    esac
    found=${found%%$'\n'*}
    [[ -z $found ]] || { printf '%s' "${found#*:}" && return; }
  done
}

# or_no VALUE: false where nothing was found, if packages could be asked
or_no() {
  if [[ -n $1 ]]; then
    printf '%s' "$1"
  elif [[ -n $PACKAGES ]]; then
    printf no
  fi
}

# module NAME: the version that is loaded, else the one for this kernel
module() {
  local version=''
  version=$(cat "$ROOT/sys/module/$1/version" 2>/dev/null || true)
  [[ -n $version ]] || ! has modinfo || version=$(modinfo --field version "$1" 2>/dev/null || true)
  if [[ -n $version ]]; then
    printf '%s' "${version%%$'\n'*}"
  elif [[ -e $ROOT/sys/module/$1 ]]; then
    printf yes
  elif has modinfo; then
    printf no
  fi
}

# newest: of the versions on stdin
newest() { sort --version-sort | tail -n 1; }

os() {
  local ID='' VERSION_ID=''
  # shellcheck source=/dev/null
  source "$ROOT/etc/os-release" 2>/dev/null || true
  case $ID in
    amzn) printf 'al%s' "$VERSION_ID" ;;
    rhel | rocky) printf '%s%s' "$ID" "${VERSION_ID%%.*}" ;;
    *) printf '%s%s' "$ID" "$VERSION_ID" ;;
  esac
}

nvidia() {
  local driver kind=no license
  driver=$(module nvidia)
  fact nvidia_driver "$driver"
  if [[ $driver != no ]]; then
    license=$(has modinfo && modinfo --field license nvidia 2>/dev/null || true)
    case $license in
      *GPL*) kind=open ;;
      NVIDIA*) kind=proprietary ;;
      *) kind='' ;;
    esac
  fi
  fact nvidia_driver_kind "$kind"
  fact fabric_manager "$(or_no "$(upstream nvidia-fabricmanager nvidia-fabric-manager 'nvidia-fabricmanager-*')")"
  fact imex "$(or_no "$(upstream nvidia-imex 'nvidia-imex-*')")"
  fact nvlsm "$(or_no "$(package nvlsm)")"
  fact gdrdrv "$(module gdrdrv)"
  fact nvidia_fs "$(module nvidia_fs)"
}

# upstream NAME...: the version of a package without the packager's part
upstream() {
  local version
  version=$(package "$@")
  printf '%s' "${version%%-*}"
}

cuda() {
  local folder all='' default=no exact=''
  for folder in "$ROOT"/usr/local/cuda-[0-9]*.[0-9]*; do
    [[ ! -d $folder ]] || all+="${folder##*/cuda-}"$'\n'
  done
  all=$(sort --version-sort -u <<<"$all" | tr '\n' ' ')
  all=${all# } all=${all% }
  if [[ -d $ROOT/usr/local/cuda ]]; then
    default=$({ sed -n '/"cuda" *:/,/}/s/.*"version" *: *"\([0-9.]*\)".*/\1/p' "$ROOT/usr/local/cuda/version.json" 2>/dev/null || true; } | head -n 1)
    exact=$default
    [[ -n $default ]] || default=$(number "$(readlink -f "$ROOT/usr/local/cuda")")
    # As the folders are called
    [[ ! $default =~ ^[0-9]+\.[0-9]+ ]] || default=${BASH_REMATCH[0]}
    default=${default:-yes}
  fi
  fact cuda_default "$default" "$exact"
  fact cuda_all "${all:-no}"
}

# nccl: from the name of the library, which is that of its version
nccl() {
  local path found=''
  for path in "$ROOT"/usr/lib{,64}/{,*-linux-gnu/}libnccl.so.2.* "$ROOT"/usr/local/{lib,cuda*/lib*}/libnccl.so.2.* "$ROOT"/opt/ultracluster/nccl-*/lib/libnccl.so.2.*; do
    [[ ! -e $path ]] || found+="${path##*.so.}"$'\n'
  done
  found=$(printf '%s' "$found" | newest)
  [[ -n $found ]] || found=$(upstream libnccl2 libnccl)
  fact nccl "${found:-no}"
}

# libgdrapi.so.2.6; the package knows the third digit
gdrcopy() {
  local path found='' known
  for path in "$ROOT"/usr/lib{,64}/{,*-linux-gnu/}libgdrapi.so.*.* "$ROOT"/{usr/local,opt/gdrcopy}/lib{,64}/libgdrapi.so.*.* "$ROOT"/opt/ultracluster/gdrcopy-*/lib/libgdrapi.so.*.*; do
    [[ ! -e $path ]] || found+="${path##*.so.}"$'\n'
  done
  found=$(printf '%s' "$found" | newest)
  known=$(upstream libgdrapi gdrcopy)
  [[ -n $found && $known != "$found"* ]] || found=$known
  fact gdrcopy_lib "${found:-no}"
}

efa() {
  local installer kmod path plugin=''
  kmod=$(module efa)
  installer=$(sed -n '1s/^# EFA installer version: *\([0-9.]*[0-9]\).*/\1/p' "$ROOT/opt/amazon/efa_installed_packages" 2>/dev/null || true)
  # The minimal form leaves the module and no manifest: which release it was, nothing tells.
  [[ -n $installer || $kmod != no ]] || installer=no
  fact efa_installer "$installer"
  fact efa_kmod "$kmod"
  if [[ -x $ROOT/opt/amazon/efa/bin/fi_info ]]; then
    fact libfabric "$(number "$(said "$ROOT/opt/amazon/efa/bin/fi_info" --version)")"
  else
    fact libfabric no
  fi
  for path in "$ROOT"/opt/ultracluster/aws-ofi-nccl-*/lib/libnccl-net-ofi.so "$ROOT"/opt/amazon/ofi-nccl/lib{,64}/libnccl-net-ofi.so \
    "$ROOT"/opt/amazon/ofi-nccl/lib/{x86_64,aarch64}-linux-gnu/libnccl-net.so "$ROOT"/opt/aws-ofi-nccl/{lib,install/lib}/libnccl-net.so; do
    [[ -e $path ]] || continue
    plugin=$({ grep --text --only-matching --max-count 1 'Initializing aws-ofi-nccl [0-9][0-9.]*' "$path" || true; } | head -n 1 | sed 's/.* //')
    plugin=${plugin:-yes}
    break
  done
  fact aws_ofi_nccl "${plugin:-no}"
  fact rdma_core "$(or_no "$(package rdma-core)")"
}

containers() {
  local path version plugin=''
  if has nvidia-ctk; then
    version=$(number "$(said nvidia-ctk --version)")
    fact container_toolkit "${version:-yes}"
  else
    fact container_toolkit no
  fi
  if has dcgmi; then
    version=$(number "$(said dcgmi --version)")
    fact dcgm "${version:-yes}"
  else
    fact dcgm "$(or_no "$(upstream datacenter-gpu-manager-4-core datacenter-gpu-manager)")"
  fi
  if has enroot; then
    version=$(number "$(said enroot version)")
    fact enroot "${version:-yes}"
  else
    fact enroot no
  fi
  version=no
  for path in "$ROOT"/opt/ultracluster/pyxis*/spank_pyxis.so "$ROOT"/opt/slurm/lib/slurm/spank_pyxis.so "$ROOT"/usr/local/lib/slurm/spank_pyxis.so \
    "$ROOT"/opt/aws/pcs/scheduler/slurm-*/lib/slurm/spank_pyxis.so; do
    [[ -e $path ]] || continue
    version=yes
    [[ $path != */ultracluster/pyxis-* ]] || version=$(number "${path#*/ultracluster/pyxis-}")
    plugin=${path#"$ROOT"}
    break
  done
  fact pyxis "$version" "$plugin"
  for path in docker containerd; do
    if has "$path"; then
      version=$(number "$(said "$path" --version | sed 's/github[^ ]*//')")
      fact "$path" "${version:-yes}"
    else
      fact "$path" no
    fi
  done
}

# PCS keeps several versions side by side: the newest counts.
slurm() {
  local program version found='' others
  for program in "$ROOT"/opt/slurm/bin/srun "$ROOT"/opt/aws/pcs/scheduler/slurm-*/bin/srun; do
    [[ -x $program ]] || continue
    version=$(number "$(said "$program" --version)")
    found+="${version:-yes}"$'\n'
  done
  version=$(printf '%s' "$found" | newest)
  others=$(printf '%s' "$found" | { grep -vxF -- "$version" || true; } | sort --version-sort -u | tr '\n' ' ')
  fact slurm "${version:-no}" "${others:+beside ${others% }}"
}

storage() {
  local place found unit=no where=''
  fact lustre_module "$(module lustre)"
  found=$(package lustre-client-utils lustre-client lustre-client-modules-aws)
  [[ -n $found ]] || ! has mount.lustre || found=yes
  fact lustre_client "$(or_no "$found")"
  fact lustre_kernel_in_matrix ''
  for place in /etc/systemd/system /usr/lib/systemd/system /lib/systemd/system; do
    [[ ! -e $ROOT$place/configure-efa-fsx-lustre-client.service ]] || unit=yes
  done
  [[ ! -e $ROOT/etc/eks/configure-efa-fsx-lustre-client/setup.sh && ! -e $ROOT/opt/aws/configure-efa-fsx-lustre-client/setup.sh ]] || unit=yes
  fact fsx_efa_setup "$unit"
  found=no
  for place in /opt/sagemaker /opt/dlami/nvme /scratch; do
    grep -qs " $place " "$ROOT/proc/self/mounts" || continue
    # /dev/mapper/vg.01-lv_ephemeral: a volume group of the local disks
    found=$(sed -nE "s|^/dev/mapper/([^ -]+)-[^ ]* $place .*|\\1|p" "$ROOT/proc/self/mounts" | head -n 1)
    found=${found:-yes} where=$place
    break
  done
  fact second_volume "$found" "$where"
  # GB of the file system on it: a little less than the volume
  found=$({ df --block-size=1G --output=size "$ROOT/" 2>/dev/null || true; } | tail -n 1 | tr -d ' ')
  fact root_volume "$found"
}

neuron() {
  fact neuron_driver "$(module neuron)"
  fact neuron_runtime "$(or_no "$(upstream aws-neuronx-runtime-lib)")"
  fact neuron_collectives "$(or_no "$(upstream aws-neuronx-collectives)")"
}

rest() {
  local user found version
  found=no
  [[ ! -e $ROOT/etc/dnf/plugins/versionlock.list && ! -e $ROOT/etc/dnf/plugins/versionlock.conf ]] || found=yes
  fact dnf_versionlock "$found"
  found=''
  for user in ubuntu ec2-user rocky; do
    ! grep -qs "^$user:" "$ROOT/etc/passwd" || found+="${found:+ }$user"
  done
  fact login_user "$found"
  found=$(upstream amazon-ssm-agent)
  if [[ -z $found ]] && has snap; then
    found=$(number "$(said snap list amazon-ssm-agent)")
    [[ -n $found || ! -e $ROOT/snap/amazon-ssm-agent ]] || found=yes
  fi
  fact ssm_agent "$(or_no "$found")"
  version=$(number "$(said python3 --version)")
  fact python "${version:-no}"
}

installed() {
  { cat "$ROOT/var/log/ultracluster/report.jsonl" 2>/dev/null || true; } |
    sed -n 's/.*"step": "\([a-z_]*\)", "state": "installed".*/\1/p' | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# quoted TEXT: as JSON
quoted() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "${text//[[:cntrl:]]/ }"
}

print() {
  local index comma=''
  printf '{"schema": 1, "asked": "%s", "os": %s, "arch": %s, "installed": %s, "notes": {' "$(date --utc +%Y-%m-%d)" "$(quoted "$(os)")" \
    "$(quoted "$ARCH")" "$(quoted "$(installed)")"
  for index in "${!NAMES[@]}"; do
    [[ -n ${NOTES[index]} ]] || continue
    printf '%s"%s": %s' "$comma" "${NAMES[index]}" "$(quoted "${NOTES[index]}")"
    comma=', '
  done
  printf '}, "facts": {'
  for index in "${!NAMES[@]}"; do
    ((index == 0)) || printf ', '
    printf '"%s": ' "${NAMES[index]}"
    case ${VALUES[index]} in
      '') printf null ;;
      yes) printf true ;;
      no) printf false ;;
      *) quoted "${VALUES[index]}" ;;
    esac
  done
  printf '}}\n'
}

PACKAGES=$(packages)
ARCH=$(uname -m)
[[ $ARCH != aarch64 ]] || ARCH=arm64
KERNEL=$(uname -r)
KERNEL=${KERNEL%.amzn*} # .amzn2023.x86_64
fact kernel "${KERNEL%.el[0-9]*}"
nvidia
cuda
efa
nccl
gdrcopy
containers
slurm
storage
neuron
rest
print
