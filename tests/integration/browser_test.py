# SPDX-License-Identifier: Apache-2.0
"""JupyterLab and TensorBoard of a running job, used in a browser through `job forward`.
GRIDCTL_FRAMEWORKS=VENV/lib/python3.11/site-packages with jupyterlab, tensorboard and playwright, and Debian's chromium, run
it; GRIDCTL_SCREENSHOTS=FOLDER keeps the pictures."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import unittest

import grid
from grid import FRAMEWORKS, SITE, figure, wait_until

CHROMIUM = shutil.which("chromium")
PICTURES = os.environ.get("GRIDCTL_SCREENSHOTS", "")
SHARE = os.path.join(FRAMEWORKS, *[os.pardir] * 3, "share")
CELL = "import os; print(6 * 7, 'computed on', os.uname().nodename)"
CURVE = "from IPython.display import SVG; SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\"><path d=\"M0 0L60 20\" stroke=\"red\"/></svg>')"


def setUpModule():
    global laptop
    wanted = ("jupyterlab", "tensorboard", "playwright")
    if CHROMIUM is None or not FRAMEWORKS or not all(os.path.isdir(os.path.join(FRAMEWORKS, name)) for name in wanted):
        raise unittest.SkipTest("GRIDCTL_FRAMEWORKS=VENV/lib/python3.11/site-packages runs it: needs jupyterlab, tensorboard, playwright, chromium")
    sys.path.append(FRAMEWORKS)
    os.environ["GRIDCTL_TESTGRID_SSHD"] = "AllowTcpForwarding no"
    the_grid = grid.up(1)
    subprocess.run(["cp", "-a", FRAMEWORKS, the_grid.disk(1, SITE[1:])], check=True)
    subprocess.run(["cp", "-a", SHARE, the_grid.disk(1, SITE[1:] + "-share")], check=True)
    laptop = the_grid.laptop()
    laptop.register(1, engine="process")


class Browser(grid.Case):
    def serve(self, name, run, port):
        job = laptop.submit({"name": name, "run": run, "workdir": grid.WORKLOADS, "ports": [port], "envs": {"PYTHONPATH": SITE}})
        self.addCleanup(lambda: laptop.run("job", "cancel", job.id, "--now", check=False))
        return job

    @contextlib.contextmanager
    def forward(self, job, port):
        process = laptop.spawn("job", "forward", job.id, f"0:{port}")
        try:
            line = process.stdout.readline()
            self.assertRegex(line, r"^127\.0\.0\.1:\d+\n$", "" if line else process.stderr.read())
            yield "http://" + line.strip()
        finally:
            process.terminate()
            process.wait(10)

    @contextlib.contextmanager
    def page(self, name, **options):
        from playwright.sync_api import sync_playwright
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1200, "height": 800}, **options)
            page.set_default_timeout(60_000)
            try:
                yield page
            finally:
                if PICTURES:
                    page.screenshot(path=os.path.join(PICTURES, f"{name}.png"), full_page=True)
                browser.close()

    def test_a_notebook_runs_in_the_job(self):
        run = (f"python3 -m jupyterlab --no-browser --ip 127.0.0.1 --port 8888 --app-dir {SITE}-share/jupyter/lab "
               "--ServerApp.token=secret --ServerApp.root_dir=$PWD --ServerApp.allow_root=True")
        job = self.serve("notebook", run, 8888)
        cells = [{"cell_type": "code", "metadata": {}, "source": text, "outputs": [], "execution_count": None} for text in (CELL, CURVE)]
        book = {"cells": cells, "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}}, "nbformat": 4, "nbformat_minor": 4}
        with open(os.path.join(laptop.folder, "book.ipynb"), "w", encoding="utf-8") as file:
            json.dump(book, file)
        wait_until("the server", 60, lambda: "http://127.0.0.1:8888" in job.logs(), job.evidence)
        laptop.run("job", "cp", "book.ipynb", f"{job.id}:book.ipynb")
        with self.forward(job, 8888) as address, self.page("jupyter") as page:
            page.goto(f"{address}/lab/tree/book.ipynb?token=secret")
            page.get_by_text("import os; print").first.wait_for()
            page.locator(".jp-Notebook").first.click()
            page.get_by_role("menuitem", name="Run", exact=True).click()
            page.get_by_text("Run All Cells", exact=True).click()
            page.get_by_text("42 computed on h1").first.wait_for()
            page.locator(".jp-OutputArea svg, .jp-OutputArea img").first.wait_for()
        laptop.run("job", "exec", job.id, "--", "test", "-f", "book.ipynb")

    def test_a_report_needs_no_network_and_is_legible_in_light_and_dark(self):
        job = laptop.submit(grid.plain("reported", envs={"STEPS": 60}))
        job.wait_checkpoint(1)
        laptop.run("daemon", "stop")
        laptop.run("daemon", "start")
        job.wait_success()
        laptop.run("job", "report", job.id, "--html", "report.html")
        path = os.path.join(laptop.folder, "report.html")
        figure("size of the report", f"{os.path.getsize(path) / 1000:.0f} kB")
        self.assertLess(os.path.getsize(path), 300_000)
        colours = []
        for scheme in ("light", "dark"):
            asked = []
            with self.page(f"report-{scheme}", color_scheme=scheme) as page:
                page.on("request", lambda request: asked.append(request.url))
                page.goto("file://" + path)
                page.get_by_text("SUCCEEDED").first.wait_for()
                colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            self.assertEqual(asked, ["file://" + path])
        self.assertNotEqual(*colours)

    def test_a_curve_is_drawn_while_the_job_runs(self):
        job = self.serve("board", "python3 board.py 6006", 6006)
        wait_until("the server", 60, lambda: "listening" in job.logs(), job.evidence)
        seen = []
        with self.forward(job, 6006) as address, self.page("tensorboard") as page:
            page.on("response", lambda answer: seen.append(answer.status))
            page.goto(address)
            page.get_by_text("loss").first.wait_for()
            page.locator("line-chart, .line-chart, scalar-card canvas, scalar-card svg").first.wait_for()
            page.wait_for_timeout(2000)  # the curve is drawn in steps
        figure("answers to the browser", f"{len(seen)}, of which errors: {sum(status >= 400 for status in seen)}")
        self.assertFalse([status for status in seen if status >= 500])


if __name__ == "__main__":
    unittest.main(verbosity=2)
