#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is asked of `gridctl plan` wrongly or oddly gets one clear line and exit code 2 or 4.

    plan_refusals.py GRIDCTL
"""
import json
import os
import re
import subprocess
import sys
import tempfile

GRIDCTL = os.path.abspath(sys.argv[1])
LLAMA = {"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8,
         "vocab_size": 1000, "intermediate_size": 1024}


def without(key):
    return {name: value for name, value in LLAMA.items() if name != key}


def train(*options, gpu="H100:8x2", model="llama-3-8b"):
    return ("plan", "train", "--model", model, "--gpu", gpu, *options)


def config(**changes):
    return json.dumps({**LLAMA, **changes})


# What is asked, what stands on standard input or in config.json, exit code, words of the answer.
CASES = [
    # layouts that contradict the model, the batch or the machines
    (train("--layout", "tp=3"), 2, "32 cannot be divided by tp=3"),
    (train("--layout", "dp=16", "--batch", "100"), 2, "batch 100 cannot be divided by dp"),
    (train("--layout", "dp=16", "--batch", "4"), 2, "less than one sequence each"),
    (train("--layout", "pp=40", gpu="H100:8x8"), 2, "more than the 32 layers"),
    (train("--layout", "dp=64"), 2, "more than the 16 GPUs"),
    (train("--layout", "tp=16"), 2, "joined by a fast link"),
    (train("--layout", "ep=2"), 2, "no experts"),
    (train("--layout", "ep=3", model="mixtral-8x7b", gpu="H100:8x8"), 2, "8 cannot be divided by ep=3"),
    (train("--layout", "pp=2,zero=3"), 2, "zero=3 with pp=2"),
    (train("--layout", "cp=3"), 2, "cannot be divided by cp=3"),
    (train("--layout", "zero=1,offload=all"), 2, "needs zero=3"),
    (train("--layout", "pp=1,vpp=2"), 2, "virtual stages need pp > 1"),
    (train("--layout", "dp=two"), 2, "not 'two'"),
    (train("--layout", ""), 2, "is not a part of a layout"),
    (train("--what-if", "bogus=1"), 2, "is not a part of a layout"),
    # models and machines that nobody knows
    (train(model="llama-3-9b"), 2, "did you mean 'llama-3-8b'?"),
    (train(gpu="H1000:8"), 2, "did you mean 'H100'?"),
    (train(gpu="H100:0"), 2, "expected NAME:GPUS"),
    (train("--seq", "9000"), 2, "more than the 8192"),
    (train("--seq", "-1"), 2, "seq"),
    (train("--seq", "1e4"), 2, "seq"),
    (train("--tokens", "many"), 2, "expected a number such as"),
    (train("--optimizer", "magic"), 2, "'magic' is unknown"),
    (train("--precision", "fp12"), 2, "fp12"),
    (train("--deadline", "3d"), 2, "need --tokens"),
    (train("--deadline", "1s", "--tokens", "1T"), 4, "no layout of llama-3-8b"),
    (train("--budget", "1", "--tokens", "1T"), 4, "no layout of llama-3-8b"),
    (train(model="llama-3.1-405b", gpu="T4:1"), 4, "no layout of llama-3.1-405b"),
    (("plan", "train", "--params", "1e30", "--gpu", "H100:8"), 2, "--params"),
    (("plan", "serve", "--model", "llama-3.1-405b", "--gpu", "T4:1"), 4, "do not fit"),
    # config.json
    (config(num_attention_heads=7), 2, "not divisible by 7 heads"),
    (config(num_local_experts=8), 2, "no experts_per_token"),
    (config(num_local_experts=8, num_experts_per_tok=9), 2, "9"),
    (config(num_key_value_heads=3), 2, "key-value heads"),
    (config(model_type="bert"), 2, "is not a transformer decoder"),
    (config(num_hidden_layers=-4), 2, "num_hidden_layers"),
    (config(num_hidden_layers="four"), 2, "num_hidden_layers"),
    (config(hidden_size=1e300), 2, "hidden_size"),
    (json.dumps(without("hidden_size")), 2, "hidden_size"),
    (json.dumps(without("model_type")), 2, "model_type"),
    (json.dumps({**without("hidden_size"), "hidden_sizes": 512}), 2, "did you mean 'hidden_size'?"),
    (config(num_key_value_head=2), 2, "unknown key 'num_key_value_head'; did you mean 'num_key_value_heads'?"),
    ("[]", 2, "not a JSON object"),
    ("{", 2, "not JSON"),
    # rows
    ({"arch": "moe", "layers": 2, "hidden": 64}, 2, "experts is missing"),
    ({"params": -1}, 2, "params"),
    ({"layers": 4}, 2, "hidden"),
    ({"params": 1e9, "gpu": "nothing"}, 2, "unknown GPU"),
    ({"layers": 4, "hidden": 64, "heads": 4, "tp": 3}, 2, "tp=3"),
    ({"params": 1e9, "sharding": "zero9"}, 2, "zero9"),
    ({"params": 1e9, "calibrate": True}, 2, "calibrate needs step_time_s or peak_mem_gb"),
    ({"params": 1e9, "dp": 0}, 2, "dp"),
    ({}, 2, "give params, or layers"),
]


def ask(case, folder):
    if isinstance(case, tuple):
        return case, None
    if isinstance(case, dict):
        return ("plan", "estimate", "-"), json.dumps(case)
    path = os.path.join(folder, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(case)
    return ("plan", "train", "--model", path, "--gpu", "H100:8"), None


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, GRIDCTL_STATE=os.path.join(folder, "state"))
        for case, code, words in CASES:
            command, text = ask(case, folder)
            done = subprocess.run([GRIDCTL, *command], input=text, env=env, text=True, capture_output=True, timeout=60)
            told = done.stdout if text else done.stderr
            # One line of what is wrong; a hint and the counts of what was looked at may follow.
            first = [line for line in told.splitlines() if not re.match(r"hint: |  \d+ layouts: ", line)]
            if done.returncode != code or words not in told or len(first) != 1:
                wrong.append(f"{case}: exit code {done.returncode}, {told.strip()!r}; wanted {code}, {words!r}")
    print("\n".join(wrong) or f"{len(CASES)} refusals are clear")
    sys.exit(1 if wrong else 0)


main()
