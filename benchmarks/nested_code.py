"""Everything that can stand within itself, as deep as the parser allows."""

from __future__ import annotations

from collections.abc import Callable

from generated import Files, region

#: expressions with a place (``#``) for another one of the same form
FORMS = """\
other[#]
x[#]
x[#, 0]
x[0:#]
other[0][#]
(x if # else other)
(# if flag else x)
(flag and # or x)
(# or flag and x)
(# and isinstance(x, torch.Tensor))
(not #)
(# is None)
(flag is # is other)
(x in #)
(# == other)
(0 < # < other)
getattr(#, 'name')
getattr(self, str(#))
hasattr(#, 'name')
isinstance(#, torch.Tensor)
dict(a=#)
list(#)
tuple((#, x))
[#, x]
{1: #}
{#: 1}
(*[#], x)
{**{'a': #}}
max(#, x)
sum(#)
len(#)
zip(#, x)
enumerate(#)
torch.cat([#, x])
torch.where(x, #, x)
torch.zeros(#)
x.view(#)
#.to(x)
#.item()
#.method(x)
other.method(#)
other(*#)
other(**#)
lib.step(#)
lib.pair(#, #0)
lib.kept(x=#)
lib.many(*[#])
lib.Box(#).inner
lib.Box(#)[0]
(lambda a: #)(x)
[# for a in x]
[a for a in #]
[a for a in x if #]
{a: # for a in x}
sum(# for a in other)
map(lambda a: #, x)
partial(lib.step, #)()
partial(lib.step, x=#)(1)
(w := #)
f'{#}'
f'{x:{#}}'
'%s' % (#,)
'{}'.format(#)
str(#)
int(#)
(x + #)
(# @ x)
-#
super().method(#)
self.method(#)
print(#)
(yield #)
torch.func.vmap(lambda a: #)(x)
torch.utils.checkpoint.checkpoint(lib.step, #)
""".splitlines()


#: what the forms call
LIBRARY = """\
def step(x=None):
    return x


def pair(x, y):
    return x, y


def kept(x):
    return [x]


def many(*rest):
    return rest


class Box:
    def __init__(self, inner):
        self.inner = inner

    def __getitem__(self, key):
        return self.inner
"""


def forms(size: int) -> Files:
    """Each form of expression within itself, ``size`` deep."""
    lines = []
    for form in FORMS:
        text = "x"
        for _ in range(size):
            text = form.replace("#0", "x").replace("#", text.replace("'", '"') if form.startswith("f'") else text)
        if not form.startswith("f'"):
            lines.append(f"y = {text}")
    yield "lib.py", LIBRARY
    text = region("\n".join([*lines, "self.out = x.max().item()"]), "import lib\nfrom functools import partial\n")
    yield "run.py", text + "\n    def method(self, x):\n        return x\n"


#: the heads of blocks, each of which can stand in another one of its form
BLOCKS = """\
if other.a(x):
while other.b(x):
for i in other.c(x):
for x in x:
with other.d(x) as y:
with torch.no_grad():
try:
match other:
if self.made is None:
if x is not None:
if isinstance(x, torch.Tensor):
while True:
""".splitlines()


def blocks(size: int) -> Files:
    """Each kind of block within itself, ``size`` deep, and then something after each."""
    lines: list[str] = []
    for head in BLOCKS:
        width = 2 if head.startswith("match") else 1
        ends: list[str] = []
        for depth in range(size):
            pad = "    " * (depth * width)
            lines.append(pad + head)
            if head.startswith("match"):
                lines.append(f"{pad}    case [a, {depth}]:")
            ends += [f"{pad}    " * 1 + ("    " if width == 2 else "") + "x = (x, y)"]
            if head == "try:":
                ends += [f"{pad}except KeyError:", f"{pad}    y = x", f"{pad}finally:", f"{pad}    x = y"]
        lines.append("    " * (size * width) + "y = [x, 1]")
        if head == "try:":
            ends = [each for depth in reversed(range(size)) for each in ends[depth * 5 : depth * 5 + 5]]
        else:
            ends.reverse()
        lines += [*ends]
    yield "run.py", region("y = 1\n" + "\n".join(lines) + "\nself.out = x")


NESTED: dict[Callable[[int], Files], tuple[int, int, int]] = {
    forms: (10, 20, 40),
    blocks: (12, 24, 47),
}
