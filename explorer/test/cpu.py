"""Processor time of the page's main thread for an update while a token is dragged, scene by scene.

    python explorer/test/cpu.py [--moves 200] [scene ...]

Needs playwright (from PyPI) and Chromium; prints milliseconds of all tasks of the main thread
(script, style, layout, painting) for each move: median, 99 %, largest; then the seconds from the
drop to the exact basins. Ends with 1 where the median exceeds 8 ms, or 99 % 16 ms.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent.parent
MEDIAN, NINETY_NINE = 8.0, 16.0

parser = argparse.ArgumentParser()
parser.add_argument("scenes", nargs="*")
parser.add_argument("--moves", type=int, default=200)
parser.add_argument("--chromium", default="/usr/bin/chromium")
arguments = parser.parse_args()

PLACE = """() => {
  const box = document.querySelector(".attractor-explorer").shadowRoot
    .querySelector("[data-token='0,0']").getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}"""
UPDATES = "document.querySelector('.attractor-explorer').explorer.updates"
PAINTED = "document.querySelector('.attractor-explorer').dataset.painted !== undefined"

with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
    script = Path(folder) / "explorer.js"
    subprocess.run(["node", "build.mjs", f"--out={script}"], cwd=HERE, check=True)
    page_file = Path(folder) / "page.html"
    body = '<!doctype html><meta charset="utf-8"><div data-attractor-explorer="two-basins"></div>'
    page_file.write_text(f'{body}<script type="module">{script.read_text()}</script>')
    browser = p.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1100, "height": 1000})
    page.goto(page_file.as_uri())
    names = arguments.scenes or page.evaluate(
        "document.querySelector('.attractor-explorer').explorer.sceneNames()"
    )
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        """Milliseconds of the main thread so far."""
        metrics = {m["name"]: m["value"] for m in client.send("Performance.getMetrics")["metrics"]}
        return 1000 * metrics["TaskDuration"]

    slow = False
    print(f"{'scene':<14}{'median':>9}{'99 %':>9}{'largest':>9}{'basins, s':>11}")
    for name in names:
        page.goto(f"{page_file.as_uri()}#explorer:{name}")
        page.reload()
        page.wait_for_timeout(800)
        x, y = page.evaluate(PLACE)
        page.mouse.move(x, y)
        page.mouse.down()
        times, done = [], page.evaluate(UPDATES)
        for k in range(arguments.moves + 10):
            before = spent()
            page.mouse.move(x - 40 + 0.4 * k, y + 30 * ((k % 40) / 20 - 1))
            page.wait_for_timeout(34)
            now = page.evaluate(UPDATES)
            if now == done:
                page.wait_for_timeout(100)
                now = page.evaluate(UPDATES)
            if k >= 10 and now > done:
                times.append((spent() - before) / (now - done))
            done = now
        dropped = time.perf_counter()
        page.mouse.up()
        try:
            page.wait_for_function(PAINTED, timeout=20_000)
            basins = f"{time.perf_counter() - dropped:.2f}"
        except Exception:
            basins = "-"
        times.sort()
        median, high = statistics.median(times), times[int(0.99 * len(times)) - 1]
        slow |= median > MEDIAN or high > NINETY_NINE
        print(f"{name:<14}{median:>9.2f}{high:>9.2f}{times[-1]:>9.2f}{basins:>11}", flush=True)
    browser.close()
sys.exit(slow)
