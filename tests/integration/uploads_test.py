# SPDX-License-Identifier: Apache-2.0
"""Hosts put copies of their checkpoints into a bucket themselves, with a real server; what they do not or do falsely is
sent from here."""
import os
import unittest

import grid
import radosgw
from grid import wait_until

SAVER = """
mkdir -p out; step=0
until [ $step = 4 ]; do
  step=$((step + 1))
  { echo $step; head -c 6000000 /dev/urandom; cat frozen; } > out/new && mv out/new out/state && : > out/.commit
  sleep 3
done
"""
TRAINER = """
import array, os, random, time
weights = [random.gauss(0, 0.02) for _ in range(500_000)]
os.makedirs("out", exist_ok=True)
for step in range(6):
    with open("out/new", "wb") as file:
        array.array("f", weights).tofile(file)
    os.replace("out/new", "out/state")
    open("out/.commit", "w").close()
    weights = [weight + random.gauss(0, 3e-4) for weight in weights]
    time.sleep(2)
"""
LIAR = r"""#!/bin/bash
# Sends another body of the same length than it was told to, and says that all went well.
settings=$(cat)
body=$(sed -n 's/^upload-file = "\(.*\)"$/\1/p' <<< "$settings")
cp "$body" /tmp/lie && printf 'lie' | dd of=/tmp/lie bs=1 seek=5000 conv=notrunc 2> /dev/null
printf '%s\n' "$settings" >> /tmp/orders
sed 's,^upload-file = .*,upload-file = "/tmp/lie",' <<< "$settings" | /usr/bin/curl --disable --config - >> /tmp/answers
printf '\n200'
"""


def setUpModule():
    global server
    if radosgw.missing():
        raise unittest.SkipTest(f"not installed: {', '.join(radosgw.missing())} (packages ceph-mon, ceph-osd, radosgw)")
    grid.up(1)
    # Where both the laptop and the hosts reach it.
    server = radosgw.Radosgw(grid.the_grid.facts[1]["address"].rpartition(".")[0] + ".1")
    unittest.addModuleCleanup(server.stop)


class Uploads(grid.Case):
    def run_job(self, name, endpoint, run=SAVER, **checkpoint):
        """What was told of each copy, once all are there and whole."""
        self.laptop = self.grid.laptop(name)
        self.laptop.environment.update(server.environment())
        self.laptop.register(1)
        server.make_bucket(name)
        self.laptop.run("store", "add", "cloud", f"s3://{name}/ckpt", "--endpoint", endpoint)
        work = os.path.join(self.laptop.folder, "work")
        os.mkdir(work)
        with open(os.path.join(work, "frozen"), "wb") as file:
            file.write(os.urandom(20_000_000))
        job = self.laptop.submit({"name": name, "workdir": work, "run": run, "resources": {"cpus": 0.5},
                                  "checkpoint": {"path": "out", "interval": "1s", "copies": 2, **checkpoint}})
        job.wait_success()
        wait_until("the copies", 60, lambda: all(one["copies"] for one in job.checkpoints()), job.evidence)
        self.assertEqual(self.laptop.run("store", "check", "cloud", "--all", "--json").json["findings"], [])
        self.laptop.run("checkpoint", "pull", job.id, "here")
        self.laptop.run("checkpoint", "pull", job.id, "there", "--from", "cloud")
        with open(os.path.join(self.laptop.folder, "here/state"), "rb") as one, \
                open(os.path.join(self.laptop.folder, "there/state"), "rb") as other:
            self.assertEqual(one.read(), other.read())
        return [event["text"] for event in job.events("checkpoint_copied")]

    def test_come_from_the_host(self):
        told = self.run_job("from-the-host", server.endpoint, keep=50)
        self.assertEqual(len(told), 4, told)
        for text in told[:2]:  # what changed is random, and the rest was sent with the first
            self.assertRegex(text, "MiB sent by its host$|MiB of it by its host$")

    def test_come_from_the_host_as_differences_to_what_is_long_removed_here(self):
        told = self.run_job("differences", server.endpoint, run=f"exec python3 -c '{TRAINER}'", keep=2)
        self.assertEqual(len(told), 6, told)
        for text in told:
            self.assertRegex(text, "[0-9] [KM]iB sent by its host$")
        sizes = [int(float(text.split()[-6]) * 100) for text in told]
        self.assertLess(max(sizes[1:]), 0.95 * sizes[0], told)

    def test_come_no_faster_than_the_job_allows(self):
        run = "mkdir -p out; head -c 12M /dev/zero | openssl enc -aes-128-ctr -pass pass:x -pbkdf2 > out/state; " \
              ": > out/.commit; date +SAVED=%s.%N; sleep 18"
        self.run_job("limit", server.endpoint, run=run, upload_limit="2MB/s")
        job = grid.Job(self.laptop, self.laptop.run("job", "ls", "--all", "--json").json[0]["job_id"])
        saved = float(job.logs().split("SAVED=")[1].split()[0])
        committed, copied = (grid.iso(job.events(kind)[0]["at"]) for kind in ("checkpoint", "checkpoint_copied"))
        self.assertGreater(committed - saved, 6)
        self.assertGreater(copied - committed, 5)
        self.assertLess(copied - saved, 40)

    def test_come_from_here_when_the_host_cannot_reach_the_place(self):
        told = self.run_job("from-here", server.loopback)
        self.assertGreater(len(told), 0)
        self.assertFalse([text for text in told if "host" in text], told)

    def test_of_a_host_that_lies_are_refused(self):
        self.grid.enter(1, f"cat > /usr/local/bin/curl <<'END'\n{LIAR}\nEND\nchmod +x /usr/local/bin/curl")
        self.addCleanup(self.grid.enter, 1, "rm -f /usr/local/bin/curl /tmp/lie /tmp/orders /tmp/answers")
        told = self.run_job("lies", server.endpoint)
        self.assertFalse([text for text in told if "host" in text], told)
        answers = self.grid.enter(1, "cat /tmp/answers")
        self.assertIn("XAmzContentSHA256Mismatch", answers)
        self.assertNotIn(radosgw.SECRET_KEY, self.grid.enter(1, "cat /tmp/orders"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
