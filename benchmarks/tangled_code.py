"""Functions, classes and graphs beyond measure: too many of them, or too closely tied to each other."""

from __future__ import annotations

from collections.abc import Callable

from generated import Files, beside, numbered, region


def members(size: int) -> Files:
    """A class with ``size`` attributes and ``size`` methods, all of which are read and called."""
    stores = numbered("        self.a# = torch.zeros(#)", size)
    methods = numbered("    def work#(self, x):\n        return x + self.a#\n", size)
    text = f"import torch\n\n\nclass Big:\n    def __init__(self):\n{stores}\n\n{methods}"
    yield from beside(text, "big = lib.Big()\n" + numbered("x = big.work#(x)", size) + "\nself.out = x")


def dispatch(size: int) -> Files:
    """A table of ``size`` functions, one of which is called by a key that nobody knows."""
    functions = numbered("def f#(x):\n    return x + #\n", size, "\n\n")
    text = f"{functions}\n\nTABLE = {{{numbered('#: f#', size, ', ')}}}\nROW = [{numbered('f#', size, ', ')}]\n"
    yield from beside(text, "y = lib.TABLE[other](x)\nself.out = lib.ROW[other](y)")


def arguments(size: int) -> Files:
    """One function that is called with ``size`` arguments, in ``size`` places."""
    parameters, given = numbered("a#", size, ", "), ", ".join(["x"] * size)
    text = f"def work({parameters}):\n    return a{size - 1} + 1\n\n\ndef any(*rest, **named):\n    return rest[0]\n"
    keywords = numbered("a#=x", size, ", ")
    yield from beside(
        text,
        f"x = lib.work({given})\nx = lib.work({keywords})\nx = lib.any({given}, {keywords})\nself.out = x",
    )


def combinations(size: int) -> Files:
    """A function that calls another, called with ``size`` different arguments each."""
    text = (
        "def inner(x, a, b):\n    return x * a + b\n\n\n"
        "def outer(x, a, b):\n    return inner(x, a, b) + inner(x, b, a)\n"
    )
    yield from beside(text, numbered("x = lib.outer(x, #, -#)", size) + "\nself.out = x")


def tangled(size: int) -> Files:
    """``size`` functions of twelve parameters that call each other with their parameters in another order."""
    parameters = ", ".join(f"a{i}" for i in range(12))
    turned = ", ".join(f"a{(i * 5 + 1) % 12}" for i in range(12))
    functions = "\n\n".join(
        f"def f{i}({parameters}):\n    if a3:\n        return f{(i + 1) % size}({turned})\n"
        f"    return f{(i * 7 + 3) % size}({turned}) + f{(i * 3 + 1) % size}({parameters})\n"
        for i in range(size)
    )
    given = ", ".join(["x", "1", "None", "other", "flag", "'a'", "x + 1", "[x]", "{1: x}", "2.0", "(x, x)", "self"])
    yield from beside(functions, f"self.out = lib.f0({given})")


def stars(size: int) -> Files:
    """A ring of ``size`` modules, each of which imports all names of the next; the region reads one of them all."""
    for i in range(size):
        yield f"s{i}.py", f"from s{(i + 1) % size} import *\n\n\ndef f{i}(x):\n    return f{(i + 7) % size}(x)\n"
    yield "run.py", region(f"self.out = f{size // 2}(x)", "from s0 import *\n")


def passed_on(size: int) -> Files:
    """A name that ``size`` modules import from each other in a row."""
    for i in range(size):
        yield f"p{i}.py", f"from p{i + 1} import work, VALUE\n"
    yield f"p{size}.py", "VALUE = 3\n\n\ndef work(x):\n    return x.item()\n"
    yield "run.py", region("self.out = work(x) + VALUE", "from p0 import work, VALUE\n")


def decorators(size: int) -> Files:
    """A function with ``size`` decorators of the project."""
    text = (
        "import functools\n\n\ndef wrap(function):\n    @functools.wraps(function)\n    def inner(*args, **named):\n"
        f"        return function(*args, **named)\n\n    return inner\n\n\n{'@wrap' + chr(10)}"
    ).replace("@wrap\n", "@wrap\n" * size)
    yield from beside(text + "def work(x):\n    return x + 1\n", "self.out = lib.work(x)")


def properties(size: int) -> Files:
    """``size`` properties, each of which reads the next two."""
    text = numbered("    @property\n    def p#(self):\n        return self.p$ + self.q$\n", size)
    text += "\n" + numbered("    @property\n    def q#(self):\n        return self.p$ * self.q$\n", size)
    text = f"class Deep:\n    def __init__(self, x):\n        self.p{size} = x\n        self.q{size} = x\n\n{text}"
    yield from beside(text, "self.out = lib.Deep(x).p0")


def assignments(size: int) -> Files:
    """An attribute that a constructor assigns ``size`` times."""
    yield (
        "lib.py",
        (
            "import torch\n\n\nclass Often:\n    def __init__(self, x):\n        self.a = x\n"
            + numbered("        self.a = torch.cat([self.a, torch.zeros(#)])", size)
            + "\n"
        ),
    )
    yield (
        "run.py",
        region("self.out = x * lib.Often(4).a + other.a", "import lib\n").replace("other)", "other: lib.Often)"),
    )


def partials(size: int) -> Files:
    """``partial(partial(...))``, ``size`` times."""
    yield "lib.py", "def work(*values):\n    return values[0]\n"
    yield (
        "run.py",
        region(
            "from functools import partial\nf = lib.work\n"
            + numbered("f = partial(f, x, #)", size)
            + "\nself.out = f(x)",
            "import lib\n",
        ),
    )


def closures(size: int) -> Files:
    """Functions within each other, ``size`` deep (the parser allows a hundred), each called by the one around it."""
    lines = ["    " * i + f"def f{i}(a{i}):" for i in range(size)]
    lines += ["    " * size + "return a0 + " + numbered("a#", size, " + ")]
    lines += ["    " * i + f"return f{i}(a{i - 1} if a0 else 1)" for i in range(size - 1, 0, -1)]
    yield from beside("\n".join(lines) + "\n", "self.out = lib.f0(x)")


def diamonds(size: int) -> Files:
    """``size`` pairs of classes, each of which derives from both of the pair before."""
    text = "class A0:\n    def work(self, x):\n        return x\n\n\nclass B0:\n    pass\n\n\n"
    text += numbered("class A$(A#, B#):\n    pass\n\n\nclass B$(A#, B#):\n    pass\n", size, "\n\n")
    yield from beside(text + f"\n\nclass Last(A{size}):\n    pass\n", "self.out = lib.Last().work(x)")


def called_around(size: int) -> Files:
    """A region in a function that ``size`` others call, each with something else."""
    calls = numbered("def use#(runner):\n    runner.capture(#, [#, 'a#'])\n", size, "\n\n")
    yield "run.py", region("self.out = x * other[0] if flag else x") + "\n\n" + calls


def callers_of_callers(size: int) -> Files:
    """A region around which ``size`` functions call each other in a row, each from two places."""
    calls = numbered("def use$(runner, n):\n    use#(runner, n + 1)\n    use#(runner, n)\n", size, "\n\n")
    yield (
        "run.py",
        region("self.out = x * other") + f"\n\ndef use0(runner, n):\n    runner.capture(True, n)\n\n\n{calls}",
    )


def replays(size: int) -> Files:
    """One graph that is replayed in ``size`` methods."""
    methods = numbered(
        "    def run#(self, x):\n        self.static.copy_(x)\n        self.graph.replay()\n        return self.out\n",
        size,
    )
    yield "run.py", region("self.out = x + 1") + "\n" + methods


def replays_in_one(size: int) -> Files:
    """One graph that is replayed ``size`` times in one function."""
    lines = numbered("        self.static.copy_(x)\n        self.graph.replay()\n        x = self.out + #", size)
    yield "run.py", region("self.out = x + 1") + f"\n    def run(self, x):\n{lines}\n        return x\n"


def static_inputs(size: int) -> Files:
    """``size`` static inputs, each written before the replay, and as many outputs that are read after it."""
    lines = numbered("        self.in# = torch.zeros(8, device='cuda')", size)
    copies = numbered("        self.in#.copy_(rows[#])", size)
    outs = numbered("self.out# = self.in# + x", size)
    text = region(outs).replace(
        '        self.static = torch.zeros(8, device="cuda")\n', "        self.static = 1\n" + lines + "\n"
    )
    read = numbered("self.out#", size, ", ")
    yield (
        "run.py",
        text + f"\n    def run(self, rows):\n{copies}\n        self.graph.replay()\n        return [{read}]\n",
    )


def graphs_in_one(size: int) -> Files:
    """``size`` regions in one function, each with a graph and an output of its own."""
    blocks = numbered(
        "    graph# = torch.cuda.CUDAGraph()\n"
        "    with torch.cuda.graph(graph#):\n        y# = x + #\n    graph#.replay()",
        size,
    )
    yield "run.py", f"import torch\n\n\ndef capture(x):\n{blocks}\n    return y0\n"


def graphs_of_one(size: int) -> Files:
    """A class with ``size`` methods that capture, each into an attribute of its own."""
    methods = numbered(
        "    def capture#(self, x):\n        self.graph# = torch.cuda.CUDAGraph()\n"
        "        with torch.cuda.graph(self.graph#):\n            self.out# = self.work(x) + #\n\n"
        "    def run#(self):\n        self.graph#.replay()\n        return self.out#\n",
        size,
    )
    yield "run.py", f"import torch\n\n\nclass Many:\n    def work(self, x):\n        return x * 2\n\n{methods}"


def streams(size: int) -> Files:
    """``size`` streams in one region, each of which forks and joins."""
    body = numbered("s# = torch.cuda.Stream()", size) + "\nmain = torch.cuda.current_stream()\n"
    body += numbered("s#.wait_stream(main)\nwith torch.cuda.stream(s#):\n    y# = x + #", size) + "\n"
    yield "run.py", region(body + numbered("main.wait_stream(s#)", size) + "\nself.out = y0")


def events(size: int) -> Files:
    """``size`` events that two streams of one region hand to each other, around branches."""
    body = "main = torch.cuda.current_stream()\nside = torch.cuda.Stream()\nside.wait_stream(main)\n"
    body += numbered(
        "e# = torch.cuda.Event()\nwith torch.cuda.stream(side):\n    x = x + #\n    if flag:\n        e#.record(side)\n"
        "main.wait_event(e#)",
        size,
    )
    yield "run.py", region(body + "\nmain.wait_stream(side)\nself.out = x")


def unions(size: int) -> Files:
    """Annotations that name ``size`` classes."""
    text = numbered("class C#:\n    def work(self, x):\n        return x + #\n", size, "\n\n")
    text += f"\n\ndef use(x, one: {numbered('C#', size, ' | ')}):\n    return one.work(x)\n"
    yield from beside(text, "self.out = lib.use(x, other)")


def helpers(size: int) -> Files:
    """``size`` methods that each call all others, where a region asks whether one of them has set an attribute."""
    calls = numbered("        self.work#()", size)
    methods = "\n".join(f"    def work{i}(self):\n{calls}\n" for i in range(size))
    guard = "if self.made is None:\n    self.work0()\nself.out = x.max()"
    yield "run.py", region(guard) + "\n" + methods


def helpers_around(size: int) -> Files:
    """``size`` methods that each call all others, in the code that replays."""
    calls = numbered("        self.work#(x)", size)
    methods = "\n".join(f"    def work{i}(self, x):\n{calls}\n        self.kept{i} = x\n" for i in range(size))
    text = region("self.out = x + self.kept1")
    yield "run.py", f"{text}\n    def run(self, x):\n        self.work0(x)\n        self.graph.replay()\n\n{methods}"


def helpers_inside(size: int) -> Files:
    """``size`` methods that each call all others with the result of the one before, in the region."""
    calls = numbered("        x = self.work#(x, #)", size)
    methods = "\n".join(f"    def work{i}(self, x, n):\n{calls}\n        return x + n\n" for i in range(size))
    yield "run.py", region("self.out = self.work0(x, 1)") + "\n" + methods


def guards(size: int) -> Files:
    """``size`` tests whether an attribute is set that return if so, each before calls that may set it."""
    lines = numbered("        if self.a# is not None:\n            return self.a#\n        self.work(x)", size)
    text = region("self.out = self.choose(x)")
    yield (
        "run.py",
        f"{text}\n    def work(self, x):\n        return self.choose(x)\n\n    def choose(self, x):\n{lines}\n",
    )


def registered(size: int) -> Files:
    """``size`` functions that a decorator puts into a table, and a call by a key that nobody knows."""
    functions = numbered("@register('f#')\ndef f#(x):\n    return x + #\n", size, "\n\n")
    head = "TABLE = {}\n\n\ndef register(name):\n    def put(function):\n        TABLE[name] = function\n"
    head += "        return function\n\n    return put\n\n\n"
    yield from beside(head + functions, "self.out = lib.TABLE[other](x)")


def by_prefix(size: int) -> Files:
    """``getattr(self, f"step_{name}")`` in a class with ``size`` such methods."""
    methods = numbered("    def step_#(self, x):\n        return x + #\n", size)
    yield "run.py", region("self.out = getattr(self, f'step_{other}')(x)") + "\n" + methods


def fields(size: int) -> Files:
    """A dataclass with ``size`` fields, all of which are given and read."""
    text = "from dataclasses import dataclass\n\n\n@dataclass\nclass Batch:\n" + numbered("    f#: int = #", size)
    given = ", ".join(["x"] * size)
    body = f"batch = lib.Batch({given})\n" + numbered("x = x + batch.f#", size) + "\nself.out = x"
    yield from beside(text + "\n", body)


def enums(size: int) -> Files:
    """An enumeration with ``size`` members, each of which is compared with."""
    text = "import enum\n\n\nclass Mode(enum.Enum):\n" + numbered("    M# = #", size)
    yield from beside(text + "\n", numbered("if other == lib.Mode.M#:\n    x = x + #", size) + "\nself.out = x")


def delegating(size: int) -> Files:
    """``size`` objects within each other, each of which passes on what it does not know."""
    text = (
        "class Wrapper:\n    def __init__(self, inner):\n        self.inner = inner\n\n"
        "    def __getattr__(self, name):\n        return getattr(self.inner, name)\n\n\n"
        "class Core:\n    def work(self, x):\n        return x.item()\n"
    )
    yield from beside(text, f"self.out = {'lib.Wrapper(' * size}lib.Core(){')' * size}.work(x)")


def layers(size: int) -> Files:
    """A model of ``size`` classes of layers, in a list and as attributes, with hooks."""
    text = "import torch\n\n\n" + numbered(
        "class Layer#(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.weight = torch.nn.Parameter(torch.zeros(#))\n\n"
        "    def forward(self, x):\n        return x + self.weight\n",
        size,
        "\n\n",
    )
    made = numbered("        self.layer# = Layer#()\n        self.layer#.register_forward_hook(hook#)", size)
    hooks = numbered("def hook#(module, given, out):\n    return out * #\n", size, "\n\n")
    calls = numbered("        x = self.layer#(x)", size)
    model = f"class Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n{made}\n"
    model += f"        self.layers = torch.nn.ModuleList([{numbered('Layer#()', size, ', ')}])\n\n"
    model += f"    def forward(self, x):\n{calls}\n        for layer in self.layers:\n            x = layer(x)\n"
    yield from beside(f"{text}\n\n{hooks}\n\n{model}        return x\n", "self.out = lib.Model()(x)")


def findings(size: int) -> Files:
    """``size`` hazards in one function, and as many in functions of their own; every other one is ignored."""
    lines = "\n".join(["x.item()", "x.cpu()  # capturelint: ignore"] * size) + "\n"
    functions = numbered("def f#(x):\n    return x.tolist()\n", size, "\n\n")
    calls = numbered("f#(x)", size)
    yield "run.py", f"{functions}\n\n{region(lines + calls)}"


def hazards_around(size: int) -> Files:
    """``size`` attributes that the region reads and that the code between replays binds anew."""
    made = numbered("        self.in# = torch.zeros(8, device='cuda')", size)
    text = region(numbered("x = x + self.in#", size) + "\nself.out = x").replace(
        '        self.static = torch.zeros(8, device="cuda")\n', f"        self.static = 1\n{made}\n"
    )
    bound = numbered("        self.in# = rows[#]", size)
    yield "run.py", f"{text}\n    def run(self, rows):\n{bound}\n        self.graph.replay()\n        return self.out\n"


def one_name(size: int) -> Files:
    """``size`` modules with a class and a method of the same name, called on an object that nobody knows."""
    for i in range(size):
        yield (
            f"m{i}.py",
            f"class Model:\n    def work(self, x):\n        return x + {i}\n\n\ndef make():\n    return Model()\n",
        )
    yield "run.py", region("self.out = other.work(x)\ny = self.model.work(x)")


def script(size: int) -> Files:
    """A script without functions: ``size`` statements of several kinds, a region, and as many again."""
    lines = numbered(
        "a# = torch.zeros(#, device='cuda')\nif a#.numel() > #:\n    b# = a# + 1\nfor i# in range(3):\n    x.copy_(a#)",
        size,
    )
    head = "import torch\n\nx = torch.zeros(8, device='cuda')\ngraph = torch.cuda.CUDAGraph()\n"
    block = "with torch.cuda.graph(graph):\n    y = x + a3\n"
    yield "run.py", f"{head}{lines}\n{block}{lines}\ngraph.replay()\nprint(y)\n"


def long_around(size: int) -> Files:
    """A function of ``size`` statements before its region, and as many after it, with replays among them."""
    lines = numbered(
        "        a# = self.work(x, #)\n        if flag:\n            a# = a#.clone()\n        self.b# = a#", size
    )
    text = region("y = x + self.b3 + a4\nself.out = self.work(y, 1)")
    text = text.replace("        x = self.static\n", f"        x = self.static\n{lines}\n")
    replay = "        self.graph.replay()\n"
    work = "    def work(self, x, n):\n        return x + n\n"
    yield "run.py", f"{text}{lines}\n{replay}{lines}\n{replay}        return self.out\n\n{work}"


def overridden(size: int) -> Files:
    """``size`` classes that derive from the one that captures, and override all methods that the region calls."""
    steps = range(8)
    ways = "\n".join(f"    def step{i}(self, x):\n        return self.step{i + 1}(x) + {i}\n" for i in steps)
    last = "    def step8(self, x):\n        return x\n"
    text = region("self.out = self.step0(x)") + f"\n{ways}\n{last}"
    yield "run.py", text + "\n\n" + numbered(f"class Runner#(Runner):\n{ways}\n", size, "\n\n")


def constructed(size: int) -> Files:
    """A class that is constructed in ``size`` places, each time with something else, and handed to the region."""
    text = region("self.out = x * other.scale + other.more.scale", "import lib\n").replace(
        "other)", "other: lib.Config)"
    )
    calls = numbered("def use#():\n    Runner().capture(#, lib.Config(#, lib.Config([#], None)))\n", size, "\n\n")
    yield (
        "lib.py",
        "class Config:\n    def __init__(self, scale, more):\n        self.scale = scale\n        self.more = more\n",
    )
    yield "run.py", f"{text}\n\n{calls}"


def growing_recursion(size: int) -> Files:
    """``size`` functions that call each other with more and more around their argument."""
    functions = "\n\n".join(
        f"def f{i}(x, n):\n    if n:\n        return f{(i + 1) % size}((x, [x, n]), n - 1)\n"
        f"    return f{(i + 2) % size}({{'a': x, 'b': (x, n)}}, n)\n"
        for i in range(size)
    )
    yield from beside(functions, "self.out = lib.f0(x, other)")


TANGLED: dict[Callable[[int], Files], tuple[int, int, int]] = {
    members: (250, 500, 1000),
    dispatch: (500, 1000, 2000),
    arguments: (250, 500, 1000),
    combinations: (250, 500, 1000),
    tangled: (25, 50, 100),
    stars: (100, 200, 400),
    passed_on: (100, 200, 400),
    decorators: (25, 50, 100),
    properties: (25, 50, 100),
    assignments: (100, 200, 400),
    partials: (50, 100, 200),
    closures: (10, 20, 40),
    diamonds: (25, 50, 100),
    called_around: (100, 200, 400),
    callers_of_callers: (10, 20, 40),
    replays: (50, 100, 200),
    replays_in_one: (100, 200, 400),
    static_inputs: (50, 100, 200),
    graphs_in_one: (50, 100, 200),
    graphs_of_one: (50, 100, 200),
    streams: (50, 100, 200),
    events: (50, 100, 200),
    unions: (250, 500, 1000),
    helpers: (10, 20, 40),
    helpers_around: (10, 20, 40),
    helpers_inside: (10, 20, 40),
    guards: (50, 100, 200),
    registered: (250, 500, 1000),
    by_prefix: (250, 500, 1000),
    fields: (250, 500, 1000),
    enums: (250, 500, 1000),
    delegating: (10, 20, 40),
    layers: (50, 100, 200),
    findings: (100, 200, 400),
    hazards_around: (50, 100, 200),
    one_name: (100, 200, 400),
    script: (100, 200, 400),
    long_around: (50, 100, 200),
    overridden: (10, 20, 40),
    constructed: (100, 200, 400),
    growing_recursion: (10, 20, 40),
}
