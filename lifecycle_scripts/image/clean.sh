#!/usr/bin/env bash
# The last thing before an image is made of this machine: takes away what must not be the same on every node that starts
# from it (host keys, machine-id, who may log in), what would keep cloud-init from running there, and what is left of the
# build. What a HyperPod image needs stays: TaskProlog, task_prolog.d and the service's own folders are not touched.
set -euo pipefail
umask 022
ULTRACLUSTER_ROOT=${ULTRACLUSTER_ROOT:-}
readonly ROOT=$ULTRACLUSTER_ROOT

# ParallelCluster asks for its own script before an image is made (ParallelCluster User Guide, Modify an AWS ParallelCluster
# AMI); its build-image runs it last, too.
clean::parallelcluster() {
  local -r script=$ROOT/usr/local/sbin/ami_cleanup.sh
  [[ ! -x $script ]] || "$script"
}

# Else the first boot of a node counts as a later one, and its user data does not run.
clean::cloud_init() {
  ! command -v cloud-init >/dev/null || cloud-init clean --logs
  rm -rf -- "$ROOT"/var/lib/cloud/{instance,instances,data,sem}
}

clean::identity() {
  local file
  rm -f -- "$ROOT"/etc/ssh/ssh_host_*_key "$ROOT"/etc/ssh/ssh_host_*_key.pub "$ROOT/var/lib/systemd/random-seed"
  for file in "$ROOT/etc/machine-id" "$ROOT/var/lib/dbus/machine-id"; do
    # Empty, not gone: systemd makes a new one. The second is a link to the first on most systems.
    [[ -L $file || ! -e $file ]] || : >"$file"
  done
}

# Packer's key is among them; its session goes on without.
clean::people() {
  local home
  for home in "$ROOT/root" "$ROOT"/home/*; do
    rm -f -- "$home"/.ssh/authorized_keys "$home"/.{bash,python,zsh}_history "$home"/.{lesshst,viminfo}
    rm -rf -- "$home/.aws"
  done
}

clean::build() {
  local file
  if command -v apt-get >/dev/null; then
    apt-get clean
  elif command -v dnf >/dev/null; then
    dnf clean packages --quiet
  fi
  rm -rf -- "$ROOT"/var/log/{ultracluster,provision} "$ROOT"/run/ultracluster "$ROOT"/var/lib/ultracluster/{work,health,metrics} "$ROOT"/var/lib/ultracluster-agent "$ROOT"/var/log/journal/*
  for file in "$ROOT"/var/log/{syslog,messages,secure,auth.log,cron,dmesg,wtmp,btmp,lastlog,cloud-init.log,cloud-init-output.log}; do
    [[ ! -e $file ]] || : >"$file"
  done
  rm -rf -- "$ROOT"/var/log/{amazon/ssm,chef}/*
}

clean::parallelcluster
clean::cloud_init
clean::identity
clean::people
clean::build
# This folder, too: a node fetches the scripts of its cluster.
[[ $ROOT/opt/ultracluster/scripts != "$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)" ]] || rm -rf -- "$ROOT/opt/ultracluster/scripts"
echo "clean: ready for an image"
