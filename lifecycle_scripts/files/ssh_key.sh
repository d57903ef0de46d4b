#!/usr/bin/env bash
# Makes the key pair with which its user gets from node to node, once, in the home that all nodes have: run by login shells, as the
# user. Which of several nodes makes it is settled by one link; the key is whole when it is there.
set -Eeuo pipefail
umask 077
readonly KEY=$HOME/.ssh/id_ultracluster

authorize() {
  local public
  public=$(ssh-keygen -y -P '' -f "$KEY" 2>/dev/null) || return 0
  public=$(cut -d ' ' -f 1,2 <<<"$public")
  ! grep -qsF -- "$public" "$HOME/.ssh/authorized_keys" || return 0
  # One write, and a line of its own whatever the file ended with
  printf '\n%s ultracluster, from node to node\n' "$public" >>"$HOME/.ssh/authorized_keys"
}

mkdir --parents "$HOME/.ssh"
if [[ ! -e $KEY ]]; then
  new=$(mktemp --directory "$HOME/.ssh/.ultracluster-XXXXXX")
  trap 'rm -rf -- "$new"' EXIT
  ssh-keygen -q -t ed25519 -N '' -C "ultracluster, from node to node" -f "$new/key"
  ln "$new/key" "$KEY" 2>/dev/null || [[ -e $KEY ]]
fi
authorize
