"""``python -m capturelint``."""

from __future__ import annotations

import sys

from capturelint.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
