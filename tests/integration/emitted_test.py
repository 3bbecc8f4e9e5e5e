# SPDX-License-Identifier: Apache-2.0
"""Folders of `gridctl plan train --emit` are submitted as they are, on two hosts with two GPUs each that do not exist: four
ranks start, each once, and end; a host of one of them (GRIDCTL_LONG=1: of all) loses power, and the job goes on from its
checkpoint. Small programs stand in for the packages; with GRIDCTL_FRAMEWORKS=VENV/lib/python3.11/site-packages
transformers train a model of the planned shape."""
import json
import os
import re
import unittest

import grid

LOSING = grid.LONG or grid.FRAMEWORKS  # all targets lose a host
STEPS = 60  # of 0.1 s; fewer, once they go on from a checkpoint
STEPS_TO_LOSE_A_HOST = 1500  # a gang's first checkpoint is there after 25 s, and its host is given up after a minute
GPU = "NVIDIA H100 80GB HBM3"
STARTED = re.compile(r"started rank=(\d+) world=(\d+) local=(\d+)$", re.MULTILINE)
TINY = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 64}
# Layout of each target for four GPUs; the program that stands in for its package.
TARGETS = {"torchrun": ("dp=4", "train.py"), "fsdp": ("dp=4,zero=3,recompute=full", "train.py"),
           "deepspeed": ("dp=4,zero=2,recompute=full", "train.py"), "accelerate": ("dp=4,zero=3", "train.py"),
           "megatron": ("dp=2,tp=2,zero=1", "pretrain_gpt.py"), "torchtitan": ("dp=4,zero=3", "torchtitan/train.py")}
# Counts steps; rank 0 keeps them, and every rank continues from them.
RANK = """import os, sys, time
rank, folder = int(os.environ["RANK"]), os.environ["GRIDCTL_CKPT_DIR"]
line = f"started rank={rank} world={os.environ['WORLD_SIZE']} local={os.environ['LOCAL_RANK']}\\n"
os.write(1, line.encode())  # in one piece: ranks of a host share their output
print("arguments", *sys.argv[1:], flush=True)
path = os.path.join(folder, "state")
step = int(open(path).read()) if os.path.exists(path) else 0
if rank == 0:
    print(f"from step {step}", flush=True)
last, pace = int(os.environ["STEPS"]), 0.1 if step == 0 else 0.002
for step in range(step + 1, last + 1):
    time.sleep(pace)
    if rank == 0:
        with open(path + ".new", "w") as file:
            file.write(str(step))
        os.replace(path + ".new", path)
print(f"done at step {last}", flush=True)
"""
# As accelerate's launcher does it: the configuration says how many processes there are on how many hosts.
LAUNCHER = """import os, re, subprocess, sys
words = sys.argv[1:]
told = open(words[words.index("--config_file") + 1]).read()
number = lambda name: int(re.search(name + r": (\\d+)", told).group(1))
each, machine = number("num_processes") // number("num_machines"), int(words[words.index("--machine_rank") + 1])
assert words[words.index("--main_process_ip") + 1] and int(words[words.index("--main_process_port") + 1])
ranks = [subprocess.Popen([sys.executable, words[-1]], env=dict(os.environ, LOCAL_RANK=str(local), RANK=str(machine * each + local),
                          WORLD_SIZE=str(number("num_processes")))) for local in range(each)]
sys.exit(max(abs(one.wait()) for one in ranks))
"""


def stub(host):
    """nvidia-smi of a host with two GPUs."""
    uuids = [f"GPU-{host:08d}-2222-3333-4444-55555555555{index}" for index in (0, 1)]
    gpus = "".join(f"<gpu id='00000000:0{index}:00.0'><product_name>{GPU}</product_name><uuid>{uuid}</uuid><fb_memory_usage>"
                   "<total>81559 MiB</total><used>3 MiB</used></fb_memory_usage><temperature><gpu_temp>31 C</gpu_temp>"
                   "</temperature><processes></processes></gpu>" for index, uuid in enumerate(uuids))
    rows = "; ".join(f"echo '{index}, {GPU}, {uuid}, 81559, 550.54.15, 00000000:0{index}:00.0'" for index, uuid in enumerate(uuids))
    names = "; ".join(f"echo 'GPU {index}: {GPU} (UUID: {uuid})'" for index, uuid in enumerate(uuids))
    return f"""#!/bin/sh
case "$*" in
  '-q -x') echo "<?xml version='1.0' ?><nvidia_smi_log><driver_version>550.54.15</driver_version><cuda_version>12.4</cuda_version><attached_gpus>2</attached_gpus>{gpus}</nvidia_smi_log>" ;;
  --query-gpu=*) {rows} ;;
  -L) {names} ;;
  *) echo '| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |' ;;
esac
"""


def setUpModule():
    global laptop
    laptop = grid.up_with_frameworks("transformers", register=False) if grid.FRAMEWORKS else grid.up(3).laptop()
    for host in (1, 2, 3):
        laptop.grid.enter(host, f"cat > /usr/bin/nvidia-smi <<'STUB'\n{stub(host)}STUB\nchmod 755 /usr/bin/nvidia-smi")
        laptop.register(host, engine="process")


class Emitted(grid.Case):
    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def emit(self, target):
        folder, (layout, program) = os.path.join(laptop.folder, target), TARGETS[target]
        os.makedirs(os.path.dirname(os.path.join(folder, program)))
        if target in ("megatron", "torchtitan") or not grid.FRAMEWORKS:
            with open(os.path.join(folder, program), "w", encoding="utf-8") as file:
                file.write(RANK)
        if target == "accelerate" and not grid.FRAMEWORKS:
            os.makedirs(os.path.join(folder, "accelerate", "commands"))
            with open(os.path.join(folder, "accelerate", "commands", "launch.py"), "w", encoding="utf-8") as file:
                file.write(LAUNCHER)
        shape = os.path.join(laptop.folder, "tiny.json")
        with open(shape, "w", encoding="utf-8") as file:
            json.dump(TINY, file)
        model = ["llama-3-8b"] if target == "torchtitan" else [shape, "--seq", "32", "--batch", "16"]
        laptop.run("plan", "train", "--model", *model, "--gpu", "H100:2x2", "--layout", layout, "--tokens",
                   "1B" if target == "torchtitan" else "30K", "--emit", target, folder)
        return folder

    def submit(self, folder, steps):
        envs = {"PYTHONPATH": grid.SITE, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "DS_ACCELERATOR": "cpu",
                "HF_HUB_OFFLINE": "1"} if grid.FRAMEWORKS else {}
        envs["STEPS"] = str(steps)
        words = [word for name, value in envs.items() for word in ("-e", f"{name}={value}")]
        path = os.path.join(folder, "job.yaml")
        with open(path, encoding="utf-8") as file:
            job = file.read()
        self.assertIn("\nclass: tight\n", job)
        if not folder.endswith("torchtitan"):  # which needs the memory of several hosts together
            job = job.replace("\nclass: tight\n", "\nclass: federated\n")  # a busy machine's links may be measured as too slow
        with open(path, "w", encoding="utf-8") as file:
            file.write(job)
        done = laptop.run("job", "submit", "-d", "-y", "--json", *words, path)
        return grid.Job(laptop, done.json["job_id"])

    def assert_each_rank_once(self, job, target):
        if grid.FRAMEWORKS and target not in ("megatron", "torchtitan"):
            return  # the template's program does not say so
        for attempt in job.attempts():
            output = job.logs("--attempt", str(attempt["number"]))
            if "started" not in output and attempt != job.attempts()[-1]:
                continue  # its members found their link too slow
            ranks = sorted(tuple(map(int, found)) for found in STARTED.findall(output))
            self.assertEqual(ranks, [(0, 4, 0), (1, 4, 1), (2, 4, 0), (3, 4, 1)], job.evidence())

    def end(self, target):
        job = self.submit(self.emit(target), STEPS)
        job.wait_success(deadline=120)
        self.assert_each_rank_once(job, target)
        self.assertIn("done at step", job.logs(), job.evidence())

    def survive(self, target):
        job = self.submit(self.emit(target), STEPS_TO_LOSE_A_HOST)
        job.wait_checkpoint(1, deadline=240)
        lost = job.attempts()[-1]["members"][1]["provider"]
        self.grid.kill(int(lost[1:]))
        job.wait_attempt(len(job.attempts()) + 1, deadline=90)
        job.wait_success(deadline=300)
        self.assertIsNotNone(job.attempts()[-1]["resumed_from"], job.evidence())
        self.assert_each_rank_once(job, target)
        output = job.logs("--attempt", str(job.attempts()[-1]["number"]))
        self.assertNotIn("from step 0", output, job.evidence())
        self.assertIn("done at step", job.logs() if grid.FRAMEWORKS else output, job.evidence())
        self.grid.start(int(lost[1:]))
        self.grid.wait_clean()


def add(target):
    losing = LOSING or target == "torchrun"
    setattr(Emitted, f"test_{target}", lambda self: self.survive(target) if losing else self.end(target))


for one in TARGETS:
    add(one)


if __name__ == "__main__":
    unittest.main(verbosity=2)
