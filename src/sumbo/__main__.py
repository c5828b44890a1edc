"""`python -m sumbo` is the command `sumbo`."""

import sys

from sumbo.cli import main

if __name__ == "__main__":
    sys.exit(main())
