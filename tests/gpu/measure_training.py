"""Captures optimizer steps, loss scalers, autocast caches and pinned copies: fixtures/gpu/training_steps.json.

``python tests/gpu/measure_training.py [workers]`` needs one GPU and torch. What differs is compared with eager code.
CAPTURELINT_GPU_RESULTS names another directory to write to.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(os.environ.get("CAPTURELINT_GPU_RESULTS", ROOT / "fixtures" / "gpu"))
OPTIMIZERS = [
    *("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax"),
    *("LBFGS", "Muon", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"),
]
VARIANTS = {
    "plain": {},
    "capturable": {"capturable": True},
    "foreach": {"foreach": True},
    "loop": {"foreach": False},
    "fused": {"fused": True},
    "fused capturable": {"fused": True, "capturable": True},
    "tensor lr": {"lr": "tensor"},
    "tensor lr capturable": {"lr": "tensor", "capturable": True},
    "tensor lr fused": {"lr": "tensor", "fused": True},
    "tensor lr fused capturable": {"lr": "tensor", "fused": True, "capturable": True},
    "cpu tensor lr capturable": {"lr": "cpu", "capturable": True},
    "lr decay": {"lr_decay": 0.5},
    "momentum": {"momentum": 0.9},
    "groups capturable": {"groups": True},
    "set later": {"later": True},
}
CASES = [
    *(f"optimizer {name} | {variant}" for name in OPTIMIZERS for variant in VARIANTS),
    *(f"scaler {what}" for what in ("step", "step fused", "update", "unscale_", "scale", "disabled step")),
    *(
        f"autocast {what}"
        for what in (
            "alone",
            "alone then eager",
            "warm-up before",
            "warm-up in another block",
            "two captures",
            "cache off",
            "inside",
            "no grad needed",
            "inner cache off",
            "graphed callables",
            "decorator warm-up",
        )
    ),
    *(
        f"pinned {what}"
        for what in (
            "temporary source",
            "result of to cpu",
            "kept result",
            "temporary destination",
            "staging overwritten",
            "staging waited",
        )
    ),
]


def optimizer(torch, name, variant):
    options = dict(VARIANTS[variant])
    torch.manual_seed(0)

    def build():
        torch.manual_seed(1)
        p = torch.nn.Parameter(torch.randn(8, 16, device="cuda"))
        given = dict(options)
        groups, later = given.pop("groups", False), given.pop("later", False)
        if given.get("lr") == "tensor":
            given["lr"] = torch.tensor(0.01, device="cuda")
        elif given.get("lr") == "cpu":
            given["lr"] = torch.tensor(0.01)
        params = [{"params": [p], "capturable": True}] if groups else [p]
        opt = getattr(torch.optim, name)(params, **given)
        if later:
            for group in opt.param_groups:
                group["capturable"] = True
        return p, opt

    def step(p, opt, a):
        if name == "LBFGS":

            def closure():
                opt.zero_grad(set_to_none=False)
                loss = (p * a).square().sum()
                loss.backward()
                return loss

            opt.step(closure)
        else:
            p.grad = a * p.detach()
            opt.step()

    a = torch.randn(8, 16, device="cuda")
    try:
        p, opt = build()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                step(p, opt, a)
        torch.cuda.synchronize()
    except Exception as error:
        return {"outcome": "eager-error", "error": f"{type(error).__name__}: {error}"[:160]}
    q, other = build()
    for _ in range(3):
        step(q, other, a)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(p, opt, a)
    for _ in range(5):
        graph.replay()
        step(q, other, a)
    torch.cuda.synchronize()
    first = (p - q).abs().max().item()
    for group in opt.param_groups + other.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].mul_(10)
        else:
            group["lr"] *= 10
    graph.replay()
    step(q, other, a)
    torch.cuda.synchronize()
    return {"outcome": "captured", "differs after 5": first, "differs after lr * 10": (p - q).abs().max().item()}


def scaler(torch, what):
    p = torch.nn.Parameter(torch.ones(8, 16, device="cuda"))
    opt = torch.optim.SGD([p], 0.1, fused="fused" in what)
    sc = torch.amp.GradScaler("cuda", enabled="disabled" not in what)

    def full():
        p.grad = None
        sc.scale((p * 2).sum()).backward()
        sc.unscale_(opt)
        sc.step(opt)
        sc.update()

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            full()
    torch.cuda.synchronize()
    if what in ("update", "unscale_"):
        p.grad = None
        sc.scale((p * 2).sum()).backward()
        if what == "update":
            sc.unscale_(opt)
            sc.step(opt)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        if what == "scale":
            sc.scale((p * 2).sum()).backward()
        elif what == "unscale_":
            sc.unscale_(opt)
        elif what == "update":
            sc.update()
        else:
            full()
    graph.replay()
    torch.cuda.synchronize()
    return {"outcome": "captured"}


def autocast(torch, what):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64)).cuda()
    if what == "no grad needed":
        net.requires_grad_(False)
    x = torch.randn(32, 64, device="cuda")
    graph, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    off = {"cache_enabled": False} if what == "cache off" else {}
    with torch.no_grad():
        net(x)
        torch.cuda.synchronize()
        if what == "graphed callables":
            pass
        elif what == "inside":
            with torch.autocast("cuda"):
                net(x)
            with torch.cuda.graph(graph), torch.autocast("cuda"):
                y = net(x)
        elif what == "warm-up in another block":
            with torch.autocast("cuda"):
                net(x)
            with torch.autocast("cuda"), torch.cuda.graph(graph):
                y = net(x)
        elif what == "decorator warm-up":

            @torch.autocast("cuda")
            def make():
                net(x)
                with torch.cuda.graph(graph):
                    return net(x)

            y = make()
        else:
            with torch.autocast("cuda", **off):
                if what in ("warm-up before", "cache off", "no grad needed", "inner cache off"):
                    net(x)
                    torch.cuda.synchronize()
                if what == "two captures":
                    with torch.cuda.graph(second):
                        net(x)
                if what == "inner cache off":
                    with torch.autocast("cuda", cache_enabled=False), torch.cuda.graph(graph):
                        y = net(x)
                else:
                    with torch.cuda.graph(graph):
                        y = net(x)
                if what == "alone then eager":
                    eager = net(x).clone()
                    torch.cuda.synchronize()
    if what == "graphed callables":
        with torch.autocast("cuda"):
            torch.cuda.make_graphed_callables(net, (x.requires_grad_(),))
        return {"outcome": "captured"}
    result = {"outcome": "captured"}
    junk = [torch.full((64, 64), 7.0, device="cuda", dtype=torch.float16) for _ in range(64)]
    with torch.no_grad(), torch.autocast("cuda", cache_enabled=False):
        if what == "alone then eager":
            result["eager differs"] = (eager - net(x)).abs().max().item()
        graph.replay()
        torch.cuda.synchronize()
        result["replay differs"] = (y - net(x)).abs().max().item()
        for p in net.parameters():
            p.mul_(2)
        graph.replay()
        torch.cuda.synchronize()
        result["after new weights"] = (y - net(x)).abs().max().item()
    del junk
    return result


def pinned(torch, what):
    x = torch.arange(1024.0, device="cuda")
    out = torch.empty(1024, device="cuda")
    keep = []
    graph = torch.cuda.CUDAGraph()
    if what.startswith("staging"):
        slow = torch.randn(4096, 4096, device="cuda")
        staging = torch.zeros(1024).pin_memory()
        with torch.cuda.graph(graph):
            y = out * 1
        wrong = 0
        results = []
        for i in range(1, 20):
            staging.fill_(float(i))
            for _ in range(4):
                slow @ slow
            out.copy_(staging, non_blocking=True)
            graph.replay()
            results.append(y.clone())
            if what == "staging waited":
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        wrong = sum(int(r[0].item()) != i for i, r in enumerate(results, 1))
        return {"outcome": "captured", "wrong": wrong, "of": len(results)}
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        if what == "temporary source":
            out.copy_(torch.full((1024,), 5.0).pin_memory(), non_blocking=True)
        elif what == "result of to cpu":
            x.to("cpu", non_blocking=True)
        elif what == "kept result":
            keep.append(x.to("cpu", non_blocking=True))
        else:
            torch.empty(1024, pin_memory=True).copy_(x, non_blocking=True)
    others = [torch.full((1024,), 9.0).pin_memory() for _ in range(16)]
    graph.replay()
    torch.cuda.synchronize()
    result = {
        "outcome": "captured",
        "others overwritten": sum(bool((o != 9.0).any()) for o in others),
        "source seen": out[0].item(),
    }
    if keep:
        result["kept"] = bool((keep[0] == x.cpu()).all())
        result["kept is pinned"] = keep[0].is_pinned()
    return result


def one(case):
    import torch

    kind, _, rest = case.partition(" ")
    try:
        if kind == "optimizer":
            name, _, variant = rest.partition(" | ")
            found = optimizer(torch, name, variant)
        else:
            found = {"scaler": scaler, "autocast": autocast, "pinned": pinned}[kind](torch, rest)
    except Exception as error:
        first = error
        while first.__context__ is not None:
            first = first.__context__
        found = {"outcome": "capture-error", "error": f"{type(first).__name__}: {first}"[:200]}
    print(json.dumps({"case": case, **found}), flush=True)
    return found["outcome"] == "captured"


def drive(cases):
    """The outcomes of some cases; a failed step leaves the generator's state behind, so a fresh process goes on."""
    outcomes = {}
    while cases:
        command = [sys.executable, __file__, "--cases", json.dumps(cases)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                outcomes[row.pop("case")] = row
        rest = [case for case in cases if case not in outcomes]
        if len(rest) == len(cases) or (rest and done.returncode != 3):
            outcomes[rest.pop(0)] = {"outcome": "died", "error": done.stderr[-200:]}
        cases = rest
    return outcomes


def main(workers):
    import torch

    outcomes = {}
    with ThreadPoolExecutor(workers) as pool:
        for part in pool.map(drive, [CASES[start::workers] for start in range(workers)]):
            outcomes.update(part)
    head = f' "torch": {json.dumps(torch.__version__)},\n "gpu": {json.dumps(torch.cuda.get_device_name())},\n'
    rows = ",\n".join(f"  {json.dumps(case)}: {json.dumps(outcomes[case])}" for case in CASES)
    (RESULTS / "training_steps.json").write_text("{\n" + head + ' "cases": {\n' + rows + "\n }\n}\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cases"]:
        for each in json.loads(sys.argv[2]):
            if not one(each):
                sys.exit(3)
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
