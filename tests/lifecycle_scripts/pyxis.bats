#!/usr/bin/env bats
# pyxis: one stable path in plugstacks, and no line to a file that is not there.
# shellcheck disable=SC2016 # what a fake does is expanded by the fake

load helpers
load software

readonly LINE='optional /opt/ultracluster/pyxis/spank_pyxis.so'

plugstack() { cat "$ULTRACLUSTER_ROOT/opt/slurm/etc/plugstack.conf"; }
link() { readlink -f "$ULTRACLUSTER_ROOT/opt/ultracluster/pyxis/spank_pyxis.so"; }

@test "another Slurm: the link leads to the new build, the line stays" {
  node::is_controller
  run run_steps pyxis
  assert::status 0
  assert::equal "$LINE" "$(plugstack)"
  assert::equal "$ULTRACLUSTER_ROOT/opt/ultracluster/pyxis-0.24.0-slurm-25.11.4/spank_pyxis.so" "$(link)"
  software::script /opt/slurm/bin/srun "slurm 25.11.8"
  run run_steps pyxis
  assert::status 0
  assert::equal "$LINE" "$(plugstack)"
  assert::equal "$ULTRACLUSTER_ROOT/opt/ultracluster/pyxis-0.24.0-slurm-25.11.8/spank_pyxis.so" "$(link)"
  run run_steps pyxis
  assert::states pyxis=already
}

@test "a line to a plugin that is gone is replaced, all others stay" {
  node::is_controller
  printf '# mine\nrequired /opt/ultracluster/pyxis-0.20.0-slurm-25.11.2/spank_pyxis.so\noptional /opt/other.so\n' >"$ULTRACLUSTER_ROOT/opt/slurm/etc/plugstack.conf"
  run run_steps pyxis
  assert::status 0
  assert::states pyxis=installed
  assert::equal "# mine
optional /opt/other.so
$LINE" "$(plugstack)"
}

@test "the image's own build, and its own line, stay" {
  node::is_controller
  mkdir -p "$ULTRACLUSTER_ROOT/opt/slurm/lib/slurm"
  touch "$ULTRACLUSTER_ROOT/opt/slurm/lib/slurm/spank_pyxis.so"
  echo 'required /opt/slurm/lib/slurm/spank_pyxis.so execute_entrypoint=0' >"$ULTRACLUSTER_ROOT/opt/slurm/etc/plugstack.conf"
  run run_steps pyxis
  assert::status 0
  assert::never_called make
  assert::equal 'required /opt/slurm/lib/slurm/spank_pyxis.so execute_entrypoint=0' "$(plugstack)"
  assert::equal "$ULTRACLUSTER_ROOT/opt/slurm/lib/slurm/spank_pyxis.so" "$(link)"
}

@test "a running controller hands the new line on" {
  node::is_controller
  mkdir -p "$FAKE/units/slurmctld"
  touch "$FAKE/units/slurmctld/active"
  printf '#!/bin/bash\necho "scontrol $*" >>"$FAKE/calls"\n' >"$ULTRACLUSTER_ROOT/opt/slurm/bin/scontrol"
  chmod +x "$ULTRACLUSTER_ROOT/opt/slurm/bin/scontrol"
  run run_steps pyxis
  assert::status 0
  assert::called 'scontrol reconfigure'
}

@test "Slurm's version as distributions print it" {
  software::script /opt/slurm/bin/srun "slurm-wlm 22.05.8"
  run run_steps pyxis
  assert::status 0
  [[ -e $ULTRACLUSTER_ROOT/opt/ultracluster/pyxis-0.24.0-slurm-22.05.8/spank_pyxis.so ]]
}
