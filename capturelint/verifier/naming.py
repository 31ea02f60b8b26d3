"""Which rule says what a failed call shows, and the sentences for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from capturelint.verifier.observation import CAPTURE_ERROR, CORRUPTION, STALE, Observation
from capturelint.verifier.sites import Site

_BY_CALL: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("aten._local_scalar_dense", ("CG101",)),
    ("aten.is_nonzero", ("CG101",)),
    ("aten.item", ("CG101",)),
    ("aten.equal", ("CG105",)),
    ("aten.allclose", ("CG105",)),
    ("torch.tensor", ("CG201",)),
    ("torch.as_tensor", ("CG201",)),
    ("torch.asarray", ("CG201",)),
    ("torch.new_tensor", ("CG201",)),
    ("torch function __repr__", ("CG103",)),
    ("torch function __format__", ("CG103",)),
    ("torch function __str__", ("CG103",)),
    ("torch function tolist", ("CG101",)),
    ("torch function cpu", ("CG102",)),
    ("torch function numpy", ("CG102",)),
    ("torch function cuda", ("CG201",)),
    ("torch function __getitem__", ("CG201",)),
    ("torch function __setitem__", ("CG201",)),
    ("aten.nonzero", ("CG401",)),
    ("aten.masked_select", ("CG401",)),
    ("aten._unique", ("CG401",)),
    ("aten.unique", ("CG401",)),
    ("aten.bincount", ("CG401",)),
    ("aten.repeat_interleave", ("CG401",)),
    ("torch.cuda.synchronize", ("CG104",)),
    ("torch.accelerator.synchronize", ("CG104",)),
    ("Stream.synchronize", ("CG104",)),
    ("Stream.query", ("CG104",)),
    ("Event.", ("CG104",)),
    ("Stream.wait", ("CG701",)),
    ("CUDAGraph.replay", ("CG807",)),
    ("Optimizer.step", ("CG901",)),
)


def rules_of_call(name: str, message: str, copies_to_host: bool | None = None) -> tuple[str, ...]:
    """The rules that fit a call that failed in capture, best first; CG100 serves where none does."""
    for prefix, rules in _BY_CALL:
        if name.startswith(prefix):
            return (*rules, "CG100")
    if "generator" in message.lower():
        return ("CG803", "CG100")
    if "legacy stream" in message:
        return ("CG802", "CG100")
    if "capturable" in message:
        return ("CG901", "CG100")
    if name.startswith(("aten._to_copy", "aten.copy_")) or "Cannot copy between CPU and CUDA" in message:
        if copies_to_host is None:
            return ("CG102", "CG201", "CG100")
        return ("CG102", "CG100") if copies_to_host else ("CG201", "CG100")
    if name.startswith("aten.") and name.split(".")[1] in ("index", "index_put_", "_index_put_impl_"):
        return ("CG401", "CG201", "CG100")
    return ("CG105", "CG100")


def seen(
    consequence: str, sites: tuple[Site, ...], text: str, rules: tuple[str, ...], also: tuple[Site, ...] = ()
) -> Observation | None:
    """An observation at the innermost of ``sites``; None where no user line is known."""
    if not sites:
        return None
    others = (*sites[1:], *also)
    return Observation(
        consequence,
        sites[0].path,
        sites[0].line,
        text,
        rules,
        tuple(dict.fromkeys((site.path, site.line) for site in others)),
        sites[0].function,
    )


def capture_raised(
    sites: tuple[Site, ...], call: str | None, message: str, rules: tuple[str, ...]
) -> Observation | None:
    what = f" (in `{call.removeprefix('torch function ')}`)" if call else ""
    return seen(CAPTURE_ERROR, sites, f"capture raised '{message}' at this line{what}", rules)


def unjoined(sites: tuple[Site, ...]) -> Observation | None:
    lines = ", ".join(str(site) for site in sites)
    text = f"capture raised 'unjoined work' at its end: the stream that works at {lines} is never waited for"
    if not sites:
        return None
    return seen(CAPTURE_ERROR, (sites[-1],), text, ("CG702", "CG100"), sites[:-1])


def outside(sites: tuple[Site, ...], op: str, switched: Site | None) -> Observation | None:
    """At the line that switched streams, where one did; the operators' lines are as good."""
    where = f" (line {sites[0].line})" if sites and switched is not None and switched.line != sites[0].line else ""
    text = f"work put on a stream that is not captured: `{op}`{where} ran at capture, and replay does not run it"
    if switched is not None:
        return seen(STALE, (switched,), text, ("CG703", "CG701", "CG600"), sites[:1])
    return seen(STALE, sites, text, ("CG703", "CG701", "CG600"))


def frozen_scalar(sites: tuple[Site, ...], op: str, captured: str, now: str, when: str) -> Observation | None:
    text = f"{captured} at capture, {now} at replay: `{op}` got the value by number ({when})"
    return seen(STALE, sites, text, ("CG601", "CG602", "CG403", "CG202", "CG600"))


def frozen_branch(site: Site, captured: str, now: str, when: str) -> Observation | None:
    text = f"frozen branch: {captured} at capture, {now} in an eager run now ({when})"
    return seen(STALE, (site,), text, ("CG303", "CG304", "CG600"))


def line_word(line: int) -> str:
    return f"on to line {line}" if line else "out of the region"


def moved(sites: tuple[Site, ...], name: str, dead: bool, when: str) -> Observation | None:
    if dead:
        text = f"the graph reads memory of {name} that has been freed ({when})"
        return seen(CORRUPTION, sites, text, ("CG504", "CG600"))
    text = f"the graph still reads the tensor that {name} was at capture; the name now holds another ({when})"
    found = seen(STALE, sites, text, ("CG502", "CG505", "CG600"))
    # the line that bound the name anew says more, where it is known
    return replace(found, weak=True) if found is not None else None


def rebound(site: Site, name: str, dead: bool) -> Observation | None:
    text = f"`{name}` was rebound here after capture; the graph still uses the tensor that it held"
    if dead:
        text += ", whose memory is freed"
    return seen(CORRUPTION if dead else STALE, (site,), text, ("CG501", "CG505", "CG600"))


def diverged(sites: tuple[Site, ...], op: str, difference: str, when: str) -> Observation | None:
    text = f"first line whose result differs between replay and an eager run ({when}): `{op}`, {difference}"
    found = seen(STALE, sites, text, ("CG600",))
    return replace(found, weak=True) if found is not None else None


def elided(site: Site, change: str, read_at: tuple[str, int] | None) -> Observation | None:
    where = f"; read at {Path(read_at[0]).name}:{read_at[1]}" if read_at else ""
    return seen(
        STALE, (site,), f"an eager run changes host state here and replay does not: {change}{where}", ("CG603", "CG600")
    )


def reseeded(sites: tuple[Site, ...], call: str, op: str, when: str) -> Observation | None:
    text = f"`{call}` runs at capture alone: `{op}` draws other numbers at replay than after this seed ({when})"
    return seen(STALE, sites, text, ("CG810", "CG600"))


def evicted(cached: Site, call: Site, when: str) -> Observation | None:
    text = (
        f"`{cached.function}` answered from its cache at capture and runs again now ({when}):"
        " the result that the graph reads is held by nobody"
    )
    return seen(STALE, (cached,), text, ("CG304", "CG504", "CG600"), (call,))


def overwritten_pinned(site: Site, copied: Site) -> Observation | None:
    text = f"pinned memory was overwritten here while the copy out of it (line {copied.line}) was still to be done"
    return seen(CORRUPTION, (site,), text, ("CG203", "CG600"))


def tail_left(site: Site, size: int) -> Observation | None:
    text = (
        f"{size} bytes of this input were not filled before replay and hold what an earlier step left;"
        " with their contents of capture time the graph gives another result"
    )
    return seen(STALE, (site,), text, ("CG506", "CG600"))


def autocast_cache(entered: Site, sites: tuple[Site, ...], when: str) -> Observation | None:
    where = f" (line {sites[0].line})" if sites else ""
    text = (
        f"the graph reads weights{where} from the cache of the autocast that was entered here before capture;"
        f" they are freed when it ends, and never cast anew ({when})"
    )
    return seen(CORRUPTION, (entered,), text, ("CG902", "CG504", "CG600"), sites[:1])


def output_overwritten(site: Site, step: int) -> Observation | None:
    text = f"the tensor that step {step} returned here was overwritten by a later replay"
    found = seen(CORRUPTION, (site,), text, ("CG503",))
    return replace(found, only_confirms=True) if found is not None else None


def stored(site: Site, name: str) -> Observation | None:
    text = f"`{name}` is bound to a new tensor here by every eager run, but by capture alone where a graph replays"
    return seen(STALE, (site,), text, ("CG502", "CG603", "CG600"))
