# shellcheck shell=bash
# The package manager, one user at a time. Boot-time upgrades hold the same locks: we wait for them
# (awslabs/awsome-distributed-ai#96, #235).
[[ -z ${ULTRACLUSTER_LIB_PACKAGES:-} ]] || return 0
ULTRACLUSTER_LIB_PACKAGES=1

for library in lock files fetch retry; do
  # shellcheck source=/dev/null
  source "${BASH_SOURCE[0]%/*}/$library.sh"
done

# packages::install PACKAGE...: names (with =version, if need be) from the repositories that the image has configured, or
# paths of package files. Never downgrades: both package managers refuse that unless they are asked for it.
packages::install() {
  if command -v apt-get >/dev/null; then
    packages::apt install "$@"
  elif command -v dnf >/dev/null; then
    packages::dnf install "$@"
  else
    log::error "neither apt-get nor dnf is on this system"
    return 1
  fi
}

# NEEDRESTART_MODE=l: needrestart lists, but does not restart slurmd under its jobs (awslabs/awsome-distributed-ai#1165).
readonly PACKAGES_QUIETLY=(env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l)

# Options that name the mirror instead of the image's own repositories; see packages::mirrored.
PACKAGES_FROM=()

packages::apt() (
  packages::lock
  packages::told packages::repair || exit 1
  packages::or_undo packages::told packages::quietly apt-get -o "DPkg::Lock::Timeout=${ULTRACLUSTER_PACKAGES_DEADLINE:-300}" -o Dpkg::Options::=--force-confold \
    --yes --no-install-recommends --allow-change-held-packages "${PACKAGES_FROM[@]}" "$@"
)

packages::or_undo() {
  local before status=0
  before=$(packages::installed)
  "$@" || status=$?
  ((status == 0)) || packages::undo "$before"
  return "$status"
}

# packages::undo BEFORE: what a failed installation has brought and cannot configure, as a kernel module that does not build
# here: apt would refuse everything after it, also what a node cannot be without.
packages::undo() {
  local names
  mapfile -t names < <(packages::unconfigured | grep -vxF -e "$1" || true)
  ((${#names[@]} > 0)) || return 0
  log::warn "removed, as it cannot be set up: ${names[*]}"
  packages::quietly dpkg --force-depends --force-remove-reinstreq --remove "${names[@]}" || log::warn "dpkg cannot remove it either"
}

packages::unconfigured() {
  { dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' 2>/dev/null || true; } |
    sed -n 's/^\(unpacked\|half-configured\|half-installed\) //p'
}

# What the package manager said at last on stderr; see packages::cause.
readonly PACKAGES_SAID=$ULTRACLUSTER_ROOT/run/ultracluster/packages-said

packages::told() {
  local status=0
  [[ -d ${PACKAGES_SAID%/*} ]] || mkdir -p "${PACKAGES_SAID%/*}"
  "$@" 2>"$PACKAGES_SAID" || status=$?
  cat -- "$PACKAGES_SAID" >&2
  return "$status"
}

# packages::cause: why the last installation failed, in the package manager's words: a package's own script, else its first error
packages::cause() {
  local cause
  cause=$({
    sed -n 's/^dpkg: error processing package \([^ ]*\) .*/\1 cannot be set up/p' "$PACKAGES_SAID"
    # That it keeps no log of its own terminal is no reason.
    sed -n -e '/^E: Can not write log/d' -e 's/^\(E\|Error\): \(.\+\)/\2/p' "$PACKAGES_SAID"
  } 2>/dev/null | head -n 1) || true
  printf '%s' "${cause:-see the log above}"
}

# Without the lock's descriptor: a daemon that a package starts would hold the lock for ever.
packages::quietly() {
  "${PACKAGES_QUIETLY[@]}" "$@" {LOCK_DESCRIPTOR}>&- || return
}

# A run that was killed inside dpkg leaves packages unpacked and not configured; until they are, apt refuses everything.
# dpkg does not wait for its lock: we do.
packages::repair() {
  [[ -n $(dpkg --audit 2>&1) ]] || return 0
  log::warn "completing what an interrupted package installation has left"
  retry::run "${ULTRACLUSTER_PACKAGES_DEADLINE:-300}" packages::configure
}

# Status 1: a package's own script fails, and will again.
packages::configure() {
  local status=0
  packages::quietly dpkg --force-confold --configure --pending || status=$?
  ((status != 1)) || status=$RETRY_GIVE_UP
  return "$status"
}

# dnf waits for its own lock by itself.
packages::dnf() (
  packages::lock
  packages::told packages::dnf_command "$@" || exit
)

packages::dnf_command() {
  local -r verb=$1
  shift
  local held=()
  # What an earlier run has held is for others to leave alone.
  [[ $verb != install || ! -s $ULTRACLUSTER_ROOT$PACKAGES_VERSIONLOCK ]] || held=(--disableplugin=versionlock)
  # name=1.2-3 is apt's way to say it, name-1.2-3 is dnf's.
  dnf --assumeyes --setopt=install_weak_deps=False "${held[@]}" "${PACKAGES_FROM[@]}" "$verb" "${@/=/-}" {LOCK_DESCRIPTOR}>&-
}

# packages::alone COMMAND...: for installers that use the package manager themselves
packages::alone() (
  packages::lock
  command -v dpkg >/dev/null || {
    packages::quietly "$@"
    exit
  }
  packages::repair || exit 1
  packages::or_undo packages::quietly "$@"
)

# The callers are subshells: the lock ends with them.
packages::lock() {
  lock::hold packages "${ULTRACLUSTER_PACKAGES_DEADLINE:-300}" && return 0
  log::error "another process holds the package-manager lock"
  exit 1
}

# packages::refresh: fresh lists of the image's own repositories; dnf renews them by itself
packages::refresh() {
  [[ $(packages::system) == dnf ]] || packages::update
}

# packages::update OPTION...: apt does not wait for the lock of its lists (DPkg::Lock::Timeout is for dpkg's), which the system's own
# timers take at the first boot: we do. A server that cannot be reached is asked again where the caller reads nothing else; one that
# answers without the index is not.
packages::update() {
  retry::run "${PACKAGES_PATIENCE:-${ULTRACLUSTER_PACKAGES_DEADLINE:-300}}" packages::try_update "$@"
}

packages::try_update() {
  local status=0
  packages::apt update "$@" || status=$?
  ((status == 0)) || case "$(packages::cause) $*" in
    *'Could not get lock'*) ;;
    *'404  Not Found'* | *'does not have a Release file'*) status=$RETRY_GIVE_UP ;;
    *Error-Mode=any*) ;;
    *) status=$RETRY_GIVE_UP ;;
  esac
  return "$status"
}

packages::system() {
  if command -v apt-get >/dev/null; then echo apt; else echo dnf; fi
}

# packages::version PACKAGE...: of the first that is installed; nothing if none is
packages::version() {
  local name found
  for name in "$@"; do
    if [[ $(packages::system) == apt ]]; then
      found=$(dpkg-query --show --showformat='${db:Status-Status} ${Version}\n' "$name" 2>/dev/null) || continue
      [[ $found == 'installed '* ]] || continue
      found=${found#installed }
    else
      found=$(rpm --query --queryformat '%{VERSION}-%{RELEASE}\n' "$name" 2>/dev/null) || continue
    fi
    printf '%s' "${found%%$'\n'*}"
    return 0
  done
}

# packages::installed PATTERN...: names of installed packages, one per line
packages::installed() {
  if [[ $(packages::system) == apt ]]; then
    { dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true; } |
      sed -n 's/^installed //p' | sort -u
  else
    { rpm --query --all --queryformat '%{NAME}\n' "$@" 2>/dev/null || true; } | sort -u
  fi
}

# --- holds ---

readonly PACKAGES_VERSIONLOCK=/etc/dnf/plugins/versionlock.list

# packages::not_held NAME...: prints those of them that an upgrade could replace
packages::not_held() {
  local held name
  if [[ $(packages::system) == apt ]]; then
    held=$({ dpkg-query --show --showformat='${db:Status-Want} ${Package}\n' "$@" 2>/dev/null || true; } | sed -n 's/^hold //p')
  else
    held=$(sed -n 's/^\([^#].*\)-[0-9]*:.*/\1/p' "$ULTRACLUSTER_ROOT$PACKAGES_VERSIONLOCK" 2>/dev/null || true)
  fi
  for name in "$@"; do
    [[ $'\n'$held$'\n' == *$'\n'"$name"$'\n'* ]] || echo "$name"
  done
}

packages::hold() {
  if [[ $(packages::system) == apt ]]; then
    retry::run "${ULTRACLUSTER_PACKAGES_DEADLINE:-300}" packages::alone apt-mark hold "$@"
  else
    packages::dnf versionlock add "$@"
  fi
}

# packages::unhold PATTERN...: for installers that use the package manager themselves
packages::unhold() {
  local names held
  mapfile -t names < <(packages::installed "$@")
  ((${#names[@]} > 0)) || return 0
  mapfile -t held < <(printf '%s\n' "${names[@]}" | grep -vxF -e "$(packages::not_held "${names[@]}")" || true)
  ((${#held[@]} > 0)) || return 0
  if [[ $(packages::system) == apt ]]; then
    retry::run "${ULTRACLUSTER_PACKAGES_DEADLINE:-300}" packages::alone apt-mark unhold "${held[@]}"
  else
    packages::dnf versionlock delete "${held[@]}"
  fi
}

# --- repositories ---

# packages::repository NAME URL SUITE KEY_URL FINGERPRINT: on failure PACKAGES_ERROR says why.
# shellcheck disable=SC2034 # the caller reads PACKAGES_ERROR
packages::repository() {
  local -r name=$1 url=$2 suite=$3 key_url=$4 fingerprint=$5
  local -r key=/etc/ultracluster/keys/$name.asc
  PACKAGES_ERROR=
  if [[ -z $key_url || -z $fingerprint ]]; then
    PACKAGES_ERROR="repository $url is not locked: the release has no fingerprint of its key"
    return 1
  fi
  if ! fetch::key "$key_url" "$ULTRACLUSTER_ROOT$key" "$fingerprint"; then
    PACKAGES_ERROR=$FETCH_ERROR
    return 1
  fi
  if [[ $(packages::system) == dnf ]]; then
    files::write "/etc/yum.repos.d/ultracluster-$name.repo" <<EOT
[ultracluster-$name]
name=ultracluster-$name
baseurl=$url
enabled=1
gpgcheck=1
gpgkey=file://$key
EOT
    return 0
  fi
  files::write "/etc/apt/sources.list.d/ultracluster-$name.list" <<<"deb [signed-by=$key] $url ${suite:-/}"
  # Only this list: others may be out of reach.
  fetch::patience "$url" "${ULTRACLUSTER_PACKAGES_DEADLINE:-300}"
  PACKAGES_PATIENCE=$FETCH_PATIENCE packages::update \
    -o "Dir::Etc::SourceList=/etc/apt/sources.list.d/ultracluster-$name.list" -o Dir::Etc::SourceParts=- -o APT::Get::List-Cleanup=0 \
    -o APT::Update::Error-Mode=any && return 0
  # shellcheck disable=SC2034 # the caller reads it
  PACKAGES_ERROR="the repository $url cannot be read: $(packages::cause)"
  [[ $PACKAGES_ERROR == *'Could not get lock'* ]] || fetch::is_silent "$url"
  return 1
}

# --- the mirror ---

# In it the paths are those below the release in the mirror.
readonly PACKAGES_MIRRORED=$FILES_WORK/packages

# packages::mirrored URL CHECKSUM PACKAGE...: URL is the mirror's list of packages for this system. Fetches what these
# packages take and makes it what packages::install installs from. On failure PACKAGES_ERROR says why.
# shellcheck disable=SC2034 # the caller reads PACKAGES_ERROR
packages::mirrored() {
  local -r url=$1 checksum=$2 list=$PACKAGES_MIRRORED/${1##*/}
  shift 2
  local files
  PACKAGES_ERROR=
  if ! fetch::file "$url" "$list" "$checksum"; then
    PACKAGES_ERROR=$FETCH_ERROR
    return 1
  fi
  if ! files=$(packages::mirrored_files "$list" "$@"); then
    PACKAGES_ERROR="the mirror has no package $files for this system: run ultracluster software mirror --renew-packages and deploy"
    return 1
  fi
  if ! packages::fetch_all "${url%/*/*}" <<<"$files"; then
    PACKAGES_ERROR=$FETCH_ERROR
    return 1
  fi
  if [[ $(packages::system) == dnf ]]; then
    # No gpgcheck: each file was verified by a digest that leads back to the lock file; so was the index. The image's own
    # repositories stay, as Amazon Linux has them in S3; one that is out of reach is no reason to stop.
    PACKAGES_FROM=("--repofrompath=ultracluster,file://$PACKAGES_MIRRORED" --setopt=ultracluster.gpgcheck=0
      --setopt=ultracluster.metadata_expire=1 '--setopt=*.skip_if_unavailable=1')
    return 0
  fi
  # trusted=yes for the same reason, and only here: neither the image's lists nor the internet's are read beside it.
  echo "deb [trusted=yes] file:$PACKAGES_MIRRORED ./" >"$PACKAGES_MIRRORED/mirror.list"
  mkdir -p "$PACKAGES_MIRRORED/lists/partial"
  PACKAGES_FROM=(-o "Dir::Etc::SourceList=$PACKAGES_MIRRORED/mirror.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$PACKAGES_MIRRORED/lists")
  packages::update -o APT::Update::Error-Mode=any && return 0
  PACKAGES_ERROR="apt does not read the index of the mirror: $(packages::cause)"
  return 1
}

# packages::fetch_all URL: lines "path object digest" from stdin, eight at once: each is a process of the AWS CLI, which takes
# longer to start than most packages to come. The first that does not come ends it; FETCH_ERROR says why.
packages::fetch_all() {
  local -r url=$1 failed=$PACKAGES_MIRRORED/.failed
  local path object digest running=0
  rm -f -- "$failed"
  while read -r path object digest; do
    ((running < 8)) || { wait -n || true; }
    [[ ! -e $failed ]] || break
    { fetch::file "$url/$object" "$PACKAGES_MIRRORED/$path" "sha256:$digest" || echo "$FETCH_ERROR" >>"$failed"; } </dev/null &
    running=$((running < 8 ? running + 1 : 8))
  done
  wait
  [[ -e $failed ]] || return 0
  read -r FETCH_ERROR <"$failed"
  return 1
}

# packages::mirrored_files LIST PACKAGE...: path, object below the release and SHA-256 of index, packages and all that they
# need, one per line. Fails with the name that the list does not have.
packages::mirrored_files() {
  python3 -IS - "$@" <<'PYTHON'
import json, sys
from fnmatch import fnmatchcase

path, *names = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    content = json.load(file)
packages = {row["file"]: row for row in content["packages"]}
waiting = []
for name in names:
    found = [
        file for file, row in packages.items() if any(fnmatchcase(spec, name) for spec in [row["name"], *row["specs"]])
    ]
    if not found:
        print(name)
        sys.exit(1)
    waiting += found
for row in content["index"]:
    print(row["path"], row["sha256"][:16] + "/" + row["path"].rpartition("/")[2], row["sha256"])
done = set()
while waiting:
    file = waiting.pop()
    if file not in done:
        done.add(file)
        print(file, file, packages[file]["sha256"])
        waiting += packages[file]["needs"]
PYTHON
}

# packages::mirror_clean: what was only needed to install from the mirror
packages::mirror_clean() {
  rm -rf -- "${PACKAGES_MIRRORED:?}"
  rmdir --ignore-fail-on-non-empty "${PACKAGES_MIRRORED%/*}" 2>/dev/null || true
  PACKAGES_FROM=()
}
