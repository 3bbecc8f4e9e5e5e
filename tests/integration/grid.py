# SPDX-License-Identifier: Apache-2.0
"""What the integration tests are written with: hosts that can die, a laptop that rules them, and jobs on them.

A file of tests has one grid, made before its first test and always removed:

    def setUpModule():
        grid.up(3)

Nothing here waits for a fixed time: every wait looks until a deadline and fails with the evidence when it passes.
"""
import contextlib
import glob
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTGRID = os.path.join(SOURCE, "scripts", "testgrid")
WORKLOADS = os.path.join(SOURCE, "tests", "workloads")
GRIDCTL = os.environ.get("GRIDCTL", os.path.join(SOURCE, "build", "release", "cmd", "gridctl"))
FRAMEWORKS = os.environ.get("GRIDCTL_FRAMEWORKS", "")  # folder of Python packages that hosts get
SITE = "/var/site"                                     # where they have it
LONG = os.environ.get("GRIDCTL_LONG", "") not in ("", "0")  # the numbers of the promise instead of those of every day

MUTANT = os.environ.get("MUTANT_OF_GRIDCTL", "")  # of tests/mutants/mutate.py, for hosts and containers, too
WORKER = 1500          # uid of the hosts' ordinary user
SUBUID_FIRST = 200000  # uids of its rootless containers
LOOK = 0.1             # seconds between two looks at first; the longer the wait, the fewer, for each costs a process
RARE_LOOK = 0.4
PATIENCE = 3           # so many times longer may events take on a machine that scenarios share
LEASE_SLOT = 16384     # bytes, gridctl-agent(7)
FINAL = ("SUCCEEDED", "FAILED", "CANCELLED")


class Timeout(AssertionError):
    pass


def wait_until(what, deadline, look, evidence=None):
    """look() until it gives something true, which is returned. `deadline`: seconds that a quiet machine needs at most."""
    deadline *= PATIENCE
    end = time.monotonic() + deadline
    pause = LOOK
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() >= end:
            raise Timeout(f"gave up waiting for {what} after {deadline} s\n{evidence() if evidence else ''}")
        time.sleep(pause)
        pause = min(pause * 1.15, RARE_LOOK)


def bound(seconds):
    """What must not take longer than this on a quiet machine may take, while so many processes wait for a processor."""
    return seconds * max(1.0, os.getloadavg()[0] / os.cpu_count())


def is_alive(pid):
    """A process that has ended but not been reaped is not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(") ")[2][:1] != "Z"
    except OSError:
        return False


def fill_disk(path):
    """All of the disk, by a file of that name, at once and without writing it."""
    with open(path, "wb") as file:
        disk = os.statvfs(os.path.dirname(path))
        size = 0
        for piece in (1 << 26, 1 << 22, 1 << 16, 1 << 12):
            while size < 2 * disk.f_bavail * disk.f_frsize:
                try:
                    os.posix_fallocate(file.fileno(), size, piece)
                    size += piece
                except OSError:
                    break


def figure(name, value):
    """A measured number, for whoever reads the log."""
    print(f"FIGURE {name}: {value}", flush=True)


class Grid:
    def __init__(self, count, small_disks=None, dockerd=()):
        self.folder = tempfile.mkdtemp(prefix="gridctl-integration.")
        self.environment = dict(os.environ, GRIDCTL_TESTGRID=os.path.join(self.folder, "grid"))
        self.laptops = []
        self.count = count
        try:
            small = [f"{host}={size}" for host, size in (small_disks or {}).items()]
            self.command("up", str(count), *[word for one in small for word in ("--small-disk", one)])
            for host in dockerd:
                self.command("dockerd", str(host))
            self.read_facts()
            if MUTANT:
                for host in self.hosts:
                    self.enter(host, f"echo {MUTANT} > /etc/gridctl-mutant")
        except BaseException:
            self.down()
            raise

    def read_facts(self):
        self.facts = {entry["host"]: entry for entry in json.loads(self.command("ls", "--json"))}

    def down(self):
        for laptop in self.laptops:
            laptop.close()
        subprocess.run([TESTGRID, "down"], env=self.environment, check=False)
        subprocess.run(["rm", "-rf", "--one-file-system", self.folder], check=False)

    @property
    def hosts(self):
        return range(1, self.count + 1)

    @property
    def key(self):
        return os.path.join(self.environment["GRIDCTL_TESTGRID"], "id_ed25519")

    def command(self, *words, check=True, timeout=60):
        done = subprocess.run([TESTGRID, *map(str, words)], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"testgrid {shlex.join(map(str, words))} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def start_docker(self, host):
        """The engines share no images: dockerd gets its own from the archive."""
        self.command("dockerd", host)
        folder = subprocess.run([SOURCE + "/scripts/mk-images", "--dir"], stdout=subprocess.PIPE, text=True,
                                check=True).stdout.strip()
        with open(f"{folder}/busybox.tar", "rb") as archive:
            subprocess.run([TESTGRID, "enter", str(host), "docker", "load", "-q"], stdin=archive, check=True,
                           env=self.environment, stdout=subprocess.DEVNULL)

    # What befalls hosts.
    def kill(self, host):
        self.command("kill", host)

    def start(self, host):
        self.command("start", host)

    def reboot(self, host):
        self.command("reboot", host)

    def partition(self, host, direction="both"):
        self.command("partition", host, direction)

    def readdress(self, host, part):
        self.command("readdress", host, part)

    def take_address(self, host, part):
        self.command("take-address", host, part)

    def lose_address(self, host, part):
        self.command("lose-address", host, part)

    def heal(self, host):
        self.command("heal", host)

    def heal_all(self):
        for host in self.hosts:
            self.command("start", host)
            self.command("heal", host)

    # Looks inside, not over the network.
    def enter(self, host, script, check=True, timeout=60):
        return self.command("enter", host, "sh", "-c", script, check=check, timeout=timeout)

    def as_worker(self, host, script, check=True, timeout=60):
        words = ["setpriv", f"--reuid={WORKER}", f"--regid={WORKER}", "--init-groups", "env", "HOME=/home/worker",
                 "USER=worker", f"XDG_RUNTIME_DIR=/run/user/{WORKER}", "sh", "-c", f"cd ~; {script}"]
        return self.command("enter", host, *words, check=check, timeout=timeout)

    def disk(self, host, path=""):
        """The host's files as seen from here; also while it is dead."""
        return os.path.join(self.environment["GRIDCTL_TESTGRID"], f"h{host}", "fs", path)

    def processes(self, host):
        """Every process of worker and of its containers: (pid, arguments)."""
        found = []
        for line in self.enter(host, "ps -eww -o pid=,uid=,args=").splitlines():
            pid, uid, words = line.split(None, 2)
            if int(uid) == WORKER or SUBUID_FIRST <= int(uid) < SUBUID_FIRST + 65536:
                found.append((int(pid), words))
        return found

    def pids(self, host, pattern):
        """Of worker's processes whose arguments match."""
        return [pid for pid, words in self.processes(host) if re.search(pattern, words)]

    def signal(self, host, pids, number):
        if pids:
            self.enter(host, f"kill -{int(number)} {' '.join(map(str, pids))} 2>/dev/null || true")

    def containers_on(self, host):
        """Names of containers, running or not, of every engine."""
        names = self.as_worker(host, "podman ps -a --format '{{.Names}}'").split()
        if os.path.exists(self.disk(host, "etc/testgrid-dockerd")):
            names += self.enter(host, "docker ps -a --format '{{.Names}}'").split()
        return names

    def boot_id(self, host):
        return self.enter(host, "cat /proc/sys/kernel/random/boot_id").strip()

    def leases_on(self, host, boot=None):
        """Entries of the ledger of this boot (who looks often says which it is), each a dictionary; gpu is a list."""
        boot = boot or self.boot_id(host)
        data = b""
        for name in glob.glob(self.disk(host, "var/tmp/gridctl-leases.*")):
            if not re.fullmatch(r"gridctl-leases\.\d+(\.\d+)?", os.path.basename(name)):
                continue  # a lock, or a draft that is renamed at once
            with contextlib.suppress(FileNotFoundError), open(name, "rb") as file:
                data += file.read()
        leases = []
        for offset in range(0, len(data), LEASE_SLOT):
            slot = data[offset:offset + LEASE_SLOT]
            if slot[:4] != b"GLS1":
                continue
            length, = struct.unpack(">I", slot[4:8])
            lease = {"gpu": []}
            for line in slot[12:12 + length].decode(errors="replace").splitlines():
                name, _, value = line.partition("=")
                if name == "gpu":
                    lease["gpu"].append(value)
                else:
                    lease[name] = value
            if lease.get("boot") == boot:
                leases.append(lease)
        return leases

    def attempt_folders_on(self, host):
        """Folders jobs/CONTROLLER/JOB/EPOCH, and what lies in the tmpfs of secrets."""
        return self.enter(host, "ls -d /home/worker/.gridctl/jobs/*/*/[0-9]* /home/worker/.gridctl/jobs/*/*/.new-* "
                                f"/dev/shm/gridctl-{WORKER}/* /run/user/{WORKER}/gridctl-{WORKER}/* 2>/dev/null || true").split()

    def leftovers_on(self, host):
        """What jobs have left: containers, processes, leases, files. An empty list is what everybody wants."""
        mine = re.compile(r"gridctl-agent (supervise|init)|agent init|plain\.sh|\.py\b|conmon|sleep 0\.")
        left = [f"container {name}" for name in self.containers_on(host)]
        left += [f"process {pid} {words}" for pid, words in self.processes(host) if mine.search(words)]
        left += [f"lease of {lease.get('job')} epoch {lease.get('epoch')}" for lease in self.leases_on(host)]
        left += [f"folder {path}" for path in self.attempt_folders_on(host)]
        return left

    def wait_clean(self, deadline=40, hosts=None):
        for host in hosts or self.hosts:
            left = []

            def clean():
                left[:] = self.leftovers_on(host)
                return not left

            wait_until(f"h{host} to be clean", deadline, clean, lambda: "\n".join(left + self.remains_on(host)))

    def remains_on(self, host):
        """Evidence of why something is left: the files of the attempts, every process of the host, the daemons' logs."""
        return [self.enter(host, "cd /home/worker/.gridctl/jobs; ls -lAR --full-time . | head -200; "
                                 "tail -n 20 */*/*/supervisor.log; cat */*/*/status* | head -c 4000; true"),
                *(f"{pid} {words}" for pid, words in self.processes(host)),
                *(laptop.evidence() for laptop in self.laptops[-2:])]

    def laptop(self, name="laptop", state=None):
        laptop = Laptop(self, name, state)
        self.laptops.append(laptop)
        return laptop


class Done:
    """How a command ended."""

    def __init__(self, words, code, out, err, seconds):
        self.words, self.code, self.out, self.err, self.seconds = words, code, out, err, seconds

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"$ gridctl {shlex.join(self.words)}\n{self.out}{self.err}exit {self.code} after {self.seconds:.1f} s"


class Laptop:
    """One state directory."""
    image_constraints = {}  # of each job with an image

    def __init__(self, grid, name, state=None):
        self.grid = grid
        self.folder = os.path.join(grid.folder, name)
        os.makedirs(self.folder)
        self.state = state or os.path.join(self.folder, "state")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GRIDCTL_")}
        self.environment.update(GRIDCTL_STATE=self.state, CI="1", NO_COLOR="1")

    def close(self):
        pid = self.daemon_pid()
        if pid:
            try:
                os.kill(pid, signal.SIGCONT)
                self.run("daemon", "stop", check=False)
            except (ProcessLookupError, Timeout):
                pass
        pid = self.daemon_pid()
        if pid:
            os.kill(pid, signal.SIGKILL)

    def run(self, *words, check=True, code=None, env=None, timeout=60, cwd=None, stdin=None):
        """check: exit code 0, or the one given by `code`."""
        began = time.monotonic()
        with subprocess.Popen([GRIDCTL, *map(str, words)], env=dict(self.environment, **(env or {})), cwd=cwd or self.folder,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace") as done:
            try:
                out, err = done.communicate(stdin if stdin is not None else "", timeout)
            except subprocess.TimeoutExpired as late:
                running = subprocess.run(["ps", "-eo", "pid,ppid,etimes,stat,wchan:20,args", "--forest"], check=False,
                                         stdout=subprocess.PIPE, text=True).stdout
                done.kill()
                raise Timeout(f"gridctl {shlex.join(map(str, words))} is not done after {timeout} s\n{late.stdout}\n"
                              f"{late.stderr}\n--- processes then\n{running}\n{self.evidence()}") from None
        result = Done([str(word) for word in words], done.returncode, out, err, time.monotonic() - began)
        if check and done.returncode != (code or 0):
            raise AssertionError(f"expected exit code {code or 0}\n{result}\n{self.evidence()}")
        return result

    def spawn(self, *words, **options):
        return subprocess.Popen([GRIDCTL, *map(str, words)], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def evidence(self):
        try:
            with open(os.path.join(self.state, "daemon.log"), encoding="utf-8", errors="replace") as file:
                return "--- daemon.log\n" + "".join(file.readlines()[-40:])
        except OSError:
            return "(no daemon.log)"

    def register(self, host, name=None, engine="auto", *more, check=True, code=None):
        facts = self.grid.facts[host]
        return self.run("provider", "register", name or f"h{host}", f"worker@{facts['address']}:{facts['port']}",
                        "--host-key", facts["host_key"], "-i", self.grid.key, "--engine", engine, *more, check=check, code=code)

    def write_job(self, spec):
        if "image" in spec and self.image_constraints:
            spec = {**spec, "constraints": {**self.image_constraints, **spec.get("constraints", {})}}
        path = os.path.join(self.folder, f"{spec.get('name', 'job')}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file, indent=1)  # JSON is YAML
        return path

    def submit(self, spec, *more, env=None):
        if MUTANT:
            spec = {**spec, "envs": {**spec.get("envs", {}), "MUTANT_OF_GRIDCTL": MUTANT}}
        path = self.write_job(spec)
        return Job(self, self.run("job", "submit", "-d", "-y", "--json", path, *more, env=env).json["job_id"])

    def daemon_pid(self):
        """Pid of a daemon of this state directory, asked of the kernel."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if b"daemon" in words[1:2] and self.state.encode() in words:
                return int(pid)
        return None

    def kill_daemon(self):
        """Until it passes for none: it lives on for a moment, and a thread of it that ends last holds its lock."""
        pid = self.daemon_pid()
        if pid:
            os.kill(pid, signal.SIGKILL)
            wait_until(f"the end of daemon {pid}", 10, lambda: not is_alive(pid))
            wait_until("its lock", 60, lambda: f"pid {pid}," not in self.run("daemon", "status", check=False).out)

    def need_daemon(self):
        """As the next commands of a person would: one that was just killed lets go of its lock a moment after its death."""

        def started():
            self.run("daemon", "start")
            return self.daemon_pid()

        return wait_until("the daemon", 60, started)


# Tells each process of a job that catches SIGALRM, as the workloads do, that its steps take no time any more.
HURRY = r"""for files in $(grep -slzx 'GRIDCTL_JOB_ID=%s' /proc/[0-9]*/environ | cut -d/ -f-3); do
  grep -sqE '^SigCgt:.*[2367abef][0-9a-f]{3}$' $files/status && tr '\0' ' ' < $files/cmdline | grep -qE '\.(sh|py) $' &&
    kill -ALRM ${files#/proc/}
done; true"""


class Job:
    def __init__(self, laptop, job_id):
        self.laptop, self.id = laptop, job_id

    def show(self):
        return self.laptop.run("job", "show", self.id, "--json").json

    @property
    def state(self):
        return self.show()["state"]

    def events(self, kind=None):
        lines = self.laptop.run("job", "events", self.id, "--json").out.splitlines()
        events = [json.loads(line) for line in lines]
        return [event for event in events if kind is None or event["kind"] == kind]

    def attempts(self):
        return self.show()["attempts"]

    def checkpoints(self):
        return self.laptop.run("checkpoint", "ls", self.id, "--json").json

    def logs(self, *more):
        return self.laptop.run("job", "logs", self.id, *more).out

    def evidence(self):
        parts = [self.laptop.run("job", "events", self.id, check=False).out,
                 "--- output\n" + self.laptop.run("job", "logs", self.id, "--tail", "15", check=False).out,
                 self.laptop.evidence()]
        return "\n".join(parts)

    def wait(self, what, deadline, look):
        return wait_until(f"{what} of job {self.id}", deadline, look, self.evidence)

    def wait_state(self, *states, deadline=60):
        """Fails at once when the job ends in another way."""

        def look():
            shown = self.show()
            if shown["state"] in states:
                return shown
            if shown["state"] in FINAL:
                raise AssertionError(f"job {self.id} is {shown['state']} instead of {states}\n{self.evidence()}")
            return None

        return self.wait("/".join(states), deadline, look)

    def wait_event(self, kind, count=1, deadline=60):
        def look():
            events = self.events(kind)
            return events[count - 1] if len(events) >= count else None

        return self.wait(f"event {kind} number {count}", deadline, look)

    def wait_checkpoint(self, number=1, deadline=60):
        """Until so many were made; old ones may be gone already."""
        return self.wait_event("checkpoint", number, deadline)

    def wait_attempt(self, number, deadline=60):
        """Until that attempt's program runs."""

        def look():
            attempts = self.attempts()
            return attempts[number - 1] if len(attempts) >= number and attempts[number - 1]["state"] == "running" else None

        return self.wait(f"attempt {number} running", deadline, look)

    def wait_output(self, text, deadline=60):
        return self.wait(f"'{text}' in the output", deadline, lambda: text in self.logs() and self.logs())

    def host(self, attempt=None):
        """Number of the host of the newest attempt (or that one)."""
        attempts = self.attempts()
        return int(attempts[(attempt or len(attempts)) - 1]["provider"].lstrip("h"))

    def hurry(self):
        """What was to be seen while its program runs has been seen: an attempt that runs now does its other steps at once."""
        for host in self.laptop.grid.hosts:
            self.laptop.grid.enter(host, HURRY % self.id, check=False)

    def wait_success(self, deadline=90, hurry=False):
        if hurry:
            self.hurry()
        return self.wait_state("SUCCEEDED", deadline=deadline)


def plain(name, **options):
    """plain.sh as a job: a counter that shows whether each step was done exactly once."""
    envs = {"STEPS": 60, "PACE": 0.1, "SAVE_EVERY": 10, "COMMIT": 1}
    envs.update(options.pop("envs", {}))
    spec = {"name": name, "workdir": WORKLOADS, "run": "sh plain.sh",
            "envs": {key: str(value) for key, value in envs.items()},
            "resources": {"cpus": 0.5}, "checkpoint": {"path": "out", "interval": "1s"}, "recovery": {"lost_after": "5s"}}
    for key, value in options.items():
        if isinstance(value, dict) and key in spec:
            spec[key] = dict(spec[key], **value)
        else:
            spec[key] = value
    return spec


def steps_of(output):
    return [int(step) for step in re.findall(r"^step (\d+) loss", output, re.MULTILINE)]


def iso(text):
    """Seconds since the epoch of a time in JSON."""
    import datetime
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# The grid of the file of tests that is running, and a laptop on it.
the_grid = None


def up(count=3, **options):
    """For setUpModule: says why when there can be no hosts here."""
    global the_grid
    kind = subprocess.run([TESTGRID, "kind"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    if kind.stdout.strip() != "hosts":
        raise unittest.SkipTest(f"no hosts with networks, mounts and processes of their own: {kind.stderr.strip()}")
    if not os.access(GRIDCTL, os.X_OK):
        raise AssertionError(f"no gridctl at {GRIDCTL}: build it, or say where it is by GRIDCTL=...")
    the_grid = Grid(count, **options)
    unittest.addModuleCleanup(the_grid.down)
    return the_grid


def up_with_frameworks(needs, register=True):
    """Four hosts for plain processes with the packages of GRIDCTL_FRAMEWORKS, and their laptop."""
    if not os.path.isdir(os.path.join(FRAMEWORKS, needs)) or not FRAMEWORKS:
        raise unittest.SkipTest(f"GRIDCTL_FRAMEWORKS=VENV/lib/python3.11/site-packages runs it: needs {needs}")
    laptop = up(4).laptop()
    for host in the_grid.hosts:
        # Links, where the disk allows: they are gigabytes.
        subprocess.run(["cp", "-a", "--link", FRAMEWORKS, the_grid.disk(host, SITE[1:])], check=True)
        if register:
            laptop.register(host, engine="process")
    return laptop


class Case(unittest.TestCase):
    """A test with one job, whose steps must come out right."""

    def setUp(self):
        self.grid = the_grid
        self.began = time.monotonic()

    def tearDown(self):
        print(f"FIGURE {self.id()}: {time.monotonic() - self.began:.1f} s", flush=True)

    def assert_steps_once(self, job, steps, attempts=None):
        """The program's own record in the last checkpoint: 1 to `steps`, each once."""
        folder = tempfile.mkdtemp(dir=job.laptop.folder)
        job.laptop.run("checkpoint", "pull", job.id, os.path.join(folder, "c"))
        with open(os.path.join(folder, "c", "state"), encoding="utf-8") as file:
            lines = file.read().split()
        shutil.rmtree(folder)
        if lines and lines[-1] == "end":
            lines.pop()
        self.assertEqual(lines, [str(n) for n in range(1, steps + 1)])
        if attempts is not None:
            self.assertEqual(len(job.attempts()), attempts, job.evidence())

    def assert_continues(self, job, every):
        """Each attempt after the first goes on where a checkpoint was, not from the beginning."""
        for attempt in job.attempts()[1:]:
            output = job.logs("--attempt", str(attempt["number"]))
            steps = steps_of(output)
            self.assertTrue(steps, f"attempt {attempt['number']} printed no step\n{job.evidence()}")
            resumed = re.search(r"^resumed after step (\d+)$", output, re.MULTILINE)
            self.assertTrue(resumed, f"attempt {attempt['number']} began anew:\n{output[:400]}\n{job.evidence()}")
            self.assertEqual(int(resumed[1]) % every, 0)
            self.assertEqual(steps, list(range(int(resumed[1]) + 1, int(resumed[1]) + 1 + len(steps))))
