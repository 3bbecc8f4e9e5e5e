# SPDX-License-Identifier: Apache-2.0
"""picture.py FOLDER FILE.svg: draws the demo's run: which host had the job when, its checkpoints, the loss of power, and
the loss curve of both attempts.

FOLDER holds job.json and checkpoints.json (as gridctl prints them), killed (an instant, RFC 3339), version, and
attempt-1.log and attempt-2.log with lines "step N loss X".
"""
import datetime
import html
import json
import math
import re
import sys

WIDTH, LEFT, RIGHT = 860, 70, 20
ROW, TOP, CURVE = 34, 64, 120
COLOURS = ("#2f6fde", "#1f9d55")
STYLE = """text { font: 13px system-ui, sans-serif; fill: #444 } .title { font-weight: 600; font-size: 14px }
.small { font-size: 11px } .on { fill: #fff; font-size: 12px } rect.page { fill: #fff }
@media (prefers-color-scheme: dark) { text { fill: #ccc } rect.page { fill: #0d1117 } .on { fill: #fff } }"""


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def read(folder, name):
    with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as file:
        return file.read()


def losses(folder, attempt):
    return [(int(step), float(loss)) for step, loss in
            re.findall(r"\bstep (\d+) loss ([0-9.eE+-]+)", read(folder, f"attempt-{attempt}.log"))]


class Drawing:
    def __init__(self):
        self.parts = []

    def text(self, x, y, words, kind="", anchor="start"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(words)}</text>')

    def shape(self, words):
        self.parts.append(words)


def timeline(drawing, job, checkpoints, killed):
    begin = instant(job["submitted_at"])
    scale = (WIDTH - LEFT - RIGHT) / (instant(job["ended_at"]) - begin)
    hosts = sorted({attempt["provider"] for attempt in job["attempts"]})

    def at(time):
        return LEFT + (time - begin) * scale
    for number, host in enumerate(hosts):
        y = TOP + number * ROW
        drawing.text(LEFT - 12, y + 17, host, anchor="end")
        drawing.shape(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y + 12}" y2="{y + 12}" stroke="#8886"/>')
    for attempt in job["attempts"]:
        y = TOP + hosts.index(attempt["provider"]) * ROW
        first = at(instant(attempt["started_at"]))
        end = min(instant(attempt["ended_at"]), killed) if attempt["number"] == 1 else instant(attempt["ended_at"])
        drawing.shape(f'<rect x="{first:.1f}" y="{y}" width="{at(end) - first:.1f}" height="24" rx="3" '
                      f'fill="{COLOURS[(attempt["number"] - 1) % 2]}"/>')
        drawing.text(first + 8, y + 16, f"attempt {attempt['number']}", "on")
        for one in checkpoints:
            if one["attempt"] == attempt["number"]:
                x = at(instant(one["created_at"]))
                drawing.shape(f'<path d="M{x:.1f} {y + 19}l4 4l-4 4l-4 -4z" fill="#e0a100"/>')
    x, y = at(killed), TOP + hosts.index(job["attempts"][0]["provider"]) * ROW + 12
    drawing.shape(f'<path d="M{x - 6:.1f} {y - 6}l12 12m0 -12l-12 12" stroke="#d22" stroke-width="3"/>')
    drawing.text(x + 12, y + 4, "power lost", "small")
    axis = TOP + len(hosts) * ROW + 10
    span = instant(job["ended_at"]) - begin
    for second in range(0, int(span) + 1, 10 if span < 150 else 60):
        drawing.text(at(begin + second), axis + 6, f"{second} s", "small", "middle")
    return axis + 30


def curve(drawing, folder, top):
    attempts = [losses(folder, 1), losses(folder, 2)]
    every = [point for attempt in attempts for point in attempt]
    last = max(step for step, _ in every)
    high, low = (math.log(max(pick(loss for _, loss in every), 1e-6)) for pick in (max, min))
    for number, points in enumerate(attempts):
        path = " ".join(f"{LEFT + (step - 1) * (WIDTH - LEFT - RIGHT) / last:.1f},"
                        f"{top + (high - math.log(max(loss, 1e-6))) / ((high - low) or 1) * CURVE:.1f}"
                        for step, loss in points)
        drawing.shape(f'<polyline points="{path}" fill="none" stroke="{COLOURS[number]}" stroke-width="{3 - number}"/>')
    drawing.text(LEFT - 12, top + CURVE / 2, "loss", anchor="end")
    drawing.text(LEFT, top + CURVE + 18, "step 1", "small")
    drawing.text(WIDTH - RIGHT, top + CURVE + 18, f"step {last}", "small", "end")
    first, second = dict(attempts[0]), dict(attempts[1])
    again = first.keys() & second.keys()
    equal = sum(first[step] == second[step] for step in again)
    return f"{len(again)} steps were computed twice, {equal} of them with equal loss", top + CURVE + 34


def main():
    folder, target = sys.argv[1:]
    job, checkpoints = json.loads(read(folder, "job.json")), json.loads(read(folder, "checkpoints.json"))
    drawing = Drawing()
    bottom = timeline(drawing, job, checkpoints, instant(read(folder, "killed").strip()))
    note, height = curve(drawing, folder, bottom)
    first, second = job["attempts"][0]["provider"], job["attempts"][1]["provider"]
    drawing.text(LEFT, 22, f"{first} loses power; the job continues on {second} from its last checkpoint", "title")
    drawing.text(LEFT, 42, f"{note}. Diamonds are checkpoints. Drawn by scripts/demo, {job['submitted_at'][:10]}, "
                 f"{read(folder, 'version').strip()}.", "small")
    with open(target, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
                   f'<!-- SPDX-License-Identifier: Apache-2.0; made by scripts/demo -->\n<style>{STYLE}</style>\n'
                   f'<rect class="page" width="{WIDTH}" height="{height}"/>\n' + "\n".join(drawing.parts) + "\n</svg>\n")


main()
