"""The parent and its workers: user code may hang, crash, exit or print what it likes. Runs fake workers, no torch."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from processes import children_of

from capturelint.verifier.jobs import Job
from capturelint.verifier.parent import NoGpu, Pool, Ran, gpu_list, run_jobs, spread

ROOT = Path(__file__).resolve().parents[2]
FAKE = """
import json, os, sys, time
requests, answers = os.fdopen(int(sys.argv[1])), os.fdopen(int(sys.argv[2]), "w")

def say(message):
    answers.write(json.dumps(message) + "\\n")
    answers.flush()

if os.environ.get("FAKE_UNUSABLE"):
    say({"unusable": "torch 9.9 has no CUDA"})
    sys.exit(1)
say({"ready": {"device": "a fake, torch 9.9", "seconds": 0.0}})
from capturelint.verifier.observation import Outcome
for line in requests:
    job = json.loads(line)
    name = job["name"]
    print("printed by user code", flush=True)
    if name == "hang":
        time.sleep(600)
    if name == "segfault":
        os.kill(os.getpid(), 11)
    if name == "exit":
        os._exit(5)
    if name == "greedy":
        block = bytearray(300 << 20)
        time.sleep(600)
    outcome = Outcome(device="a fake, torch 9.9", trials=1, notes=[os.environ.get("CUDA_VISIBLE_DEVICES", "-")])
    say({"number": job["number"], "outcome": outcome.to_json(), "healthy": name != "sick"})
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "fake_worker.py").write_text(FAKE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "fake_worker"


def jobs(*names: str, time_limit: float = 20.0) -> list[Job]:
    return [Job(number, "/", "/x.py", 1, name, None, 3, time_limit) for number, name in enumerate(names)]


def problems(ran: Ran) -> list[str | None]:
    return [ran.outcomes[number].problem for number in sorted(ran.outcomes)]


def test_outcomes_come_back_by_number(module: str) -> None:
    ran = run_jobs(jobs("one", "two"), Pool(module=module))
    assert problems(ran) == [None, None]
    assert ran.device == "a fake, torch 9.9"
    assert len(ran.starts) == 1


def test_a_crash_is_a_verdict_and_the_next_job_runs(module: str) -> None:
    ran = run_jobs(jobs("segfault", "fine", "exit", "fine"), Pool(module=module))
    crash, fine, left, again = problems(ran)
    assert crash is not None and crash.startswith("the worker crashed (SIGSEGV)")
    assert left is not None and left.startswith("the code ended its process with status 5")
    assert (fine, again) == (None, None)
    assert len(ran.starts) == 3


def test_a_hang_ends_at_the_time_limit(module: str) -> None:
    start = time.perf_counter()
    hang, fine = problems(run_jobs([*jobs("hang", time_limit=1.0), *jobs("x", "fine")[1:]], Pool(module=module)))
    assert hang == "no answer within 1 s: it hangs, or needs a longer time limit"
    assert fine is None
    assert time.perf_counter() - start < 15


def test_memory_is_limited(module: str) -> None:
    (problem,) = problems(run_jobs(jobs("greedy"), Pool(module=module, memory_limit=200 << 20)))
    assert problem == "it used more than 200 MiB of host memory"


def test_a_worker_that_is_no_longer_healthy_is_replaced(module: str) -> None:
    ran = run_jobs(jobs("sick", "fine"), Pool(module=module))
    assert problems(ran) == [None, None]
    assert len(ran.starts) == 2


def test_no_gpu_is_one_line(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_UNUSABLE", "1")
    with pytest.raises(NoGpu, match=r"^torch 9\.9 has no CUDA$"):
        run_jobs(jobs("one"), Pool(module=module))


def test_jobs_are_spread_over_the_gpus(module: str) -> None:
    ran = run_jobs(jobs(*"abcdefgh"), Pool(spread(("0", "1"), 1), module=module))
    assert {note for outcome in ran.outcomes.values() for note in outcome.notes} <= {"0", "1"}
    assert len(ran.outcomes) == 8


def test_visible_devices_decide_what_each_worker_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    assert gpu_list() == ("2", "5")
    assert spread(gpu_list(), 2) == ("2", "5", "2", "5")


def test_progress_counts_up(module: str) -> None:
    seen: list[tuple[int, int]] = []
    run_jobs(jobs("a", "b"), Pool(module=module, progress=lambda done, total, _: seen.append((done, total))))
    assert seen == [(1, 2), (2, 2)]


def test_an_interrupt_leaves_no_worker(module: str, tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from capturelint.verifier.jobs import Job\nfrom capturelint.verifier.parent import Pool, run_jobs\n"
        f"run_jobs([Job(0, '/', '/x.py', 1, 'hang', None, 3, 60.0)], Pool(module={module!r}))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(ROOT)], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while not (children := children_of(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    process.send_signal(2)
    _, errors = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert children and not any(Path(f"/proc/{pid}").exists() for pid in children)


def test_the_parent_imports_no_torch() -> None:
    code = (
        "import sys, capturelint.verifier.run, capturelint.verifier.api, capturelint.cli.verify\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_threads_end(module: str) -> None:
    before = threading.active_count()
    run_jobs(jobs("one"), Pool(module=module))
    time.sleep(0.5)
    assert threading.active_count() <= before + 1
