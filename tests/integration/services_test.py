# SPDX-License-Identifier: Apache-2.0
"""Services: requests go on being answered whatever ends. The hosts' sshd forwards no ports."""
import http.client
import json
import os
import shutil
import signal
import socket
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
    if not shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin"):
        raise unittest.SkipTest("haproxy is not installed: scripts/install-deps test")
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

    @staticmethod
    def file(name, replicas, **more):
        service = {"port": PORT, "probe": {"path": "/health"}, "replicas": replicas, **more.pop("service", {})}
        envs = {"PORT": str(PORT), **more.pop("envs", {})}
        return {"name": name, "run": "exec python3 server.py", "workdir": grid.WORKLOADS, "envs": envs, "resources": {"cpus": 0.2},
                "recovery": {"lost_after": "5s"}, "service": service, **more}

    def start(self, name, replicas=3, ready=None, **more):
        job = laptop.submit(self.file(name, replicas, **more))
        self.addCleanup(lambda: laptop.run("service", "stop", job.id, "--now", check=False))
        if ready is None or ready > 0:
            self.wait_ready(job, ready or replicas)
        return job

    def show(self, job):
        return laptop.run("service", "show", job.id, "--json").json

    @staticmethod
    def providers_in(shown):
        return [one["provider"] for one in shown["replicas"]]

    def providers(self, job):
        return self.providers_in(self.show(job))

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
        wait_until("answers again", 60, lambda: clients.answered_since(moment))
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
            wait_until("the host to be out", 60, lambda: self.show(job)["ready"] < 3 or self.providers(job) != self.providers_in(before))
            figure("power cut until the host is out", f"{time.monotonic() - cut:.1f} s")
            wait_until("another host", 60, lambda: f"h{host}" not in self.providers(job))
            after = self.wait_ready(job, 3)
            figure("power cut until the replica is replaced", f"{time.monotonic() - cut:.1f} s")
            time.sleep(1)
        clients.tell("steady requests at a power cut")
        self.assertEqual(clients.failures, [], self.gateway_log(job))
        self.assertEqual(len(set(filter(None, self.providers_in(after)))), 3)
        self.assertEqual((before["fault_tolerance"], after["fault_tolerance"]), (4, 4))

    def test_a_successor_begins_before_the_replica_is_lost(self):
        load = 8  # seconds
        job = self.start("single", 1, envs={"WARM": str(load)}, recovery={"lost_after": "18s"})
        url = self.url(job)
        host = int(self.providers(job)[0].lstrip("h"))
        with Clients(url, rate=5) as clients:
            time.sleep(2)
            self.grid.kill(host)
            cut = time.monotonic()
            gap = self.gap(clients, cut + 1)  # what was asked before may have been answered before
            figure("power cut until the answers of a single replica, beyond its load", f"{gap + 1 - load:.1f} s")
            self.assertLess(gap + 1, grid.bound(load + 10))
            self.assertTrue(job.events("replica_stands_in"), job.evidence())
            self.grid.start(host)
            wait_until("the first replica to serve again", 60, lambda: self.replicas_that_go_on(job) == [job.id], job.evidence)
            time.sleep(1)
        clients.tell("one replica, a power cut, its successor")
        self.assertEqual(clients.failures, [], self.gateway_log(job))

    def replicas_that_go_on(self, job):
        return [one["job_id"] for one in laptop.run("job", "ls", "--active", "--json").json if one["job_id"].startswith(job.id)]

    def test_daemon_balancer_and_gateway_may_be_killed(self):
        job = self.start("robust", 2, recovery={"lost_after": "60s"})
        url = self.url(job)
        attempts = len(job.attempts())
        with Clients(url) as clients:
            time.sleep(1)
            for name, word in (("haproxy", "haproxy"), ("gateway", "__gateway")):
                pid = self.pid_of(job, word)
                os.kill(pid, signal.SIGKILL)
                moment = time.monotonic()
                gap = self.gap(clients, moment)
                figure(f"{name} killed until answered", f"{gap:.2f} s")
                self.wait_ready(job, 2)
            failed = len(clients.failures)
            figure("requests that failed at these", failed)
            laptop.kill_daemon()
            moment = time.monotonic()
            figure("daemon killed until answered", f"{self.gap(clients, moment):.2f} s")
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
            wait_until("another host", 60, lambda: f"h{host}" not in self.providers(job))
            self.wait_ready(job, 2)
        listed.tell("POST requests that may be repeated, at a power cut")
        self.assertEqual(listed.failures, [])
        figure("POST requests that may not be repeated: failed", f"{len(other.failures)} of {len(other.answers) + len(other.failures)}")
        self.assertGreater(len(other.failures), 0)
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
        self.assertGreaterEqual(len(job.attempts()), 2)

    def test_a_server_that_never_gets_ready_ends_the_service_by_a_bound(self):
        job = self.start("never", 1, 0, envs={"WARM": "100000"}, service={"probe": {"path": "/health", "initial_delay": "3s"}},
                         recovery={"lost_after": "60s", "max_failures": 2})
        job.wait_state("FAILED", deadline=120)
        shown = job.show()
        self.assertEqual(shown["reason"], "never_ready")
        self.assertIn("no replica of the service was ever ready", laptop.run("job", "explain", job.id).out)
        self.assertGreaterEqual(len(job.attempts()), 2)

    def test_two_services_with_one_port_do_not_meet_on_a_host(self):
        first = self.start("first", 3)
        second = self.start("second", 2, 1)
        wait_until("the second one's replica to wait", 60, lambda: laptop.run("job", "explain", second.id + "r2", check=False).code == 0)
        self.assertFalse(set(self.providers(first)) & {one for one in self.providers(second) if one})
        wait_until("the reason", 60, lambda: "service first has port" in laptop.run("job", "explain", second.id + "r2").out,
                   lambda: laptop.run("job", "explain", second.id + "r2").out)

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
        self.assertLess(delays[len(delays) // 2], 0.09)  # HAProxy's own habit is to hold each for 200 ms

    def test_the_number_of_replicas_follows_the_load(self):
        job = self.start("elastic", "1..3", 1, envs={"DELAY": "1"}, recovery={"lost_after": "60s"},
                         service={"scale": {"concurrency": 4, "up_after": "2s", "down_after": "3s"}})
        with Clients(self.url(job), rate=10) as clients:
            wait_until("three replicas", 120, lambda: self.show(job)["ready"] == 3, lambda: f"{self.show(job)}\n{job.evidence()}")
        with Clients(self.url(job), rate=1) as later:
            wait_until("one replica again", 120, lambda: len(self.show(job)["replicas"]) == 1, lambda: f"{self.show(job)}\n{job.evidence()}")
        clients.tell("requests of a load that three replicas answer")
        self.assertEqual(clients.failures + later.failures, [], self.gateway_log(job))

    def test_a_replica_that_leaves_ends_its_answer_of_20_seconds(self):
        job = self.start("drained", "1..2", 1, envs={"DELAY": "1"}, recovery={"lost_after": "60s"},
                         service={"scale": {"concurrency": 8, "up_after": "2s", "down_after": "2s"}})
        url, streams = self.url(job), []

        def generate():
            began = time.monotonic()
            with urllib.request.urlopen(url + "/generate", timeout=60) as answer:
                text = answer.read().decode()
            streams.append((text.split()[2], text.count("data: "), text.endswith("[DONE]\n\n"), began, time.monotonic()))

        threads = [threading.Thread(target=generate) for _ in range(6)]
        with Clients(url, rate=12):
            wait_until("two replicas", 90, lambda: self.show(job)["ready"] == 2, lambda: f"{self.show(job)}\n{job.evidence()}")
            for thread in threads:
                thread.start()
        # Six requests under way ask for one replica: the other one leaves while it answers.
        wait_until("the second replica to leave", 60,
                   lambda: any("need 1 " in one["text"] for one in job.events("scaled")), job.evidence)
        left = time.monotonic()
        for thread in threads:
            thread.join()
        self.assertEqual([(count, whole) for _, count, whole, _, _ in streams], [(41, True)] * 6, self.gateway_log(job))
        self.assertTrue(all(end > left for *_, end in streams), "they were under way when one replica was too many")
        wait_until("one replica", 60, lambda: len(self.show(job)["replicas"]) == 1, lambda: f"{self.show(job)}\n{job.evidence()}")
        gone = time.monotonic()
        with urllib.request.urlopen(url, timeout=10) as answer:
            stays = answer.read().decode().split()[0]
        self.assertTrue(any(host != stays for host, *_ in streams), f"{streams}: none at the replica that left; {stays} stays")
        figure("answers of 20 s at a replica that leaves", f"{len(streams)} of 6 complete, it left {gone - max(end for *_, end in streams):.1f} s after them")

    def test_the_daemon_may_sleep_and_agents_may_be_killed(self):
        job = self.start("suspended", 2, recovery={"lost_after": "5s"})
        attempts = [len(job.attempts()), len(self.show(job)["replicas"])]
        with Clients(self.url(job), rate=20) as clients:
            time.sleep(1)
            daemon = laptop.daemon_pid()
            os.kill(daemon, signal.SIGSTOP)
            try:
                time.sleep(30)
            finally:
                os.kill(daemon, signal.SIGCONT)
            time.sleep(8)  # more than lost_after
            for host in self.providers(job):
                number = int(host.lstrip("h"))
                agents = self.grid.pids(number, r"gridctl-agent\S* connect")
                self.assertTrue(agents)
                self.grid.signal(number, agents, signal.SIGKILL)
                moment = time.monotonic()
                figure(f"agents of {host} killed until answered", f"{self.gap(clients, moment):.2f} s")
                self.assertLess(self.gap(clients, moment), 2)
                self.wait_ready(job, 2)
        clients.tell("requests while the daemon sleeps for 30 s and agents are killed")
        self.assertEqual(clients.failures, [], self.gateway_log(job))
        self.assertEqual([len(job.attempts()), len(self.show(job)["replicas"])], attempts)
        self.assertEqual(len(self.replicas_that_go_on(job)), 2)

    def test_a_probe_says_what_the_file_says(self):
        guarded = self.start("guarded", 1, service={"probe": {"path": "/guarded", "headers": {"X-Probe": "it's 100% us"}}})
        self.assertEqual(self.show(guarded)["ready"], 1)
        laptop.run("service", "stop", guarded.id, "--now")
        model = self.start("model", 1, service={"probe": {"path": "/probe", "post_data": {"model": "it's", "max_tokens": 1}}})
        self.assertEqual(self.show(model)["ready"], 1)

    def test_a_command_says_whether_a_replica_is_ready(self):
        """It runs inside the replica; what it prints when it fails is shown."""
        probe = {"command": 'test "$PORT" = 8123; cat ready-file || exit 3', "every": "500ms"}
        job = self.start("commanded", 1, ready=0, service={"probe": probe})
        said = wait_until("what the command has printed", 60, lambda: next(
            (one["detail"] for one in self.show(job)["replicas"] if "exit code 3" in one["detail"]), None),
            lambda: f"{self.show(job)}\n{self.gateway_log(job)}")
        self.assertIn("ready-file", said)
        self.assertEqual(self.show(job)["ready"], 0)
        laptop.run("job", "exec", job.id, "--", "touch", "ready-file")
        self.wait_ready(job, 1)
        with urllib.request.urlopen(self.url(job), timeout=30) as answer:
            self.assertEqual(answer.status, 200)
        laptop.run("job", "exec", job.id, "--", "rm", "ready-file")
        self.wait_ready(job, 0)
        self.assertEqual(len(job.attempts()), 1, "a replica that is not ready is not started anew at once")

    def test_requests_stay_where_their_session_or_prompt_is(self):
        def host_of(url, headers=(), data=None):
            with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers), data=data), timeout=30) as answer:
                return answer.read().decode().split()[0], answer.headers["Set-Cookie"]

        job = self.start("sticky", 3, service={"affinity": "session"})
        url = self.url(job)
        hosts = {name: {host_of(url, {"X-Session-Id": name})[0] for _ in range(5)} for name in map(str, range(20))}
        self.assertEqual({len(seen) for seen in hosts.values()}, {1}, hosts)
        self.assertEqual(len(set.union(*hosts.values())), 3, hosts)
        first, cookie = host_of(url)
        self.assertEqual({host_of(url, {"Cookie": cookie.split(";")[0]}) for _ in range(5)}, {(first, None)})
        lost = next(one["provider"] for one in self.show(job)["replicas"] if one["provider"] == first)
        self.grid.kill(int(lost[1:]))
        after = {name: host_of(url, {"X-Session-Id": name})[0] for name in hosts}
        self.assertNotIn(first, after.values())
        self.assertEqual([name for name, seen in hosts.items() if seen != {first} and {after[name]} != seen], [],
                         "those of other replicas have moved, too")
        laptop.run("service", "stop", job.id, "--now")
        prompts = self.start("prompts", 3, service={"affinity": "prefix"})
        url = self.url(prompts) + "/v1/chat/completions"
        talks = {}
        for talk in range(20):
            messages = [{"role": "system", "content": "be kind"}, {"role": "user", "content": f"question {talk}"}]
            for _ in range(4):
                talks.setdefault(talk, set()).add(host_of(url, data=json.dumps({"model": "m", "messages": messages}).encode())[0])
                messages += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "and?"}]
        self.assertEqual({len(seen) for seen in talks.values()}, {1}, talks)
        self.assertEqual(len(set.union(*talks.values())), 3, talks)

    def test_a_service_sleeps_until_somebody_asks(self):
        job = self.start("sleepy", "0..1", 1, service={"scale": {"down_after": "3s"}})
        url = self.url(job)
        self.wait_asleep(job)
        self.grid.wait_clean()
        attempts = len(job.attempts())
        began, answers = time.monotonic(), []

        def ask():
            try:
                with urllib.request.urlopen(url, timeout=90) as answer:
                    answers.append(answer.status)
            except urllib.error.HTTPError as error:
                answers.append((error.code, error.headers["Retry-After"] is not None))

        threads = [threading.Thread(target=ask) for _ in range(110)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        figure("a request wakes a service", f"{time.monotonic() - began:.1f} s")
        refused = [answer for answer in answers if answer != 200]
        self.assertEqual((answers.count(200), refused), (100, 10 * [(429, True)]), self.gateway_log(job))
        self.assertEqual(len(job.attempts()), attempts + 1, "one start for all who ask")
        self.wait_asleep(job)
        self.assertEqual(job.events("server_ended"), [])

    def wait_asleep(self, job):
        wait_until("a service that sleeps", 60, lambda: self.show(job)["asleep"], lambda: f"{self.show(job)}\n{job.evidence()}")

    def test_figures_are_there_for_prometheus(self):
        job = self.start("figures", 1)
        text = urllib.request.urlopen(self.url(job) + "/gridctl/metrics", timeout=30).read().decode()
        self.assertIn('haproxy_server_status{proxy="b",server="r1",state="UP"} 1', text)

    def test_a_websocket_leads_through(self):
        job = self.start("socket", 1)
        port = int(self.url(job).rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                           b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                answer += client.recv(1)
            self.assertTrue(answer.startswith(b"HTTP/1.1 101"), answer)
            self.assertIn(b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", answer)
            frame, delays = b"\x81\x85\x01\x02\x03\x04" + bytes(a ^ b for a, b in zip(b"hello", b"\x01\x02\x03\x04\x01")), []
            for _ in range(20):
                began = time.monotonic()
                client.sendall(frame)
                got = b""
                while len(got) < len(frame):
                    got += client.recv(len(frame) - len(got))
                self.assertEqual(got, frame)
                delays.append(time.monotonic() - began)
        figure("a frame and its echo", f"p50 {sorted(delays)[10] * 1000:.1f} ms")

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

    def test_a_new_version_takes_over_one_replica_after_the_other(self):
        patient = {"recovery": {"lost_after": "60s"}}
        job = self.start("rolling", 2, envs={"VERSION": "one"}, **patient)
        url = self.url(job)
        with Clients(url, rate=20) as clients:
            good = laptop.write_job(self.file("rolling", 2, envs={"VERSION": "two"}, **patient))
            done = laptop.run("service", "apply", good, timeout=300)
            self.assertIn("runs the new version", done.out)
            moment = time.monotonic()
            self.gap(clients, moment)
            again = laptop.run("service", "apply", good, timeout=300)
            self.assertIn("already", again.out, again.err)
            broken = laptop.write_job(self.file("rolling", 2, run="exit 3", **patient))
            refused = laptop.run("service", "apply", broken, code=1, timeout=300)
            self.assertIn("the earlier version keeps running", refused.err)
            vast = laptop.write_job(self.file("rolling", 2, resources={"cpus": 500}, **patient))
            refused = laptop.run("service", "apply", vast, code=4, timeout=300)
            self.assertIn("no host can run", refused.err)
            self.gap(clients, time.monotonic())
        clients.tell("requests during three updates")
        self.assertEqual(clients.failures, [], self.gateway_log(job))
        self.assertEqual({text.split()[2] for began, _, text in clients.answers if began > moment}, {"two"})
        self.assertEqual(job.events("replica_stands_in"), [], "between two heartbeats, each host is silent")
        self.assertEqual(self.url(job), url)
        self.wait_ready(job, 2)
        wait_until("the additional replica to be gone", 60, lambda: len(self.show(job)["replicas"]) == 2)

    @staticmethod
    def refusal(url):
        """Whether a new request is refused; it must not hang."""
        try:
            urllib.request.urlopen(url, timeout=30).read()
            return False
        except urllib.error.HTTPError as error:
            return error.code == 503 and b"being stopped" in error.read()
        except urllib.error.URLError as error:
            return isinstance(error.reason, ConnectionRefusedError)

    def test_stopping_lets_requests_finish_and_leaves_nothing(self):
        job = self.start("leaving", 2, envs={"DELAY": "3"})
        url = self.url(job)
        with Clients(url, rate=4) as clients:
            time.sleep(1)
            clients.over.set()
            stopping = laptop.spawn("service", "stop", "leaving", "--wait")
            wait_until("new requests to be refused", 60, lambda: self.refusal(url))
            out, errors = stopping.communicate(timeout=120)
        self.assertIn("has ended", out, errors)
        self.assertEqual(clients.failures, [])
        self.assertGreater(len(clients.answers), 2)
        self.assertEqual(laptop.run("service", "ls", "--json").json, [])
        self.assertEqual(job.state, "CANCELLED")
        self.grid.wait_clean()
        wait_until("no gateway", 10, lambda: not self.pid_of(job, "haproxy") and not self.pid_of(job, "__gateway"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
