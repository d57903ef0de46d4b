# shellcheck shell=bash
# Mountpoint for Amazon S3, with which users of Slurm nodes mount the buckets that their jobs may read (storage.job_buckets).
# need: optional
#
# Amazon Linux 2023 has it in its own repository. For Ubuntu AWS publishes a package and its signature, but no digest that a lock
# could name: it is installed only where one of the keys below has signed it (awslabs/mountpoint-s3-csi-driver 57c6bed, Dockerfile,
# and awslabs/mountpoint-s3, doc/INSTALL.md; read 2026-11-28).
# shellcheck source-path=SCRIPTDIR source=../../../lifecycle_scripts/lib/fetch.sh
source "$ULTRACLUSTER_HOME/lib/fetch.sh"
# shellcheck source-path=SCRIPTDIR source=../../../lifecycle_scripts/lib/packages.sh
source "$ULTRACLUSTER_HOME/lib/packages.sh"

readonly MOUNTPOINT_VERSION=1.23.0
readonly MOUNTPOINT_RELEASES=https://s3.amazonaws.com/mountpoint-s3-release
readonly MOUNTPOINT_KEYS="8AEFE705EBE329C0948C75A66F1C3B3AEF4B030B 673FE4061506BB469A0EF857BE397A52B086DA5A"
readonly MOUNTPOINT_FOLDER=$ULTRACLUSTER_ROOT/var/cache/ultracluster/mountpoint

mountpoint::version() { { mount-s3 --version 2>/dev/null || true; } | sed -n 's/^mount-s3 \([0-9][^ ]*\).*/\1/p'; }

mountpoint::detect() {
  [[ $NODE_ROLE == compute || $NODE_ROLE == login ]] || step::not_applicable "a $NODE_ROLE node runs no jobs"
  [[ -n $(mountpoint::version) ]] || step::absent "no mount-s3"
  step::present "$(mountpoint::version)"
}

mountpoint::install() {
  if [[ $NODE_OS == al2023 ]]; then
    packages::install mount-s3 || step::fail "mount-s3 cannot be installed: Amazon Linux 2023 has it since 2023.9.20251110"
    return 0
  fi
  local arch=$NODE_ARCH
  [[ $arch != aarch64 ]] || arch=arm64
  local -r package=$MOUNTPOINT_FOLDER/mount-s3_${MOUNTPOINT_VERSION}_$arch.deb
  mkdir -p "$MOUNTPOINT_FOLDER"
  fetch::download "$MOUNTPOINT_RELEASES/public_keys/KEYS" "$MOUNTPOINT_FOLDER/KEYS" || step::fail "$FETCH_ERROR"
  fetch::download "$MOUNTPOINT_RELEASES/$MOUNTPOINT_VERSION/$arch/mount-s3-$MOUNTPOINT_VERSION-$arch.deb" "$package" || step::fail "$FETCH_ERROR"
  fetch::download "$MOUNTPOINT_RELEASES/$MOUNTPOINT_VERSION/$arch/mount-s3-$MOUNTPOINT_VERSION-$arch.deb.asc" "$package.asc" || step::fail "$FETCH_ERROR"
  mountpoint::is_signed "$package" || {
    rm -rf -- "$MOUNTPOINT_FOLDER"
    step::fail "refused mount-s3 $MOUNTPOINT_VERSION: none of Mountpoint's keys has signed it"
  }
  packages::install "$package" || step::fail "mount-s3 $MOUNTPOINT_VERSION cannot be installed: see the lines above"
  rm -rf -- "$MOUNTPOINT_FOLDER"
}

# mountpoint::is_signed PACKAGE: a good signature, and by a key with one of the fingerprints. Whatever else KEYS holds is no reason.
mountpoint::is_signed() {
  local said fingerprint
  local -r keyring=$MOUNTPOINT_FOLDER/keyring
  rm -rf -- "$keyring"
  mkdir -m 0700 "$keyring"
  gpg --batch --homedir "$keyring" --import "$MOUNTPOINT_FOLDER/KEYS" || return 1
  said=$(gpg --batch --homedir "$keyring" --status-fd 1 --verify "$1.asc" "$1" 2>/dev/null) || return 1
  [[ $said == *'[GNUPG:] GOODSIG '* ]] || return 1
  # The last word of the line is the fingerprint of the primary key.
  fingerprint=$(sed -n 's/^\[GNUPG:\] VALIDSIG .* \([0-9A-F]*\)$/\1/p' <<<"$said")
  [[ -n $fingerprint && " $MOUNTPOINT_KEYS " == *" $fingerprint "* ]]
}

mountpoint::verify() {
  [[ -n $(mountpoint::version) ]] || step::fail "mount-s3 does not run"
  [[ -e $ULTRACLUSTER_ROOT/dev/fuse ]] || step::fail "there is no /dev/fuse"
  step::version "$(mountpoint::version)"
}
