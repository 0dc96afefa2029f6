"""Runs the command line as `python -m nacre`."""
from __future__ import annotations

import signal
import sys

from . import _core


def main() -> int:
    """Runs the command line with the arguments of this process and returns its exit code."""
    # The program handles Ctrl-C by itself while it trains; before that, Ctrl-C ends it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
