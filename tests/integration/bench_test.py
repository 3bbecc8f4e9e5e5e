# SPDX-License-Identifier: Apache-2.0
"""`provider bench` as a person types it, against real hosts: what it measures and keeps, what an honest device passes,
and what a host that lies about its GPU comes to. The devices are PoCL's, on the processors; a library in front of it
calls them GPUs and lies as /etc/stub-gpu/opencl tells it."""
import contextlib
import json
import os
import shutil
import sqlite3
import unittest

import grid
from grid import plain, wait_until

PLAIN, LIAR, TOOLS = 1, 2, 3  # no GPU; one that a driver shows; one that only a stub of nvidia-smi shows
UUID = "00000000-0000-0083-0000-000000000001"
RECHECK = "3s"  # instead of twelve hours
DRIVER = os.path.join(os.path.dirname(os.path.dirname(grid.GRIDCTL)), "tests", "integration", "lying", "libOpenCL.so.1")
MEMORY = 2 << 30
REFUSED = 5

# xpu-smi as it answers about one device.
XPU_SMI = f"""#!/bin/sh
case "$*" in
  'discovery -j') echo '{{"device_list":[{{"device_id":0,"device_type":"GPU","device_name":"Stub GPU"}}]}}' ;;
  'discovery -d 0 -j') echo '{{"device_id":0,"device_type":"GPU","device_name":"Stub GPU","uuid":"{UUID}",
    "pci_bdf_address":"0000:83:00.0","memory_physical_size_byte":"{MEMORY}","driver_version":"1"}}' ;;
  *) exit 1 ;;
esac
"""


def setUpModule():
    global ada, bob
    if not os.path.exists("/etc/OpenCL/vendors/pocl.icd"):
        raise unittest.SkipTest("no OpenCL driver here: install pocl-opencl-icd")
    the_grid = grid.up(3)
    with open(os.path.join(grid.SOURCE, "tests", "support", "nvidia-smi"), encoding="utf-8") as file:
        write(TOOLS, "/usr/bin/nvidia-smi", file.read())
    ada, bob = the_grid.laptop("ada"), the_grid.laptop("bob")
    ada.environment["GRIDCTL_RECHECK"] = "off"  # only bob's daemon looks by itself
    bob.environment["GRIDCTL_RECHECK"] = RECHECK
    # The liar's driver stands before the real one.
    shutil.copy(os.path.realpath(DRIVER), the_grid.disk(LIAR, "tmp/libOpenCL.so.1"))
    the_grid.enter(LIAR, "mkdir -p /etc/stub-gpu /usr/local/lie && mv /tmp/libOpenCL.so.1 /usr/local/lie/ && "
                         "echo /usr/local/lie > /etc/ld.so.conf.d/000-lie.conf && ldconfig")
    write(LIAR, "/usr/bin/xpu-smi", XPU_SMI)
    lie("gpu")
    for host in the_grid.hosts:
        ada.register(host, engine="process")
    bob.register(LIAR, engine="process")


def write(host, path, text):
    grid.the_grid.enter(host, f"mkdir -p $(dirname {path}); cat > {path} <<'EOF'\n{text}\nEOF\nchmod 755 {path}")


def lie(how):
    """What the liar's driver says of the processor from now on; "gpu" is the least, and passes."""
    write(LIAR, "/etc/stub-gpu/opencl", f"GRIDCTL_LIE={how}\nGRIDCTL_LIE_MEMORY={MEMORY}\nGRIDCTL_LIE_UNITS=2\n"
                                        "GRIDCTL_LIE_FILE=/tmp/recorded")


def bench(host, *more, code=None, laptop=None):
    return (laptop or ada).run("provider", "bench", f"h{host}", *more, code=code, timeout=400)


def verdict_of(host, laptop):
    return verdict_of_name(f"h{host}", laptop)


def verdict_of_name(name, laptop):
    return laptop.run("provider", "ls", f"name={name}", "--json").json[0]["bench"]


def on_the_liar(name):
    return plain(name, constraints={"query": f"name=h{LIAR}"}, envs={"STEPS": 3})


def listed(query):
    return [provider["name"] for provider in ada.run("provider", "ls", query, "--json").json]


class Bench(grid.Case):
    def setUp(self):
        super().setUp()
        lie("gpu")

    def kept(self, host):
        """Transcripts in the registry."""
        with contextlib.closing(sqlite3.connect(f"file:{ada.state}/state.db?mode=ro", uri=True)) as db:
            body, = db.execute("SELECT body FROM host_reports WHERE provider=? AND kind='bench'", (f"h{host}",)).fetchone()
        return json.loads(body)["gpus"][0]["transcripts"]

    def history(self):
        shown = bob.run("provider", "show", f"h{LIAR}", "--json").json
        return [event["text"] for event in shown["history"] if event["kind"] == "bench"]

    def assert_finding(self, report, what, verdict="mismatch"):
        findings = [(finding["what"], finding["verdict"]) for gpu in report["gpus"] for finding in gpu["findings"]]
        self.assertIn((what, verdict), findings, report)

    def test_a_host_is_measured_and_its_transcripts_are_kept(self):
        report = bench(PLAIN, "--quick", "--json").json
        self.assertEqual(report["verdict"], "ok", report)
        self.assertTrue(report["quick"])
        self.assertEqual({one["test"]: one["outcome"] for one in report["gpus"][0]["transcripts"]},
                         {"fill": "right", "gemm": "right", "fma": "right"})
        for one in report["gpus"][0]["transcripts"]:
            self.assertTrue(one["parts"] and one["seed"] and len(one["answer_sha256"]) == 64, one)
        for name in ("cpu_gflops", "memory_copy_gbs", "disk_write_mbs"):
            self.assertGreater(report["host"][name], 0)
        for name in ("fp32_tflops", "gemm_fp32_tflops", "memory_read_gbs", "h2d_gbs", "d2h_gbs"):
            self.assertGreater(report["gpus"][0]["figures"][name], 0, name)
        kept = self.kept(PLAIN)
        self.assertEqual([one["seed"] for one in kept], [one["seed"] for one in report["gpus"][0]["transcripts"]])
        self.assertIn("ok", ada.run("provider", "show", f"h{PLAIN}").out.split("bench", 1)[1])
        self.assertIn(f"h{PLAIN}", listed("verified"))
        row = [line for line in ada.run("provider", "ls").out.splitlines() if line.startswith(f"h{PLAIN} ")][0]
        self.assertIn(" ok ", row)

    def lent(self, host, shows):
        """A GPU job on a host of somebody else; what the history says of measuring it."""
        dora = self.grid.laptop(f"dora{host}")
        self.addCleanup(dora.close)
        dora.register(host, "stranger", "process", "--label", "lent=true")
        job = dora.submit(plain("first", resources={"accelerators": 1}, envs={"STEPS": 3}))
        if shows:
            wait_until("the reason to wait", 60, lambda: shows in dora.run("job", "explain", job.id).out, job.evidence)
        job.wait_success(deadline=300)
        history = dora.run("provider", "show", "stranger", "--json").json["history"]
        return dora, job, [event["text"] for event in history if event["kind"] == "bench"]

    def test_a_lent_host_is_measured_before_its_first_job(self):
        dora, job, told = self.lent(LIAR, "it is being measured before its first job; about 2m")
        self.assertEqual(len(told), 1, told)
        self.assertIn(verdict_of_name("stranger", dora), ("ok", "degraded", "unverified", "suspect"))
        again = dora.submit(plain("second", resources={"accelerators": 1}, envs={"STEPS": 3}))
        again.wait_success(deadline=30)
        self.assertEqual(len(job.attempts()) + len(again.attempts()), 2)

    def test_a_lent_host_that_cannot_be_measured_is_used_and_that_is_said(self):
        dora, _, told = self.lent(TOOLS, None)
        self.assertEqual(len(told), 1, told)
        self.assertRegex(told[0], "^not measured before its first job: could not test .*; jobs use its GPUs all the same$")
        self.assertIn("GPUs are used all the same", dora.run("provider", "show", "stranger").out)

    def test_the_long_run_looks_at_it_under_load(self):
        carol = self.grid.laptop("carol")  # without a past that it could have fallen from
        carol.register(LIAR, engine="process")
        report = bench(LIAR, "--json", "--under-load", "5s", laptop=carol).json
        self.assertFalse(report["quick"])
        self.assertGreater(report["gpus"][0]["figures"]["sustained_part"], 0)
        wrong = {finding["what"] for finding in report["gpus"][0]["findings"] if finding["verdict"] not in ("ok", "unverified")}
        self.assertLessEqual(wrong, {"sustained"}, report)  # processors may be needed elsewhere meanwhile
        # What xpu-smi has not told, and the driver has.
        gpu = carol.run("provider", "show", f"h{LIAR}", "--json").json["inventory"]["gpus"][0]
        self.assertEqual((gpu["units"], gpu["measured"]), (2, ["units"]))
        self.assertIn("measured: units", carol.run("provider", "show", f"h{LIAR}").out)

    def test_a_gpu_that_only_its_tools_show_is_found(self):
        done = bench(TOOLS, "--quick", code=REFUSED)
        self.assertIn("does not match its declaration", done.err)
        self.assertIn("FAIL", done.err)
        self.assertEqual(verdict_of(TOOLS, ada), "mismatch")
        self.assertNotIn(f"h{TOOLS}", listed("verified"))

    def assert_gets_no_job(self, laptop):
        with self.assertRaisesRegex(AssertionError, "(?s)it differs from its declaration.*exit 4"):
            laptop.submit(on_the_liar("refused"))

    def test_memory_that_is_not_there_is_found_and_the_host_gets_no_job_until_it_passes(self):
        lie("vram")
        self.assert_finding(bench(LIAR, "--quick", "--json", code=REFUSED).json, "answer")
        self.assertEqual(verdict_of(LIAR, ada), "mismatch")
        self.assert_gets_no_job(ada)
        seeds = {one["seed"] for one in self.kept(LIAR)}
        lie("gpu")
        self.assertIn("memory hashed", bench(LIAR, "--quick").out)
        self.assertFalse(seeds & {one["seed"] for one in self.kept(LIAR)}, "a seed came twice")
        ada.submit(on_the_liar("trusted")).wait_success()

    def test_a_host_that_begins_to_lie_between_jobs_is_caught_and_may_return(self):
        bench(LIAR, "--quick", laptop=bob)
        self.assertEqual(verdict_of(LIAR, bob), "unverified")
        job = bob.submit(on_the_liar("before"))
        job.wait_success()
        # Answers that were right once: the first look records them, the next ones hear them again.
        self.grid.enter(LIAR, "rm -f /tmp/recorded*")
        lie("replay")

        def is_mismatched(wanted):
            bob.need_daemon()
            return (verdict_of(LIAR, bob) == "mismatch") == wanted

        try:
            grid.wait_until("the re-challenge to find the replay", 180, lambda: is_mismatched(True), bob.evidence)
            self.assertTrue(any(text.startswith("mismatch") for text in self.history()), self.history())
            self.assert_gets_no_job(bob)
            lie("gpu")
            grid.wait_until("the next re-challenge", 180, lambda: is_mismatched(False), bob.evidence)
            bob.submit(on_the_liar("after")).wait_success()
        finally:
            bob.run("daemon", "stop", check=False)
            grid.wait_until("the GPU that was looked at to be free", 60, lambda: not self.grid.leases_on(LIAR))


if __name__ == "__main__":
    unittest.main(verbosity=2)
