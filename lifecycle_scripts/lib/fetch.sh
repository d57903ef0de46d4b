# shellcheck shell=bash
# Files from elsewhere, only with their checksum. The only place that downloads anything.
[[ -z ${ULTRACLUSTER_LIB_FETCH:-} ]] || return 0
ULTRACLUSTER_LIB_FETCH=1

# shellcheck source-path=SCRIPTDIR source=retry.sh
source "${BASH_SOURCE[0]%/*}/retry.sh"

# fetch::file URL PATH ALGORITHM:DIGEST
# URL: file://, s3:// (through the AWS CLI, which brings the credentials), https://, or http:// from this machine itself.
# ALGORITHM: sha256, sha512.
# PATH appears complete and verified, or not at all. What a broken transfer left is resumed. On failure FETCH_ERROR says why.
fetch::file() {
  local -r url=$1 path=$2 checksum=$3
  local -r part=${path%/*}/.${path##*/}.part
  fetch::check_arguments "$url" "$checksum" || return 1
  if fetch::matches "$path" "$checksum"; then
    log::info "$path is here already"
    return 0
  fi
  [[ -d ${path%/*} ]] || mkdir -p "${path%/*}"
  fetch::download "$url" "$part" || return 1
  if ! fetch::matches "$part" "$checksum"; then
    # A resumed or silently cut transfer looks like this, too: one complete attempt decides.
    log::warn "the checksum of $url does not match: once more from the start"
    rm -f -- "$part"
    fetch::download "$url" "$part" || return 1
  fi
  if ! fetch::matches "$part" "$checksum"; then
    fetch::error "refused $url: its checksum is not $checksum"
    rm -f -- "$part"
    return 1
  fi
  mv -f -- "$part" "$path"
  log::info "fetched $url"
}

fetch::check_arguments() {
  local -r url=$1 checksum=$2
  if [[ ! $checksum =~ ^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$ ]]; then
    fetch::error "'$checksum' is not sha256:<64 digits> or sha512:<128 digits>"
    return 1
  fi
  # Before an @ stands a name and a password: what looks like the host there is none.
  local host=${url#*://}
  host=${host%%/*}
  if [[ $host == *@* ]]; then
    fetch::error "cannot fetch $url: an address with credentials"
    return 1
  fi
  case $url in
    file:///* | s3://*/* | https://* | http://127.0.0.1[:/]*) ;;
    '')
      fetch::error "there is no address to fetch this file from: put it into a mirror"
      return 1
      ;;
    *)
      fetch::error "cannot fetch $url: only file://, s3:// and https://"
      return 1
      ;;
  esac
}

# fetch::key URL PATH FINGERPRINT: an OpenPGP key, known by its fingerprint. Needs gpg. One that is here and has expired is
# fetched again, as its owner may have extended it; where that fails it stays.
fetch::key() {
  local -r url=$1 path=$2 fingerprint=$3
  local -r part=${path%/*}/.${path##*/}.part
  local here=
  if fetch::is_key "$path" "$fingerprint"; then
    here=yes
    fetch::is_expired "$path" || return 0
    log::warn "the key $fingerprint has expired, it is fetched again"
  fi
  mkdir -p "${path%/*}"
  rm -f -- "$part"
  fetch::download "$url" "$part" || { [[ -n $here ]] && return 0 || return 1; }
  if ! fetch::is_key "$part" "$fingerprint"; then
    fetch::error "refused $url: it is not the key $fingerprint"
    rm -f -- "$part"
    return 1
  fi
  mv -f -- "$part" "$path"
}

# One key, and no other beside it.
fetch::is_key() {
  [[ -s $1 ]] || return 1
  [[ $(gpg --batch --no-keyring --with-colons --show-keys "$1" 2>/dev/null |
    awk -F: '$1 == "pub" { primary = 1 } $1 == "fpr" && primary { print $10; primary = 0 }') == "$2" ]]
}

fetch::is_expired() {
  local validity expires
  IFS=: read -r _ validity _ _ _ _ expires _ < <(gpg --batch --no-keyring --with-colons --show-keys "$1" 2>/dev/null | grep '^pub:')
  [[ $validity == e || ($expires =~ ^[0-9]+$ && $expires -le $EPOCHSECONDS) ]]
}

# fetch::matches PATH ALGORITHM:DIGEST
fetch::matches() {
  local -r path=$1 algorithm=${2%%:*} digest=${2#*:}
  [[ -f $path ]] || return 1
  local found
  found=$("${algorithm}sum" <"$path")
  [[ ${found%% *} == "$digest" ]]
}

fetch::error() {
  FETCH_ERROR=$1
  log::error "$1"
}

# fetch::space PATH: free MiB where PATH is, or will be
fetch::space() {
  local path=$1
  while [[ ! -e $path ]]; do path=${path%/*}; done
  df --output=avail --block-size=1M "${path:-/}" | tail -n 1 | tr -d ' '
}

# fetch::needs PATH BYTES: is there room for it, and as much again to unpack it?
fetch::needs() {
  local -r path=$1 bytes=$2
  [[ ! -e $path ]] || return 0
  local -r needed=$((bytes * 2 / 1048576 + 1)) free=$(fetch::space "${path%/*}")
  ((free < needed)) || return 0
  fetch::error "no space for ${path##*/}: ${path%/*} has $free MiB, it takes $needed MiB"
  return 1
}

fetch::download() {
  local -r url=$1 part=$2 deadline=${ULTRACLUSTER_FETCH_DEADLINE:-600}
  local status=0
  FETCH_ERROR="could not fetch $url within $deadline s"
  FETCH_DENIED_SINCE=''
  [[ $url == file:* ]] || fetch::spread
  fetch::patience "$url" "$deadline"
  retry::run "$FETCH_PATIENCE" fetch::attempt "$url" "$part" || status=$?
  ((status != 0)) || return 0
  ((status == RETRY_GIVE_UP)) || fetch::is_silent "$url"
  fetch::error "$FETCH_ERROR"
  return 1
}

# There from the first download of a run on
readonly FETCH_SPREAD=$ULTRACLUSTER_ROOT/run/ultracluster/spread
# Components whose files were downloaded ahead and did not come in this run; each file has the cause.
readonly FETCH_LOST=$ULTRACLUSTER_ROOT/run/ultracluster/lost
# Hosts that gave no answer in this run until the deadline: they are asked once more for each further file, and not waited for.
readonly FETCH_SILENT=$ULTRACLUSTER_ROOT/run/ultracluster/silent

# fetch::forget: of an earlier run
fetch::forget() {
  [[ ! -e $FETCH_SPREAD && ! -e $FETCH_LOST && ! -e $FETCH_SILENT ]] || rm -rf -- "$FETCH_SPREAD" "$FETCH_LOST" "$FETCH_SILENT"
}

# fetch::patience URL SECONDS: sets FETCH_PATIENCE to the seconds to retry in
fetch::patience() {
  FETCH_PATIENCE=$2
  [[ ! -e $FETCH_SILENT/$(fetch::host "$1") ]] || FETCH_PATIENCE=0
}

# fetch::is_silent URL: called when the retries have ended
fetch::is_silent() {
  local host
  host=$(fetch::host "$1")
  mkdir -p "$FETCH_SILENT"
  : >"$FETCH_SILENT/$host"
}

fetch::host() {
  local host=${1#*://}
  printf '%s' "${host%%/*}"
}

# Hundreds of nodes of a group start in the same second: the first downloads of a run wait a moment, the longer the more
# nodes there are. What comes after them is spread by that.
fetch::spread() {
  local -r most=${ULTRACLUSTER_SPREAD:-$((${CLUSTER_NODES:-240} / 8 < 60 ? ${CLUSTER_NODES:-240} / 8 : 60))}
  local pause
  [[ ! -e $FETCH_SPREAD ]] && ((most > 0)) || return 0
  # RANDOM has 15 bits.
  clock::to_seconds pause "$(((RANDOM << 15 | RANDOM) % (most * 1000)))"
  log::info "waiting $pause s, so that not all nodes ask at once"
  sleep "$pause"
  # Behind the pause: others that start beside this one wait, too.
  mkdir -p "${FETCH_SPREAD%/*}"
  : >"$FETCH_SPREAD"
}

# A right may be younger than the node: S3 denies it for a minute or two after a role was made. GitHub says 403, too, when
# too many ask from one address.
fetch::is_denied_for_good() {
  local now
  clock::now now
  FETCH_DENIED_SINCE=${FETCH_DENIED_SINCE:-$now}
  ((now - FETCH_DENIED_SINCE >= ${ULTRACLUSTER_DENIED_DEADLINE:-120} * 1000))
}

fetch::attempt() {
  local -r url=$1 part=$2
  case $url in
    file://*) cp -- "${url#file://}" "$part" ;;
    s3://*) fetch::s3 "$url" "$part" ;;
    http*) fetch::https "$url" "$part" ;;
  esac || fetch::failed "$url" "$part" "$?"
}

# Another attempt helps neither a full disk nor an image without the program.
fetch::failed() {
  local -r url=$1 part=$2 status=$3
  if ((status == 127)); then
    FETCH_ERROR="cannot fetch $url: this image has no command $([[ $url == s3:* ]] && echo aws || echo curl)"
    return "$RETRY_GIVE_UP"
  fi
  if (($(fetch::space "$part") == 0)); then
    FETCH_ERROR="no space left for $url in ${part%/*}"
    return "$RETRY_GIVE_UP"
  fi
  return "$status"
}

fetch::s3() {
  local -r url=$1 part=$2
  local status=0 said
  said=$(aws s3 cp --only-show-errors --no-progress "$url" "$part" 2>&1) || status=$?
  [[ -z $said ]] || log::warn "aws: $said"
  case $said in
    # The file does not come with time; rights, credentials, names and the network do.
    *'(404)'* | *NoSuchKey* | *NoSuchBucket*)
      FETCH_ERROR="$url is not there, or not for this node: ${said##*: }"
      status=$RETRY_GIVE_UP
      ;;
    *'(403)'* | *AccessDenied*)
      FETCH_ERROR="$url is not for this node: ${said##*: }"
      ! fetch::is_denied_for_good || status=$RETRY_GIVE_UP
      ;;
  esac
  return "$status"
}

fetch::https() {
  local -r url=$1 part=$2
  local status=0 code
  code=$(curl --fail --silent --show-error --location --proto "=${url%%:*}" --proto-redir '=https' --tlsv1.2 \
    --connect-timeout 10 --speed-limit 1024 --speed-time 30 --continue-at - --output "$part" \
    --write-out '%{http_code}' "$url") || status=$?
  case $status:$code in
    22:408 | 22:429) ;;
    # A clock that is set later makes it right; until then it is the cause.
    60:*)
      TZ=UTC printf -v code '%(%Y-%m-%d %H:%M)T' -1
      FETCH_ERROR="could not fetch $url: its certificate is not accepted (the clock of this node says $code)"
      ;;
    22:403)
      FETCH_ERROR="could not fetch $url: HTTP status $code"
      ! fetch::is_denied_for_good || status=$RETRY_GIVE_UP
      ;;
    # Either the server cannot resume, or what is here is already as long as the file.
    33:* | 22:416) rm -f -- "$part" ;;
    22:4*)
      FETCH_ERROR="could not fetch $url: HTTP status $code"
      status=$RETRY_GIVE_UP
      ;;
  esac
  return "$status"
}
