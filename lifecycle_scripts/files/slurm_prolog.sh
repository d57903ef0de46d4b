#!/usr/bin/env bash
# The `Prolog` of PCS clusters: runs every executable of prolog.d next to it, in the order of their names, and ends with the
# first that fails, as Slurm itself does where `Prolog` is a pattern (slurm.conf, "Prolog"). AWS's guide only shows the path
# of one file, so the setting names this one.
set -uo pipefail

for part in "${BASH_SOURCE[0]%/*}"/prolog.d/*; do
  [[ -f $part && -x $part ]] || continue
  "$part" || exit
done
exit 0
