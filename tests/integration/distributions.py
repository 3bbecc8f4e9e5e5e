#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts of other distributions: register, a job, a failover that goes on from the checkpoint, on each.

    sudo tests/integration/distributions.py [--gridctl build/release/cmd/gridctl] [--roots DIR] [bullseye trixie busybox ...]

Names are Debian's releases, made by mmdebstrap (needs the network), folders of DIR that hold a root already, or busybox, made
from this machine's busybox and its ssh server dropbear. Each root is two hosts: two sshd on loopback, each with process ids,
mounts and a /home of its own. Not a test of ctest: it downloads distributions. Exits with 1 when one of them fails.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

JOB = """name: count
workdir: .
run: |
  i=0
  [ ! -f $GRIDCTL_CKPT_DIR/i ] || i=$(cat $GRIDCTL_CKPT_DIR/i)
  echo "from $i"
  while [ $i -lt %d ]; do
    i=$((i + 1)); echo $i > $GRIDCTL_CKPT_DIR/.i; mv $GRIDCTL_CKPT_DIR/.i $GRIDCTL_CKPT_DIR/i; sleep 1
  done
checkpoint: {interval: 1s}
recovery: {lost_after: 5s}
"""


def run(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, text=True, **options).stdout


def debian(name, folder):
    run("unshare", "--mount", "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--include=openssh-server", name, folder)


def busybox(folder):
    """Nothing but busybox and a server to log in with, and the libraries of that."""
    for path in ("bin", "etc", "dev", "proc", "tmp", "var/tmp", "root", "run", "usr/bin", "usr/sbin", "lib64", "etc/dropbear"):
        os.makedirs(os.path.join(folder, path), exist_ok=True)
    os.chmod(os.path.join(folder, "tmp"), 0o1777)
    os.chmod(os.path.join(folder, "var/tmp"), 0o1777)
    shutil.copy(shutil.which("busybox"), os.path.join(folder, "bin/busybox"))
    for applet in run("busybox", "--list").split():
        if not os.path.lexists(os.path.join(folder, "bin", applet)):
            os.symlink("busybox", os.path.join(folder, "bin", applet))
    server = shutil.which("dropbear") or "/usr/sbin/dropbear"
    shutil.copy(server, os.path.join(folder, "usr/sbin/dropbear"))
    for line in run("ldd", server).splitlines():
        path = next((word for word in line.split() if word.startswith("/")), None)
        if path:
            target = os.path.join(folder, path.lstrip("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(os.path.realpath(path), target)
    for name, text in (("passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("group", "root:x:0:\n"), ("shells", "/bin/sh\n")):
        with open(os.path.join(folder, "etc", name), "w", encoding="ascii") as file:
            file.write(text)


class Host:
    """One sshd in a root of its own: a copy of the root by overlay, and a namespace of processes that dies with it."""

    def __init__(self, root, scratch, port, key):
        self.folder = os.path.join(scratch, f"host{port}")
        self.port, self.key, self.process = port, key, None
        for part in ("upper", "work", "root"):
            os.makedirs(os.path.join(self.folder, part))
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir={root},upperdir={self.folder}/upper,workdir={self.folder}/work", self.folder + "/root")
        for file in os.listdir(self.folder + "/root/etc/ssh") if os.path.isdir(self.folder + "/root/etc/ssh") else ():
            if file.startswith("ssh_host_"):
                os.remove(self.folder + "/root/etc/ssh/" + file)  # the package's, which all copies would share
        with open(self.folder + "/root/etc/machine-id", "w", encoding="ascii") as file:
            file.write(f"{port:032x}\n")
        self.start()

    def start(self):
        dropbear = not os.path.exists(self.folder + "/root/usr/sbin/sshd")
        serve = (f"mkdir -p /etc/dropbear; exec /usr/sbin/dropbear -R -F -E -s -p 127.0.0.1:{self.port}" if dropbear else
                 f"mkdir -p /run/sshd; ssh-keygen -A >/dev/null; exec /usr/sbin/sshd -D -e -p {self.port} "
                 "-o ListenAddress=127.0.0.1 -o PermitRootLogin=yes -o UsePAM=no")
        script = (f"mount --bind {self.folder}/root {self.folder}/root && cd {self.folder}/root && "
                  "mount -t proc proc proc && mount -t tmpfs -o mode=755 tmpfs dev && mkdir dev/pts dev/shm && "
                  "mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts && ln -s pts/ptmx dev/ptmx && "
                  "chmod 1777 dev/shm && for n in null:3 zero:5 full:7 random:8 urandom:9; do "
                  "mknod -m 666 dev/${n%:*} c 1 ${n#*:}; done; mknod -m 666 dev/tty c 5 0; "
                  "mkdir -p -m 700 root/.ssh && printf '%s\\n' \"$KEY\" > root/.ssh/authorized_keys && "
                  "ROOT=$PWD; exec chroot . /bin/sh -c \"$SERVE\"")
        with open(self.folder + "/log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
                                            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "KEY": self.key, "SERVE": serve},
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)

    def fingerprint(self):
        keys = run("ssh-keyscan", "-T", "5", "-t", "ed25519", "-p", str(self.port), "127.0.0.1")
        return run("ssh-keygen", "-lf", "-", input=keys).split()[1]

    def die(self):
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def remove(self):
        self.die()
        subprocess.run(["umount", "-l", self.folder + "/root"], check=False)


class Tour:
    def __init__(self, gridctl, scratch):
        self.gridctl, self.state = gridctl, os.path.join(scratch, "state")
        self.environment = {**os.environ, "HOME": scratch, "SSH_AUTH_SOCK": ""}

    def __call__(self, *words, code=0, timeout=120):
        done = subprocess.run([self.gridctl, "--state", self.state, *words], capture_output=True, text=True, timeout=timeout,
                              env=self.environment, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != code:
            raise RuntimeError(f"gridctl {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def job(self, steps):
        folder = tempfile.mkdtemp(dir=self.environment["HOME"])
        with open(os.path.join(folder, "job.yaml"), "w", encoding="ascii") as file:
            file.write(JOB % steps)
        return json.loads(self("job", "submit", os.path.join(folder, "job.yaml"), "-d", "--json"))["job_id"]

    def wait(self, job, look, deadline, what):
        end = time.monotonic() + deadline
        while time.monotonic() < end:
            shown = json.loads(self("job", "show", job, "--json"))
            if look(shown):
                return shown
            if shown["state"] in ("FAILED", "CANCELLED"):
                break
            time.sleep(0.5)
        raise RuntimeError(f"{what}:\n" + self("job", "show", job) + self("job", "events", job))


def visit(name, root, gridctl, ports):
    scratch = tempfile.mkdtemp(prefix="gridctl-tour-")
    hosts = []
    tour = Tour(gridctl, scratch)
    try:
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scratch + "/key")
        with open(scratch + "/key.pub", encoding="ascii") as file:
            key = file.read().strip()
        hosts = [Host(root, scratch, port, key) for port in ports]
        time.sleep(3)
        took = []
        for number, host in enumerate(hosts):
            begin = time.monotonic()
            tour("provider", "register", f"h{number}", f"root@127.0.0.1:{host.port}", "-i", scratch + "/key",
                 "--host-key", host.fingerprint(), "--engine", "process")
            took.append(time.monotonic() - begin)
        begin = time.monotonic()
        tour.wait(tour.job(2), lambda shown: shown["state"] == "SUCCEEDED", 60, "the short job")
        short = time.monotonic() - begin
        job = tour.job(25)
        shown = tour.wait(job, lambda shown: len(json.loads(tour("checkpoint", "ls", job, "--json"))) >= 2, 60,
                          "two checkpoints")
        victim = hosts[int(shown["provider"][1:])]
        begin = time.monotonic()
        victim.die()
        tour.wait(job, lambda now: now["state"] == "RUNNING" and now["provider"] != shown["provider"], 60, "the failover")
        failover = time.monotonic() - begin
        tour.wait(job, lambda now: now["state"] == "SUCCEEDED", 90, "the end")
        starts = [line for line in tour("job", "logs", job).splitlines() if "from " in line]
        if len(starts) != 2 or starts[1].endswith("from 0"):
            raise RuntimeError(f"it did not go on from its checkpoint: {starts}")
        system = json.loads(tour("provider", "show", "h0", "--json"))["inventory"]["os"]
        print(f"{name:10} {system:36} register {max(took):4.1f} s, job {short:4.1f} s, failover {failover:4.1f} s, {starts[1]}",
              flush=True)
        return True
    except (RuntimeError, subprocess.SubprocessError, OSError, KeyError) as failure:
        print(f"{name:10} FAILED: {failure}", flush=True)
        for host in hosts:
            with open(host.folder + "/log", encoding="utf-8", errors="replace") as log:
                print("".join(log.readlines()[-5:]))
        return False
    finally:
        subprocess.run([gridctl, "--state", tour.state, "daemon", "stop"], check=False, capture_output=True,
                       env=tour.environment)
        for host in hosts:
            host.remove()
        shutil.rmtree(scratch, ignore_errors=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--gridctl", default="build/release/cmd/gridctl")
    options.add_argument("--roots", default=os.path.expanduser("~/.cache/gridctl-test-roots"))
    options.add_argument("names", nargs="*", default=["bullseye", "trixie", "busybox"])
    args = options.parse_args()
    os.makedirs(args.roots, exist_ok=True)
    good = True
    for number, name in enumerate(args.names):
        root = os.path.join(args.roots, name)
        if not os.path.isdir(root):
            making = root + ".making"
            shutil.rmtree(making, ignore_errors=True)
            (busybox if name == "busybox" else lambda folder, name=name: debian(name, folder))(making)
            os.rename(making, root)
        port = 22_400 + 2 * number
        good = visit(name, root, os.path.abspath(args.gridctl), (port, port + 1)) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
