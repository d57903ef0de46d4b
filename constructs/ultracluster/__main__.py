"""`python -m ultracluster` is the command `ultracluster` of this Python."""

from ultracluster.cli import main

if __name__ == "__main__":
    main()
