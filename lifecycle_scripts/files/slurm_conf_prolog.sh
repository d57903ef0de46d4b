#!/bin/sh
# Nodes get this file together with slurm.conf, so that it is there from a node's first job on, also while our scripts are
# still at work on it. It runs what they put there before a job; where there is nothing yet, nothing is wrong.
[ ! -x /opt/ultracluster/prolog ] || exec /opt/ultracluster/prolog "$@"
