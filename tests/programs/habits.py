# SPDX-License-Identifier: Apache-2.0
"""Saves as forty programs do, and tells whether what was restored is one of those saves: habits.py HABIT OUT SAVES END

The habits named "golden/NAME" repeat what a real framework did, in its order (tests/data/layouts/NAME). Each other one is
a function that writes save number n. Whatever it writes carries n, so that a mixture or a torn file shows."""
import glob
import io
import json
import os
import pickle
import shutil
import signal
import sqlite3
import struct
import sys
import time
import zipfile

SIZE = 40_000
PAUSE = 0.02  # between two pieces of a file that is written in place


def raw(path, n, size=SIZE):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        for _ in range(4):
            file.write(struct.pack("<Q", n) * (size // 32))
            file.flush()
            time.sleep(PAUSE)


def renamed(path, n, write=raw):
    write(path + ".tmp", n)
    os.replace(path + ".tmp", path)


def torch(path, n, optimizer=True):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    state = {"step": n, "model": {"w": n}, **({"optimizer": {"state": {0: n}}} if optimizer else {})}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("c/data.pkl", pickle.dumps(state, 2))
        archive.writestr("c/data/0", struct.pack("<Q", n) * (SIZE // 8))


def tensors(path, n):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    body = struct.pack("<Q", n) * (SIZE // 8)
    head = json.dumps({"w": {"dtype": "U8", "shape": [len(body)], "data_offsets": [0, len(body)]}}).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        file.flush()
        time.sleep(PAUSE)
        file.write(body)


def text(path, content, mode="w"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, mode) as file:
        file.write(content)


def number_in(path):
    """The save that a file is of; an error when it is of none, or of two."""
    with open(path, "rb") as file:
        content = file.read()
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            content = b"".join(archive.read(name) for name in archive.namelist() if name.endswith("/0") or name == "policy.pth")
    elif path.endswith(".safetensors"):
        content = content[8 + struct.unpack("<Q", content[:8])[0]:]
    numbers = {content[i:i + 8] for i in range(0, len(content), 8)}
    assert len(numbers) == 1 and len(content) % 8 == 0 and content, f"{path} is torn or mixed"
    return struct.unpack("<Q", numbers.pop())[0]


# --- The habits: name -> (save, the files of a save that belong together; {n} is its number, * any) ---------------------

def trainer(o, n, state='{"global_step": %d}', extra=()):
    p = f"{o}/checkpoint-{n}"
    tensors(f"{p}/model.safetensors", n)
    text(f"{p}/config.json", "{}")
    torch(f"{p}/training_args.bin", n, False)
    torch(f"{p}/optimizer.pt", n)
    torch(f"{p}/scheduler.pt", n, False)
    torch(f"{p}/rng_state.pth", n, False)
    text(f"{p}/trainer_state.json", state % n)
    for path, write in extra:
        write(f"{p}/{path}", n)


def pretrained(o, n):
    text(f"{o}/checkpoint-{n}/config.json", "{}")
    tensors(f"{o}/checkpoint-{n}/model.safetensors", n)
    torch(f"{o}/checkpoint-{n}/training_state.pt", n)


def llava(o, n):
    text(f"{o}/checkpoint-{n}/config.json", "{}")
    torch(f"{o}/checkpoint-{n}/mm_projector.bin", n, False)


def diffusers(o, n, folder="checkpoint-{n}"):
    p = f"{o}/" + folder.format(n=n)
    text(f"{p}/unet/config.json", "{}")
    tensors(f"{p}/unet/diffusion_pytorch_model.safetensors", n)
    torch(f"{p}/optimizer.bin", n)
    torch(f"{p}/scheduler.bin", n, False)
    torch(f"{p}/random_states_0.pkl", n, False)


def marked(o, n):
    diffusers(o, n, "step_{n}")
    text(f"{o}/step_{n}/COMPLETE", "")


def deepspeed(o, n, latest=False):
    torch(f"{o}/global_step{n}/mp_rank_00_model_states.pt", n, False)
    torch(f"{o}/global_step{n}/zero_pp_rank_0_mp_rank_00_optim_states.pt", n)
    if latest:
        text(f"{o}/latest", f"global_step{n}")


def stable_baselines(o, n):
    with zipfile.ZipFile(f"{o}/rl_{n}_steps.zip", "w") as archive:
        for name in ("data", "policy.pth"):
            archive.writestr(name, struct.pack("<Q", n) * 500)
    raw(f"{o}/rl_replay_buffer_{n}_steps.pkl", n)


def detectron(o, n):
    torch(f"{o}/model_{n:07d}.pth", n)
    text(f"{o}/last_checkpoint", f"model_{n:07d}.pth")


def mmcv(o, n):
    path = os.path.abspath(f"{o}/epoch_{n}.pth")
    torch(path, n)
    if os.path.lexists(f"{o}/last.pth"):
        os.unlink(f"{o}/last.pth")
    os.symlink(path, f"{o}/last.pth")


def database(o, n):
    with sqlite3.connect(f"{o}/study.db") as base:
        base.execute("CREATE TABLE IF NOT EXISTS trials(n INTEGER)")
        base.execute("INSERT INTO trials VALUES(?)", (n,))


def memory_map(o, n):
    path = f"{o}/state.mm"
    if not os.path.exists(path):
        raw(path, 0)
    with open(path, "r+b") as file:
        file.write(struct.pack("<Q", n) * (SIZE // 8))


def hdf5(o, n):
    raw(f"{o}/weights.hdf5.new", n)
    os.replace(f"{o}/weights.hdf5.new", f"{o}/weights.dat")


def zarr(o, n):
    text(f"{o}/array.zarr/.zarray", '{"chunks": [2]}')
    for i in range(4):
        renamed(f"{o}/array.zarr/{i}.0", n)


def gromacs(o, n):
    if os.path.exists(f"{o}/state.cpt"):
        os.replace(f"{o}/state.cpt", f"{o}/state_prev.cpt")
    renamed(f"{o}/state.cpt", n)
    text(f"{o}/md.log", f"step {n}\n", "a")


def ema_later(o, n):
    trainer(o, n)
    time.sleep(0.1)
    tensors(f"{o}/checkpoint-{n}/model_ema.safetensors", n)


def two_files(o, n):
    raw(f"{o}/model.raw", n)
    raw(f"{o}/optimizer.raw", n)


def lfs(o, n):
    text(f"{o}/best.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    raw(f"{o}/ckpt.bin", n)


def unreadable(o, n):
    raw(f"{o}/ckpt.bin", n)
    text(f"{o}/lock", "") if not os.path.exists(f"{o}/lock") else None
    os.chmod(f"{o}/lock", 0)


def special(o, n):
    if not os.path.exists(f"{o}/pipe"):
        os.mkfifo(f"{o}/pipe")
    renamed(f"{o}/ckpt.bin", n)


def torn_beside(o, n):
    text(f"{o}/broken.pt", "PK\3\4" + "x" * 100)
    torch(f"{o}/ckpt.pt", n)


def scratch(o, n):
    if n == 1:
        os.path.isdir(o) and not os.path.islink(o) and shutil.rmtree(o)
        os.makedirs(f"/tmp/scratch-{os.getpid()}")
        os.path.lexists(o) or os.symlink(f"/tmp/scratch-{os.getpid()}", o)
    raw(f"{o}/state.raw", n)


def logs_only(o, n):
    text(f"{o}/results.jsonl", json.dumps({"n": n}) + "\n", "a")
    text(f"{o}/table.csv", f"{n},1\n", "a")


HABITS = {
    "overwritten torch": (lambda o, n: torch(f"{o}/ckpt.pt", n), ["ckpt.pt"]),
    "renamed torch": (lambda o, n: renamed(f"{o}/ckpt.pt", n, torch), ["ckpt.pt"]),
    "torch by epoch": (lambda o, n: torch(f"{o}/epoch-{n}-of-10.pt", n), ["epoch-{n}-of-10.pt"]),
    "weights only": (lambda o, n: torch(f"{o}/weights_{n}.pt", n, False), ["weights_{n}.pt"]),
    "overwritten raw": (lambda o, n: raw(f"{o}/state.raw", n), ["state.raw"]),
    "renamed raw": (lambda o, n: renamed(f"{o}/state.raw", n), ["state.raw"]),
    "raw by step": (lambda o, n: raw(f"{o}/step-{n}/state.raw", n), ["step-{n}/state.raw"]),
    "two files": (two_files, ["model.raw", "optimizer.raw"]),
    "two archives": (lambda o, n: (torch(f"{o}/model.pt", n, False), torch(f"{o}/optim.pt", n)), ["model.pt", "optim.pt"]),
    "only logs": (logs_only, ["results.jsonl", "table.csv"]),
    "trainer": (trainer, ["checkpoint-{n}/model.safetensors", "checkpoint-{n}/optimizer.pt"]),
    "trainer with NaN": (lambda o, n: trainer(o, n, '{"global_step": %d, "log_history": [{"loss": NaN}]}'),
                         ["checkpoint-{n}/model.safetensors", "checkpoint-{n}/trainer_state.json"]),
    "trainer with a callback": (lambda o, n: trainer(o, n, extra=[("sft_lora/adapter_model.safetensors", tensors)]),
                                ["checkpoint-{n}/model.safetensors", "checkpoint-{n}/sft_lora/adapter_model.safetensors"]),
    "ema written later": (ema_later, ["checkpoint-{n}/model_ema.safetensors", "checkpoint-{n}/optimizer.pt"]),
    "own save_pretrained": (pretrained, ["checkpoint-{n}/model.safetensors", "checkpoint-{n}/training_state.pt"]),
    "llava": (llava, ["checkpoint-{n}/mm_projector.bin"]),
    "diffusers": (diffusers, ["checkpoint-{n}/unet/diffusion_pytorch_model.safetensors", "checkpoint-{n}/optimizer.bin"]),
    "an empty marker": (marked, ["step_{n}/optimizer.bin", "step_{n}/random_states_0.pkl"]),
    "deepspeed": (lambda o, n: deepspeed(o, n, True), ["global_step{n}/mp_rank_00_model_states.pt"]),
    "deepspeed without latest": (deepspeed, ["global_step{n}/zero_pp_rank_0_mp_rank_00_optim_states.pt"]),
    "stable baselines": (stable_baselines, ["rl_{n}_steps.zip", "rl_replay_buffer_{n}_steps.pkl"]),
    "detectron": (detectron, ["model_{n:07d}.pth", "last_checkpoint"]),
    "mmcv": (mmcv, ["epoch_{n}.pth", "last.pth"]),
    "sqlite": (database, ["study.db"]),
    "memory map": (memory_map, ["state.mm"]),
    "hdf5": (hdf5, ["weights.dat"]),
    "zarr": (zarr, ["array.zarr/0.0", "array.zarr/3.0"]),
    "gromacs": (gromacs, ["state.cpt", "md.log"]),
    "xgboost": (lambda o, n: text(f"{o}/model_{n}.json", json.dumps({"n": [n] * 1000})), ["model_{n}.json"]),
    "git-lfs": (lfs, ["ckpt.bin", "best.safetensors"]),
    "a file of mode 0": (unreadable, ["ckpt.bin"]),
    "a pipe": (special, ["ckpt.bin"]),
    "a torn file": (torn_beside, ["ckpt.pt", "broken.pt"]),
    "a link to scratch": (scratch, ["state.raw"]),
}
for golden in ("accelerate", "deepspeed", "distributed", "fsdp", "keras", "lightning", "orbax", "peft", "safetensors",
               "stable-baselines", "tensorflow", "torch", "transformers", "transformers-peft", "transformers-sharded"):
    HABITS["golden/" + golden] = (None, [])


def replay(home, out, last):
    """Repeats what a framework did, up to its `last`-th save."""
    with open(f"{home}/stages") as stages:
        lines = [line.split() for line in stages]

    def source(at, path, saves):
        """The content of that path, by the name that it gets in the end; what is gone by then has left none."""
        for verb, *paths in lines[at:]:
            if verb == "rename" and (path == paths[0] or path.startswith(paths[0] + "/")):
                path = paths[1] + path[len(paths[0]):]
        return next((p for p in (f"{home}/at-{saves + 1}/{path}", f"{home}/files/{path}") if os.path.isfile(p)), None)

    saves = 0
    for at, (verb, *paths) in enumerate(lines):
        if verb == "save":
            saves += 1
            if saves == last:
                return
            continue
        here = [f"{out}/{path}" for path in paths]
        if verb == "open":
            text(here[0], "")
        elif verb == "close" or (verb == "rename" and os.path.isfile(here[0]) and not os.path.getsize(here[0])):
            found = source(at, paths[0], saves)  # of a rename: written through a memory map, which no trace shows
            shutil.copyfile(found, here[0]) if found else text(here[0], "gone later")
        if verb == "rename":
            os.makedirs(os.path.dirname(here[1]), exist_ok=True)
            os.replace(here[0], here[1]) if not os.path.isdir(here[1]) else None
        elif verb == "unlink" and os.path.lexists(here[0]):
            shutil.rmtree(here[0]) if os.path.isdir(here[0]) else os.unlink(here[0])


def names(habit, n):
    return [name.format(n=n) for name in HABITS[habit][1]]


CHECKS = {}  # of habits that look for their newest save in their own way
if __name__ == "__main__":
    sys.modules["habits"] = sys.modules["__main__"]
import reported  # noqa: E402

HABITS.update(reported.table)
CHECKS.update(reported.checks)


def check(habit, out):
    """The newest save in `out`, which a program would resume from: 0 when there is none. Fails when it is torn."""
    if habit in CHECKS:
        return CHECKS[habit](out)
    pattern = [name.replace("{n:07d}", "*").replace("{n}", "*") for name in HABITS[habit][1]]
    found = sorted(glob.glob(f"{out}/{pattern[0]}"), key=os.path.getmtime) if pattern else []
    if not found or not found[-1].endswith((".pt", ".pth", ".ckpt", ".bin", ".raw", ".safetensors", ".zip", ".dat",
                                                              ".cpt")):
        return 1 if found or (os.path.isdir(out) and os.listdir(out)) else 0
    n = max(number_in(path) for path in found)
    for name in names(habit, n):
        assert os.path.exists(f"{out}/{name}"), f"{name} of save {n} is missing"
        if name.endswith((".pt", ".pth", ".ckpt", ".bin", ".raw", ".safetensors", ".zip", ".pkl", ".dat")) and "best." not in name \
                and "broken" not in name:
            assert number_in(f"{out}/{name}") == n, f"{name} is not of save {n}"
    return n


def main():
    habit, out, saves, end = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    if int(os.environ.get("GRIDCTL_ATTEMPT", 1)) > 1:
        try:
            print("resumes at", check(habit, out), sorted(os.listdir(out)) if os.path.isdir(out) else [], flush=True)
        except Exception as why:
            print("TORN:", why, flush=True)
            sys.exit(2)
        sys.exit(0)
    os.path.isdir(out) or os.path.islink(out) or os.makedirs(out)
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    save = HABITS[habit][0] or (lambda o, n: replay(os.path.dirname(os.path.abspath(__file__)) + "/layouts/" + habit[7:], o, n))
    for n in range(1, saves + 1):
        save(out, n)
        print("saved", n, flush=True)
        for _ in range(4):
            time.sleep(0.1)
    while end == "waits" and not stop:
        time.sleep(0.1)
    if end == "waits":
        save(out, saves + 1)  # as it is told to stop
        print("saved", saves + 1, flush=True)
    sys.exit(33 if end == "fails" else 0)


if __name__ == "__main__":
    main()
