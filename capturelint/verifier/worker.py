"""A worker: runs the user's code on one GPU, one job after the other, and answers over a pipe of its own.

Started as ``python -m capturelint.verifier.worker REQUESTS ANSWERS``, two file descriptors that carry one JSON document
a line. What the user's code prints goes to the worker's stdout and stderr, which are not part of the protocol.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from capturelint.verifier.importing import (
    ImportProblem,
    attribute,
    forget_users_modules,
    load_file,
    prepare_path,
    resolve,
)
from capturelint.verifier.jobs import Job
from capturelint.verifier.observation import Outcome


def main(arguments: list[str]) -> int:
    """Serves requests until their pipe ends."""
    requests = os.fdopen(int(arguments[0]), "r", encoding="utf-8")
    answers = os.fdopen(int(arguments[1]), "w", encoding="utf-8")
    os.set_inheritable(requests.fileno(), False)
    os.set_inheritable(answers.fileno(), False)
    # the parent decides about interrupts, and kills
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    start = time.perf_counter()
    device = _device(answers)
    if device is None:
        return 1
    faulthandler.enable()
    from capturelint.verifier.serve import rehearse, serving

    with serving() as serve:
        rehearse()
        kept = frozenset(sys.modules)
        _say(answers, {"ready": {"device": device, "seconds": time.perf_counter() - start}})
        for line in requests:
            job = Job.from_json(json.loads(line))
            forget_users_modules(kept)
            outcome, healthy = serve(job)
            _say(answers, {"number": job.number, "outcome": outcome.to_json(), "healthy": healthy})
            if not healthy:
                return 0
    return 0


def _say(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def _device(answers: TextIO) -> str | None:
    """The name of the device; None, with the reason sent, where there is none."""
    try:
        import torch
    except Exception as error:
        _say(answers, {"unusable": f"torch cannot be imported: {error}"})
        return None
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < (2, 4):
        _say(answers, {"unusable": f"torch {torch.__version__} is not supported: 2.4 or later is"})
        return None
    try:
        if not torch.cuda.is_available():
            built = "has no CUDA" if torch.version.cuda is None else "finds no CUDA device"
            _say(answers, {"unusable": f"torch {torch.__version__} {built}"})
            return None
        torch.zeros(1, device="cuda")
        return f"{torch.cuda.get_device_name()}, torch {version[0]}.{version[1]}"
    except Exception as error:
        _say(answers, {"unusable": f"CUDA does not start: {error}"})
        return None


def load(job: Job) -> Any:
    """The function of a job that is no program, bound to what its set-up returns. Raises ImportProblem."""
    root = Path(job.root)
    prepare_path(root, job.harness.path if job.harness is not None else ())
    module = load_file(Path(job.path))
    return attribute(module, job.name, f"{Path(job.path).name}:{job.name}")


__all__ = ["ImportProblem", "Outcome", "load", "main", "resolve"]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
