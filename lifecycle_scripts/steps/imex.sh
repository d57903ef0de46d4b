# shellcheck shell=bash
# The IMEX prolog of UltraServers at the path that the cluster's Slurm setting `Prolog` names (AWS PCS User Guide,
# "Configure UltraServer instances"). The setting is the cluster's and the path must be there on every node, so it lies on
# all of them, also where no UltraServer is yet: elsewhere it does nothing.

# The same as IMEX_PROLOG in config/pcs.py.
readonly IMEX_PROLOG=/opt/ultracluster/prolog.d/91_ultracluster_imex

imex::detect() {
  imex::is_here || step::absent "not as it should be"
  step::present "in place"
}

imex::is_here() {
  files::same "$ULTRACLUSTER_HOME/files/imex_prolog.sh" "$IMEX_PROLOG" && [[ -x $ULTRACLUSTER_ROOT$IMEX_PROLOG ]]
}

imex::install() {
  files::install "$ULTRACLUSTER_HOME/files/imex_prolog.sh" "$IMEX_PROLOG" 0755
}

imex::verify() {
  imex::is_here || step::fail "not in place"
  step::message "$IMEX_PROLOG"
}
