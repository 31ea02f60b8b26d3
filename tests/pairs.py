"""One-line snippets that a GPU captured: what an index picks, what is written there, and what Python does with tensors.

``tests/gpu/measure_pairs.py`` captures them and records what came out in ``fixtures/gpu/index_pairs.json``;
``tests/test_measured_pairs.py`` compares that with what ``check`` reports.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

#: how the record writes an outcome: what fails in eager code too says nothing of capture, and lost is not measured
LETTERS = {"captured": "c", "capture-error": "x", "eager-error": "-", "lost": "?"}
#: what stands between the brackets
INDEXES = {
    "int": "0",
    "negative int": "-1",
    "python bool": "True",
    "slice": "slice(1, 3)",
    "ellipsis": "...",
    "none": "None",
    "list": "[0, 2]",
    "list of bool": "[True, False] * 4",
    "range": "range(2)",
    "ndarray": "np.array([0, 2])",
    "bool ndarray": "np.array([True, False] * 4)",
    "numpy integer": "np.int64(1)",
    "cpu int tensor": "torch.tensor([0, 2])",
    "cpu 0-d": "torch.tensor(1)",
    "cpu mask": "torch.tensor([True, False] * 4)",
    "cuda int tensor": "torch.tensor([0, 2], device='cuda')",
    "cuda int32 tensor": "torch.tensor([0, 2], device='cuda', dtype=torch.int32)",
    "cuda 0-d": "torch.tensor(1, device='cuda')",
    "cuda 1-element": "torch.tensor([1], device='cuda')",
    "cuda mask": "torch.tensor([True, False] * 4, device='cuda')",
    "cuda full mask": "(torch.arange(128, device='cuda') % 2 == 0).view(8, 16)",
    "cuda 0-d mask": "torch.tensor(True, device='cuda')",
    "cuda uint8 mask": "torch.tensor([1, 0] * 4, device='cuda', dtype=torch.uint8)",
    "two ints": "(0, 1)",
    "int and slice": "(0, slice(None))",
    "slice and cuda int": "(slice(None), torch.tensor([0, 2], device='cuda'))",
    "two cuda ints": "(torch.tensor([0, 2], device='cuda'), torch.tensor([1, 3], device='cuda'))",
    "cuda int and int": "(torch.tensor([0, 2], device='cuda'), 0)",
    "int and cuda int": "(0, torch.tensor([0, 2], device='cuda'))",
    "two cuda 0-d": "(torch.tensor(1, device='cuda'), torch.tensor(2, device='cuda'))",
    "cuda 0-d and slice": "(torch.tensor(1, device='cuda'), slice(None))",
    "slice and cuda 0-d": "(slice(None), torch.tensor(1, device='cuda'))",
    "cuda 0-d and cuda int": "(torch.tensor(1, device='cuda'), torch.tensor([0, 2], device='cuda'))",
    "ellipsis and cuda int": "(..., torch.tensor([0, 2], device='cuda'))",
    "none and cuda int": "(None, torch.tensor([0, 2], device='cuda'))",
    "cuda mask and int": "(torch.tensor([True, False] * 4, device='cuda'), 0)",
    "cuda mask and slice": "(torch.tensor([True, False] * 4, device='cuda'), slice(None))",
    "slice and cuda mask": "(slice(None), torch.tensor([True, False] * 8, device='cuda'))",
    "list and slice": "([0, 2], slice(None))",
    "slice and list": "(slice(None), [0, 2])",
    "list and int": "([0, 2], 0)",
    "cuda int and list": "(torch.tensor([0, 2], device='cuda'), [1, 3])",
    "list of cuda 0-d": "[torch.tensor(0, device='cuda'), torch.tensor(2, device='cuda')]",
    "list of one cuda tensor": "[torch.tensor([0, 2], device='cuda')]",
    "list of slices": "[slice(0, 2), slice(1, 3)]",
    "slice with cuda bound": "slice(None, torch.tensor(2, device='cuda'))",
    "slice with cpu bound": "slice(None, torch.tensor(2))",
}
#: what is written there, or added to what is there
VALUES = {
    "float": "3.0",
    "int": "3",
    "bool": "True",
    "numpy scalar": "np.float32(3.0)",
    "cpu 0-d": "torch.tensor(3.0)",
    "cpu 1-element": "torch.tensor([3.0])",
    "cpu tensor": "torch.zeros_like(x[i], device='cpu')",
    "cuda 0-d": "torch.tensor(3.0, device='cuda')",
    "cuda 1-element": "torch.tensor([3.0], device='cuda')",
    "cuda tensor": "torch.zeros_like(x[i])",
    "cuda tensor of another dtype": "torch.zeros_like(x[i], dtype=torch.float16)",
}
#: what is indexed
BASES = {
    "2-d": "torch.arange(128.0, device='cuda').view(8, 16)",
    "1-d": "torch.arange(8.0, device='cuda')",
}
#: the indexes that are tried on one dimension too
ONE_DIMENSION = (
    "int",
    "cuda 0-d",
    "cuda int tensor",
    "cuda mask",
    "cpu 0-d",
    "slice",
    "list",
    "cuda 1-element",
    "numpy integer",
)
#: what the other snippets find
SETUP = """
import io
import logging
import math
import operator
import warnings

t = torch.arange(128.0, device='cuda').view(8, 16)
v = torch.arange(8.0, device='cuda')
s = torch.tensor(2.0, device='cuda')
k = torch.tensor(2, device='cuda')
b = torch.tensor(True, device='cuda')
c = torch.arange(8.0)
pairs = torch.arange(2.0, device='cuda')
mask = v > 3
idx = torch.tensor([0, 2], device='cuda')
quiet = logging.Logger('quiet', logging.ERROR)
loud = logging.Logger('loud', logging.DEBUG)
loud.addHandler(logging.StreamHandler(io.StringIO()))
bare = logging.getLogger('bare')
cache = {}
"""
#: everything else, one statement each
OTHERS = [
    # texts
    "f'{t}'",
    "f'{s}'",
    "f'{s:.2f}'",
    "f'{t!r}'",
    "str(t)",
    "repr(t)",
    "'%s' % t",
    "'%s' % (t,)",
    "'%s' % t.shape",
    "'{}'.format(t)",
    "f'{t.shape}'",
    "str(t.shape)",
    "f'{t.dtype} {t.device}'",
    "str(t.dtype)",
    "f'{len(t)}'",
    "f'{id(t)}'",
    "print(t.shape)",
    "print(t)",
    "format(s, '.2f')",
    "'x' + str(t.size(0))",
    "f'{[t.shape]}'",
    "f'{[t]}'",
    "str([t])",
    "str({'a': t})",
    "repr((t, 1))",
    "print([t])",
    # logging: lazy arguments at levels that are on and off
    "quiet.debug('%s', t)",
    "quiet.debug(f'{t}')",
    "quiet.debug('value ' + str(t))",
    "quiet.error('%s', t)",
    "quiet.debug('%s', t.shape)",
    "loud.debug('%s', t)",
    "loud.info('%s', s)",
    "loud.info('%d', s)",
    "loud.info('%s', t.shape)",
    "bare.debug('%s', t)",
    "bare.info('%s', t)",
    "bare.warning('%s', t)",
    "logging.debug('%s', t)",
    "logging.info('%s', t)",
    "logging.warning('%s', t)",
    "quiet.isEnabledFor(10) and quiet.debug('%s', t)",
    "quiet.log(10, '%s', t)",
    "loud.log(10, '%s', t)",
    "loud.debug(t)",
    "quiet.debug(t)",
    "warnings.warn(f'{t}')",
    "warnings.warn(f'{t.shape}')",
    "warnings.warn(str(s))",
    "warnings.warn('x')",
    # builtins
    "sum(v)",
    "sum(t)",
    "sum(v, 0)",
    "sum(r.sum() for r in t)",
    "max(v)",
    "min(v)",
    "max(s, s)",
    "max(s, 3.0)",
    "max(3.0, s)",
    "min(s, s + 1)",
    "max(t.shape)",
    "max(v, key=lambda e: 0)",
    "max(v, key=lambda e: e)",
    "sorted(v)",
    "sorted([s, s])",
    "sorted([3, 1], key=lambda e: v[e])",
    "any(mask)",
    "all(mask)",
    "any([b, b])",
    "all([b, b])",
    "any(m for m in mask)",
    "any(t.shape)",
    "any(x is None for x in (t, v))",
    "abs(s)",
    "round(s)",
    "round(s, 1)",
    "divmod(s, 2)",
    "pow(s, 2)",
    "int(s)",
    "float(s)",
    "bool(s)",
    "complex(s)",
    "math.sqrt(s)",
    "math.floor(s)",
    "operator.index(k)",
    "hex(k)",
    "[10, 20, 30][k]",
    "(1, 2, 3)[k]",
    "'abc'[k]",
    "[0] * k",
    "range(k)",
    "bytes(k)",
    "isinstance(t, torch.Tensor)",
    "callable(t)",
    # unpacking and iterating
    "p, q = pairs",
    "(p, q) = t.unbind(0)[:2]",
    "p, *q = v",
    "*p, q = t",
    "p, q = t.shape",
    "list(v)",
    "tuple(v)",
    "set(v)",
    "len(v)",
    "iter(v)",
    "next(iter(v))",
    "[e for e in v]",
    "[e + 1 for e in t]",
    "list(zip(v, v))",
    "list(enumerate(v))",
    "list(map(torch.neg, v))",
    "list(map(float, v))",
    "list(reversed(v))",
    "reversed(v)",
    "dict(zip('ab', pairs))",
    "list(filter(None, v))",
    "print(*t.shape)",
    "torch.stack([*v])",
    "torch.stack(list(v))",
    "for e in v: e * 2",
    "for i, e in enumerate(t): e + i",
    "for e in v:\n    if e: pass",
    "[e for e in v if e > 1]",
    # membership, identity, hashing, comparing
    "s in [1, 2]",
    "s in (t, s)",
    "3 in v",
    "s in v",
    "3.0 not in v",
    "t in [t]",
    "s in [s]",
    "v in [t, v]",
    "s in {1: 2}",
    "s in {s}",
    "cache[t] = 1",
    "cache.get(t)",
    "{t: 1}[t]",
    "{t, v}",
    "hash(t)",
    "t is None",
    "t is not v",
    "t == None",
    "t != None",
    "None in [t]",
    "0 < s < 3",
    "s == s == s",
    "(0 < s) & (s < 3)",
    "v == v",
    "(v == v).all()",
    "[s] == [s]",
    "[s] == [s + 0]",
    "(s, 1) == (s, 1)",
    "[v].index(v)",
    "[s, s + 1].index(s)",
    "[v].count(v)",
    "[t, v].index(v)",
    "[t, v].remove(v)",
    "t.shape == v.shape",
    "t.shape == (8, 16)",
    "t.dtype == v.dtype",
    "t.device == v.device",
    "t.is_cuda and v.is_cuda",
    "torch.equal(t, t)",
    "id(t) == id(v)",
    "s and 1",
    "s or 1",
    "not s",
    "1 if s else 2",
    "assert s",
    "b is True",
    "b == True",
    "t.data_ptr() == 0",
    # scalars as operands
    "t * s",
    "t * float(s)",
    "t * c[0]",
    "t + c",
    "torch.add(t, t, alpha=s)",
    "t.clamp(max=s)",
    "t.clamp(max=c[0])",
    "t.clamp(min=0.0, max=3.0)",
    "torch.where(mask, v, 0.0)",
    "torch.where(mask, v, c[0])",
    "v.masked_fill(mask, s)",
    "v.masked_fill(mask, 3.0)",
    "v.masked_fill(mask, c[0])",
    "v.index_fill(0, idx, 3.0)",
    "v.index_fill(0, idx, s)",
    "v.index_fill(0, idx, c[0])",
    "torch.full((2,), s, device='cuda')",
    "torch.full((2,), 3.0, device='cuda')",
    "v.fill_(s)",
    "v.fill_(3.0)",
    "v.fill_(c[0])",
    "t ** s",
    "t ** 2",
    "2 ** s",
    "t // s",
    "t % s",
    "torch.nonzero_static(mask, size=8)",
    "torch.nn.functional.one_hot(idx, 8)",
    "torch.nn.functional.one_hot(idx)",
    "v.index_put((idx,), torch.tensor(3.0))",
    "v.index_put((idx,), s)",
    "v.index_put_((mask,), s)",
    "v.index_put_((idx,), pairs, accumulate=True)",
    "v.scatter_(0, idx, 3.0)",
    "v.scatter_(0, idx, pairs)",
    "v.index_copy_(0, idx, pairs)",
    "v.index_add_(0, idx, pairs)",
    "v.put_(idx, pairs)",
    "torch.take(v, idx)",
    "v.take_along_dim(idx)",
    "t.select(0, 1)",
    "t.select(0, k)",
    "t.narrow(0, 0, 2)",
    "t[:k]",
    "t[:, :k]",
    "t[k:]",
    "t[torch.arange(2, device='cuda')]",
    "t[torch.arange(2)]",
    # copies that pinned memory has a part in
    "t.to('cpu', non_blocking=True)",
    "t.to('cpu')",
    "t.copy_(torch.zeros(8, 16).pin_memory(), non_blocking=True)",
    "t.copy_(torch.zeros(8, 16).pin_memory())",
    "t.copy_(torch.zeros(8, 16, pin_memory=True), non_blocking=True)",
    "t.copy_(torch.zeros(8, 16), non_blocking=True)",
    "torch.empty(8, 16, pin_memory=True).copy_(t, non_blocking=True)",
    "torch.empty(8, 16).copy_(t, non_blocking=True)",
    "torch.zeros(8, 16).pin_memory().to('cuda', non_blocking=True)",
    "torch.zeros(8, 16).pin_memory().cuda(non_blocking=True)",
    "torch.zeros(8, 16).pin_memory()",
    "torch.tensor([1.0, 2.0], pin_memory=True).to('cuda', non_blocking=True)",
]


@dataclass(frozen=True, slots=True)
class Snippet:
    """A statement, what it finds prepared, and its place in the record."""

    kind: str
    base: str
    index: str
    value: str
    prepare: str
    code: str


def snippets() -> Iterator[Snippet]:
    for base, index in itertools.product(BASES, INDEXES):
        if base == "1-d" and index not in ONE_DIMENSION:
            continue
        prepare = f"x = {BASES[base]}\ni = {INDEXES[index]}\n"
        yield Snippet("read", base, index, "", prepare, "y = x[i]")
        for value, spelled in VALUES.items():
            ready = prepare + f"w = {spelled}\n"
            yield Snippet("write", base, index, value, ready, "x[i] = w")
            yield Snippet("augmented", base, index, value, ready, "x[i] += w")
    for code in OTHERS:
        yield Snippet("other", "", "", "", SETUP, code)
