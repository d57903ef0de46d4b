#!/usr/bin/env bats
# enroot's configuration: local disks, hooks, and nothing of somebody else's.
# shellcheck disable=SC2016 # what a fake does is expanded by the fake

load helpers

scenario() {
  local hook
  mkdir -p "$ULTRACLUSTER_ROOT"/{usr/bin,usr/share/enroot/hooks.d,etc/enroot/hooks.d,scratch}
  chmod 1777 "$ULTRACLUSTER_ROOT/scratch"
  touch "$ULTRACLUSTER_ROOT/usr/bin/enroot"
  for hook in 50-slurm-pmi.sh 50-slurm-pytorch.sh; do echo "# $hook" >"$ULTRACLUSTER_ROOT/usr/share/enroot/hooks.d/$hook"; done
}

message() { tail -n 1 <(grep '"step": "enroot_config"' "$REPORT") | sed 's/.*"message": "\([^"]*\)".*/\1/'; }
folder() { on_node HOME="$SANDBOX/home" "$ULTRACLUSTER_ROOT/opt/ultracluster/bin/enroot-folder" "$1"; }

# As enroot reads its configuration (enroot.in, config::load): the first value stays, its words go through the shell.
value() {
  local file key words
  for file in "$ULTRACLUSTER_ROOT"/etc/enroot/enroot.conf "$ULTRACLUSTER_ROOT"/etc/enroot/enroot.conf.d/*.conf; do
    while IFS=$' \t=' read -r key words; do
      [[ $key == "$1" ]] || continue
      on_node HOME=/home/ubuntu bash -c "eval echo \"${words//\/opt\/ultracluster/$ULTRACLUSTER_ROOT\/opt\/ultracluster}\""
      return
    done <"$file"
  done
}

@test "paths on the local disk and the hooks of Slurm" {
  run run_steps enroot_config
  assert::status 0
  assert::states enroot_config=installed
  touch "$ULTRACLUSTER_ROOT/etc/enroot/enroot.conf"
  assert::equal "/scratch/.enroot-$UID/data" "$(value ENROOT_DATA_PATH)"
  assert::equal "/scratch/.enroot-$UID/runtime" "$(value ENROOT_RUNTIME_PATH)"
  assert::equal 700 "$(stat --format %a "$ULTRACLUSTER_ROOT/scratch/.enroot-$UID")"
  [[ -x $ULTRACLUSTER_ROOT/etc/enroot/hooks.d/50-slurm-pmi.sh && -x $ULTRACLUSTER_ROOT/etc/enroot/hooks.d/50-slurm-pytorch.sh ]]
  forget_calls
  run run_steps enroot_config
  assert::states enroot_config=already
  assert::no_changes
}

@test "downloaded layers are shared on Lustre, in folders that others cannot enter; containers are local" {
  local -r cache=$ULTRACLUSTER_ROOT/fsx/.enroot-cache
  mkdir "$ULTRACLUSTER_ROOT/fsx"
  echo '50 1 0:60 / /fsx rw shared:3 - lustre 10.1.0.9@tcp:/abcdefgh rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run run_steps enroot_config
  assert::states enroot_config=installed
  assert::equal 'containers in /scratch, downloads in /fsx/.enroot-cache' "$(message)"
  assert::equal 1777 "$(stat --format %a "$cache")"
  assert::equal "/fsx/.enroot-cache/.enroot-$UID/cache /scratch/.enroot-$UID/data" "$(value ENROOT_CACHE_PATH) $(value ENROOT_DATA_PATH)"
  assert::equal 700 "$(stat --format %a "$cache/.enroot-$UID")"
  run run_steps enroot_config
  assert::states enroot_config=already
  # 16 nodes at once have one folder
  rm -r "$cache/.enroot-$UID"
  for _ in {1..16}; do folder cache >>"$SANDBOX/folders" & done
  wait
  assert::equal "16 /fsx/.enroot-cache/.enroot-$UID/cache" "$(sort "$SANDBOX/folders" | uniq -c | xargs)"
  # one that everybody may rename things in is not used, nor made safe behind its owner's back
  chmod 777 "$cache"
  run run_steps enroot_config
  assert::contains "$output" 'WARN  enroot_config: /fsx/.enroot-cache is not a folder of root'
  assert::equal 777 "$(stat --format %a "$cache")"
  assert::equal "/scratch/.enroot-$UID/cache" "$(folder cache)"
}

@test "the image's own configuration stays, paths in homes and on shared file systems do not" {
  cat >"$ULTRACLUSTER_ROOT/etc/enroot/enroot.conf" <<'CONF'
ENROOT_RUNTIME_PATH        /opt/dlami/nvme/tmp/enroot/user-$(id -u)
ENROOT_DATA_PATH           ${XDG_DATA_HOME}/enroot
ENROOT_TEMP_PATH           /fsx/tmp
#ENROOT_CONFIG_PATH        ${HOME}/enroot
CONF
  run run_steps enroot_config
  assert::status 0
  assert::equal "ENROOT_RUNTIME_PATH        /opt/dlami/nvme/tmp/enroot/user-\$(id -u)
#ENROOT_DATA_PATH           \${XDG_DATA_HOME}/enroot
#ENROOT_TEMP_PATH           /fsx/tmp
#ENROOT_CONFIG_PATH        \${HOME}/enroot" "$(cat "$ULTRACLUSTER_ROOT/etc/enroot/enroot.conf")"
  assert::equal "/scratch/.enroot-$UID/data" "$(value ENROOT_DATA_PATH)"
  run run_steps enroot_config
  assert::states enroot_config=already
}

@test "a folder that somebody else put in the user's place is not used" {
  run_steps enroot_config 2>/dev/null
  mkdir "$SANDBOX/theirs"
  ln -s "$SANDBOX/theirs" "$ULTRACLUSTER_ROOT/scratch/.enroot-$UID"
  assert::equal "/scratch/.enroot-$UID-1/data" "$(folder data)"
  assert::equal '' "$(ls -A "$SANDBOX/theirs")"
}

@test "without local disks: the data volume, else the root disk, never the home" {
  rmdir "$ULTRACLUSTER_ROOT/scratch"
  run run_steps enroot_config
  assert::status 0
  assert::equal 1777 "$(stat --format %a "$ULTRACLUSTER_ROOT/var/lib/ultracluster/enroot")"
  assert::equal "/var/lib/ultracluster/enroot/.enroot-$UID/tmp" "$(folder tmp)"
  sed -i 's|"local_nvme_disks": 8}|"local_nvme_disks": 8, "data_volume": "/opt/sagemaker"}|' "$SCRIPTS/cluster.json"
  echo '81 1 259:99 / /opt/sagemaker rw shared:10 - ext4 /dev/nvme1n1 rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run run_steps enroot_config
  assert::states enroot_config=installed
  assert::equal "/opt/sagemaker/enroot/.enroot-$UID/tmp" "$(folder tmp)"
}

@test "no disk takes it: in the home, apart from other nodes" {
  run_steps enroot_config 2>/dev/null
  rm -rf "$ULTRACLUSTER_ROOT"/{scratch,var/lib/ultracluster,etc/ultracluster/enroot-base}
  printf '#!/bin/bash\necho node-1\n' >"$SANDBOX/uname" && chmod +x "$SANDBOX/uname" && ln -sf "$SANDBOX/uname" "$SANDBOX/bin/uname"
  assert::equal "$SANDBOX/home/.local/share/enroot-node-1/data" "$(folder data)"
}

@test "an enroot without the hooks is named, and one that is not there needs nothing" {
  rm "$ULTRACLUSTER_ROOT"/usr/share/enroot/hooks.d/50-slurm-pmi.sh
  run run_steps enroot_config
  assert::contains "$(message)" 'this enroot brings no hook 50-slurm-pmi.sh'
  rm "$ULTRACLUSTER_ROOT/usr/bin/enroot"
  run run_steps enroot_config
  assert::states enroot_config=skipped
}

@test "killed at any change, the next run completes it" {
  kill_everywhere enroot_config 5
}
