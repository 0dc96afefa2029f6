"""Runs the command line as `python -m nacre`."""
from __future__ import annotations

import signal
import sys

from . import _core


def main() -> int:
    """Runs the command line with the arguments of this process and returns its exit code."""
    # The C++ program handles Ctrl-C by itself while it trains. Before training, the default handler
    # lets Ctrl-C end the process.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
