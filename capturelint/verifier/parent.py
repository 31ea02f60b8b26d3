"""The parent of the workers: hands out jobs, watches time and memory, and outlives whatever the user's code does.

Imports no torch and never touches CUDA.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from capturelint.errors import CaptureLintError
from capturelint.verifier.jobs import Job
from capturelint.verifier.observation import Outcome

#: importing torch and making a CUDA context, on a slow machine
_START_LIMIT = 180.0
_TICK = 0.2


class NoGpu(CaptureLintError):
    """Nothing can be verified on this machine; the message says why, in one line."""


@dataclass(frozen=True)
class Pool:
    """How to run workers. ``devices`` are values of CUDA_VISIBLE_DEVICES, one worker each (None: as it is)."""

    devices: tuple[str | None, ...] = (None,)
    #: bytes of host memory that a worker may hold
    memory_limit: int = 64 << 30
    #: the module that a worker runs; tests bring their own
    module: str = "capturelint.verifier.worker"
    progress: Callable[[int, int, str], None] | None = None


def gpu_list() -> tuple[str | None, ...]:
    """What each worker is to see of the machine's GPUs, without asking CUDA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return tuple(part.strip() for part in visible.split(",") if part.strip()) or (None,)
    count = len([path for path in Path("/dev").glob("nvidia[0-9]*") if path.name[6:].isdigit()])
    return tuple(str(index) for index in range(count)) if count > 1 else (None,)


@dataclass
class Ran:
    """What a run of all jobs gave."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    device: str = ""
    #: seconds from the start of each worker until it was ready
    starts: list[float] = field(default_factory=list)
    seconds: float = 0.0


def run_jobs(jobs: Sequence[Job], pool: Pool) -> Ran:
    """Runs all jobs and returns their outcomes by number. Raises NoGpu where no worker can start on a GPU."""
    ran = Ran()
    start = time.perf_counter()
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    workers = [_Worker(device, pool) for device in pool.devices[: max(1, len(jobs))]]
    lock = threading.Lock()
    unusable: list[str] = []
    stop = threading.Event()

    def done(job: Job, outcome: Outcome) -> None:
        with lock:
            ran.outcomes[job.number] = outcome
            if pool.progress is not None:
                pool.progress(len(ran.outcomes), len(jobs), job.name)

    def work(worker: _Worker) -> None:
        try:
            while not stop.is_set():
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    return
                done(job, worker.run(job, stop))
        except NoGpu as error:
            unusable.append(str(error))
        finally:
            worker.stop()

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(_TICK / 4)
    finally:
        # also on Ctrl-C: nobody is left behind
        stop.set()
        for worker in workers:
            worker.kill()
    if unusable and not ran.outcomes:
        raise NoGpu(unusable[0])
    for job in jobs:
        ran.outcomes.setdefault(job.number, Outcome(problem=(unusable or ["it was not run"])[0], status="unverified"))
    ran.device = next((worker.device for worker in workers if worker.device), "")
    ran.starts = [seconds for worker in workers for seconds in worker.starts]
    ran.seconds = time.perf_counter() - start
    return ran


class _Worker:
    """One worker process, started when first needed and again after it died."""

    def __init__(self, device: str | None, pool: Pool) -> None:
        self.visible, self.pool = device, pool
        self.device = ""
        self.starts: list[float] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._requests: Any = None
        self._output: Any = None
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, job: Job, stop: threading.Event) -> Outcome:
        """One job, whatever becomes of the process."""
        if self._process is None or self._process.poll() is not None:
            self._start(stop)
        printed_before = self._printed()
        try:
            self._requests.write(json.dumps(job.to_json()) + "\n")
            self._requests.flush()
        except (BrokenPipeError, ValueError, OSError):
            return self._died("the worker could not be reached", printed_before)
        deadline = time.monotonic() + job.time_limit
        while not stop.is_set():
            message = self._next(_TICK)
            if message is not None:
                if not message.get("healthy", True):
                    self.kill()
                return Outcome.from_json(message["outcome"])
            if self._ended():
                return self._died("", printed_before)
            if time.monotonic() > deadline:
                self.kill()
                return Outcome(problem=f"no answer within {job.time_limit:g} s: it hangs, or needs a longer time limit")
            if self._memory() > self.pool.memory_limit:
                self.kill()
                return Outcome(problem=f"it used more than {self.pool.memory_limit >> 20} MiB of host memory")
        return Outcome(problem="the run was interrupted", status="unverified")

    def _start(self, stop: threading.Event) -> None:
        request_read, request_write = os.pipe()
        answer_read, answer_write = os.pipe()
        environment = dict(os.environ)
        package_root = str(Path(__file__).resolve().parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(
            part for part in (package_root, environment.get("PYTHONPATH", "")) if part
        )
        if self.visible is not None:
            environment["CUDA_VISIBLE_DEVICES"] = self.visible
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        start = time.perf_counter()
        with self._lock:
            if self._stopped:
                raise NoGpu("the run was interrupted")
            self._process = subprocess.Popen(
                [sys.executable, "-m", self.pool.module, str(request_read), str(answer_write)],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                pass_fds=(request_read, answer_write),
                env=environment,
                start_new_session=True,
            )
        os.close(request_read)
        os.close(answer_write)
        self._requests = os.fdopen(request_write, "w", encoding="utf-8")
        self._lines = queue.SimpleQueue()
        threading.Thread(target=_read, args=(answer_read, self._lines), daemon=True).start()
        self._await_ready(start, stop)

    def _await_ready(self, start: float, stop: threading.Event) -> None:
        while not stop.is_set():
            message = self._next(_TICK)
            if message is not None:
                if "unusable" in message:
                    raise NoGpu(message["unusable"])
                self.device = message["ready"]["device"]
                self.starts.append(time.perf_counter() - start)
                return
            if self._ended():
                raise NoGpu(f"the worker ended before it was ready: {self._tail(0) or 'no output'}")
            if time.perf_counter() - start > _START_LIMIT:
                self.kill()
                raise NoGpu(f"the worker was not ready within {_START_LIMIT:g} s")
        raise NoGpu("the run was interrupted")

    def _next(self, seconds: float) -> dict[str, Any] | None:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            return None
        if line is None:
            self._lines.put(None)
            time.sleep(_TICK / 10)
            return None
        message: dict[str, Any] = json.loads(line)
        return message

    def _ended(self) -> bool:
        return self._process is None or (self._process.poll() is not None and self._drained())

    def _drained(self) -> bool:
        """Whether no answer is left: the reader puts None when its pipe ends."""
        try:
            first = self._lines.get(timeout=1.0)
        except queue.Empty:
            return True
        self._lines.put(first)
        return first is None

    def _died(self, otherwise: str, printed_before: int) -> Outcome:
        code = self._process.wait(timeout=10) if self._process is not None else None
        said = self._tail(printed_before)
        if code is None:
            text = otherwise
        elif code < 0:
            with contextlib.suppress(ValueError):
                otherwise = signal.Signals(-code).name
            text = f"the worker crashed ({otherwise or -code})"
        else:
            text = f"the code ended its process with status {code}"
        return Outcome(problem=text + (f"; last output: {said}" if said else ""))

    def _printed(self) -> int:
        try:
            return os.fstat(self._output.fileno()).st_size
        except (AttributeError, OSError, ValueError):
            return 0

    def _tail(self, since: int) -> str:
        try:
            size = os.fstat(self._output.fileno()).st_size
            text = os.pread(self._output.fileno(), 4096, max(since, size - 4096)).decode("utf-8", "replace")
        except (AttributeError, OSError, ValueError):
            return ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        fatal = [index for index, line in enumerate(lines) if line.startswith("Fatal Python error")]
        if fatal:
            # what faulthandler wrote: the innermost frames say where
            frames = [line.replace("File ", "") for line in lines[fatal[-1] :] if line.startswith("File ")]
            return " < ".join(frames[:4])[:600]
        return lines[-1][:200] if lines else ""

    def _memory(self) -> int:
        try:
            assert self._process is not None
            pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, AssertionError):
            return 0

    def stop(self) -> None:
        """Lets the worker end by itself, then makes sure."""
        with contextlib.suppress(OSError, ValueError):
            if self._requests is not None:
                self._requests.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=2.0)
        self.kill()

    def kill(self) -> None:
        """Ends the process with everything that it started."""
        with self._lock:
            self._stopped = self._stopped or threading.current_thread() is threading.main_thread()
            process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)


def _read(descriptor: int, lines: queue.SimpleQueue[str | None]) -> None:
    with os.fdopen(descriptor, "r", encoding="utf-8", errors="replace") as answers:
        for line in answers:
            lines.put(line)
    lines.put(None)


def spread(devices: Iterable[str | None], workers_each: int) -> tuple[str | None, ...]:
    """The devices for a pool with several workers on each GPU."""
    return tuple(device for _ in range(workers_each) for device in devices)
