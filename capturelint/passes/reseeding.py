"""CG810: a random number generator is seeded inside the region, which replays never do again."""

from __future__ import annotations

import libcst as cst

from capturelint.passes.base import CapturePass


class Reseeding(CapturePass):
    """Seeds and states set by the host: no part of what is recorded."""

    def visit_Call(self, node: cst.Call) -> None:
        for effect, support in self.effects(node, "reseed"):
            if all(context.compiled for context in support.contexts):
                continue  # the compiler keeps seeds out of its graphs
            text = self.facts.text(node.func, 40)
            what = effect.detail or "a generator"
            message = (
                f"`{text}()` sets {what} at capture only: no replay does it again, and random numbers go on from "
                "where the last replay left them"
            )
            self.report("CG810", node, message, "seeded once, at capture", support)
