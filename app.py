"""The CDK app of this project, run by `ultracluster` and by the CDK CLI (`cdk synth -c env=dev`)."""

import sys

from ultracluster.app import main

if __name__ == "__main__":
    sys.exit(main(__file__))
