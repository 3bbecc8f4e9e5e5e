#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The planner beside real trainings on this machine's processors: a small GPT under DDP and FSDP.

    plan_cpu.py [--gridctl PATH] [--steps N] [--check]

Each run starts its own ranks over Gloo on loopback; one run of each framework calibrates, the others are predicted.
Prints measured and predicted step time and peak memory. --check: exits with 1 when a peak is off by more than 15 % or a
step by more than 20 %, with 77 where there is no torch or others take more than half of the machine. They only ever make a
step longer, so that a step counts as its quickest of two runs.
"""
import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time

SHAPES = {  # layers, hidden, heads, sequence, vocabulary, micro-batch
    "small": (4, 256, 4, 256, 2048, 4), "wide": (4, 512, 8, 256, 2048, 4), "deep": (12, 384, 6, 256, 2048, 4)}


def build(layers, hidden, heads, sequence, vocab):
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
            self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
            self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

        def forward(self, x):
            b, s, _ = x.shape
            q, k, v = (part.view(b, s, heads, -1).transpose(1, 2) for part in self.qkv(self.first(x)).split(hidden, 2))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, s, hidden))
            return x + self.down(nn.functional.gelu(self.up(self.second(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocab, hidden), nn.Embedding(sequence, hidden)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, vocab, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, ids):
            x = self.tokens(ids) + self.positions.weight
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    torch.manual_seed(0)
    return Gpt(), Block


def rank_main(kind, shape, steps):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    layers, hidden, heads, sequence, vocab, batch = SHAPES[shape]
    dist.init_process_group("gloo")
    model, block = build(layers, hidden, heads, sequence, vocab)
    if kind == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for one in model.blocks:
            fully_shard(one, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    times = []
    for _ in range(steps):
        ids = torch.randint(0, vocab, (batch, sequence))
        dist.barrier()
        began = time.monotonic()
        logits = model(ids)
        loss = torch.nn.functional.cross_entropy(logits.view(-1, vocab), ids.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        times.append(time.monotonic() - began)
    if dist.get_rank() == 0:
        times = sorted(times[1:])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"step_time_s": times[len(times) // 4], "peak_mem_gb": peak / 1e9}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def measure(kind, shape, ranks, steps, port):
    processes = []
    for rank in range(ranks):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                   OMP_NUM_THREADS="1")
        processes.append(subprocess.Popen([sys.executable, os.path.abspath(__file__), "--rank", kind, shape, str(steps)],
                                          env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    outputs = [process.communicate(timeout=400) for process in processes]
    if any(process.returncode for process in processes):
        sys.exit(outputs[0][1][-2000:])
    return json.loads(outputs[0][0].strip().splitlines()[-1])


def matrix_rate():
    import torch
    torch.set_num_threads(1)
    a = torch.rand(768, 768)
    best = 1e9
    for _ in range(10):
        began = time.monotonic()
        torch.mm(a, a)
        best = min(best, time.monotonic() - began)
    return 2 * 768 ** 3 / best / 1e12


def row(kind, shape, ranks, tflops):
    layers, hidden, heads, sequence, vocab, batch = SHAPES[shape]
    # More ranks than cores share them: each has its part of a core's rate.
    share = min(1.0, (os.cpu_count() or 1) / ranks)
    return {"arch": "gpt", "layers": layers, "hidden": hidden, "heads": heads, "seq_len": sequence, "vocab": vocab,
            "micro_batch": batch, "dp": ranks, "global_batch": batch * ranks, "precision": "fp32",
            "framework": "ddp" if kind == "ddp" else "fsdp2", "sharding": "none" if kind == "ddp" else "zero3",
            "flash_attention": True, "gpu_memory_gb": 8, "gpu_tflops": tflops * share, "gpus_per_node": ranks,
            "group": kind}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gridctl", default="build/release/cmd/gridctl")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("no torch here")
        sys.exit(77)
    import torch
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        print("torch", torch.__version__, "is too old: fused attention came with 2.0")
        sys.exit(77)
    if options.check and os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        print("too much else runs here to judge times")
        sys.exit(77)
    tflops = matrix_rate()
    runs, port = [], 29611
    for kind in ("ddp", "fsdp"):
        for shape, ranks in (("wide", 2), ("small", 2), ("deep", 2), ("small", 4), ("wide", 4)):
            measured = measure(kind, shape, ranks, options.steps, port)
            for _ in range(1 if options.check else 0):
                port += 1
                again = measure(kind, shape, ranks, options.steps, port)
                measured["step_time_s"] = min(measured["step_time_s"], again["step_time_s"])
            port += 1
            runs.append((kind, shape, ranks, measured))
    lines = []
    for index, (kind, shape, ranks, measured) in enumerate(runs):
        line = row(kind, shape, ranks, tflops)
        if index % 5 == 0:
            line.update(measured, calibrate=True)
        lines.append(json.dumps(line))
    answers = subprocess.run([options.gridctl, "plan", "estimate", "-"], input="\n".join(lines) + "\n", text=True,
                             stdout=subprocess.PIPE, check=True).stdout.splitlines()
    wrong = []
    for index, ((kind, shape, ranks, measured), answer) in enumerate(zip(runs, map(json.loads, answers))):
        print(f"{kind:5} {shape:6} {ranks} ranks  step {measured['step_time_s']:.3f} s, predicted {answer['step_time_s']:.3f}"
              f"  peak {measured['peak_mem_gb']:.3f} GB, predicted {answer['peak_mem_gb']:.3f}"
              + ("  (calibrates)" if index % 5 == 0 else ""))
        for name, most in (("peak_mem_gb", 0.15), ("step_time_s", 0.20)):
            if index % 5 != 0 and abs(answer[name] / measured[name] - 1) > most:
                wrong.append(f"{kind} {shape} {ranks}: {name} is off by more than {most:.0%}")
    if options.check:
        print("\n".join(wrong) or "peaks are within 15 %, steps within 20 %")
        sys.exit(1 if wrong else 0)


if len(sys.argv) > 1 and sys.argv[1] == "--rank":
    rank_main(sys.argv[2], sys.argv[3], int(sys.argv[4]))
else:
    main()
