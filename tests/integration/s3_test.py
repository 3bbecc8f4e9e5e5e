# SPDX-License-Identifier: Apache-2.0
"""Copies in S3, with a real server: s3_test.cpp against Ceph's gateway, which is killed meanwhile."""
import os
import subprocess
import sys
import unittest

import radosgw

PROGRAM = os.environ.get("GRIDCTL_S3_TEST", "")
DEADLINE = 120  # seconds
KILLS = (3, 9, 15)  # puts in the midst of which the gateway is killed


def setUpModule():
    global server
    if radosgw.missing():
        raise unittest.SkipTest(f"not installed: {', '.join(radosgw.missing())} (packages ceph-mon, ceph-osd, radosgw)")
    server = radosgw.Radosgw()
    unittest.addModuleCleanup(server.stop)


class S3(unittest.TestCase):
    def program(self, tests):
        return [PROGRAM, f"--gtest_filter={tests}", "--gtest_brief=1"]

    def test_is_a_place_like_every_other(self):
        self.expect("*BackendSuite*")

    def test_refuses_and_is_understood(self):
        self.expect("S3Server.*")

    def expect(self, tests):
        done = subprocess.run(self.program(tests), env=server.environment(), stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("PASSED", done.stdout)

    def test_what_was_acknowledged_is_there_though_the_server_is_killed_between(self):
        with subprocess.Popen(self.program("S3Outage.*"), env=server.environment(), stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as program:
            said, killed = [], 0
            for line in program.stdout:
                said.append(line)
                if line.startswith("PUT ") and int(line.split()[1]) in KILLS:
                    server.kill_gateway()
                    server.start_gateway()
                    killed += 1
            program.wait(DEADLINE)
        self.assertEqual(program.returncode, 0, "".join(said))
        self.assertEqual(killed, len(KILLS))
        self.assertIn("PASSED", "".join(said))


if __name__ == "__main__":
    if not PROGRAM:
        sys.exit("GRIDCTL_S3_TEST must name the program s3_integration_test")
    unittest.main(verbosity=2)
