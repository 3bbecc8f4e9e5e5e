# SPDX-License-Identifier: Apache-2.0
"""What jobs on a lent machine cost: both sides sign each attempt, and agree to the millionth."""
import json
import os
import random
import time
import unittest

import grid
import lend_test
from grid import wait_until
from lend_test import IMAGE, IMAGES, LENT, PROGRAM

PRICE = "cpu=3.60,traffic=0.05,minimum=0.0005"  # a thousandth of a dollar for a second of a processor


def setUpModule():
    lend_test.setUpModule()


class Receipts(lend_test.Lend):
    def lent_to(self, laptop, name, price=PRICE, agreed="1000"):
        token = self.token(name, "--price", agreed, "--traffic", "0.05", "--minimum", "0.0005", laptop=laptop)
        self.owners(f"provider join {token} --yes {IMAGES} --price {price}")
        self.addCleanup(self.owners, "lend leave --grace 1s || true; rm -f gridctl-receipts-*")
        self.wait_provider(name, laptop=laptop)
        wait_until("the price to be accepted", 60, lambda: self.accepted(laptop, name), laptop.evidence)

    def accepted(self, laptop, name):
        folder = laptop.run("provider", "show", name, "--json").json["address"].partition(":")[2]
        return "cpu_hour" in self.grid.as_worker(LENT, f"cat .gridctl/lend/{folder}/receipts/accepted 2> /dev/null || true")

    def submit(self, laptop, seconds, name="paid"):
        return laptop.submit({"name": name, "image": IMAGE, "resources": {"cpus": 0.5}, "recovery": {"lost_after": "20s"},
                              "run": f"for n in $(seq {int(seconds * 10)}); do sleep 0.1; done"})

    def receipts(self, laptop):
        return laptop.run("receipts", "ls", "--json").json

    def owners_receipts(self):
        return json.loads(self.owners("lend receipts --json"))

    def wait_settled(self, laptops, least=0):
        """Each attempt that ran has a receipt, which both sides have signed."""
        def settled():
            theirs = self.owners_receipts()
            ours = [one for laptop in laptops for one in self.receipts(laptop)]
            waiting = self.grid.as_worker(LENT, "ls .gridctl/lend/*/receipts/uses").split()
            files = [name for name in waiting if not name.endswith(":")]
            return not files and len(ours) == len(theirs) >= least and all(one["verdict"] != "unanswered" for one in theirs)
        wait_until("both sides to have signed", 100, settled, lambda: "\n".join(
            [self.owner("lend receipts; ls -l .gridctl/lend/*/receipts/uses; lend log")[0]] + [laptop.evidence() for laptop in laptops]))

    def assert_same(self, laptops):
        theirs, ours = {}, {}

        def read():  # an attempt that ends just now has its receipt at the host first
            theirs.update({(one["job_id"], one["epoch"]): one for one in self.owners_receipts()})
            ours.update({(one["job_id"], one["epoch"]): one for laptop in laptops for one in self.receipts(laptop)})
            return sorted(theirs) == sorted(ours) and all(one["verdict"] != "unanswered" for one in theirs.values())

        wait_until("both sides to have the same receipts", 60, read, lambda: f"{sorted(theirs)}\n{sorted(ours)}")
        for key, one in ours.items():
            self.assertEqual(one["verdict"], "agreed", one)
            for figure in ("amount_micro", "counted_micro", "cpu_ms", "gpu_ms", "bytes_up", "bytes_down", "number", "rates"):
                self.assertEqual(one[figure], theirs[key][figure], (key, figure))
        earned = sum(one["earned_micro"] for one in json.loads(self.owners("lend earnings --json")))
        status = sum(one["earned_micro"] for one in json.loads(self.owners("lend status --json")))
        self.assertEqual(earned, sum(one["amount_micro"] for one in ours.values()))
        self.assertEqual(earned, status)
        return ours

    def cost(self, laptop, jobs):
        return sum(laptop.run("job", "show", job.id, "--json").json["cost"] for job in jobs)

    def test_both_sides_agree_to_the_cent(self):
        """JOBS=100 is the long form. SEED repeats one."""
        count, seed = int(os.environ.get("JOBS", "20")), int(os.environ.get("SEED", "51"))
        draw = random.Random(seed)
        other = self.grid.laptop("other")
        self.addCleanup(other.close)
        laptops = (self.laptop, other)
        for laptop, name in zip(laptops, ("bob", "mine")):
            self.lent_to(laptop, name)
            laptop.run("budget", "set", "1000")
        jobs, deaths = {laptop: [] for laptop in laptops}, {}
        for turn in range(0, count, 4):
            batch = []
            for n in range(min(4, count - turn)):
                laptop = laptops[(turn + n) % 2]
                job = self.submit(laptop, draw.uniform(1, 4))
                batch.append(job)
                jobs[laptop].append(job)
            death = draw.choice(["none", "container", "supervisor", "laptop", "cancel", "power"])
            deaths[death] = deaths.get(death, 0) + 1
            time.sleep(draw.uniform(2, 6))
            self.die(death, laptops, batch, draw)
            for job in batch:
                job.wait("the end", 180, lambda: job.state in grid.FINAL)
        self.wait_settled(laptops)
        ours = self.assert_same(laptops)
        for laptop in laptops:
            self.assertEqual(laptop.run("receipts", "verify").code, 0)
            counted = sum(one["counted_micro"] for one in self.receipts(laptop))
            self.assertAlmostEqual(self.cost(laptop, jobs[laptop]) * 1e6, counted, delta=1)
            self.assertAlmostEqual(laptop.run("budget", "ls", "--json").json[0]["spent"] * 1e6, counted, delta=1)
        self.assertIn("all signatures and links are good", self.owners("lend receipts --verify"))
        grid.figure("receipts on which both sides agree", f"{len(ours)} of {count} jobs with {sum(deaths.values())} events ({deaths}, seed {seed}), "
                    f"{sum(one['amount_micro'] for one in ours.values()) / 1e6:.6f} USD")
        self.assertGreaterEqual(len(ours), count * 3 // 4)

    def die(self, death, laptops, batch, draw):
        if death == "container":
            self.grid.as_worker(LENT, "podman kill $(podman ps -q | head -1) || true")
        elif death == "supervisor":
            self.grid.signal(LENT, self.grid.pids(LENT, "gridctl-agent supervise")[:1], 9)
        elif death == "laptop":
            draw.choice(laptops).kill_daemon()
        elif death == "cancel":
            job = draw.choice(batch)
            job.laptop.run("job", "cancel", job.id, check=False)
        elif death == "power":
            self.grid.reboot(LENT)
            self.owners("lend resume")
        for laptop in laptops:
            laptop.run("daemon", "start")

    def exported(self, laptop):
        return laptop.run("receipts", "export").out.splitlines()

    def verify(self, laptop, lines, code, *words):
        """Of a file in which something was changed."""
        path = os.path.join(laptop.folder, "changed.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        told = laptop.run("receipts", "verify", path, code=code)
        for word in words:
            self.assertIn(word, told.out + told.err)
        told = laptop.run("receipts", "verify", path, "--json", code=code).json
        return told[0]["fault"]

    def test_what_was_changed_is_found_and_a_price_holds_from_the_next_attempt(self):
        self.lent_to(self.laptop, "bob")
        first = self.submit(self.laptop, 1)
        first.wait_success()
        running = self.submit(self.laptop, 12, "dear")
        running.wait_state("RUNNING")
        wait_until("its program", 30, lambda: self.grid.as_worker(LENT, "podman ps -q").split())
        self.owners("lend limits --price cpu=7.20")
        running.wait_success()
        last = self.submit(self.laptop, 2)
        last.wait_success(deadline=150)
        self.wait_settled([self.laptop])
        ours = self.assert_same([self.laptop])
        rates = {job: [one["rates"] for (of, _), one in ours.items() if of == job.id] for job in (first, running, last)}
        self.assertEqual(rates[running], [PRICE])
        self.assertEqual(rates[last][-1:], ["cpu=7.20"])

        lines = self.exported(self.laptop)
        self.assertGreaterEqual(len(lines), 3)
        self.assertIsNone(self.verify(self.laptop, lines, 0, "all signatures and links are good"))
        at = lines[1].index('"cpu_ms":') + len('"cpu_ms":')
        digit = "1" if lines[1][at] != "1" else "2"
        self.assertEqual(self.verify(self.laptop, [lines[0], lines[1][:at] + digit + lines[1][at + 1:], *lines[2:]], 7, "damaged", "number 1"), "damaged")
        self.assertEqual(self.verify(self.laptop, [lines[0], *lines[2:]], 7, "receipt 2 is missing"), "missing")
        self.assertEqual(self.verify(self.laptop, lines[:2], 7, "cut off"), "cut")

        # The owner keeps another history: his last receipt is made once more, for twice the time.
        book = ".gridctl/lend/*/receipts/book"
        self.grid.as_worker(LENT, f"cp $(echo {book}) kept; head -n -1 kept > $(echo {book})")
        self.assertIn("cut off", self.owners("lend receipts --verify", code=7))
        self.laptop.run("daemon", "stop")
        self.laptop.run("daemon", "start")
        wait_until("the researcher to notice", 60, lambda: self.laptop.run("receipts", "verify", check=False).code == 7)
        self.assertIn("cut off: the host's last receipt", self.laptop.run("receipts", "verify", code=7).out)
        mark = {"job": "forged", "epoch": 1, "rates": {"gpu_hour": 0, "cpu_hour": 7200000, "gigabyte": 0, "minimum": 0}, "gpus": 0, "cpus_milli": 500,
                "use": {"gpu_ms": 0, "cpu_ms": 99000, "bytes_up": 0, "bytes_down": 0}, "began_ms": 1, "ended_ms": 2, "boot_id": "x", "done": True,
                "seen_up": 0, "seen_down": 0}
        self.grid.as_worker(LENT, f"echo '{json.dumps(mark)}' > new; mv new $(echo {os.path.dirname(book)}/uses)/forged.1")
        wait_until("the forged receipt", 20, lambda: "forged" in self.grid.as_worker(LENT, f"cat {book}"))
        theirs = self.grid.as_worker(LENT, f"cat {book}").splitlines()
        self.assertEqual(self.verify(self.laptop, [*lines, theirs[-1]], 7, "fork"), "fork")
        self.assertEqual(self.verify(self.laptop, theirs, 7, "fork: the two sides have different receipts"), "fork")
        self.laptop.run("daemon", "stop")
        self.laptop.run("daemon", "start")
        wait_until("the researcher to notice", 60, lambda: "fork" in self.laptop.run("receipts", "verify", check=False).out)
        self.assertEqual(len(self.exported(self.laptop)), len(lines))
        self.grid.as_worker(LENT, f"mv kept $(echo {book})")

        # What the owner has stays his.
        told = self.owners("lend leave --grace 1s")
        kept = [word for word in told.split() if "gridctl-receipts-" in word][0].rstrip(";")
        self.assertIn("all signatures and links are good", self.owners(f"receipts verify {kept}"))

    def test_a_price_that_was_not_agreed_starts_nothing(self):
        token = self.token("bob", "--price", "0.10")
        self.owners(f"provider join {token} --yes {IMAGES} --price cpu=5")
        self.addCleanup(self.owners, "lend leave --grace 1s || true")
        self.wait_provider("bob")
        job = self.submit(self.laptop, 1)
        wait_until("the host to refuse", 60, lambda: "has not been accepted" in self.laptop.run("job", "events", job.id).out, job.evidence)
        # The host may refuse before the exchange has told the price.
        wait_until("the price to be told with its command", 60, lambda: "gridctl provider price bob" in self.laptop.run("provider", "show", "bob").out)
        self.laptop.run("provider", "price", "bob", "1000")
        job.wait_success(deadline=180)
        self.wait_settled([self.laptop], 1)
        self.assert_same([self.laptop])


    def test_an_agreed_hour_pays_for_no_traffic_and_no_minimum(self):
        """A host that was invited for nothing asked 500 USD for an attempt of two seconds, and got them."""
        token = self.token("bob")
        self.owners(f"provider join {token} --yes {IMAGES} --price traffic=1000,minimum=500")
        self.addCleanup(self.owners, "lend leave --grace 1s || true; rm -f gridctl-receipts-*")
        self.wait_provider("bob")
        job = self.submit(self.laptop, 1)
        wait_until("the host to refuse", 60, lambda: "has not been accepted" in self.laptop.run("job", "events", job.id).out, job.evidence)
        wait_until("the price to be told with its command", 60, lambda: "accept it with: gridctl provider price bob 0.00 --traffic 1000.00 --minimum 500.00" in
                   self.laptop.run("provider", "show", "bob").out, lambda: self.laptop.run("provider", "show", "bob").out)
        self.assertEqual(self.receipts(self.laptop), [])
        self.laptop.run("provider", "price", "bob", "0", "--minimum", "500")
        time.sleep(3)
        self.assertFalse(self.accepted(self.laptop, "bob"), "traffic is not agreed")
        self.owners("lend limits --price minimum=0.25")
        job.wait_success(deadline=240)
        self.wait_settled([self.laptop], 1)
        [receipt] = self.assert_same([self.laptop]).values()
        self.assertEqual(receipt["amount_micro"], 250_000)

    def test_use_that_the_machine_makes_up_is_not_counted(self):
        """Its owner writes what he likes into his marks, and his machine signs it."""
        self.lent_to(self.laptop, "bob")
        job = self.submit(self.laptop, 2, "forged")
        job.wait_state("RUNNING")
        serving = self.grid.pids(LENT, "gridctl lend serve")
        self.grid.signal(LENT, serving, 19)  # no receipt is written meanwhile, and nobody is called
        [mark] = self.grid.as_worker(LENT, "ls .gridctl/lend/*/receipts/uses/*").split()
        path = self.grid.disk(LENT, f"home/worker/{mark}")

        def written():
            with open(path, encoding="utf-8") as file:
                mark = json.load(file)
            return mark if mark["done"] else None
        forged = wait_until("the last mark", 60, written, job.evidence)
        forged["use"] = {"gpu_ms": 9 * 10**9, "cpu_ms": 24 * 3600 * 1000, "bytes_up": 10**15, "bytes_down": 10**15}
        forged["began_ms"] = 1
        with open(path, "w", encoding="utf-8") as file:
            json.dump(forged, file, sort_keys=True, separators=(",", ":"))
        self.grid.signal(LENT, serving, 18)
        job.wait_success()
        self.wait_settled([self.laptop], 1)
        [receipt] = self.receipts(self.laptop)
        ran = job.attempts()[-1]
        self.assertEqual(receipt["verdict"], "disputed", receipt)
        self.assertGreater(receipt["amount_micro"], 10**8)
        for word in ("more GPU time", "more processor time", "more traffic than 10 Gbit/s"):
            self.assertIn(word, receipt["why"], ran)
        # At most: no GPU, half a processor and 10 Gbit/s each way for the seconds that were seen here, and five.
        self.assertLess(receipt["counted_micro"], 15 * (0.5 * 1000 + 2 * 1.25 * 50_000))
        self.assertEqual(self.laptop.run("receipts", "verify").code, 0)
        self.assertIn("disputed", self.laptop.run("job", "show", job.id).out + self.owners("lend receipts"))


for inherited in [name for name in dir(lend_test.Lend) if name.startswith("test_")]:
    setattr(Receipts, inherited, None)  # its words are wanted here, not its tests


if __name__ == "__main__":
    unittest.main()
