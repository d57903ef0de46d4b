#!/usr/bin/env bats
# What goes wrong while a node is brought to its release: each ends in one clear line, leaves nothing half-installed, and
# the next run completes it.
# shellcheck disable=SC2016,SC2030,SC2031 # text of fakes; a test is a process of its own

load helpers
load software

# Here a node cannot be without what fails; contract.bats has what becomes of it where it can.
export REQUIRED="enroot pyxis efa-installer libfabric gdrcopy aws-ofi-nccl lustre-client lustre-efa-setup"

# After a failed run of STEP: nothing of it stays, and the next run succeeds.
recovers() {
  assert::status 1
  assert::equal '' "$(find "$ULTRACLUSTER_ROOT/opt/ultracluster" "$ULTRACLUSTER_ROOT/var/lib/ultracluster/work/builds" -mindepth 1 2>/dev/null)"
  run run_steps "$1"
  assert::status 0
  assert::states "$1=installed"
}

@test "a tampered file is refused" {
  echo tampered >>"$FAKE/web/enroot_4.2.1-1_amd64.deb"
  run run_steps enroot
  assert::contains "$(tail -n 1 "$LOG")" "FAILED enroot: refused https://example.org/enroot_4.2.1-1_amd64.deb: its checksum is not sha256:"
  assert::never_called apt-get
  assert::equal '' "$(find "$ULTRACLUSTER_ROOT/var/tmp" -type f)"
  cp "$SANDBOX/web/enroot_4.2.1-1_amd64.deb" "$FAKE/web"
  recovers enroot
}

@test "a truncated download is resumed" {
  echo 100 >"$FAKE/truncate"
  PATIENCE=600 run run_steps pyxis
  assert::status 0
  assert::states pyxis=installed
}

@test "a dead mirror is told before anything is installed, and the step that needs it" {
  touch "$FAKE/web_down"
  run run_steps nvidia_driver cuda_runtime enroot
  assert::last_log_line "FAILED enroot: could not fetch https://example.org/enroot_4.2.1-1_amd64.deb within 0.3 s"
  assert::never_called apt-get
  rm "$FAKE/web_down"
  recovers enroot
}

@test "names that are not resolved for a while are waited for" {
  echo 4 >"$FAKE/dns_failures"
  PATIENCE=600 run run_steps enroot
  assert::status 0
  assert::equal 5 "$(grep -c '^curl' "$FAKE/calls")"
}

@test "a mirror without the file is told at once, one without an answer is asked again" {
  mkdir -p "$FAKE/s3/bucket"
  cluster_json 'cluster["mirror"] = "s3://bucket/mirror"'
  PATIENCE=600 run run_steps enroot
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED enroot: s3://bucket/mirror/2026.11/"
  assert::contains "$(tail -n 1 "$LOG")" "is not there, or not for this node"
  assert::equal 1 "$(grep -c '^aws' "$FAKE/calls")"
  echo 1000 >"$FAKE/dns_failures"
  run run_steps enroot
  assert::contains "$(tail -n 1 "$LOG")" "within 0.3 s"
}

@test "a full disk is told before the download" {
  release::change 'components["efa-installer"]["artifacts"][0]["size"] = 702811844'
  echo 900 >"$FAKE/free_mib"
  run run_steps efa
  assert::last_log_line "FAILED efa: no space for aws-efa-installer-1.50.0.tar.gz: $ULTRACLUSTER_ROOT/var/lib/ultracluster/work/files/$(digest aws-efa-installer-1.50.0.tar.gz) has 900 MiB, it takes 1341 MiB"
  assert::never_called curl
  echo 100000 >"$FAKE/free_mib"
  recovers efa
}

digest() {
  sha256sum "$FAKE/web/$1" | cut -c 1-16
}

@test "a disk that is full during the download is not tried again and again" {
  printf '#!/bin/bash\necho curl >>"$FAKE/calls"\nexit 23\n' >"$SANDBOX/full"
  chmod +x "$SANDBOX/full"
  ln -sf "$SANDBOX/full" "$SANDBOX/bin/curl"
  release::change 'del components["enroot"]["artifacts"][0]["size"]'
  printf '#!/bin/bash\nread -r free <"$FAKE/free_mib"; echo 0 >"$FAKE/free_mib"; echo Avail; echo "$free"\n' >"$SANDBOX/df"
  chmod +x "$SANDBOX/df"
  ln -sf "$SANDBOX/df" "$SANDBOX/bin/df"
  PATIENCE=600 run run_steps enroot
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED enroot: no space left for https://example.org/enroot_4.2.1-1_amd64.deb in "
  assert::equal 1 "$(grep -c '^curl' "$FAKE/calls")"
}

@test "an archive that cannot be unpacked leaves nothing" {
  cp "$FAKE/web/pyxis-0.24.0.tar.gz" "$SANDBOX/whole"
  truncate -s 100 "$FAKE/web/pyxis-0.24.0.tar.gz"
  software::lock
  run run_steps pyxis
  assert::last_log_line "FAILED pyxis: cannot unpack pyxis-0.24.0.tar.gz: 100000 MiB are free"
  cp "$SANDBOX/whole" "$FAKE/web/pyxis-0.24.0.tar.gz"
  software::lock
  recovers pyxis
}

@test "a build that fails leaves nothing" {
  echo 'make: *** no rule' >"$SANDBOX/text"
  printf '#!/bin/bash\ncat "%s" >&2\nexit 2\n' "$SANDBOX/text" >"$SANDBOX/broken"
  chmod +x "$SANDBOX/broken"
  ln -sf "$SANDBOX/broken" "$SANDBOX/bin/make"
  run run_steps pyxis
  assert::status 1
  assert::last_log_line "FAILED pyxis: pyxis cannot be built here: see the lines of make above"
  [[ ! -e $ULTRACLUSTER_ROOT/opt/ultracluster ]]
  ln -sf "$BATS_TEST_DIRNAME/fakes/make" "$SANDBOX/bin/make"
  run run_steps pyxis
  assert::status 0
}

@test "a package lock that somebody else holds for good is told" {
  holds_lock packages
  run run_steps enroot
  lets_go
  assert::contains "$output" "another process holds the package-manager lock"
  assert::contains "$(tail -n 1 "$LOG")" "FAILED enroot: cannot install enroot_4.2.1-1_amd64.deb"
  recovers enroot
}

@test "an installation that was cut short is completed before the next" {
  echo "The following packages are only half configured" >"$FAKE/audit"
  run run_steps enroot
  assert::status 0
  assert::called "dpkg --force-confold --configure --pending"
}

@test "a kernel newer than the Lustre matrix: the client of the image works with its kernel, that is enough" {
  echo 6.14.0-1010-aws >"$FAKE/kernel"
  echo 2.15.6 >"$FAKE/modules/lustre"
  software::script /sbin/mount.lustre
  run run_steps lustre_client
  assert::status 0
  assert::contains "$output" "is not in the Lustre matrix of release 2026.11"
}

@test "a driver that is missing or too old is refused on an image that brings its own" {
  rm "$FAKE/modules/nvidia"
  run run_steps nvidia_driver
  assert::status 1
  assert::last_log_line "FAILED nvidia_driver: the driver is missing, release 2026.11 needs 595.91.07: it comes with the hyperpod-slurm image and is never installed beside it, choose a newer image"
  echo 580.159.04 >"$FAKE/modules/nvidia"
  FLOORS=nvidia-driver=590 software::lock
  run run_steps nvidia_driver
  assert::contains "$(tail -n 1 "$LOG")" "FAILED nvidia_driver: the driver is 580.159.04, release 2026.11 needs 590"
  assert::no_changes
}

@test "a fabric manager of another version than the driver, which does not start with it, is refused" {
  echo 580.159.04-1 >"$FAKE/packages/nvidia-fabricmanager"
  touch "$FAKE/units/nvidia-fabricmanager/broken"
  run run_steps nvidia_driver
  assert::status 1
  assert::last_log_line "FAILED nvidia_driver: the fabric manager does not start, without it CUDA does not (it is 580.159.04-1, the driver 595.91.07: they must have one version): see journalctl -u nvidia-fabricmanager"
}

@test "a loader that knows thousands of libraries is heard to its end" {
  HAVE=efa node::renew
  {
    echo '	libfabric.so.1 (libc6,x86-64) => /opt/amazon/efa/lib/libfabric.so.1'
    for number in {1..4000}; do echo "	library$number.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/library$number.so.1"; done
  } >"$FAKE/loader"
  run run_steps libfabric
  assert::status 0
  assert::states libfabric=already
}

@test "another libfabric before the one of EFA is refused" {
  HAVE=efa node::renew
  echo '	libfabric.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libfabric.so.1' >"$FAKE/loader"
  run run_steps libfabric
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED libfabric: another libfabric comes before the one of EFA: /lib/x86_64-linux-gnu/libfabric.so.1"
}

@test "a plugin that is below the floor is built beside it" {
  HAVE="cuda efa" BUNDLED=1.18.0 FLOORS=aws-ofi-nccl=1.20 node::renew
  run run_steps ofi_nccl
  assert::status 0
  assert::states ofi_nccl=installed
  assert::equal /opt/ultracluster/aws-ofi-nccl-1.21.1/lib "$(cat "$ULTRACLUSTER_ROOT/etc/ld.so.conf.d/099-ultracluster-ofi-nccl.conf")"
}

@test "the plugin is built with the GDRCopy that is here: our own build, else an image's in /opt" {
  local -r which='source "$ULTRACLUSTER_HOME/steps/ofi_nccl.sh"; declare -A RELEASE=([gdrcopy.version]=2.6); ofi_nccl::gdrcopy'
  local folder
  assert::equal '' "$(library software "$which")"
  for folder in gdrcopy ultracluster/gdrcopy-2.6; do
    mkdir -p "$ULTRACLUSTER_ROOT/opt/$folder/include"
    touch "$ULTRACLUSTER_ROOT/opt/$folder/include/gdrapi.h"
    assert::equal "--with-gdrcopy=$ULTRACLUSTER_ROOT/opt/$folder" "$(library software "$which")"
  done
}

@test "a GDRCopy whose library does not tell its patch level: built, found again, and an image's package tells it" {
  HAVE=cuda node::renew
  release::change 'components["gdrcopy"]["version"] = "2.6.1"'
  run run_steps gdrcopy
  assert::states gdrcopy=installed
  assert::contains "$(report::steps | tail -n 1)" '"version": "2.6.1"'
  run run_steps gdrcopy
  assert::states gdrcopy=already

  HAVE=cuda node::renew
  FLOORS=gdrcopy=2.6.1 release::change 'components["gdrcopy"]["version"] = "2.6.1"'
  echo 2.6 >"$FAKE/modules/gdrdrv"
  mkdir -p "$ULTRACLUSTER_ROOT"/{usr/lib,sys/module/gdrdrv}
  touch "$ULTRACLUSTER_ROOT/usr/lib/libgdrapi.so.2.6"
  run run_steps gdrcopy
  assert::states gdrcopy=already
  echo 2.6.0-1 >"$FAKE/packages/libgdrapi"
  run run_steps gdrcopy
  assert::states gdrcopy=installed
}

@test "what builds leave behind goes, the folder of the system that they were in stays" {
  HAVE=cuda node::renew
  mkdir -p "$ULTRACLUSTER_ROOT/var/tmp"
  chmod 1777 "$ULTRACLUSTER_ROOT/var/tmp"
  run run_steps gdrcopy
  assert::states gdrcopy=installed
  assert::equal 1777 "$(stat --format %a "$ULTRACLUSTER_ROOT/var/tmp")"
  assert::equal '' "$(ls -A "$ULTRACLUSTER_ROOT/var/tmp")"
}

@test "the plugin is found where installers before 1.44.0 put it" {
  HAVE=efa node::renew
  mkdir -p "$ULTRACLUSTER_ROOT/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu"
  mv "$ULTRACLUSTER_ROOT/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so" "$ULTRACLUSTER_ROOT/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net.so"
  run run_steps ofi_nccl
  assert::states ofi_nccl=already
}

@test "without gdrdrv: a failure with an older driver, a warning from CUDA 13.3 on" {
  HAVE=cuda node::renew
  rm -r "$ULTRACLUSTER_ROOT"/usr/src/nvidia-*
  software::script /usr/bin/nvidia-smi "| NVIDIA-SMI 595.91.07    Driver Version: 595.91.07    CUDA Version: 13.2  |"
  run run_steps gdrcopy
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED gdrcopy: gdrdrv cannot be built"
  software::script /usr/bin/nvidia-smi "| NVIDIA-SMI 600.1    Driver Version: 600.1    CUDA UMD Version: 13.3  |"
  run run_steps gdrcopy
  assert::status 0
  assert::contains "$output" "this driver can do without"
}

@test "pyxis is built again for another Slurm, and plugged in on the controller" {
  node::is_controller
  run run_steps pyxis
  assert::status 0
  assert::equal "optional /opt/ultracluster/pyxis/spank_pyxis.so" "$(cat "$ULTRACLUSTER_ROOT/opt/slurm/etc/plugstack.conf")"
  software::script /opt/slurm/bin/srun "slurm 25.11.8"
  run run_steps pyxis
  assert::states pyxis=installed
  [[ -e $ULTRACLUSTER_ROOT/opt/ultracluster/pyxis-0.24.0-slurm-25.11.8/spank_pyxis.so ]]
}

@test "two copies at once: one installs, the other finds it done" {
  run_steps efa >"$SANDBOX/one" 2>&1 &
  run run_steps efa
  wait
  assert::status 0
  assert::equal 1 "$(grep -c '^efa_installer' "$FAKE/calls")"
  assert::equal 2 "$(cat "$SANDBOX/one" - <<<"$output" | grep -cE '"state": "(installed|already)"')"
}

@test "killed at any change of efa, the next run completes it" {
  kill_everywhere efa 2
}

@test "killed at any change of the plugin's build, the next run completes it" {
  export HAVE="cuda efa" BUNDLED=1.18.0 FLOORS=aws-ofi-nccl=1.20
  node::renew
  kill_everywhere ofi_nccl 5
}

@test "killed at any change of gdrcopy, the next run completes it" {
  export HAVE=cuda
  node::renew
  kill_everywhere gdrcopy 7
}

@test "killed at any change of enroot, the next run completes it" {
  kill_everywhere enroot 2
}

@test "killed at any change of pyxis, the next run completes it" {
  kill_everywhere pyxis 2
}

@test "killed at any change of environment and holds, the next run completes it" {
  kill_everywhere "environment holds" 4
}
