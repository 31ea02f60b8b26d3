"""Presets: what the loader takes and refuses, and that a user's own file changes what a check says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from conftest import write_files

from capturelint.check import CheckOptions, check_paths
from capturelint.config import load_config
from capturelint.errors import RulebookError, UsageError
from capturelint.model import CheckResult, Confidence, Hardware
from capturelint.rulebook.presets import OnHardware, Preset, choose, load_presets, read_preset

HEAD = "version: 1\nname: ours\nsummary: our engine\n"
EVERYTHING = (
    HEAD
    + """\
when: [engine, engine.graphs]
predicates: { is_recording: true, is_warming_up: false }
flags: { "*use_tape*": true }
breaks: [eager_break]
allows-sync: [sync_is_fine]
capture-safe: [plan]
synchronizes: [wait_for_device]
reads-device: [to_scalar]
starts-capture: [Tape]
regions: ["**:*.in_graph"]
hardware: { rocm: { code: ["*_hip"], flags: [use_hip], predicates: [is_hip] } }
"""
)


# the loader


def read(folder: Path, text: str) -> Preset:
    write_files(folder, {"mine.yaml": text})
    return read_preset(folder / "mine.yaml")


def test_every_key(tmp_path: Path) -> None:
    assert read(tmp_path, EVERYTHING) == Preset(
        name="ours",
        summary="our engine",
        when=("engine", "engine.graphs"),
        breaks=("eager_break",),
        allows_sync=("sync_is_fine",),
        capture_safe=("plan",),
        synchronizes=("wait_for_device",),
        reads_device=("to_scalar",),
        starts_capture=("Tape",),
        regions=("**:*.in_graph",),
        predicates={"is_recording": True, "is_warming_up": False},
        flags={"*use_tape*": True},
        hardware={Hardware.ROCM: OnHardware(("*_hip",), ("use_hip",), ("is_hip",))},
    )


def test_only_a_head_is_needed(tmp_path: Path) -> None:
    preset = read(tmp_path, HEAD)
    assert preset == Preset("ours", "our engine")
    assert preset.always
    assert not read(tmp_path, HEAD + "when: [engine]").always


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "predicate: {}", "mine.yaml: predicate: unknown key; there are version, name, summary, when, breaks"),
        (HEAD + "allows_sync: []", "mine.yaml: allows_sync: unknown key"),
        ("name: a\nsummary: b", "mine.yaml: version: should be 1"),
        (HEAD.replace("1", "2"), "mine.yaml: version: should be 1"),
        ("version: 1\nsummary: b", "mine.yaml: name: should be text"),
        ("version: 1\nname: a\nsummary: ''", "mine.yaml: summary: should be text"),
        (HEAD + "when: engine", "mine.yaml: when: should be a list of names"),
        (HEAD + "regions: [1]", "mine.yaml: regions: should be a list of names"),
        (HEAD + 'eager: ["!"]', "mine.yaml: eager: '!' is not a name or a pattern"),
        (HEAD + 'outside: ["a b"]', "mine.yaml: outside: 'a b' is not a name or a pattern"),
        (HEAD + 'synchronizes: ["!x"]', "mine.yaml: synchronizes: '!x' is not a name or a pattern"),
        (HEAD + "breaks: { a: true }", "mine.yaml: breaks: should be a list of names"),
        (HEAD + "flags: [a]", "mine.yaml: flags: should be a table of name: true or false"),
        (HEAD + "flags: { a: yes please }", "mine.yaml: flags.a: should be true or false"),
        (HEAD + "predicates: { f: 1 }", "mine.yaml: predicates.f: should be true or false"),
        (HEAD + "hardware: [rocm]", "mine.yaml: hardware: should be a table of hardware"),
        (HEAD + "hardware: { amd: {} }", "mine.yaml: hardware.amd: unknown hardware; there are cuda, rocm, "),
        (HEAD + "hardware: { rocm: {} }", "mine.yaml: hardware.rocm: should be a table with some of code, "),
        (HEAD + "hardware: { rocm: { n: [a] } }", "mine.yaml: hardware.rocm.n: unknown key; there are code, flags, "),
        (HEAD + "hardware: { rocm: { code: [HIP] } }", "mine.yaml: hardware.rocm.code: 'HIP' can match no name: "),
        (HEAD + "hardware: { rocm: { code: [a.b] } }", "mine.yaml: hardware.rocm.code: 'a.b' can match no name: "),
        (HEAD + "hardware: { rocm: { code: a } }", "mine.yaml: hardware.rocm.code: should be a list of names"),
        ("- a", "mine.yaml: should be a mapping"),
        ("", "mine.yaml: should be a mapping"),
        ("a: [", "mine.yaml: "),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RulebookError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_bytes(b"\xff")
    with pytest.raises(RulebookError, match=r"^mine\.yaml: 'utf-8' codec can't decode"):
        read_preset(tmp_path / "mine.yaml")


def test_what_comes_with_capturelint(repository: Path) -> None:
    known = load_presets()
    assert sorted(known) == sorted(path.stem for path in (repository / "rules" / "presets").glob("*.yaml"))
    assert [name for name, preset in known.items() if preset.always] == ["pytorch"]


def test_chosen_by_name_or_by_file(tmp_path: Path) -> None:
    write_files(tmp_path, {"lint/mine.yaml": HEAD})
    chosen = choose(["sglang", "lint/mine.yaml"], tmp_path)
    assert [preset.name for preset in chosen] == ["sglang", "ours"]
    assert choose([], tmp_path) == []


def test_what_the_readme_shows_is_valid(repository: Path, tmp_path: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- preset -->\n```yaml\n(.*?)```", readme, re.DOTALL)
    assert shown is not None
    preset = read(tmp_path, shown.group(1))
    # every key there is, but the one that a preset named in the configuration has no use for
    assert [field.name for field in fields(Preset) if not getattr(preset, field.name)] == ["when"]
    for name in load_presets():
        assert f"(`{name}`)" in readme or load_presets()[name].always


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sglan", "unknown preset 'sglan'; there are megatron-core, "),
        ("mine.toml", "unknown preset 'mine.toml'; there are megatron-core, "),
        ("gone.yaml", "preset file gone.yaml does not exist"),
    ],
)
def test_unknown_presets(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose([name], tmp_path)
    assert str(caught.value).startswith(message)


# what a preset of the user's changes


Check = Callable[..., CheckResult]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Checks ``body``, after ``import torch``, in a project whose preset holds ``preset``."""
    monkeypatch.chdir(tmp_path)

    def run(preset: str, body: str, settings: str = "") -> CheckResult:
        write_files(
            tmp_path,
            {
                "capturelint.toml": settings + 'presets = ["lint/mine.yaml"]\n',
                "lint/mine.yaml": HEAD + preset,
                "a.py": "import contextlib\nimport torch\n" + body,
            },
        )
        config = load_config(tmp_path)
        return check_paths(CheckOptions((tmp_path,), config, (), (), Confidence.LIKELY, tmp_path))

    return run


def found(result: CheckResult) -> list[tuple[int, str]]:
    assert result.diagnostics == ()
    return [(finding.span.line, finding.rule) for finding in result.findings]


PREDICATE = """
from engine import is_recording

def step(x: torch.Tensor):  # capturelint: region
    if not is_recording():
        x.item()
"""
OWN_PREDICATE = PREDICATE.replace("from engine import is_recording", "def is_recording():\n    return STATE.recording")
FLAG = """
def step(x: torch.Tensor, options):  # capturelint: region
    if not options.use_tape:
        x.item()
"""
BREAK = """
@eager_break
def host_side(x):
    x.item()

def step(x: torch.Tensor):
    with Segments(torch.cuda.CUDAGraph()):
        host_side(x)

class Segments:
    def __init__(self, graph):
        self.graph = graph
    def __enter__(self):
        self.graph.capture_begin()
    def __exit__(self, *error):
        self.graph.capture_end()
"""
UNBREAKABLE = BREAK.replace("with Segments(torch.cuda.CUDAGraph()):", "with torch.cuda.graph(torch.cuda.CUDAGraph()):")
OUTSIDE = """
class Runner:
    def execute(self, x):
        x.item()

def step(x: torch.Tensor, runner: Runner):
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        inner(x, runner)

def inner(x, runner):
    runner.execute(x)
"""
ALLOWED_CLASS = """
class sync_is_fine:
    def __enter__(self): ...
    def __exit__(self, *error): ...

def step(x: torch.Tensor):  # capturelint: region
    with sync_is_fine():
        x.item()
"""
ALLOWED_FUNCTION = """
@contextlib.contextmanager
def sync_is_fine():
    yield

def step(x: torch.Tensor):  # capturelint: region
    with sync_is_fine():
        x.item()
"""
ALLOWED_IMPORTED = """
from engine import sync_is_fine

def step(x: torch.Tensor):  # capturelint: region
    with sync_is_fine():
        x.item()
"""
#: `allows-sync` is applied to the value of the manager, which is not known in these two forms


@pytest.mark.parametrize(
    ("preset", "body", "line"),
    [
        pytest.param("predicates: { is_recording: true }", PREDICATE, 8, id="predicate"),
        pytest.param("predicates: { engine.is_recording: true }", PREDICATE, 8, id="dotted predicate"),
        pytest.param("predicates: { is_recording: true }", OWN_PREDICATE, 9, id="the project's own predicate"),
        pytest.param('flags: { "use_*": true }', FLAG, 6, id="flag"),
        pytest.param("breaks: [eager_break]", BREAK, 6, id="break"),
        pytest.param('outside: ["*Runner.execute"]', OUTSIDE, 6, id="outside"),
        pytest.param('eager: ["runner"]', OUTSIDE, 6, id="eager"),
        pytest.param("allows-sync: [sync_is_fine]", ALLOWED_CLASS, 10, id="class that allows"),
        pytest.param("allows-sync: [sync_is_fine]", ALLOWED_FUNCTION, 10, id="function that allows"),
        pytest.param("allows-sync: [sync_is_fine]", ALLOWED_IMPORTED, 8, id="import that allows"),
    ],
)
def test_what_a_preset_takes_away(check: Check, preset: str, body: str, line: int) -> None:
    assert found(check("", body)) == [(line, "CG101")]
    assert found(check(preset, body)) == []


def test_the_value_of_a_predicate_counts(check: Check) -> None:
    assert found(check("predicates: { is_recording: false }", PREDICATE)) == [(8, "CG101")]
    assert found(check('flags: { "use_*": false }', FLAG)) == [(6, "CG101")]


def test_what_may_break_the_capture_is_recorded_where_nothing_breaks(check: Check) -> None:
    """A context manager of the engine's own can end a segment; torch's records the function like any other."""
    assert found(check("breaks: [eager_break]", UNBREAKABLE)) == [(6, "CG101")]
    assert found(check("", BREAK)) == [(6, "CG101")]


def test_an_exception_among_eager_names(check: Check) -> None:
    assert found(check('eager: ["!runner", "run*"]', OUTSIDE)) == [(6, "CG101")]


WORDS = """
from engine import Tape, plan, to_scalar, wait_for_device

class Backend:
    def in_graph(self, x: torch.Tensor):
        x.item()

def taped(x: torch.Tensor):
    with Tape():
        torch.cuda.synchronize()

def step(x: torch.Tensor):  # capturelint: region
    wait_for_device()
    value = to_scalar(x)
    plan(x)
    return value
"""


@pytest.mark.parametrize(
    ("preset", "line", "rule", "kind"),
    [
        ('regions: ["**:*.in_graph"]', 8, "CG101", "ours"),
        ("starts-capture: [Tape]", 12, "CG104", "Tape"),
        ("starts-capture: [engine.Tape]", 12, "CG104", "Tape"),
        ("synchronizes: [wait_for_device]", 15, "CG104", "comment"),
        ("reads-device: [engine.to_scalar]", 16, "CG101", "comment"),
    ],
)
def test_what_a_preset_adds(check: Check, preset: str, line: int, rule: str, kind: str) -> None:
    assert found(check("", WORDS)) == []
    (finding,) = check(preset, WORDS).findings
    assert (finding.span.line, finding.rule, finding.regions[0].kind) == (line, rule, kind)


BACKENDS = """
import abc
from platforms import is_cuda, is_hip, use_hip
import npu_ops

class Backend(abc.ABC):
    @abc.abstractmethod
    def run(self, x): ...

class PlainBackend(Backend):
    def run(self, x):
        return x * 2

class Backend_hip(Backend):
    def run(self, x):
        return x.sum().item()

def step(x: torch.Tensor, backend: Backend):  # capturelint: region
    backend.run(x)
    if is_hip():
        x.max().item()
    if is_cuda():
        x.min().item()
    if use_hip:
        x.cpu()
    npu_ops.run(x)
"""
TELLING = """
hardware:
  cuda: { predicates: [is_cuda] }
  rocm: { code: ["*_hip"], flags: [use_hip], predicates: [is_hip] }
  npu: { code: ["npu*"] }
"""


@pytest.mark.parametrize(
    ("hardware", "lines"),
    [
        ("cuda", [25]),
        ("rocm", [18, 23, 27]),
        ("npu", [5]),
    ],
)
def test_code_for_other_hardware_is_not_followed(check: Check, tmp_path: Path, hardware: str, lines: list[int]) -> None:
    write_files(tmp_path, {"npu_ops.py": "import torch\n\n\ndef run(x: torch.Tensor):\n    x.cpu()\n"})
    result = check(TELLING, BACKENDS, f'hardware = "{hardware}"\n')
    assert [finding.span.line for finding in result.findings] == lines


def test_a_call_that_means_other_hardware_is_listed(check: Check, tmp_path: Path) -> None:
    write_files(tmp_path, {"npu_ops.py": "import torch\n\n\ndef run(x: torch.Tensor):\n    x.cpu()\n"})
    (region,) = check(TELLING, BACKENDS).regions
    reasons = {call.text: call.reason for call in region.unresolved}
    assert reasons["npu_ops.run(x)"] == "for other hardware (preset)"


def test_how_torch_was_built_is_a_matter_of_hardware(check: Check) -> None:
    body = "\ndef step(x: torch.Tensor):  # capturelint: region\n"
    body += "    if torch.version.hip is not None:\n        x.item()\n    if torch.version.hip:\n        x.cpu()\n"
    assert found(check("", body)) == []
    assert found(check("", body, 'hardware = "rocm"\n')) == [(6, "CG101"), (8, "CG102")]


def test_what_is_safe_is_not_listed_as_not_followed(check: Check) -> None:
    def not_followed(result: CheckResult) -> list[str]:
        return [call.text for region in result.regions for call in region.unresolved]

    assert "plan(x)" in not_followed(check("", WORDS))
    assert "plan(x)" not in not_followed(check("capture-safe: [plan]", WORDS))


def test_a_preset_of_capturelint_s_is_switched_on_by_an_import(check: Check) -> None:
    body = "def is_graph_capturing_now(): ...\n\nclass Ops:\n    def init_forward_metadata_in_graph(self, x):\n"
    body += "        torch.cuda.synchronize()\n"
    assert found(check("", body)) == []
    result = check("", "import sglang\n" + body)
    assert found(result) == [(8, "CG104")]
    assert result.findings[0].regions[0].kind == "sglang"


def test_a_preset_named_in_the_configuration_needs_no_import(check: Check, tmp_path: Path) -> None:
    body = "class Ops:\n    def init_forward_metadata_in_graph(self, x):\n        torch.cuda.synchronize()\n"
    assert found(check("", body)) == []
    write_files(tmp_path, {"capturelint.toml": 'presets = ["sglang"]\n'})
    config = load_config(tmp_path)
    result = check_paths(CheckOptions((tmp_path,), config, (), (), Confidence.LIKELY, tmp_path))
    assert found(result) == [(5, "CG104")]


MEMO = """
import functools
from engine import is_recording

@functools.lru_cache
def backend() -> str:
    return "eager" if not is_recording() else "graph"

@functools.lru_cache
def limit() -> int:
    return 4

def recorded(x):
    return x.item()

def other(x):
    return x.cpu()

def step(x: torch.Tensor):  # capturelint: region
    run = other if backend() == "eager" else recorded
    return run(x * limit())
"""


def test_a_cached_answer_is_followed_where_it_says_what_runs(check: Check) -> None:
    result = check("predicates: { is_recording: true }", MEMO)
    assert found(result) == [(16, "CG101")]
    assert "backend()" not in [call.text for region in result.regions for call in region.unresolved]
    assert found(check("predicates: { is_recording: false }", MEMO)) == [(19, "CG102")]


SEVERAL = """
class Flash:
    def run(self, x):
        x.cpu()

class Npu_a:
    def run(self, x):
        x.item()

class Npu_b:
    def run(self, x):
        x.item()

class Npu_c:
    def run(self, x):
        x.item()

def get(name):
    if name == "flash":
        return Flash()
    if name == "a":
        return Npu_a()
    if name == "b":
        return Npu_b()
    return Npu_c()

class Model(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.backend = get(name)

    def forward(self, x):
        self.backend.run(x)

def capture(x: torch.Tensor, name):
    model = Model(name)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        model(x)
"""


def test_of_several_backends_those_of_other_hardware_do_not_count(check: Check) -> None:
    assert found(check("", SEVERAL)) == []  # one of four: which one, nothing says
    assert found(check('hardware: { npu: { code: ["npu_*"] } }', SEVERAL)) == [(6, "CG102")]


CHOSEN = """
from platforms import is_cuda

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.run = self.pick()

    def pick(self):
        if is_cuda():
            return self.for_cuda
        return self.native

    def for_cuda(self, x):
        return x.cpu()

    def native(self, x):
        return x.item()

    def forward(self, x):
        return self.run(x)

def capture(x: torch.Tensor):
    layer = Layer()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        layer(x)
"""


@pytest.mark.parametrize(("hardware", "line"), [("cuda", 17), ("npu", 20)])
def test_predicates_of_hardware_hold_outside_regions_too(check: Check, hardware: str, line: int) -> None:
    result = check("hardware: { cuda: { predicates: [is_cuda] } }", CHOSEN, f'hardware = "{hardware}"\n')
    assert [finding.span.line for finding in result.findings] == [line]
