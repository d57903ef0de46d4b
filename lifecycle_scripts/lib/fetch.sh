# shellcheck shell=bash
# Files from elsewhere, only with their checksum. The only place that downloads anything.
[[ -z ${ULTRACLUSTER_LIB_FETCH:-} ]] || return 0
ULTRACLUSTER_LIB_FETCH=1

# shellcheck source-path=SCRIPTDIR source=retry.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/retry.sh"

# fetch::file URL PATH ALGORITHM:DIGEST
# URL: file://, s3:// (through the AWS CLI, which brings the credentials) or https://. ALGORITHM: sha256, sha512.
# PATH appears complete and verified, or not at all. What a broken transfer left is resumed.
fetch::file() {
  local -r url=$1 path=$2 checksum=$3
  local -r part=${path%/*}/.${path##*/}.part
  fetch::check_arguments "$url" "$checksum" || return 1
  if fetch::matches "$path" "$checksum"; then
    log::info "$path is here already"
    return 0
  fi
  mkdir -p "${path%/*}"
  fetch::download "$url" "$part" || return 1
  if ! fetch::matches "$part" "$checksum"; then
    # A resumed or silently cut transfer looks like this, too: one complete attempt decides.
    log::warn "the checksum of $url does not match: once more from the start"
    rm -f -- "$part"
    fetch::download "$url" "$part" || return 1
  fi
  if ! fetch::matches "$part" "$checksum"; then
    log::error "refused $url: its checksum is not $checksum"
    rm -f -- "$part"
    return 1
  fi
  mv -f -- "$part" "$path"
  log::info "fetched $url"
}

fetch::check_arguments() {
  local -r url=$1 checksum=$2
  if [[ ! $checksum =~ ^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$ ]]; then
    log::error "'$checksum' is not sha256:<64 digits> or sha512:<128 digits>"
    return 1
  fi
  case $url in
    file:///* | s3://*/* | https://*) ;;
    *)
      log::error "cannot fetch $url: only file://, s3:// and https://"
      return 1
      ;;
  esac
}

# fetch::matches PATH ALGORITHM:DIGEST
fetch::matches() {
  local -r path=$1 algorithm=${2%%:*} digest=${2#*:}
  [[ -f $path ]] || return 1
  local found
  found=$("${algorithm}sum" <"$path")
  [[ ${found%% *} == "$digest" ]]
}

fetch::download() {
  local -r url=$1 part=$2 deadline=${ULTRACLUSTER_FETCH_DEADLINE:-600}
  retry::run "$deadline" fetch::attempt "$url" "$part" && return 0
  log::error "could not fetch $url within $deadline s"
  return 1
}

fetch::attempt() {
  local -r url=$1 part=$2
  case $url in
    file://*) cp -- "${url#file://}" "$part" ;;
    s3://*) aws s3 cp --only-show-errors --no-progress "$url" "$part" ;;
    https://*) fetch::https "$url" "$part" ;;
  esac
}

fetch::https() {
  local -r url=$1 part=$2
  local status=0 code
  code=$(curl --fail --silent --show-error --location --proto '=https' --proto-redir '=https' --tlsv1.2 \
    --connect-timeout 10 --speed-limit 1024 --speed-time 30 --continue-at - --output "$part" \
    --write-out '%{http_code}' "$url") || status=$?
  case $status:$code in
    22:408 | 22:429) ;;
    # Either the server cannot resume, or what is here is already as long as the file.
    33:* | 22:416) rm -f -- "$part" ;;
    22:4*) status=$RETRY_GIVE_UP ;;
  esac
  return "$status"
}
