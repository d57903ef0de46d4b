#!/usr/bin/env bats
# A team's own steps: run by the same frame as ours, after them.
# shellcheck disable=SC2016 # what a step holds is expanded on the node

load helpers

# own FILE NEED [CODE]: a step, named in cluster.json; without code it writes a file and finds it. Beside it runs one of ours, with
# ALL_STEPS=yes all of them.
own() {
  local name=${1#??_}
  [[ -n ${ALL_STEPS:-} ]] || only_steps limits own
  mkdir -p "$SCRIPTS/own_steps"
  if (($# > 2)); then
    printf '%s\n' "$3" >"$SCRIPTS/own_steps/$1.sh"
  else
    cat >"$SCRIPTS/own_steps/$1.sh" <<BASH
$name::detect() { files::is_here && step::present "there" || step::absent "not there"; }
$name::install() { files::write /etc/$name.conf <<<"\$NODE_GROUP \$NODE_ROLE"; }
$name::verify() { files::is_here || step::fail "/etc/$name.conf is not there"; step::version 1.2; step::message "there"; }
files::is_here() { [[ -e \$ULTRACLUSTER_ROOT/etc/$name.conf ]]; }
BASH
  fi
  cluster_json "gpu.setdefault('steps', []).append({'file': '$1.sh', 'need': '$2', 'sha256': '0' * 64})"
}

steps() {
  "$REAL/python3" -IS -c 'import json, sys; print(*[line["step"] for line in map(json.loads, open(sys.argv[1])) if "step" in line])' "$REPORT"
}

# state_of STEP: in the last run, whatever steps of ours come after those of the team
state_of() {
  report::steps | sed -n "s/.*\"step\": \"$1\", \"state\": \"\([a-z]*\)\".*/\1/p" | tail -n 1
}

@test "a good step is installed once, proven each time, and reported" {
  own 10_proxy required
  run on_init_complete
  assert::status 0
  assert::equal installed "$(state_of proxy)"
  assert::equal "gpu compute" "$(<"$ULTRACLUSTER_ROOT/etc/proxy.conf")"
  assert::contains "$(tail -n 1 "$LOG")" "proxy"
  rm "$REPORT"
  run on_init_complete
  assert::status 0
  assert::equal already "$(state_of proxy)"
}

@test "they run after ours, in the order of cluster.json, before Slurm is started and before the last look" {
  export ALL_STEPS=yes
  own 20_agent optional
  own 30_proxy optional
  run on_create
  assert::contains " $(steps) " " container_storage job_access health agent proxy slurm "
}

@test "a required one that fails ends the node, and what comes after it does not run" {
  own 10_proxy required 'proxy::detect() { step::absent "not there"; }
proxy::install() { step::fail "the licence server does not answer"; }
proxy::verify() { :; }'
  own 20_agent optional
  run on_init_complete
  assert::status 1
  assert::equal "FAILED proxy: the licence server does not answer" "$(tail -n 1 "$LOG" | sed 's/.*FAILED/FAILED/')"
  [[ ! -e $ULTRACLUSTER_ROOT/etc/agent.conf ]]
}

@test "an optional one that fails leaves the node degraded, and the others run" {
  own 10_proxy optional 'proxy::detect() { step::absent "not there"; }
proxy::install() { false; }
proxy::verify() { :; }'
  own 20_agent required
  run on_init_complete
  assert::status 0
  assert::equal degraded "$(state_of proxy)"
  assert::equal installed "$(state_of agent)"
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED"
  assert::contains "$(tail -n 1 "$LOG")" "proxy: a step of your own (install stopped with status 1 at: false)"
}

@test "one that hangs is ended in its time" {
  own 10_proxy required 'proxy::detect() { sleep 300; }
proxy::install() { :; }
proxy::verify() { :; }'
  only_steps own
  run on_init_complete ULTRACLUSTER_STEP_MS=600
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED proxy: the step did not end within 10 min"
}

@test "one without a verb says which" {
  own 10_proxy required 'proxy::detect() { step::absent "not there"; }
proxy::install() { :; }'
  run on_init_complete
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED proxy: the step has no proxy::verify"
}

@test "one that does not apply is skipped" {
  own 10_proxy required 'proxy::detect() { [[ $NODE_ROLE != compute ]] || step::not_applicable "compute nodes have no proxy"; }
proxy::install() { :; }
proxy::verify() { :; }'
  run on_init_complete
  assert::status 0
  assert::equal skipped "$(state_of proxy)"
}

@test "a group without steps of its own runs none, though they lie there" {
  own 10_proxy required
  cluster_json "del gpu['steps']"
  run on_init_complete
  assert::status 0
  [[ ! -e $ULTRACLUSTER_ROOT/etc/proxy.conf ]]
}

@test "one that cluster.json names and that is not there ends the node at once" {
  own 10_proxy optional
  rm "$SCRIPTS/own_steps/10_proxy.sh"
  run on_init_complete
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "own_steps/10_proxy.sh"
  assert::contains "$(tail -n 1 "$LOG")" "is not among the scripts"
}

@test "a name that leaves its folder is refused" {
  cluster_json "gpu['steps'] = [{'file': '../../etc/10_x.sh', 'need': 'required', 'sha256': '0' * 64}]"
  run on_init_complete
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "steps of group 'gpu' has"
}

@test "an image that is built has no steps of a cluster" {
  run library steps 'steps::of bake'
  assert::status 0
  [[ " ${output//$'\n'/ } " != *" own "* ]]
}
