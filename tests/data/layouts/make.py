#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden directories beside it: real frameworks save tiny models under strace, and what they did in which
order becomes NAME/stages, what they left becomes NAME/files, and what a later save wrote over becomes NAME/at-N.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch transformers accelerate peft lightning deepspeed \\
        orbax-checkpoint jax stable-baselines3 tensorflow-cpu keras
    /tmp/venv/bin/python tests/data/layouts/make.py [NAME…]

Needs strace. A line of `stages` is one of

    open PATH         created or emptied, content follows
    close PATH        has its content now
    rename FROM TO    (folders too)
    unlink PATH       (folders too)
    save N            the framework's call returned: what it wrote up to here is one whole save
"""
import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "savers.py")
CALL = re.compile(r"^(?:\d+ +)?(openat|creat|close|rename|renameat|renameat2|unlink|unlinkat|rmdir)\((.*)\) += (-?\d+)(?:<(.*)>)?")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def trace(name, folder):
    log = os.path.join(folder, "trace")
    out = os.path.join(folder, "out")
    os.mkdir(out)
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3",
                       JAX_PLATFORMS="cpu", DS_ACCELERATOR="cpu", TOKENIZERS_PARALLELISM="false")
    subprocess.run(["strace", "-f", "-y", "-qq", "-s", "4096", "-o", log, "-e",
                    "trace=openat,creat,close,rename,renameat,renameat2,unlink,unlinkat,rmdir",
                    sys.executable, PROGRAMS, name, out], check=True, env=environment, cwd=folder, timeout=600)
    return log, out


def absolute(text, folder):
    return os.path.normpath(text if text.startswith("/") else os.path.join(folder, text))


def lines_of(log):
    """Complete calls; those that strace cut in two are put together where they ended."""
    begun = {}
    with open(log, encoding="utf-8", errors="replace") as file:
        for line in file:
            pid, _, rest = line.strip().partition(" ")
            rest = rest.strip()
            if rest.endswith("<unfinished ...>"):
                begun[pid] = rest[:-len("<unfinished ...>")].rstrip()
            elif rest.startswith("<... "):
                yield begun.pop(pid, "") + rest[rest.index("resumed>") + len("resumed>"):]
            else:
                yield rest


def stages(log, out, folder):
    found, writing = [], {}
    for line in lines_of(log):
        match = CALL.match(line)
        if not match or int(match[3]) < 0:
            continue
        call, arguments = match[1], match[2]
        names = [absolute(one, folder) for one in STRING.findall(arguments)]
        if call in ("openat", "creat"):
            path = match[4] or names[0]
            if path.startswith(out + "/.save-"):
                found.append(f"save {path.rpartition('-')[2]}")
            elif path.startswith(out + "/") and ("O_WRONLY" in arguments or "O_RDWR" in arguments) and "O_DIRECTORY" not in arguments:
                if "O_TRUNC" in arguments or "O_CREAT" in arguments:
                    found.append(f"open {path[len(out) + 1:]}")
                    writing[(match[3], path)] = True
        elif call == "close":
            descriptor = re.match(r"(\d+)<(.*)>", arguments)
            if descriptor and writing.pop((descriptor[1], descriptor[2]), None):
                found.append(f"close {descriptor[2][len(out) + 1:]}")
        elif call.startswith("rename"):
            inside = [one.startswith(out + "/") for one in names]
            if all(inside):
                found.append(f"rename {names[0][len(out) + 1:]} {names[1][len(out) + 1:]}")
            elif inside[1]:  # from somewhere else: it is there at once, and whole
                found.append(f"close {names[1][len(out) + 1:]}")
        else:
            path = absolute(names[0], folder) if names else ""
            base = re.match(r"\d+<(.*?)>", arguments)
            if names and base and not STRING.findall(arguments)[0].startswith("/"):
                path = os.path.normpath(os.path.join(base[1], STRING.findall(arguments)[0]))
            if path.startswith(out + "/") and "/.save-" not in path:
                found.append(f"unlink {path[len(out) + 1:]}")
    return found


def keep_differences(folder, target):
    """Of earlier saves only what was written over since."""
    for copy in sorted(one for one in os.listdir(folder) if one.startswith("at-")):
        for at, _, names in os.walk(os.path.join(folder, copy)):
            for one in names:
                path = os.path.join(at, one)
                relative = os.path.relpath(path, os.path.join(folder, copy))
                final = os.path.join(target, "files", relative)
                if os.path.exists(final) and filecmp.cmp(path, final, shallow=False):
                    continue
                kept = os.path.join(target, copy, relative)
                os.makedirs(os.path.dirname(kept), exist_ok=True)
                shutil.copyfile(path, kept)


def stand_in(path):
    """Replaces a text that a framework adds to each save (a script, a model card) by one of ours with the same first line
    and size: the repository holds what we wrote, and the layouts look at nothing else of such a file."""
    with open(path, "rb") as file:
        text = file.read()
    first = text[:text.find(b"\n") + 1][:40]
    line = b"# stands for the text that the framework writes here\n"
    rest = len(text) - len(first)
    with open(path, "wb") as file:
        file.write(first + (line * (rest // len(line) + 1))[:max(rest - 1, 0)] + b"\n")


def make(name):
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        log, out = trace(name, folder)
        target = os.path.join(HERE, name)
        shutil.rmtree(target, ignore_errors=True)
        done = stages(log, out, folder)
        for marker in [one for one in os.listdir(out) if one.startswith(".save-")]:
            os.remove(os.path.join(out, marker))
        shutil.copytree(out, os.path.join(target, "files"))
        keep_differences(folder, target)
        with open(os.path.join(target, "stages"), "w", encoding="utf-8") as file:
            file.write("\n".join(done) + "\n")
        for at, _, names in os.walk(target):
            for one in names:
                if one.endswith((".py", ".md")):
                    stand_in(os.path.join(at, one))
        size = sum(os.path.getsize(os.path.join(at, one)) for at, _, names in os.walk(target) for one in names)
        print(f"{name}: {len(done)} stages, {size} bytes")


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    import savers
    for one in sys.argv[1:] or sorted(savers.SAVERS):
        make(one)
