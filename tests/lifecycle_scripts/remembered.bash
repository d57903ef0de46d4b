# shellcheck shell=bash
# What the same inputs come to is worked out once per test file: a program of Python takes as long as a step.

# Runs of single steps source this behind lib/entry.sh: who the node is, and what its release says. Failures are not kept, and whole
# entries do without.
# shellcheck disable=SC2034 # for entry.sh
ENTRY_IDENTIFY=remembered::identify

remembered::identify() {
  local name values=''
  remembered::node_key
  if remembered::find node; then
    # shellcheck source=/dev/null
    source "$FOUND"
    node::tell
  else
    entry::identify_hyperpod || return
    for name in ${!NODE_@} ${!CLUSTER_@} ${!LUSTRE_@} ${!OPENZFS_@}; do
      printf -v name 'export %s=%q\n' "$name" "${!name}"
      values+=$name
    done
    remembered::node_key # a node that is entered late has others meanwhile
    remembered::keep node <<<"$values"
  fi
  # entry::main asks for the release next.
  remembered::key "$ULTRACLUSTER_HOME/releases/$CLUSTER_RELEASE.lock"
  printf -v KEY '%s\n' "$KEY" "$NODE_OS" "$NODE_ARCH" "$CLUSTER_RELEASE" "$CLUSTER_MIRROR" "$CLUSTER_LOCKED" "$NODE_INSTANCE_TYPE"
  if remembered::find release; then
    # shellcheck disable=SC2329
    release::read() { printf '%s\n' "$(<"$FOUND")" >"$2"; }
  else
    # The same under another name
    eval "remembered::$(declare -f release::read)"
    # shellcheck disable=SC2329
    release::read() { remembered::release::read "$@" && remembered::keep release <"$2"; }
  fi
}

remembered::node_key() {
  local path
  remembered::key "$ULTRACLUSTER_HOME/cluster.json" "$ULTRACLUSTER_ROOT"/{opt/ml/config/resource_config.json,etc/os-release} "$FAKE"/{addresses,processor}
  for path in "$ULTRACLUSTER_HOME"/own_steps/* "$ULTRACLUSTER_ROOT"/sys/bus/pci/devices/*; do KEY+=${path##*/}$'\036'; done
}

# remembered::key FILE...: sets KEY to what is in them
remembered::key() {
  local file text
  KEY=
  for file in "$@"; do
    text=
    [[ ! -e $file ]] || ! IFS= read -r -d '' text <"$file"
    KEY+=$text$'\036'
  done
}

# remembered::find WHAT: sets FOUND to the file that was kept for KEY
remembered::find() {
  local path key
  for path in "$REMEMBERED/$1".*.key; do
    [[ -e $path ]] || return 1
    IFS= read -r -d '' key <"$path" || true
    [[ $key == "$KEY" ]] && FOUND=${path%.key} && return
  done
  return 1
}

# remembered::keep WHAT: keeps stdin for KEY
remembered::keep() {
  local -r path=$REMEMBERED/$1.${EPOCHREALTIME/[.,]/}
  cat >"$path" && printf '%s' "$KEY" >"$path.key"
}
