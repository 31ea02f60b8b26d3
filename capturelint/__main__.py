"""``python -m capturelint``."""

from __future__ import annotations

from capturelint.cli.process import run_process

if __name__ == "__main__":
    run_process()
