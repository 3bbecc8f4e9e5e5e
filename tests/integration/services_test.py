# SPDX-License-Identifier: Apache-2.0
"""Services: requests go on being answered whatever ends. The hosts' sshd forwards no ports."""
import http.client
import os
import signal
import threading
import time
import unittest
import urllib.error
import urllib.request

import grid
from grid import figure, is_alive, wait_until

PORT = 8123


def setUpModule():
    global laptop
    os.environ["GRIDCTL_TESTGRID_SSHD"] = "AllowTcpForwarding no"
    the_grid = grid.up(4)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, engine="process")


class Clients:
    """Steady requests, each on a connection of its own; how each went."""

    def __init__(self, url, rate=30, path="/", method="GET", patience=30):
        self.url, self.rate, self.path, self.method, self.patience = url, rate, path, method, patience
        self.answers, self.failures, self.lock = [], [], threading.Lock()
        self.over = threading.Event()
        self.threads = []
        self.clock = threading.Thread(target=self.run)

    def __enter__(self):
        self.clock.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.clock.join()
        for thread in self.threads:
            thread.join()

    def run(self):
        due = time.monotonic()
        while not self.over.is_set():
            thread = threading.Thread(target=self.ask)
            self.threads.append(thread)
            thread.start()
            due += 1 / self.rate
            self.over.wait(max(0, due - time.monotonic()))

    def ask(self):
        began = time.monotonic()
        try:
            request = urllib.request.Request(self.url + self.path, method=self.method, data=b"x" if self.method == "POST" else None)
            with urllib.request.urlopen(request, timeout=self.patience) as answer:
                text = answer.read().decode()
            with self.lock:
                self.answers.append((began, time.monotonic() - began, text))
        except (OSError, http.client.HTTPException) as error:
            with self.lock:
                self.failures.append((began, time.monotonic() - began, repr(error)))

    def answered_since(self, moment):
        with self.lock:
            return [end for begin, took, _ in self.answers if begin >= moment for end in [begin + took]]

    def tell(self, name):
        took = sorted(seconds for _, seconds, _ in self.answers)
        figure(name, f"{len(took)} answered, {len(self.failures)} failed, p50 {took[len(took) // 2] * 1000:.0f} ms, "
                     f"p99 {took[len(took) * 99 // 100] * 1000:.0f} ms, max {took[-1]:.2f} s")


class Services(grid.Case):
    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()
        for host in self.grid.hosts:
            wait_until(f"h{host} to be up", 60, lambda h=host: self.is_up(h))

    def is_up(self, host):
        return next(one for one in laptop.run("provider", "ls", "--json").json if one["name"] == f"h{host}")["state"] == "answering"

    def start(self, name, replicas=3, **more):
        service = {"port": PORT, "probe": {"path": "/health"}, "replicas": replicas, **more.pop("service", {})}
        envs = {"PORT": str(PORT), **more.pop("envs", {})}
        job = laptop.submit({"name": name, "run": "exec python3 server.py", "workdir": grid.WORKLOADS, "envs": envs,
                             "resources": {"cpus": 0.2}, "recovery": {"lost_after": "5s"}, "service": service, **more})
        self.addCleanup(lambda: laptop.run("service", "stop", job.id, "--now", check=False))
        self.wait_ready(job, replicas)
        return job

    def show(self, job):
        return laptop.run("service", "show", job.id, "--json").json

    def wait_ready(self, job, count, deadline=60):
        return wait_until(f"{count} ready replicas", deadline, lambda: self.show(job)["ready"] == count and self.show(job),
                          lambda: f"{self.show(job)}\n{job.evidence()}\n{self.gateway_log(job)}")

    def gateway_log(self, job):
        try:
            with open(os.path.join(laptop.state, "services", job.id, "gateway.log"), encoding="utf-8") as file:
                return file.read()[-4000:]
        except OSError as error:
            return str(error)

    def url(self, job):
        return laptop.run("service", "url", job.id).out.strip()

    def pid_of(self, job, *words):
        """Of a process here whose arguments have all of these words."""
        folder = os.path.join(laptop.state, "services", job.id)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                    arguments = file.read()
                here = os.readlink(f"/proc/{pid}/cwd")
            except OSError:
                continue
            if all(word in arguments for word in words) and here == folder and is_alive(int(pid)):
                return int(pid)
        return None

    def gap(self, clients, moment):
        """Seconds from the moment until requests made after it are answered."""
        wait_until("answers again", 20, lambda: clients.answered_since(moment))
        return min(clients.answered_since(moment)) - moment

    def test_a_power_cut_is_noticed_by_nobody_who_asks(self):
        job = self.start("steady")
        url = self.url(job)
        before = self.show(job)
        host = int(before["replicas"][1]["provider"].lstrip("h"))
        with Clients(url) as clients:
            time.sleep(2)
            self.grid.kill(host)
            cut = time.monotonic()
            wait_until("two ready replicas", 10, lambda: self.show(job)["ready"] == 2)
            figure("power cut until the host is out", f"{time.monotonic() - cut:.1f} s")
            after = self.wait_ready(job, 3)
            figure("power cut until the replica is replaced", f"{time.monotonic() - cut:.1f} s")
            time.sleep(1)
        clients.tell("steady requests at a power cut")
        self.assertEqual(clients.failures, [], self.gateway_log(job))
        self.assertNotEqual(after["replicas"][1]["provider"], f"h{host}")
        self.assertEqual(len({one["provider"] for one in after["replicas"]}), 3)
        self.assertLess(max(seconds for _, seconds, _ in clients.answers), 5)

    def test_daemon_balancer_and_gateway_may_be_killed(self):
        job = self.start("robust", 2)
        url = self.url(job)
        attempts = len(job.attempts())
        with Clients(url) as clients:
            time.sleep(1)
            for name, words, most in (("haproxy", ("haproxy",), 2), ("gateway", ("__gateway",), 4)):
                pid = self.pid_of(job, *words)
                os.kill(pid, signal.SIGKILL)
                moment = time.monotonic()
                gap = self.gap(clients, moment)
                figure(f"{name} killed until answered", f"{gap:.2f} s")
                self.assertLess(gap, most)
                self.wait_ready(job, 2)
            failed = len(clients.failures)
            figure("requests that failed at these", failed)
            laptop.kill_daemon()
            moment = time.monotonic()
            self.assertLess(self.gap(clients, moment), 1)
            time.sleep(1)
            laptop.need_daemon()
            time.sleep(2)
            self.assertEqual(len(clients.failures), failed, "the daemon is not in the way of requests")
        clients.tell("killed daemon, haproxy, gateway")
        self.assertEqual(url, self.url(job))
        self.assertEqual(len(job.attempts()), attempts)

    def test_a_post_is_repeated_only_where_the_file_allows_it(self):
        job = self.start("posts", 2, envs={"DELAY": "2"}, service={"retry_post": ["/v1/"]})
        url = self.url(job)
        with Clients(url, rate=4, path="/v1/chat", method="POST") as listed, Clients(url, rate=4, path="/pay", method="POST") as other:
            time.sleep(3)
            host = int(self.show(job)["replicas"][0]["provider"].lstrip("h"))
            self.grid.kill(host)
            wait_until("one ready replica", 10, lambda: self.show(job)["ready"] == 1)
            self.wait_ready(job, 2)
        listed.tell("POST requests that may be repeated, at a power cut")
        self.assertEqual(listed.failures, [])
        figure("POST requests that may not be repeated: failed", f"{len(other.failures)} of {len(other.answers) + len(other.failures)}")
        self.assertTrue(1 <= len(other.failures) <= 20, other.failures)
        self.assertTrue(all("502" in text for _, _, text in other.failures), other.failures)

    def test_a_replica_that_ends_by_itself_is_started_again(self):
        job = self.start("leaver", 1, envs={"WARM": "1"})
        url = self.url(job)
        with Clients(url, rate=10) as clients:
            time.sleep(1)
            urllib.request.urlopen(url + "/exit", timeout=10).read()
            moment = time.monotonic()
            figure("the only server ended by itself: until answered", f"{self.gap(clients, moment + 0.05):.1f} s")
            time.sleep(1)
        clients.tell("requests to the only replica, which ended by itself")
        self.assertEqual(clients.failures, [], self.gateway_log(job))
        self.assertEqual(job.state, "RUNNING")
        self.assertEqual(len(job.attempts()), 2)

    def test_events_are_not_held_back(self):
        job = self.start("events", 1)
        delays = []
        with urllib.request.urlopen(self.url(job) + "/events", timeout=10) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    delays.append(time.time() - float(line[6:]))
        delays.sort()
        figure("delay of an event", f"p50 {delays[len(delays) // 2] * 1000:.1f} ms, max {delays[-1] * 1000:.1f} ms")
        self.assertEqual(len(delays), 20)
        self.assertLess(delays[len(delays) // 2], 0.05)

    def test_a_key_is_asked_for(self):
        path = os.path.join(laptop.folder, "keys")
        with open(path, "w", encoding="utf-8") as file:
            file.write("# for the lab\nsesame\n")
        job = self.start("locked", 1, service={"auth": {"keys": path}})
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(self.url(job), timeout=10)
        self.assertEqual(refused.exception.code, 401)
        for header in ({"Authorization": "Bearer sesame"}, {"X-Api-Key": "sesame"}):
            with urllib.request.urlopen(urllib.request.Request(self.url(job), headers=header), timeout=10) as answer:
                self.assertEqual(answer.status, 200)

    def test_stopping_lets_requests_finish_and_leaves_nothing(self):
        job = self.start("leaving", 2, envs={"DELAY": "3"})
        url = self.url(job)
        with Clients(url, rate=4) as clients:
            time.sleep(1)
            clients.over.set()
            done = laptop.run("service", "stop", "leaving", "--wait")
        self.assertIn("has ended", done.out)
        self.assertEqual(clients.failures, [])
        self.assertGreater(len(clients.answers), 2)
        self.assertEqual(laptop.run("service", "ls", "--json").json, [])
        self.assertEqual(job.state, "CANCELLED")
        self.grid.wait_clean()
        wait_until("no gateway", 10, lambda: not self.pid_of(job, "haproxy") and not self.pid_of(job, "__gateway"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
