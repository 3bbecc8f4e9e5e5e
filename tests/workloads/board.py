# SPDX-License-Identifier: Apache-2.0
"""A training whose loss TensorBoard shows: python3 board.py PORT"""
import math
import os
import sys
import time

from tensorboard import program
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

writer = EventFileWriter("runs/first")
for step in range(200):
    loss = 2 * math.exp(-step / 60) + 0.1 * math.sin(step / 3)
    writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[Summary.Value(tag="loss", simple_value=loss)])))
writer.flush()
board = program.TensorBoard()
board.configure(argv=["tensorboard", "--logdir", "runs", "--port", sys.argv[1], "--host", "127.0.0.1"])
print("listening at", board.launch(), "on", os.uname().nodename, flush=True)
while True:
    time.sleep(1)
