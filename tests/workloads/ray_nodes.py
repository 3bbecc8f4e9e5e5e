# SPDX-License-Identifier: Apache-2.0
"""One task of Ray on each node, once there are as many as the argument says."""
import sys
import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

wanted = int(sys.argv[1])
ray.init(address="auto")
give_up = time.monotonic() + 60
alive = []
while len(alive) < wanted and time.monotonic() < give_up:
    time.sleep(0.5)
    alive = [node["NodeID"] for node in ray.nodes() if node["Alive"]]


@ray.remote(num_cpus=1)
def where():
    return ray.util.get_node_ip_address()


addresses = ray.get([where.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
                     for node in alive])
print(f"tasks ran on {len(set(addresses))} of {wanted} nodes")
sys.exit(0 if len(set(addresses)) == wanted else 1)
