# shellcheck shell=bash
# What the steps of the release share: is a component for this node, is what is here right, and how to get what is not.
# Every function that cannot go on ends the verb with `step::fail` and one line.
[[ -z ${ULTRACLUSTER_LIB_SOFTWARE:-} ]] || return 0
ULTRACLUSTER_LIB_SOFTWARE=1

for library in release version contract packages fetch retry answer; do
  # shellcheck source=/dev/null
  source "${BASH_SOURCE[0]%/*}/$library.sh"
done

# Nothing that a reboot has to find again: downloads, unpacked archives, staged builds.
readonly SOFTWARE_CACHE=$FILES_WORK/files
readonly SOFTWARE_WORK=$FILES_WORK/builds

# software::for COMPONENT ROLE...: ends `detect` unless nodes of these roles, and this one, should have the component.
software::for() {
  local -r component=$1
  shift
  step::about "$component"
  [[ -n ${RELEASE["$component.version"]:-} ]] || step::not_applicable "release $CLUSTER_RELEASE has no $component"
  [[ " $* " == *" $NODE_ROLE "* ]] || step::not_applicable "a $NODE_ROLE node needs no $component"
  local -r accelerator=${RELEASE["$component.accelerator"]:-any}
  [[ $accelerator == any || $accelerator == "$NODE_ACCELERATOR" ]] ||
    step::not_applicable "$component is for nodes with $accelerator, this one has $NODE_ACCELERATOR"
  [[ ${RELEASE["$component.need"]:-} != optional || " ${CLUSTER_COMPONENTS:-} " == *" $component "* ]] ||
    step::not_applicable "$component is optional, and cluster.json does not ask for it"
}

# software::settle COMPONENT FOUND: ends `detect` when the component has to be installed; returns when what is here stays.
# FOUND is empty where it is absent, and CONTRACT_UNKNOWN where it is here and tells no version.
software::settle() {
  local -r component=$1 found=$2
  local -r preferred=${RELEASE["$component.version"]}
  step::about "$component"
  if software::fits "$component" "$found"; then
    step::component "$component" kept "$found" "$preferred" "$(software::drift "$component")"
    return 0
  fi
  step::component "$component" lacks "$found" "$preferred"
  if [[ $CONTRACT_JUDGEMENT == absent ]]; then
    step::absent "$component $preferred is not here"
  fi
  step::absent "$component is $found, release $CLUSTER_RELEASE needs $(software::least "$component")"
}

# software::fits COMPONENT FOUND: does what is here stay? Never downgraded: what is newer stays, or the node is refused.
software::fits() {
  contract::fits "$1" "$2" || return 1
  [[ $CONTRACT_JUDGEMENT != newer || -z ${CLUSTER_STRICT:-} ]] ||
    step::fail "$1 is $2 on this image, newer than ${RELEASE["$1.version"]} of release $CLUSTER_RELEASE, which allows no other: choose an image or release that fits"
}

# After contract::judge: how far what is here is from the release; nothing where it is not.
software::drift() {
  local -r preferred=${RELEASE["$1.version"]}
  case $CONTRACT_JUDGEMENT in
    newer) printf 'kept-newer: the release has %s' "$preferred" ;;
    drift) printf 'kept-older: the release has %s' "$preferred" ;;
    unknown) printf 'kept: its version is not known, the release has %s' "$preferred" ;;
  esac
}

# The lowest version that would do
software::least() {
  local floor=${RELEASE["$1.floor.version"]:-}
  [[ -z ${CLUSTER_STRICT:-} ]] || floor=''
  printf '%s' "${floor:-${RELEASE["$1.version"]}}"
}

# software::unfit COMPONENT FOUND REASON: what is here can be neither kept nor replaced. Ends the verb where the node cannot be
# without it; else the verb goes on, and the node is degraded.
software::unfit() {
  step::about "$1"
  contract::verdict "$1" "$2"
  [[ $CONTRACT_VERDICT != refused ]] || step::fail "$3"
  step::component "$1" degraded "$2" "${RELEASE["$1.version"]:-}" "$3"
}

# software::proven COMPONENT FOUND DETAIL: the end of `verify`: is the version right? Reports it; ends the verb where a node
# cannot be without it.
software::proven() {
  local -r component=$1 found=$2 detail=$3
  local -r preferred=${RELEASE["$component.version"]}
  local drift
  step::about "$component"
  [[ $found != [0-9]* ]] || step::version "$found"
  if ! software::fits "$component" "$found"; then
    if [[ $CONTRACT_JUDGEMENT == absent ]]; then
      software::unfit "$component" '' "$component $preferred is not here after its set-up"
    else
      software::unfit "$component" "$found" "$component is still $found, release $CLUSTER_RELEASE needs $(software::least "$component")"
    fi
    return 0
  fi
  drift=$(software::drift "$component")
  step::component "$component" kept "$found" "$preferred" "${drift:+$drift; }$detail"
  step::message "${drift:+$drift; }$detail"
}

# software::newest: the newest of the versions on stdin, one per line
software::newest() {
  local line newest=
  while read -r line; do
    if [[ -n $newest ]]; then
      version::compare "$line" "$newest"
      [[ $VERSION_ORDER == newer ]] || continue
    fi
    newest=$line
  done
  printf '%s' "$newest"
}

# --- files ---

# software::lacking COMPONENT FOUND: prints it where what is here does not stay, for `needs`
software::lacking() {
  contract::fits "$@" || echo "$1"
}

# software::fetch COMPONENT: all its files for this node; sets SOFTWARE_FILES to their paths. What did not come when it was
# downloaded ahead is not asked for again.
software::fetch() {
  local -r component=$1
  local -r count=${RELEASE["$component.files"]:-0}
  local number name checksum path
  step::about "$component"
  [[ ! -e $FETCH_LOST/$component ]] || step::fail "$(<"$FETCH_LOST/$component")"
  SOFTWARE_FILES=()
  for ((number = 0; number < count; number++)); do
    name=${RELEASE["$component.$number.name"]}
    checksum=${RELEASE["$component.$number.checksum"]:-}
    [[ -n $checksum ]] ||
      step::fail "$name of release $CLUSTER_RELEASE is not locked: it has no checksum (run: ultracluster software lock)"
    path=$SOFTWARE_CACHE/${checksum:7:16}/$name
    fetch::needs "$path" "${RELEASE["$component.$number.size"]:-0}" || step::fail "$FETCH_ERROR"
    fetch::file "${RELEASE["$component.$number.url"]:-}" "$path" "$checksum" || step::fail "$FETCH_ERROR"
    SOFTWARE_FILES+=("$path")
  done
}

# software::require COMPONENT: ends `install` unless the release has something to install here.
software::require() {
  local -r component=$1
  local -r wanted="$component ${RELEASE["$component.version"]}"
  step::about "$component"
  case ${RELEASE["$component.kind"]} in
    image) step::fail "$wanted has to come with the image (this is $NODE_FAMILY): choose an image that has it" ;;
    bundled)
      ((${RELEASE["$component.files"]:-0} > 0)) || step::fail "$wanted comes with another component, which has not brought it"
      ;;
  esac
  ((${RELEASE["$component.files"]:-0} > 0)) || [[ -n ${RELEASE["$component.packages"]:-} ]] ||
    step::fail "release $CLUSTER_RELEASE has no $component for $NODE_OS on $NODE_ARCH, only for: ${RELEASE["$component.elsewhere"]:-nothing}"
}

# software::unpack COMPONENT: its archive (.tar.gz, .zip, .whl); sets UNPACKED to the folder with the content. Call as
# it is, not in a subshell.
software::unpack() {
  local -r component=$1
  local members
  software::require "$component"
  software::fetch "$component"
  step::say installs "$component"
  local -r archive=${SOFTWARE_FILES[0]}
  UNPACKED=$SOFTWARE_WORK/$component
  rm -rf -- "$UNPACKED"
  mkdir -p "$UNPACKED"
  case $archive in
    *.zip | *.whl) python3 -IS -m zipfile -e "$archive" "$UNPACKED" ;;
    *) tar --extract --file "$archive" --directory "$UNPACKED" --no-same-owner ;;
  esac || {
    rm -rf -- "$UNPACKED"
    step::fail "cannot unpack ${archive##*/}: $(fetch::space "$SOFTWARE_WORK") MiB are free"
  }
  # Most archives have one folder at their top.
  mapfile -t members < <(ls -A "$UNPACKED")
  if ((${#members[@]} == 1)) && [[ -d $UNPACKED/${members[0]} ]]; then
    UNPACKED=$UNPACKED/${members[0]}
  fi
}

# software::publish STAGED PATH: a folder appears complete at its place, or not at all.
software::publish() {
  local -r staged=$1 target=$ULTRACLUSTER_ROOT$2
  local -r new=${target%/*}/.${target##*/}.ultracluster-new
  mkdir -p "${target%/*}"
  chmod 0755 "${target%/*}"
  rm -rf -- "$new" "$target"
  cp -a -- "$staged" "$new"
  chmod -R a+rX "$new"
  mv -T -- "$new" "$target"
  log::info "installed $2"
}

# software::readable PATH: can users read this file, who are not root? By the modes of it and of the folders above.
software::readable() {
  local path=$1 mode modes paths=()
  while [[ -n $path ]]; do paths+=("$ULTRACLUSTER_ROOT$path") path=${path%/*}; done
  modes=$(stat --dereference --format=%a "${paths[@]}") || return 1
  mapfile -t modes <<<"$modes"
  ((0${modes[0]} & 4)) || return 1
  for mode in "${modes[@]:1}"; do ((0$mode & 1)) || return 1; done
}

# software::clean COMPONENT...: what was only needed to install them
software::clean() {
  local component number checksum
  for component in "$@"; do
    rm -rf -- "${SOFTWARE_WORK:?}/$component"
    for ((number = 0; number < ${RELEASE["$component.files"]:-0}; number++)); do
      checksum=${RELEASE["$component.$number.checksum"]:-none}
      rm -rf -- "${SOFTWARE_CACHE:?}/${checksum:7:16}"
    done
  done
  rmdir --ignore-fail-on-non-empty "$SOFTWARE_WORK" "$SOFTWARE_CACHE" "${SOFTWARE_WORK%/*}" 2>/dev/null || true
}

# --- packages ---

# software::install COMPONENT: packages, from its files when the release has them, else from a repository.
software::install() {
  local -r component=$1
  local names
  software::require "$component"
  step::say installs "$component"
  if ((${RELEASE["$component.files"]:-0} > 0)); then
    software::fetch "$component"
    software::dependencies "$component"
    packages::install "${SOFTWARE_FILES[@]}" || step::fail "cannot install ${SOFTWARE_FILES[*]##*/}: $(packages::cause)"
  else
    read -r -a names <<<"${RELEASE["$component.packages"]}"
    software::repository "$component"
    packages::install "${names[@]}" || software::again "${names[@]}" || step::fail "cannot install ${names[*]}: $(packages::cause)"
    packages::mirror_clean
  fi
}

# software::again PACKAGE...: with fresh lists of the image's own repositories. Its lists may be empty, or older than these:
# then what the packages depend on is not to be had.
software::again() {
  [[ -z ${CLUSTER_MIRROR:-} && $(packages::system) == apt ]] || return 1
  case $(packages::cause) in
    # of the repository that was just read, or of the package itself
    *' cannot be set up' | 'Version '*' was not found' | 'Unable to locate package '*) return 1 ;;
  esac
  packages::refresh || log::warn "the lists of the image's repositories cannot be renewed"
  packages::install "$@"
}

# software::dependencies COMPONENT: what its files ask of the distribution, named beside them in the release: from the mirror, or from
# fresh lists of the image's own repositories. What cannot be had is for the installation of the files to judge.
software::dependencies() {
  local -r component=$1
  local name missing=()
  for name in ${RELEASE["$component.packages"]:-}; do
    [[ -n $(packages::version "$name") ]] || missing+=("$name")
  done
  ((${#missing[@]} > 0)) || return 0
  if [[ -z ${CLUSTER_MIRROR:-} ]]; then
    packages::refresh || log::warn "$component: the lists of the image's repositories cannot be renewed"
  elif [[ -n ${RELEASE['mirror.packages']:-} ]]; then
    packages::mirrored "${RELEASE['mirror.packages']}" "${RELEASE['mirror.checksum']}" "${missing[@]}" ||
      log::warn "$component: $PACKAGES_ERROR"
  fi
  packages::install "${missing[@]}" || log::warn "$component: cannot install ${missing[*]}: $(packages::cause)"
  packages::mirror_clean
}

# software::repository COMPONENT: makes its repository known, if it is not one of the image's own.
software::repository() {
  local -r component=$1
  [[ -n ${RELEASE["$component.repository.url"]:-} ]] || return 0
  if [[ -n ${CLUSTER_MIRROR:-} ]]; then
    software::mirrored "$component"
    return
  fi
  # One host serves several components: its list is named after the address.
  local name=${RELEASE["$component.repository.url"]#*://}
  name=${name%/}
  packages::repository "${name//[^A-Za-z0-9]/-}" "${RELEASE["$component.repository.url"]}" "${RELEASE["$component.repository.suite"]:-}" \
    "${RELEASE["$component.repository.key_url"]:-}" "${RELEASE["$component.repository.key_fingerprint"]:-}" ||
    step::fail "$component: $PACKAGES_ERROR"
}

# software::mirrored COMPONENT: its packages, with what they need, from the mirror.
software::mirrored() {
  local -r component=$1
  local names
  [[ -n ${RELEASE['mirror.packages']:-} ]] ||
    step::fail "$component comes from a public repository, this cluster reads only $CLUSTER_MIRROR, and release $CLUSTER_RELEASE records no packages of a mirror for $NODE_OS on $NODE_ARCH: run ultracluster software mirror and deploy, or use an image that has it"
  read -r -a names <<<"${RELEASE["$component.packages"]}"
  packages::mirrored "${RELEASE['mirror.packages']}" "${RELEASE['mirror.checksum']}" "${names[@]}" || step::fail "$component: $PACKAGES_ERROR"
}

# software::needs COMMAND...: what a build from source needs and the image has to have
software::needs() {
  local command
  for command in "$@"; do
    command -v "$command" >/dev/null || step::fail "$command is needed to build from source, and this image has none"
  done
}

# software::module NAME: version of a kernel module for the running kernel; nothing when there is none
software::module() {
  modinfo --field version "$1" 2>/dev/null || true
}

# software::wait_for_image UNIT...: the images of EKS put the kernel modules for a node's devices in place at its boot, by services that
# run beside user data (awslabs/amazon-eks-ami, templates/al2023/runtime/gpu): until they have ended, a driver seems to be missing.
software::wait_for_image() {
  local unit left=${ULTRACLUSTER_IMAGE_SECONDS:-180}
  for unit in "$@"; do
    ! software::is_queued "$unit" || log::info "waiting for $unit.service of the image"
    while software::is_queued "$unit"; do
      ((left > 0)) || { log::warn "$unit.service of the image has not ended" && return; }
      left=$((left - 1))
      sleep 1
    done
  done
}

# Started, or to be started: it has a job in systemd.
software::is_queued() {
  local job
  job=$(systemctl show --property=Job --value "$1.service" 2>/dev/null) || return 1
  [[ -n $job && $job != 0 ]]
}

# software::loader_knows FOLDER: are its libraries in the cache of the dynamic loader?
software::loader_knows() {
  [[ $(ldconfig -p 2>/dev/null) == *"=> $1/"* ]]
}

# software::runs UNIT: enabled and active; in an image that is being built, enabled is enough
software::runs() {
  systemctl is-enabled --quiet "$1.service" && { [[ -n ${NODE_BAKE:-} ]] || systemctl is-active --quiet "$1.service"; }
}

software::start() {
  systemctl enable "$1.service"
  [[ -n ${NODE_BAKE:-} ]] || systemctl start "$1.service"
}
