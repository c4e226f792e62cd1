"""`python -m privacyfunnel` is `privacyfunnel`."""

import sys

from privacyfunnel.cli import main

if __name__ == "__main__":
    sys.exit(main())
