"""Code that nobody should write and somebody's generator does: statements, expressions and values beyond measure."""

from __future__ import annotations

from collections.abc import Callable

from generated import Files, beside, numbered, region


def plain_chains(size: int) -> Files:
    """``x.T.T...`` with ``size`` attributes."""
    yield "run.py", region(f"self.out = x{'.T' * size}")


def typed_chains(size: int) -> Files:
    """``self.first.next.next...`` where each of ``size`` attributes is an object of another class."""
    classes = numbered("class Part#:\n    def __init__(self):\n        self.next = Part$()\n", size, "\n\n")
    yield "lib.py", f"import torch\n\n\n{classes}\n\nclass Part{size}:\n    next = 1\n"
    yield "run.py", region(f"first = lib.Part0()\nself.out = x * first{'.next' * size}", "import lib\n")


def conjunctions(size: int) -> Files:
    """``a and b and ...`` with ``size`` tests, once as a test and once as a value."""
    tests = numbered("other.a# is not None", size, " and ")
    either = numbered("other.b#", size, " or ")
    yield "run.py", region(f"y = x\nif {tests}:\n    y = x + 1\nz = {either}\nself.out = y * z")


def conditionals(size: int) -> Files:
    """``a if p else b if q else ...`` with ``size`` tests."""
    yield "run.py", region("self.out = " + numbered("x + # if other == # else", size, " ") + " x")


def calls_in_calls(size: int) -> Files:
    """``f(f(f(...)))``, ``size`` deep, which the parser allows up to 90."""
    yield from beside("def step(x):\n    return x + 1\n", f"self.out = {'step(' * size}x{')' * size}")


def lambdas(size: int) -> Files:
    """``size`` lambdas within each other, each called on the spot."""
    text = "x"
    for i in range(size):
        text = f"(lambda a{i}: {text})(x)"
    yield "run.py", region(f"self.out = {text}")


def comprehensions(size: int) -> Files:
    """``size`` comprehensions within each other."""
    text = "x"
    for i in range(size):
        text = f"[{text} for a{i} in other]"
    yield "run.py", region(f"self.out = {text}")


def formatted(size: int) -> Files:
    """A formatted string with ``size`` parts."""
    yield "run.py", region("self.name = f'" + numbered("{other.a#!r:>{flag}}", size, " ") + "'\nself.out = x + 1")


def comparisons(size: int) -> Files:
    """``a < b < c ...`` with ``size`` comparisons."""
    yield "run.py", region(f"self.out = x if {numbered('other.a#', size, ' < ')} else -x")


def managers(size: int) -> Files:
    """One ``with`` statement with ``size`` managers of the project, and one with as many of torch."""
    own = (
        "class Manager:\n    def __init__(self, n):\n        self.n = n\n\n"
        "    def __enter__(self):\n        return self\n\n"
        "    def __exit__(self, *rest):\n        return None\n"
    )
    ours = numbered("lib.Manager(#) as m#", size, ", ")
    theirs = ", ".join(["torch.no_grad()"] * size)
    yield from beside(own, f"with {ours}:\n    y = x + m3.n\nwith {theirs}:\n    self.out = y + 1")


def arms(size: int) -> Files:
    """A ``match`` with ``size`` arms."""
    body = "match other:\n" + numbered("    case #:\n        y = x + #", size) + "\n    case _:\n        y = x"
    yield "run.py", region(body + "\nself.out = y.max().item()")


def handlers(size: int) -> Files:
    """``size`` ``try`` statements one after another, each of which binds a name of its own."""
    yield (
        "run.py",
        region(numbered("try:\n    y# = x + #\nexcept KeyError:\n    y# = x", size) + f"\nself.out = y{size - 1}"),
    )


def names(size: int) -> Files:
    """``size`` branches, each of which binds a name of its own."""
    yield "run.py", region("y = x\n" + numbered("if other.a#:\n    y# = x + #\nelse:\n    y# = x", size))


def leaving(size: int) -> Files:
    """``size`` branches that return, in a function that the region calls."""
    tests = numbered("    if n == #:\n        return x + #", size)
    yield from beside(f"def choose(x, n):\n{tests}\n    return x.item()\n", "self.out = lib.choose(x, other)")


def unset(size: int) -> Files:
    """``size`` attributes that are made where they are missing."""
    yield (
        "run.py",
        region(numbered("if self.a# is None:\n    self.a# = torch.zeros(#)\nx = x + self.a#", size) + "\nself.out = x"),
    )


def doubled(size: int) -> Files:
    """``x = (x, x)``, ``size`` times; so too for lists and dictionaries."""
    kinds = ("({0}, {0})", "[{0}, {0}]", "{{1: {0}, 2: {0}}}")
    lines = [f"y{k} = {kind.format(f'y{k}')}" for _ in range(size) for k, kind in enumerate(kinds)]
    yield "lib.py", "def use(*values):\n    return values\n"
    yield (
        "run.py",
        region(
            "y0 = y1 = y2 = x\n" + "\n".join(lines) + "\nif flag:\n    y0 = y1\nlib.use(y0, y1, y2)\nself.out = x",
            "import lib\n",
        ),
    )


def doubled_outside(size: int) -> Files:
    """``size`` attributes, each a pair of the one before; the region reads the last."""
    stores = numbered("        self.a$ = (self.a#, self.a#)", size)
    text = f"class Pairs:\n    def __init__(self, x):\n        self.a0 = x\n{stores}\n"
    yield from beside(text, f"self.out = lib.Pairs(x).a{size}")


def entries(size: int) -> Files:
    """A dictionary that gets ``size`` entries, one by one, each of which is read."""
    yield (
        "run.py",
        region(
            "table = {}\n"
            + numbered("table[#] = x + #", size)
            + "\n"
            + numbered("y = table[#]", size)
            + "\nself.out = y"
        ),
    )


def appended(size: int) -> Files:
    """A list that ``size`` lines append to, in the region and outside."""
    yield "lib.py", "ROWS = []\n" + numbered("ROWS.append(#)", size) + "\n"
    yield (
        "run.py",
        region(
            "rows = []\n" + numbered("rows.append(x + #)", size) + "\nself.out = rows[3] + lib.ROWS[4]", "import lib\n"
        ),
    )


def growing_lists(size: int) -> Files:
    """``rows = rows + [x]``, ``size`` times."""
    yield "run.py", region("rows = []\n" + numbered("rows = rows + [x + #]", size) + "\nself.out = rows[-1]")


def growing_texts(size: int) -> Files:
    """``text = text + text``, ``size`` times, and numbers to the power of themselves."""
    yield (
        "run.py",
        region(
            "text = 'ab'\nnumber = 9\n"
            + "\n".join(["text = text + text\nnumber = number ** number"] * size)
            + "\nself.out = x * (number << number) * len(text * 10_000_000_000)"
        ),
    )


def constants(size: int) -> Files:
    """``size`` names of a module, each worked out from the two before; the region reads the last."""
    text = "A0 = 1\nA1 = 2\n" + "\n".join(f"A{i} = A{i - 1} + A{i - 2}" for i in range(2, size))
    yield from beside(text + "\n", f"self.out = x * lib.A{size - 1}")


def unpacked(size: int) -> Files:
    """``a, b, c, ... = ...`` with ``size`` names, inside the region and around it."""
    targets = numbered("a#", size, ", ")
    yield from beside(f"{targets} = range({size})\n", f"{targets} = other\nself.out = x * a3 + lib.a4")


def deep_sums(size: int) -> Files:
    """``x + x + ...`` with more terms than the parser gets through: that is said."""
    yield "run.py", region(f"self.out = {' + '.join(['x'] * size)}")


def loops_with_names(size: int) -> Files:
    """``size`` loops one after another, each of which changes a name of its own, twice."""
    yield (
        "run.py",
        region(numbered("for i# in other:\n    x = x + i#\n    y# = x if flag else i#", size) + "\nself.out = x"),
    )


def unsettled(size: int, line: str) -> str:
    """Loops within each other, ``size`` deep, none of which settles in one round: each puts more around a value."""
    lines = ["    " * i + "for rows in rows:" for i in range(size)]
    ends = ["    " * (i + 1) + "rows = (rows, y)" for i in reversed(range(size))]
    return "\n".join(["rows = y = x", *lines, "    " * size + line, "    " * size + "y = [rows, 1]", *ends])


def unsettled_loops(size: int) -> Files:
    """``size`` loops in each other, none of which settles in one round."""
    yield "run.py", region(unsettled(size, "x = x + 1") + "\nself.out = x.max().item()")


def long_lines_in_loops(size: int) -> Files:
    """A line of ``size`` terms within a dozen such loops: it is run 4000 times."""
    yield "run.py", region(unsettled(12, f"x = {' + '.join(['x'] * size)}") + "\nself.out = x.max().item()")


def tables_in_loops(size: int) -> Files:
    """A function that is called with a table of ``size`` rows, within ten such loops."""
    rows = ", ".join(f"({i}, [x, {i}], {{'a': x}})" for i in range(size))
    body = f"table = [{rows}]\n{unsettled(10, 'x = lib.use(x, table)')}"
    yield from beside("def use(x, table):\n    return x + 1\n", f"{body}\nself.out = x.max().item()")


def while_true(size: int) -> Files:
    """``size`` endless loops one after another, each left by several ways."""
    yield (
        "run.py",
        region(
            numbered(
                "while True:\n    x = x + #\n    if other.a#:\n        break\n    if flag:\n        continue\n"
                "    y# = x\n    if other.b#:\n        break",
                size,
            )
        ),
    )


def tries(size: int) -> Files:
    """``try`` statements within each other, ``size`` deep (twenty is what Python compiles), with handlers and ends."""
    lines: list[str] = ["    " * i + "try:" for i in range(size)] + ["    " * size + "x = x + 1"]
    for i in reversed(range(size)):
        pad = "    " * i
        lines += [f"{pad}except KeyError:", f"{pad}    x = x * {i}", f"{pad}finally:", f"{pad}    y{i} = x"]
    yield "run.py", region("\n".join(lines) + "\nself.out = x")


def wide_characters(size: int) -> Files:
    """One line of ``size`` names that are not ASCII."""
    yield "run.py", region(f"größe = x\nself.out = {' + '.join(['größe'] * size)}")


def subscripts(size: int) -> Files:
    """``x[0][0]...`` with ``size`` indexes."""
    yield "run.py", region(f"self.out = other{'[0]' * size}\nself.more = x{'[0]' * size}")


def negations(size: int) -> Files:
    """``not not ... x`` and ``- - ... x``, ``size`` each."""
    yield "run.py", region(f"self.out = {'- ' * size}x\nself.more = {'not ' * size}other")


def slices(size: int) -> Files:
    """An index with ``size`` parts, and ``size`` items that are written."""
    parts = ", ".join([":"] * size)
    yield "run.py", region(f"y = x[{parts}]\n" + numbered("x[#:] = y", size) + "\nself.out = y")


def globals_set(size: int) -> Files:
    """``size`` names of the module that the region's function sets and reads."""
    text = numbered("A# = None", size) + "\n\n\ndef work(x):\n    global " + numbered("A#", size, ", ") + "\n"
    text += numbered("    if A# is None:\n        A# = x + #\n    x = x + A#", size) + "\n    return x\n"
    yield from beside(text, "self.out = lib.work(x)")


LONG: dict[Callable[[int], Files], tuple[int, int, int]] = {
    plain_chains: (100, 200, 400),
    typed_chains: (50, 100, 200),
    conjunctions: (250, 500, 1000),
    conditionals: (100, 200, 400),
    calls_in_calls: (20, 40, 80),
    lambdas: (10, 20, 40),
    comprehensions: (20, 40, 80),
    formatted: (500, 1000, 2000),
    comparisons: (250, 500, 1000),
    managers: (100, 200, 400),
    arms: (500, 1000, 2000),
    handlers: (250, 500, 1000),
    names: (250, 500, 1000),
    leaving: (250, 500, 1000),
    unset: (100, 200, 400),
    doubled: (10, 20, 40),
    doubled_outside: (10, 20, 40),
    entries: (250, 500, 1000),
    appended: (250, 500, 1000),
    growing_lists: (250, 500, 1000),
    growing_texts: (20, 40, 80),
    constants: (250, 500, 1000),
    unpacked: (250, 500, 1000),
    deep_sums: (10_000, 20_000, 40_000),
    loops_with_names: (100, 200, 400),
    unsettled_loops: (16, 32, 64),
    long_lines_in_loops: (25, 50, 100),
    tables_in_loops: (15, 30, 60),
    while_true: (100, 200, 400),
    tries: (5, 10, 20),
    wide_characters: (200, 400, 800),
    subscripts: (100, 200, 400),
    negations: (100, 200, 400),
    slices: (100, 200, 400),
    globals_set: (100, 200, 400),
}
