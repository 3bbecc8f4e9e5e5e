# SPDX-License-Identifier: Apache-2.0
"""Limits of a lent machine that depend on its state: its upload, its owner's presence, heat, power, battery."""
import re
import time
import unittest

import grid
import lend_test
import lender
from grid import bound, plain, wait_until
from lender import IMAGE, LENT, RELAY

MEGABYTE = 1_000_000
RATE = 20 * MEGABYTE / 8  # bytes a second
SIZE = 30 * 1024 * 1024   # bytes of a checkpoint

# Waits for a word in its working directory before it saves; what it saves does not compress.
SAVES_ONCE = f"""trap 'exit 0' TERM
echo ready; sleep 3
dd if=/dev/urandom of=$GRIDCTL_CKPT_DIR/part bs=1M count={SIZE >> 20} 2> /dev/null; mv $GRIDCTL_CKPT_DIR/part $GRIDCTL_CKPT_DIR/state; echo saved
while :; do sleep 0.2; done"""


def setUpModule():
    lender.set_up()


METER = """import os, sys, time
while not os.path.exists(sys.argv[1]):
    with open('/proc/net/dev') as file:
        sent = sum(int(line.split(':')[1].split()[8]) for line in file if ':' in line and not line.strip().startswith('lo:'))
    print(time.monotonic(), sent, flush=True)
    time.sleep(0.1)
"""


class Meter:
    """Counts what a host sends, each tenth of a second."""

    count = 0

    def __init__(self, the_grid, host):
        Meter.count += 1
        self.grid, self.host, self.samples, self.file = the_grid, host, [], f"/tmp/meter.{Meter.count}"

    def __enter__(self):
        self.grid.enter(self.host, f"cat > /tmp/meter.py <<'EOF'\n{METER}\nEOF\n(setsid python3 /tmp/meter.py {self.file}.end < /dev/null > {self.file} 2>&1 &)")
        return self

    def __exit__(self, *_):
        told = self.grid.enter(self.host, f": > {self.file}.end; sleep 0.3; cat {self.file}").splitlines()
        self.samples = [(float(at), int(sent)) for at, sent in (line.split() for line in told)]

    def fastest(self, seconds=3.0):
        """Bytes a second, over windows of that length."""
        best = 0.0
        for at, (begin, sent) in enumerate(self.samples):
            later = [(when, total) for when, total in self.samples[at:] if when - begin >= seconds]
            if later:
                best = max(best, (later[0][1] - sent) / (later[0][0] - begin))
        return best

    def while_busy(self):
        """Bytes a second, from the first to the last moment at which much was sent."""
        moved = [(one, other) for one, other in zip(self.samples, self.samples[1:]) if other[1] - one[1] > RATE * 0.05 * (other[0] - one[0])]
        (begin, first), (end, last) = moved[0][0], moved[-1][1]
        return (last - first) / (end - begin), end - begin


class Limits(lender.LenderCase):
    def sends(self, name, to, megabytes=SIZE >> 20):
        return self.laptop.submit({"name": name, "image": IMAGE, "resources": {"cpus": 0.5},
                                   "run": f"sleep 2; began=$(cut -d' ' -f1 /proc/uptime); dd if=/dev/zero bs=1M count={megabytes} 2> /dev/null | nc {to} 5555; "
                                          "echo took $began $(cut -d' ' -f1 /proc/uptime)"})

    def listen(self):
        """At the relay; takes all and answers nothing."""
        script = ("import socket,threading\ns=socket.socket(); s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); s.bind(('0.0.0.0',5555)); s.listen(9)\n"
                  "def take(c):\n while c.recv(1<<16): pass\n c.close()\n"
                  "while True:\n c,_=s.accept(); threading.Thread(target=take,args=(c,),daemon=True).start()\n")
        self.grid.enter(RELAY, f"cat > /tmp/listen.py <<'EOF'\n{script}\nEOF\n(setsid python3 /tmp/listen.py < /dev/null > /dev/null 2>&1 &)")
        self.addCleanup(lambda: self.grid.signal(RELAY, self.grid.pids(RELAY, "/tmp/listen.py"), 9))
        return self.grid.facts[RELAY]["address"]

    def answers_throughout(self, until):
        """Looks each second whether the host answers, until `until` says so."""
        missed = 0
        while not until():
            missed += self.laptop.run("provider", "show", "bob", "--json").json["state"] != "answering"
            time.sleep(0.5)
        self.assertEqual(missed, 0, "heartbeats stayed away")

    def test_what_guests_send_is_held_to_a_rate(self):
        self.joined("bob", "--up 20Mbps")
        self.assertIn("up 20 Mbit/s", self.owners("lend limits"))
        job = self.laptop.submit({"name": "checkpoint", "image": IMAGE, "run": SAVES_ONCE, "resources": {"cpus": 0.5}, "checkpoint": {"interval": "1s"}})
        job.wait_output("ready")
        with Meter(self.grid, LENT) as meter:
            self.answers_throughout(lambda: job.checkpoints())
        rate, took = meter.while_busy()
        grid.figure("a checkpoint of 30 MiB at 20 Mbit/s", f"{took:.1f} s at {rate * 8 / 1e6:.1f} Mbit/s, at most {meter.fastest() * 8 / 1e6:.1f} in 3 s")
        self.assertLess(meter.fastest(), RATE * 1.1)
        self.assertLess(took, bound(SIZE / RATE * 1.3))
        self.laptop.run("job", "cancel", job.id)
        wait_until("it to be gone", 40, lambda: not self.grid.as_worker(LENT, "podman ps -q").split())

        to = self.listen()
        self.owners("lend limits --egress open")
        job = self.sends("upload", to)
        with Meter(self.grid, LENT) as meter:
            self.answers_throughout(lambda: job.state in grid.FINAL)
        job.wait_success()
        rate, took = meter.while_busy()
        told = [float(word) for word in re.search(r"took (\S+) (\S+)", job.logs()).groups()]
        grid.figure("a job's own upload of 30 MiB at 20 Mbit/s", f"{told[1] - told[0]:.1f} s at {rate * 8 / 1e6:.1f} Mbit/s, at most {meter.fastest() * 8 / 1e6:.1f} in 3 s")
        self.assertLess(meter.fastest(), RATE * 1.1)
        self.assertLess(told[1] - told[0], bound(SIZE / RATE * 1.3))

        # Two jobs and a checkpoint together have the rate that each had alone.
        jobs = [self.sends("first", to, 20), self.sends("second", to, 20),
                self.laptop.submit({"name": "third", "image": IMAGE, "run": SAVES_ONCE, "resources": {"cpus": 0.5}, "checkpoint": {"interval": "1s"}})]
        with Meter(self.grid, LENT) as meter:
            self.answers_throughout(lambda: jobs[2].checkpoints() and all(job.state in grid.FINAL for job in jobs[:2]))
        rate, took = meter.while_busy()
        grid.figure("two uploads of 20 MiB and a checkpoint of 30 MiB together", f"{took:.1f} s at {rate * 8 / 1e6:.1f} Mbit/s, at most {meter.fastest() * 8 / 1e6:.1f} in 3 s")
        self.assertLess(meter.fastest(), RATE * 1.1)
        for job in jobs[:2]:
            job.wait_success()

        # The owner lifts it while a job runs.
        self.laptop.run("job", "cancel", jobs[2].id)
        job = self.sends("lifted", to, 60)
        time.sleep(4)
        self.owners("lend limits --up unlimited")
        job.wait_success()
        told = [float(word) for word in re.search(r"took (\S+) (\S+)", job.logs()).groups()]
        self.assertLess(told[1] - told[0], (60 << 20) / RATE * 0.6, "it was lifted for a job that ran")

    def no_job_runs(self):
        return not self.grid.as_worker(LENT, "podman ps -q").split()

    def test_jobs_run_while_nobody_uses_the_machine(self):
        self.grid.enter(LENT, ": > /dev/tty7; chmod 666 /dev/tty7")
        self.addCleanup(self.grid.enter, LENT, "rm -f /dev/tty7")
        self.joined("bob", "--when idle:15s")
        self.assertIn("when idle for 15s", self.owners("lend limits"))
        self.assertIn("logind does not answer", self.owners("lend limits"))
        self.grid.enter(LENT, "touch -a /dev/tty7")
        told = wait_until("the status to say so", 15, lambda: re.search(r"waiting since .*input at tty7; jobs run once nobody has used it for 15s", self.owners("lend status")))
        self.assertTrue(told)
        job = self.laptop.submit({"name": "idle", "image": IMAGE, "run": SAVES, "resources": {"cpus": 0.5}, "recovery": {"notice": "USR1"}})
        time.sleep(5)
        self.assertTrue(self.no_job_runs(), "it began although the owner was there")
        job.wait_output("ready", deadline=90)
        self.assertNotIn("waiting", self.owners("lend status"))
        began = time.monotonic()
        self.grid.enter(LENT, "touch -a /dev/tty7")
        wait_until("the job to leave", 25, self.no_job_runs, job.evidence)
        grid.figure("from the owner's first key to the end of the job that saves", f"{time.monotonic() - began:.1f} s")
        self.assertRegex(self.owners("lend log"), "jobs are kept away: input at tty7")
        job.wait_success(deadline=120)
        self.assertIn('"reason": "owner"', job.evidence())
        self.assertIn("resumed with saved", job.logs())

    def test_a_session_of_logind_counts_and_its_idleness(self):
        self.stand_in("loginctl", """case $1 in list-sessions) echo 'c2 1500 worker seat0' ;;
            *) printf 'Id=c2\\nName=worker\\nType=wayland\\nClass=user\\nState=active\\nIdleHint=%s\\nIdleSinceHint=%s\\n' $(cat /tmp/hint) ;; esac""")
        self.grid.enter(LENT, "echo no 0 > /tmp/hint; chmod 666 /tmp/hint")
        self.joined("bob", "--when idle:20s")
        wait_until("the status to say so", 15, lambda: "worker's session c2 (wayland)" in self.owners("lend status"))
        self.assertNotIn("does not answer", self.owners("lend limits"))
        self.grid.enter(LENT, "echo yes $(($(date +%s) - 3600))000000 > /tmp/hint")
        wait_until("it to be free", 30, lambda: "waiting" not in self.owners("lend status"), lambda: self.owners("lend status"))

    def stand_in(self, name, script):
        self.grid.enter(LENT, f"cat > /usr/bin/{name} <<'EOF'\n#!/bin/sh\n{script}\nEOF\nchmod 755 /usr/bin/{name}")
        self.addCleanup(self.grid.enter, LENT, f"rm -f /usr/bin/{name}")

    def battery(self, state, mains):
        self.grid.enter(LENT, f"""mountpoint -q /sys/class/power_supply || mount -t tmpfs none /sys/class/power_supply
            cd /sys/class/power_supply; mkdir -p BAT0 AC; echo Battery > BAT0/type; echo {state} > BAT0/status; echo Mains > AC/type; echo {mains} > AC/online""")

    def test_on_its_battery_it_runs_nothing_unless_its_owner_says_so(self):
        self.addCleanup(self.grid.enter, LENT, "umount /sys/class/power_supply", check=False)
        self.battery("Charging", 1)
        self.joined()
        job = self.laptop.submit({"name": "mobile", "image": IMAGE, "run": SAVES, "resources": {"cpus": 0.5}, "recovery": {"notice": "USR1"}})
        job.wait_output("ready")
        self.battery("Discharging", 0)
        wait_until("the job to leave", 45, self.no_job_runs, job.evidence)
        self.assertIn("it runs on its battery", self.owners("lend status"))
        time.sleep(4)
        self.assertTrue(self.no_job_runs())
        self.owners("lend limits --on-battery yes")
        job.wait_success(deadline=120)
        self.assertIn('"reason": "battery"', job.logs("--attempt", "1"), job.evidence())

    def gpu(self, **state):
        self.grid.enter(LENT, "; ".join(f"echo {value} > /etc/stub-gpu/{name}" for name, value in state.items()))

    def test_heat_sends_jobs_away_until_it_has_cooled_down(self):
        lend_test.Lend.stub_gpu(self)
        self.gpu(heat=60)
        self.joined("bob", "--max-heat 83C")
        job = self.laptop.submit({"name": "hot", "image": IMAGE, "run": SAVES, "resources": {"cpus": 0.5}, "recovery": {"notice": "USR1"}})
        job.wait_output("ready")
        self.gpu(heat=88)
        time.sleep(20)
        self.assertFalse(self.no_job_runs(), "it was hot for 20 seconds only")
        wait_until("the job to leave", 40, self.no_job_runs, job.evidence)
        self.assertIn("GPU 0 has 88 C; jobs return at 73 C", self.owners("lend status"))
        self.gpu(heat=78)
        time.sleep(8)
        self.assertTrue(self.no_job_runs())
        self.gpu(heat=73)
        job.wait_success(deadline=120)
        self.assertIn('"reason": "heat"', job.logs("--attempt", "1"), job.evidence())

    def power(self):
        return self.grid.enter(LENT, "cat /etc/stub-gpu/power").strip()

    def test_gpus_are_held_to_a_power_while_jobs_hold_them_and_only_where_the_driver_lets_us(self):
        lend_test.Lend.stub_gpu(self)
        self.gpu(power="350.00")
        self.joined()
        told = self.owners("lend limits --gpu-power 280W", code=2)
        self.assertIn("--gpu-power does not hold on this machine", told)
        self.assertIn("permission", told.lower())
        self.grid.enter(LENT, ": > /etc/stub-gpu/may_set_power; chmod -R a+rwX /etc/stub-gpu")
        self.assertIn("from 100 to 400 W", self.owners("lend limits --gpu-power 500W", code=2))
        self.assertEqual(self.power(), "350.00")
        self.assertIn("GPU power 280 W", self.owners("lend limits --gpu-power 280W"))
        job = self.laptop.submit(plain("power", image=IMAGE, envs={"STEPS": 100000}, resources={"accelerators": 1}))
        job.wait_output("step")
        wait_until("the lower limit", 15, lambda: self.power() == "280.00", lambda: self.owners("lend log"))
        self.laptop.run("job", "cancel", job.id)
        wait_until("the old limit", 30, lambda: self.power() == "350.00", lambda: self.owners("lend log"))
        job = self.laptop.submit(plain("again", image=IMAGE, envs={"STEPS": 100000}, resources={"accelerators": 1}))
        job.wait_output("step")
        wait_until("the lower limit", 15, lambda: self.power() == "280.00", lambda: self.owners("lend log"))
        self.owners("lend leave --grace 1s")
        self.assertEqual(self.power(), "350.00")
        self.laptop.run("job", "cancel", job.id)


SAVES = """save() { echo saved at the warning; cat $GRIDCTL_NOTICE_FILE; echo saved > $GRIDCTL_CKPT_DIR/state; sleep 0.1; exit 0; }
trap save USR1
echo ready; [ -z "$GRIDCTL_RESUME_FROM" ] || { echo resumed with $(cat $GRIDCTL_CKPT_DIR/state); exit 0; }
while :; do sleep 0.1; done"""


if __name__ == "__main__":
    unittest.main()
