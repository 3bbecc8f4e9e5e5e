# SPDX-License-Identifier: Apache-2.0
"""A model server that others wrote (transformers), a language model made here, and the `openai` package that asks it, while
hosts lose power. Needs their packages in a folder: GRIDCTL_FRAMEWORKS=VENV/lib/python3.11/site-packages, after
pip install 'transformers[serving]' torch openai."""
import json
import os
import re
import subprocess
import sys
import time
import unittest

import grid
from grid import figure, wait_until

PORT = 8000
# Random weights that say the same thing for the same seed: 200 kB, and a load of 10 to 30 s, which the libraries take.
MODEL = """
import sys, torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
bytes_of = Tokenizer(models.BPE())
bytes_of.pre_tokenizer, bytes_of.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
bytes_of.train_from_iterator(["a word"], trainers.BpeTrainer(
    vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokens = PreTrainedTokenizerFast(tokenizer_object=bytes_of, bos_token="<s>", eos_token="</s>")
tokens.chat_template = "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }} {% endfor %}"
tokens.save_pretrained(sys.argv[1])
torch.manual_seed(1)
LlamaForCausalLM(LlamaConfig(vocab_size=len(tokens), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                             num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=512,
                             bos_token_id=0, eos_token_id=None)).save_pretrained(sys.argv[1])
"""
# Asks RATE times a second until its input ends; prints how each request went: when it was sent, seconds, what came.
CLIENT = """
import json, sys, threading, time, openai
url, rate, model = sys.argv[1], float(sys.argv[2]), sys.argv[3]
over, went = threading.Event(), []
client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=120)
def ask(streamed):
    began, sent = time.time(), time.monotonic()
    words = dict(model=model, messages=[{"role": "user", "content": "hello"}], max_tokens=6, temperature=0)
    try:
        if streamed:
            said = "".join(part.choices[0].delta.content or "" for part in client.chat.completions.create(stream=True, **words) if part.choices)
        else:
            said = client.chat.completions.create(**words).choices[0].message.content
        went.append((began, time.monotonic() - sent, "answered", "" if streamed else said))
    except openai.OpenAIError as error:
        went.append((began, time.monotonic() - sent, type(error).__name__, str(error)))
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
threads = []
while not over.is_set():
    threads.append(threading.Thread(target=ask, args=(len(threads) % 4 == 0,)))
    threads[-1].start()
    over.wait(1 / rate)
for thread in threads: thread.join()
print(json.dumps(went))
"""
ENVIRONMENT = {"PYTHONPATH": grid.SITE, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}


def setUpModule():
    global laptop, folder
    os.environ["GRIDCTL_TESTGRID_SSHD"] = "AllowTcpForwarding no"
    laptop = grid.up_with_frameworks("openai")
    folder = os.path.join(laptop.folder, "model")
    subprocess.run([sys.executable, "-c", MODEL, os.path.join(folder, "tiny")], check=True, env={**os.environ, **ENVIRONMENT, "PYTHONPATH": grid.FRAMEWORKS})


class Asking:
    def __init__(self, url, rate):
        self.words = [sys.executable, "-c", CLIENT, url, str(rate), "tiny"]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "PYTHONPATH": grid.FRAMEWORKS})
        return self

    def __exit__(self, *_):
        self.went = json.loads(self.process.communicate("", timeout=200)[0])
        self.failures = [one for one in self.went if one[2] != "answered"]

    def tell(self, name):
        took = sorted(one[1] for one in self.went if one[2] == "answered")
        figure(name, f"{len(took)} answered, {len(self.failures)} failed, p50 {took[len(took) // 2]:.2f} s, max {took[-1]:.1f} s")


class ModelServer(grid.Case):
    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def serve(self, name, replicas, **more):
        server = "from transformers.cli.transformers import main; import sys; sys.argv[0] = 'transformers'; main()"
        job = laptop.submit({
            "name": name, "workdir": folder, "envs": ENVIRONMENT, "resources": {"cpus": 0.3},
            "run": f'exec python3 -c "{server}" serve tiny --device cpu --host 127.0.0.1 --port {PORT}',
            "service": {"port": PORT, "replicas": replicas, "retry_post": ["/v1/"], "probe": {"path": "/health", "initial_delay": "5m"}},
            **more})
        self.addCleanup(lambda: laptop.run("service", "stop", job.id, "--now", check=False))
        began = time.monotonic()
        wait_until("ready replicas", 240, lambda: self.show(job)["ready"] == replicas, job.evidence)
        figure(f"{replicas} model servers ready", f"{time.monotonic() - began:.1f} s")
        return job, laptop.run("service", "url", job.id).out.strip()

    def show(self, job):
        return laptop.run("service", "show", job.id, "--json").json

    def lose(self, job, index):
        host = int(self.show(job)["replicas"][index]["provider"].lstrip("h"))
        self.grid.kill(host)
        return host, time.time()

    def test_one_of_two_loses_power(self):
        job, url = self.serve("two", 2, recovery={"lost_after": "15s"})
        with Asking(url, 2) as asking:
            time.sleep(6)
            host, cut = self.lose(job, 1)
            wait_until("another host", 120, lambda: f"h{host}" not in [one["provider"] for one in self.show(job)["replicas"]])
            wait_until("two ready replicas", 240, lambda: self.show(job)["ready"] == 2, job.evidence)
            time.sleep(2)
        asking.tell("two model servers, a power cut")
        self.assertEqual(asking.failures, [])
        self.assertEqual(len({one[3] for one in asking.went if one[3]}), 1, "one model says one thing")
        figure("the longest that one waited", f"{max(took for began, took, *_ in asking.went if began + took > cut):.1f} s")

    def test_the_only_one_loses_power(self):
        job, url = self.serve("one", 1, recovery={"lost_after": "60s"})
        with Asking(url, 1) as asking:
            time.sleep(6)
            host, cut = self.lose(job, 0)
            wait_until("its successor", 120, lambda: job.events("replica_stands_in"), job.evidence)
            wait_until("a ready replica elsewhere", 240, lambda: any(
                one["ready"] and one["provider"] != f"h{host}" for one in self.show(job)["replicas"]), job.evidence)
            time.sleep(3)
        asking.tell("one model server, a power cut")
        answered = [began + took - cut for began, took, how, _ in asking.went if how == "answered" and began > cut + 1]
        figure("from the power cut to the next answer", f"{min(answered):.1f} s")
        self.assertTrue(all(re.search("503|504", why) for *_, why in asking.failures), asking.failures)


if __name__ == "__main__":
    unittest.main(verbosity=2)
