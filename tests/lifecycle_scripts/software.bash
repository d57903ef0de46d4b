# shellcheck shell=bash
# A node that lacks all of a small release, and what its installers and packages would bring. Load after helpers.
# `scenario` builds it on every fresh node; with HAVE="cuda efa" these are there already.
# shellcheck disable=SC2016 # what stands in single quotes runs on the node

export WITH_SOFTWARE=yes

# software::script PATH LINE...: a program on the node that prints these lines
software::script() {
  local -r path=$ULTRACLUSTER_ROOT$1
  shift
  mkdir -p "${path%/*}"
  { echo '#!/bin/bash' && printf 'echo %q\n' "$@"; } >"$path"
  chmod +x "$path"
}

# software::brings PACKAGE: stdin is what its installation does on the node
software::brings() {
  { declare -f software::script && cat; } >"$FAKE/packages.d/$1"
}

# software::archive NAME FOLDER: a .tar.gz of a folder in $sources, in $web
software::archive() {
  tar --create --gzip --file "$web/$1" --directory "$sources" "$2"
}

scenario() {
  software::shared
  software::node
  software::lock
}

# The node, made once for all tests of a file that begin with the same.
node::template() { TEMPLATE=$BATS_FILE_TMPDIR/node-${HAVE:-}-${BUNDLED:-}; }

software::node() {
  local -r made=$BATS_FILE_TMPDIR/node-${HAVE:-}-${BUNDLED:-}
  [[ $TEMPLATE != "$made" ]] || return 0
  software::make_node
  mkdir "$made.new"
  cp -a "$ULTRACLUSTER_ROOT" "$FAKE" "$made.new"
  mv "$made.new" "$made"
}

software::make_node() {
  rm "$FAKE/any_package" "$FAKE/modules/lustre"
  mkdir -p "$ULTRACLUSTER_ROOT"/{proc/driver/nvidia,usr/src/nvidia-595.91.07,opt/slurm/{bin,include/slurm,etc/task_prolog.d},sys/class/infiniband} \
    "$FAKE"/units/{nvidia-persistenced,nvidia-fabricmanager,nvidia-dcgm} "$FAKE/packages" "$FAKE/gpus"
  # The devices of a p5.48xlarge
  local folder folders=("$ULTRACLUSTER_ROOT"/sys/class/infiniband/rdmap{1..32}/device)
  mkdir -p "${folders[@]}"
  for folder in "${folders[@]}"; do ln -s ../../../bus/pci/drivers/efa "$folder/driver"; done
  touch "$ULTRACLUSTER_ROOT"/{proc/driver/nvidia/version,opt/slurm/include/slurm/spank.h} "$FAKE/units/nvidia-persistenced"/{enabled,active}
  software::script /opt/slurm/bin/srun "slurm 25.11.4"
  echo 595.91.07 >"$FAKE/modules/nvidia"
  echo 595.91.07-1 >"$FAKE/packages/nvidia-fabricmanager"
  echo 6.8.0-1039.41 >"$FAKE/packages/linux-image-aws"
  cp -r "$BATS_FILE_TMPDIR"/software/{packages.d,web} "$FAKE"
  [[ ${HAVE:-} != *cuda* ]] || software::done cuda-toolkit-13-2 13.2.1-1
  [[ -z ${BUNDLED:-} ]] || echo "$BUNDLED" >"$FAKE/bundled_plugin"
  [[ ${HAVE:-} != *efa* ]] || "$SANDBOX/sources/aws-efa-installer/efa_installer.sh" -y
  forget_calls
}

# What no test changes: made once for all tests of a file.
software::shared() {
  local -r shared=$BATS_FILE_TMPDIR/software
  [[ -e $shared ]] || {
    mkdir -p "$shared.new"/{packages.d,sources,web}
    FAKE=$shared.new software::packages
    software::sources "$shared.new/sources" "$shared.new/web"
    mv "$shared.new" "$shared"
  }
  ln -sfn -t "$SANDBOX" "$shared"/{packages.d,sources,web}
}

# software::done PACKAGE VERSION: as if it had been installed
software::done() {
  VERSION=$2 bash -euo pipefail "$FAKE/packages.d/$1"
  echo "$2" >"$FAKE/packages/$1"
}

software::packages() {
  software::brings cuda-toolkit-13-2 <<'EOT'
mkdir -p "$ULTRACLUSTER_ROOT"/usr/local/cuda-13.2/{bin,include}
echo '{"cuda": {"name": "CUDA SDK", "version": "13.2.1"}}' >"$ULTRACLUSTER_ROOT/usr/local/cuda-13.2/version.json"
software::script /usr/local/cuda-13.2/bin/nvcc nvcc
touch "$ULTRACLUSTER_ROOT/usr/local/cuda-13.2/include/cuda.h"
ln -sfn cuda-13.2 "$ULTRACLUSTER_ROOT/usr/local/cuda"
EOT
  : | software::brings libnccl2
  software::brings nvidia-container-toolkit <<'EOT'
software::script /usr/bin/nvidia-ctk "NVIDIA Container Toolkit CLI version ${VERSION%%-*}" "commit: 0123"
EOT
  software::brings datacenter-gpu-manager-4-core <<'EOT'
software::script /usr/bin/dcgmi "" "dcgmi  version: 4.7.0"
EOT
  software::brings datacenter-gpu-manager-exporter <<'EOT'
software::script /usr/bin/dcgm-exporter "DCGM Exporter version 4.5.3-4.8.2"
EOT
  software::brings enroot <<'EOT'
software::script /usr/bin/enroot 4.2.1
mkdir -p "$ULTRACLUSTER_ROOT/usr/share/enroot/hooks.d"
touch "$ULTRACLUSTER_ROOT/usr/share/enroot/hooks.d"/{50-slurm-pmi,50-slurm-pytorch}.sh
EOT
  software::brings lustre-client-modules-6.8.0-1039-aws <<'EOT'
echo 2.15.6 >"$FAKE/modules/lustre"
EOT
  software::brings lustre-client-utils <<'EOT'
software::script /sbin/mount.lustre
EOT
  software::brings aws-neuronx-dkms <<'EOT'
echo 2.30.2.0 >"$FAKE/modules/neuron"
mkdir -p "$ULTRACLUSTER_ROOT/dev"
touch "$ULTRACLUSTER_ROOT/dev/neuron0"
EOT
  : | software::brings aws-neuronx-runtime-lib
  : | software::brings aws-neuronx-collectives
  software::brings nvidia-fs-dkms <<'EOT'
echo "NVFS_MAX_PEER_DEVS=${NVFS_MAX_PEER_DEVS:-64}" >>"$FAKE/calls"
echo 2.26.6 >"$FAKE/modules/nvidia_fs"
EOT
}

# software::sources SOURCES WEB: makes what the web serves
software::sources() {
  local -r sources=$1 web=$2
  mkdir -p "$sources"/{aws-efa-installer,aws-ofi-nccl-1.21.1,gdrcopy-2.6/src/gdrdrv,pyxis-0.24.0,nccl-tests-2.19.6,configure-efa-fsx-lustre-client}
  {
    printf '#!/bin/bash\nsource %q\n' "$BATS_TEST_DIRNAME/fakes/_fake.bash"
    declare -f software::script
    cat <<'EOT'
change "$@"
efa=$ULTRACLUSTER_ROOT/opt/amazon
mkdir -p "$efa/efa/include/rdma" "$efa/ofi-nccl/lib"
touch "$efa/efa/include/rdma/fabric.h"
echo 3.3.0 >"$FAKE/modules/efa"
kill_at inside
if [[ $* != *--minimal* ]]; then
  mapfile -t domains < <(printf '    domain: rdmap%s-rdm\n' {0..31})
  software::script /opt/amazon/efa/bin/fi_info "fi_info: 2.6.0amzn1.0" "libfabric: 2.6.0amzn1.0" "libfabric api: 2.6" "provider: efa" "${domains[@]}"
  printf '\0NET/OFI Initializing aws-ofi-nccl %s\0' "$(cat "$FAKE/bundled_plugin" 2>/dev/null || echo 1.21.1)" >"$efa/ofi-nccl/lib/libnccl-net-ofi.so"
  printf '# EFA installer version: 1.50.0\n# Debug packages installed: no\n' >"$efa/efa_installed_packages"
fi
EOT
  } >"$sources/aws-efa-installer/efa_installer.sh"
  chmod +x "$sources/aws-efa-installer/efa_installer.sh"
  software::archive aws-efa-installer-1.50.0.tar.gz aws-efa-installer

  printf '#!/bin/bash\necho "${1#--prefix=}" >prefix\n' >"$sources/aws-ofi-nccl-1.21.1/configure"
  chmod +x "$sources/aws-ofi-nccl-1.21.1/configure"
  cat >"$sources/aws-ofi-nccl-1.21.1/make.fake" <<'EOT'
[[ $1 == install ]] || exit 0
mkdir -p "$DESTDIR$(cat prefix)/lib"
printf '\0NET/OFI Initializing aws-ofi-nccl 1.21.1\0' >"$DESTDIR$(cat prefix)/lib/libnccl-net-ofi.so"
EOT
  software::archive aws-ofi-nccl-1.21.1.tar.gz aws-ofi-nccl-1.21.1

  touch "$sources/gdrcopy-2.6/src/gdrdrv/gdrdrv.c"
  echo 'mkdir -p "$prefix/lib"; touch "$prefix/lib/libgdrapi.so.2.6"' >"$sources/gdrcopy-2.6/make.fake"
  mkdir -p "$sources/gdrcopy-2.6/tests"
  echo 'touch gdrcopy_sanity gdrcopy_copylat; chmod +x gdrcopy_*' >"$sources/gdrcopy-2.6/tests/make.fake"
  software::archive gdrcopy-2.6.tar.gz gdrcopy-2.6
  echo 'mkdir -p "$libdir/slurm"; touch "$libdir/slurm/spank_pyxis.so"' >"$sources/pyxis-0.24.0/make.fake"
  software::archive pyxis-0.24.0.tar.gz pyxis-0.24.0
  echo 'mkdir -p "$BUILDDIR"; echo >"$BUILDDIR/all_reduce_perf"; chmod +x "$BUILDDIR/all_reduce_perf"' >"$sources/nccl-tests-2.19.6/make.fake"
  software::archive nccl-tests-2.19.6.tar.gz nccl-tests-2.19.6

  mkdir -p "$sources"/{node_exporter-1.12.1.linux-amd64,prometheus-3.13.1.linux-amd64}
  ULTRACLUSTER_ROOT=$sources software::script /node_exporter-1.12.1.linux-amd64/node_exporter "node_exporter, version 1.12.1 (branch: HEAD)"
  ULTRACLUSTER_ROOT=$sources software::script /prometheus-3.13.1.linux-amd64/prometheus "prometheus, version 3.13.1 (branch: HEAD)"
  software::archive node_exporter-1.12.1.linux-amd64.tar.gz node_exporter-1.12.1.linux-amd64
  software::archive prometheus-3.13.1.linux-amd64.tar.gz prometheus-3.13.1.linux-amd64

  software::fsx_setup >"$sources/configure-efa-fsx-lustre-client/setup.sh"
  (cd "$sources" && "$PYTHON" -IS -m zipfile -c "$web/configure-efa-fsx-lustre-client.zip" configure-efa-fsx-lustre-client)
  (
    cd "$sources" || exit
    mkdir -p nixl_cu13 nixl_cu13-1.5.1.data/headers
    touch nixl_cu13/{__init__,_bindings,_utils,logging}.py
    echo 'nixl_agent = 1' >nixl_cu13/_api.py
    "$PYTHON" -IS -m zipfile -c "$web/nixl_cu13-1.5.1-cp310-cp310-manylinux_2_28_x86_64.whl" nixl_cu13 nixl_cu13-1.5.1.data
  )
  echo "deb" >"$web/enroot_4.2.1-1_amd64.deb"
}

# FSx's set-up script: its unit, and the interfaces; only three where the modules were loaded before it. It ends as
# $FAKE/fsx_setup says; types that it does not know for GPUDirect Storage it refuses.
software::fsx_setup() {
  cat <<'EOT'
echo "setup.sh $*" >>"$FAKE/calls"
[[ $* != *gds* || ! -e $FAKE/no_gds ]] || exit 1
unit=$FAKE/units/configure-efa-fsx-lustre-client
mkdir -p "$unit" "$FAKE/lnet" "$ULTRACLUSTER_ROOT/sys/module"
if [[ -e $ULTRACLUSTER_ROOT/sys/module/libcfs ]]; then echo 3; else cat "$FAKE/fsx_interfaces" 2>/dev/null || echo 8; fi >"$FAKE/lnet/efa"
mkdir -p "$ULTRACLUSTER_ROOT"/sys/module/{libcfs,lnet}
touch "$unit"/{enabled,active}
exit "$(cat "$FAKE/fsx_setup" 2>/dev/null || echo 0)"
EOT
}

# The lock file, with what the web serves; $LOCK_CHANGES is Python that may change `components`.
software::lock() {
  mkdir -p "$SCRIPTS/releases"
  echo '{"schema": 2, "release": "2026.07", "families": ["plain"], "components": {}}' >"$SCRIPTS/releases/2026.07.lock"
  # shellcheck disable=SC2034 # remembered::find reads it
  KEY="${LOCK_CHANGES:-} ${REQUIRED:-} ${FLOORS:-} $(cd "$FAKE/web" && stat --format '%n %s' ./*)"
  ! remembered::find lock || { cp "$FOUND" "$SCRIPTS/releases/2026.11.lock" && return; }
  "$PYTHON" -IS - "$FAKE/web" "$SCRIPTS/releases/2026.11.lock" "${LOCK_CHANGES:-}" <<'PYTHON'
import hashlib, json, os, sys

web, target, changes = sys.argv[1:]
UBUNTU = ["ubuntu22.04", "ubuntu24.04"]


def file(name, digest="sha256", arch=("x86_64", "aarch64"), system=(*UBUNTU, "al2023")):
    data = open(os.path.join(web, name), "rb").read()
    return {"os": list(system), "arch": list(arch), "url": "https://example.org/" + name, "name": name, "size": len(data),
            digest: hashlib.new(digest, data).hexdigest(), "integrity": "checksum"}


def packages(*names, system=UBUNTU, arch=("x86_64",)):
    return {"os": list(system), "arch": list(arch), "names": list(names)}


def component(version, kind, accelerator="any", **more):
    return {"version": version, "kind": kind, "accelerator": accelerator, "need": "wanted", **more}


components = {
    "kernel": component("image", "image", provides={"ubuntu22.04": "6.8.0-1017..6.8.0", "al2023": "6.1.79..6.1"}),
    "nvidia-driver": component("595.91.07", "image", "nvidia", need="required"),
    "fabric-manager": component("595.91.07", "image", "nvidia", need="required"),
    "cuda-runtime": component("13.2", "packages", "nvidia", packages=[packages("cuda-toolkit-13-2")]),
    "efa-installer": component("1.50.0", "artifact", provides={"efa": "3.3.0"}, artifacts=[file("aws-efa-installer-1.50.0.tar.gz")]),
    "libfabric": component("2.6.0amzn1.0", "bundled"),
    "nccl": component("2.30.7", "packages", "nvidia", packages=[packages("libnccl2=2.30.7-1+cuda13.3")]),
    "aws-ofi-nccl": component("1.21.1", "bundled", artifacts=[file("aws-ofi-nccl-1.21.1.tar.gz", "sha512")]),
    "gdrcopy": component("2.6", "source", "nvidia", artifacts=[file("gdrcopy-2.6.tar.gz")]),
    "nccl-tests": component("2.19.6", "source", "nvidia", need="optional", artifacts=[file("nccl-tests-2.19.6.tar.gz")]),
    "neuron-driver": component("2.30.2.0", "packages", "neuron", packages=[packages("aws-neuronx-dkms=2.30.2.0*")]),
    "neuron-runtime": component("2.34.10.0", "packages", "neuron", packages=[packages("aws-neuronx-runtime-lib=2.34.10.0-abc")]),
    "neuron-collectives": component("2.34.10.0", "packages", "neuron", packages=[packages("aws-neuronx-collectives=2.34.10.0-abc")]),
    "lustre-client": component("2.15.6", "packages", need="required", packages=[packages("lustre-client-modules-aws")]),
    "lustre-efa-setup": component("unversioned", "artifact", need="optional", artifacts=[file("configure-efa-fsx-lustre-client.zip")]),
    "nvidia-fs": component("2.26.6", "packages", "nvidia", packages=[packages("nvidia-fs-dkms=2.26.6-1")]),
    "container-toolkit": component("1.20.1", "packages", "nvidia", packages=[
        packages("nvidia-container-toolkit=1.20.1-1"),
        packages("nvidia-container-toolkit-1.20.1-1", system=["al2023"])]),
    "enroot": component("4.2.1", "artifact", artifacts=[file("enroot_4.2.1-1_amd64.deb", arch=["x86_64"], system=UBUNTU)]),
    "pyxis": component("0.24.0", "source", artifacts=[file("pyxis-0.24.0.tar.gz")]),
    "dcgm": component("4.7.0", "packages", "nvidia", packages=[packages("datacenter-gpu-manager-4-core=1:4.7.0-*")]),
    "node-exporter": component("1.12.1", "artifact", need="optional", artifacts=[file("node_exporter-1.12.1.linux-amd64.tar.gz", arch=["x86_64"])]),
    "dcgm-exporter": component("4.8.2", "packages", "nvidia", need="optional", packages=[packages("datacenter-gpu-manager-exporter=4.8.2-*")]),
    "prometheus": component("3.13.1", "artifact", need="optional", artifacts=[file("prometheus-3.13.1.linux-amd64.tar.gz", arch=["x86_64"])]),
    "nixl": component("1.5.1", "artifact", need="optional", artifacts=[
        file("nixl_cu13-1.5.1-cp310-cp310-manylinux_2_28_x86_64.whl")]),
}
# REQUIRED="NAME...": a node cannot be without these; FLOORS="NAME=VERSION[:MARK]...": the lowest versions that work
for name in os.environ.get("REQUIRED", "").split():
    components[name]["need"] = "required"
for text in os.environ.get("FLOORS", "").split():
    name, _, floor = text.partition("=")
    version, _, mark = floor.partition(":")
    components[name]["floor"] = {"version": version, "mark": mark or "confirmed", "source": "a test"}
exec(changes)
json.dump({"schema": 2, "release": "2026.11", "families": ["plain"], "components": components}, open(target, "w"))
PYTHON
  remembered::keep lock <"$SCRIPTS/releases/2026.11.lock"
}

# release::change PYTHON: another lock file than the usual
release::change() {
  LOCK_CHANGES=$1 software::lock
}
