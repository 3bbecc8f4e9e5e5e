# SPDX-License-Identifier: Apache-2.0
"""What the sweep plays with: one state directory, hosts that are sshd processes on loopback, and pictures of all their
files to go back to before each fault."""
import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTGRID = os.path.join(SOURCE, "scripts", "testgrid")
WORKLOADS = os.path.join(SOURCE, "tests", "workloads")
GRIDCTL = os.path.abspath(os.environ.get("GRIDCTL", os.path.join(SOURCE, "build", "release", "cmd", "gridctl")))
FAULT_AT = os.path.abspath(os.environ.get("FAULT_AT",
                                          os.path.join(os.path.dirname(GRIDCTL), "..", "tests", "sweep", "fault_at")))

LOOK = 0.03           # seconds between two looks
COMMAND = 40          # seconds that a command may take
PATIENCE = 40         # seconds until a job ends, or what was left is gone
QUARANTINE = 240      # the same, while a host is quarantined: two minutes, and two clean looks a minute apart
TWO_DAYS = 2 * 86400  # seconds: longer than anything unfinished is kept
FINAL = ("SUCCEEDED", "FAILED", "CANCELLED")
PROGRAMS = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
ENGINES = ("podman", "docker")  # hosts have none: asking them takes longer than all else that a flow does
SECRET = "canary-77aa10"
SECRETS = f"/dev/shm/gridctl-{os.geteuid()}"  # gridctl-agent(7)


class Broken(Exception):
    """What must hold does not. `lost`: something acknowledged is gone; else somebody would have to repair by hand."""

    def __init__(self, text, lost=False):
        super().__init__(text)
        self.lost = lost


def wait_for(what, look, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise Broken(f"gave up waiting for {what() if callable(what) else what}")
        time.sleep(LOOK)


def copy(source, target):
    os.makedirs(target, exist_ok=True)
    subprocess.run(["cp", "-a", f"{source}/.", target], check=True)  # there are FIFOs in it


class Done:
    def __init__(self, words, code, out, err):
        self.words, self.code, self.out, self.err = words, code, out, err

    def __str__(self):
        return f"$ gridctl {' '.join(self.words)}\n{self.out}{self.err}exit {self.code}"


class World:
    def __init__(self, hosts=2):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a kill asks nothing of the disk
        self.folder = tempfile.mkdtemp(prefix="gridctl-sweep.", dir=memory)
        self.grid = os.path.join(self.folder, "grid")
        self.state = os.path.join(self.folder, "state")
        self.report = os.path.join(self.folder, "report")
        self.programs = os.path.join(self.folder, "programs")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GRIDCTL_")}
        self.environment.update(GRIDCTL_STATE=self.state, CI="1", NO_COLOR="1", TOKEN=SECRET, HOME=self.folder)
        self.count = hosts
        self.each = False  # whether hidden calls count, too
        self.sshd = {}  # ours, of hosts that run under fault_at
        self.make_programs()
        self.testgrid("up", str(hosts))
        self.facts = {fact["host"]: fact for fact in json.loads(self.testgrid("ls", "--json"))}

    def close(self):
        self.stop_daemon()
        for host in list(self.sshd):
            self.end_watched(host)
        subprocess.run([TESTGRID, "down"], env=self.grid_environment(), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        for host in range(1, self.count + 1):
            for name in self.secrets_of(host):
                shutil.rmtree(os.path.join(SECRETS, name), ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def make_programs(self):
        os.mkdir(self.programs)
        for folder in PROGRAMS:
            for name in os.listdir(folder):
                if name not in ENGINES and not os.path.lexists(os.path.join(self.programs, name)):
                    os.symlink(os.path.join(folder, name), os.path.join(self.programs, name))

    def grid_environment(self):
        return dict(os.environ, GRIDCTL_TESTGRID=self.grid, GRIDCTL_TESTGRID_PLAIN="1",
                    GRIDCTL_TESTGRID_PATH=self.programs)

    def testgrid(self, *words):
        done = subprocess.run([TESTGRID, *words], env=self.grid_environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"testgrid {words} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def host(self, number, *path):
        return os.path.join(self.grid, f"h{number}", *path)

    # Commands.
    def faulty(self, fault, watch=""):
        """The words before a command that is to meet a fault: (mode, number), or None to count."""
        words = [FAULT_AT, "--report", self.report, *(["--each"] if self.each else [])]
        if watch:
            words += ["--watch", watch]
        if fault:
            words += [f"--{fault[0]}", str(fault[1])]
        return [*words, "--"]

    def was_hit(self):
        """While what is to meet the fault runs."""
        return os.path.exists(self.report)

    def read_report(self):
        try:
            with open(self.report, encoding="utf-8") as file:
                lines = [line.rstrip("\n").partition(" ") for line in file]
        except FileNotFoundError:
            return {}
        os.unlink(self.report)
        return {name: int(value) if value.isdigit() else value for name, _, value in lines}

    def run(self, *words, fault=None, watched=False, code=None, environment=None):
        """`code`: one of these is expected; None takes any."""
        before = self.faulty(fault) if watched or fault else []
        try:
            done = subprocess.run([*before, GRIDCTL, *words], env=dict(self.environment, **(environment or {})),
                                  cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, errors="replace", timeout=COMMAND, check=False)
        except subprocess.TimeoutExpired:
            raise Broken(f"gridctl {' '.join(words)} did not end within {COMMAND} s") from None
        result = Done(words, done.returncode, done.stdout, done.stderr)
        if code is not None and done.returncode not in (code if isinstance(code, tuple) else (code,)):
            raise Broken(f"expected exit code {code}\n{result}")
        return result

    def json(self, *words):
        return json.loads(self.run(*words, "--json", code=0).out or "[]")

    def spawn(self, *words, fault=None):
        return subprocess.Popen([*self.faulty(fault), GRIDCTL, *words], env=self.environment, cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def register(self, host, *more, fault=None, watched=False, code=0):
        fact = self.facts[host]
        return self.run("provider", "register", f"h{host}", f"{fact['user']}@127.0.0.1:{fact['port']}", "--host-key",
                        fact["host_key"], "-i", os.path.join(self.grid, "id_ed25519"), "--engine", "process", *more,
                        fault=fault, watched=watched, code=code)

    def write_job(self, name, **options):
        spec = {"name": name, "workdir": os.path.join(self.folder, "work"), "run": "sh plain.sh",
                "envs": {"STEPS": "4", "PACE": "0.02", "SAVE_EVERY": "2", "COMMIT": "1"}, "resources": {"cpus": 0.1},
                "recovery": {"lost_after": "5s"}, "checkpoint": {"path": "out", "interval": "1s", "keep": 50},
                "secrets": {"TOKEN": None}}
        spec.update(options)
        os.makedirs(spec["workdir"], exist_ok=True)
        shutil.copy(os.path.join(WORKLOADS, "plain.sh"), spec["workdir"])
        path = os.path.join(self.folder, f"{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)  # JSON is YAML
        return path

    def daemon_pid(self):
        return json.loads(self.run("daemon", "status", "--json", code=0).out)["pid"]

    def start_daemon(self):
        """As the next commands of a person would: one that was just killed lets go of its lock a moment later."""

        def started():
            done = self.run("daemon", "start")
            return done.code == 0

        wait_for("the daemon", started, 10)

    def stop_daemon(self):
        self.run("daemon", "stop")

    # A host whose processes meet a fault.
    def start_watched(self, host, fault, watch):
        self.testgrid("kill", str(host))
        command = [*self.faulty(fault, watch), "/usr/sbin/sshd", "-D", "-e", "-f", self.host(host, "sshd_config")]
        with open(self.host(host, "log"), "ab") as log:
            self.sshd[host] = subprocess.Popen(command, cwd=self.host(host, "home"), stdin=subprocess.DEVNULL,
                                               stdout=log, stderr=log, start_new_session=True,
                                               env=dict(os.environ, GRIDCTL_TESTGRID_HOST=self.host(host)))

        def listens():
            with open("/proc/net/tcp", encoding="ascii") as file:
                sockets = [line.split() for line in file.readlines()[1:]]
            wanted = f":{self.facts[host]['port']:04X}"
            return any(words[1].endswith(wanted) and words[3] == "0A" for words in sockets)

        wait_for("sshd", listens, 10)

    def end_watched(self, host):
        """What was counted or hit. The host then is an ordinary one again, with its processes as they are."""
        sshd = self.sshd.pop(host)
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(sshd.pid)], stdout=subprocess.PIPE, text=True,
                                  check=False).stdout.split()
        for child in children:
            os.kill(int(child), signal.SIGTERM)
        sshd.wait(timeout=20)
        self.testgrid("start", str(host))
        return self.read_report()

    # Pictures.
    def parts(self):
        yield "state", self.state
        for host in range(1, self.count + 1):
            yield f"h{host}", self.host(host, "home")
            yield f"l{host}", self.host(host, "leases")

    def take_picture(self):
        for name, path in self.parts():
            target = os.path.join(self.folder, "picture", name)
            shutil.rmtree(target, ignore_errors=True)
            if os.path.isdir(path):
                copy(path, target)

    def empty(self):
        """As it was at first, for another flow."""
        self.stop_daemon()
        for host in range(1, self.count + 1):
            self.testgrid("kill", str(host))
        shutil.rmtree(os.path.join(self.folder, "picture"), ignore_errors=True)
        self.restore_picture()
        for host in range(1, self.count + 1):
            self.testgrid("start", str(host))

    def restore_picture(self):
        for name, path in self.parts():
            for entry in os.listdir(path) if os.path.isdir(path) else []:  # sshd stands in the directory itself
                whole = os.path.join(path, entry)
                if os.path.isdir(whole) and not os.path.islink(whole):
                    shutil.rmtree(whole)
                else:
                    os.unlink(whole)
            source = os.path.join(self.folder, "picture", name)
            if os.path.isdir(source):
                copy(source, path)
            elif name == "state" and os.path.isdir(path):
                os.rmdir(path)

    # What must hold.
    def let_two_days_pass(self):
        """For what is removed only when it is old."""
        then = time.time() - TWO_DAYS
        for folder, names, files in os.walk(self.state):
            for name in names + files:
                if not name.startswith(("state.db", "daemon")):
                    os.utime(os.path.join(folder, name), (then, then), follow_symlinks=False)

    def jobs(self):
        return {job["job_id"]: job for job in self.json("job", "ls")}

    def state_of(self, job):
        """As the database has it; for loops, as it costs no process. None while it cannot be read without mending it."""
        try:
            db = sqlite3.connect(f"file:{self.state}/state.db?mode=ro", uri=True, timeout=2)
        except sqlite3.Error:
            return None
        try:
            found = db.execute("SELECT state FROM jobs WHERE id = ?", (job,)).fetchone()
            return found[0] if found else None
        except sqlite3.Error:
            return None
        finally:
            db.close()

    def left_here(self):
        """Files of the state directory that belong to nothing."""
        running = {job for job, row in self.jobs().items() if row["state"] not in FINAL}
        left = []
        for folder, names, files in os.walk(self.state):
            left += [os.path.join(folder, name) for name in files if ".tmp-" in name or ".new" in name]
            if folder == os.path.join(self.state, "secrets"):
                left += [os.path.join(folder, name) for name in names if name not in running]
            if folder == os.path.join(self.state, "store", "tmp"):
                left += [os.path.join(folder, name) for name in files]
        return left

    def host_processes(self, host):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").replace("\0", " ")
                here = os.readlink(f"/proc/{pid}/cwd")
            except OSError:
                continue
            if "sshd" in words.split(" ")[0] or f"{self.grid}/h{host}" not in words + here + "/":
                continue
            if "fault_at" not in words and "gridctl-agent connect" not in words:
                found.append(f"process {pid} {words[:120]}")
        return found

    def left_on(self, host):
        left = self.host_processes(host)
        for folder, names, files in os.walk(self.host(host, "home", ".gridctl")):
            depth = os.path.relpath(folder, self.host(host, "home", ".gridctl")).split(os.sep)
            if depth[0] == "jobs" and len(depth) == 3 and depth[2] != "notify":
                left += [os.path.join(folder, name) for name in names]
            if depth[0] == "bin":
                left += [os.path.join(folder, name) for name in files if ".tmp" in name]
        for name in glob.glob(self.host(host, "leases", "gridctl-leases.*[0-9]")):
            with open(name, "rb") as file:
                if b"GLS1" in file.read():
                    left.append("a lease")
        return left + [f"secret {name}" for name in self.secrets_of(host)]

    def secrets_of(self, host):
        """The hosts of a grid without root have one memory file system: names begin with a controller's."""
        jobs = self.host(host, "home", ".gridctl", "jobs")
        names = os.listdir(SECRETS) if os.path.isdir(SECRETS) else []
        return [name for name in names if os.path.isdir(os.path.join(jobs, name.split(".")[0]))]

    def wait_final(self):
        """A host that could not write is quarantined by design, and comes back by itself."""
        for job in self.jobs():
            try:
                wait_for("the end of a job", lambda job=job: self.state_of(job) in FINAL)
            except Broken:
                if not self.quarantined():
                    raise Broken(f"gave up waiting for the end of all jobs: {self.jobs()}") from None
                wait_for(lambda: f"the end of all jobs: {self.jobs()}", lambda job=job: self.state_of(job) in FINAL,
                         QUARANTINE)

    def quarantined(self):
        names = [one["name"] for one in self.json("provider", "ls")]
        standings = [self.json("provider", "show", name)["standing"] for name in names]
        return any(standing and standing["state"] == "quarantined" for standing in standings)

    def settle(self, hosts=(1,)):
        """A daemon runs: every job ends and leaves nothing on hosts. One that runs two days later removes what belongs
        to nothing, and all is whole."""
        self.start_daemon()
        try:
            self.wait_final()
            for host in hosts:
                wait_for(lambda host=host: f"h{host} to be clean:\n" + "\n".join(self.left_on(host)),
                         lambda host=host: not self.left_on(host))
        finally:
            self.stop_daemon()
        self.let_two_days_pass()
        self.start_daemon()
        try:
            wait_for(lambda: "the state directory to be clean:\n" + "\n".join(self.left_here()),
                     lambda: not self.left_here(), 10)
        finally:
            self.stop_daemon()
        self.check_whole()

    def check_whole(self):
        with sqlite3.connect(f"file:{self.state}/state.db", uri=True, timeout=10) as db:
            answer = db.execute("PRAGMA integrity_check").fetchall()
            if answer != [("ok",)]:
                raise Broken(f"the database is damaged: {answer}")
        db.close()
        for job in self.jobs():
            if self.json("checkpoint", "ls", job):
                self.run("checkpoint", "verify", job, code=0)
