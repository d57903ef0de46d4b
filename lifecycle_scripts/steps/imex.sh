# shellcheck shell=bash
# Libraries: files
# Slurm's prolog on PCS, at the path that the cluster's setting `Prolog` names, and the part of it that UltraServers need
# (AWS PCS User Guide, "Configure UltraServer instances"). The setting is the cluster's and the path must be there on every
# node, so both lie on all of them, also where no UltraServer is yet: elsewhere they do nothing.

# The same as PROLOG in config/pcs.py.
readonly PROLOG=/opt/ultracluster/prolog
readonly IMEX_PROLOG=$PROLOG.d/91_ultracluster_imex

imex::detect() {
  imex::is_here || step::absent "not as it should be"
  step::present "in place"
}

imex::is_here() {
  imex::has "$PROLOG" slurm_prolog.sh && imex::has "$IMEX_PROLOG" imex_prolog.sh
}

imex::has() {
  files::same "$ULTRACLUSTER_HOME/files/$2" "$1" && [[ -x $ULTRACLUSTER_ROOT$1 ]]
}

imex::install() {
  files::install "$ULTRACLUSTER_HOME/files/imex_prolog.sh" "$IMEX_PROLOG" 0755
  files::install "$ULTRACLUSTER_HOME/files/slurm_prolog.sh" "$PROLOG" 0755
}

imex::verify() {
  imex::is_here || step::fail "not in place"
  step::message "$IMEX_PROLOG"
}
