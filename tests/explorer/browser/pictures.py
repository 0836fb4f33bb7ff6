"""Takes the pictures of docs/explorer.md: ``python tests/explorer/browser/pictures.py``."""

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from attractor.explorer import scene_named, scene_names
from attractor.explorer.explorer import page_of

IMAGES = Path(__file__).parents[3] / "docs/images"
READY = "document.querySelector('.attractor-explorer').dataset.painted"
_FINE = Image.Resampling.LANCZOS
NO_BASINS = "document.querySelector('.attractor-explorer').explorer?.hasBasins === false"


def taken(browser, name, folder, width, **options):
    """What a scene says and its two pictures, once its basins are painted."""
    page = browser.new_page(viewport={"width": width, "height": 1600}, **options)
    file = Path(folder) / "scene.html"
    file.write_text(page_of(scene_named(name)), "utf-8")
    page.goto(file.as_uri())
    for _ in range(600):
        if page.evaluate(f"{READY} !== undefined || {NO_BASINS}"):
            break
        page.wait_for_timeout(100)
    page.wait_for_timeout(300)
    parts = []
    for element in ("header", ".row"):
        box = page.locator(element).first.bounding_box()
        clip = {"x": 0, "y": box["y"] - 8, "width": width, "height": box["height"] + 16}
        parts.append(Image.open(io.BytesIO(page.screenshot(clip=clip, full_page=True))))
    page.close()
    return sheet(parts, 1, parts[0].width, parts[0].getpixel((2, 2)))


def sheet(pictures, columns, width, ground):
    """Pictures in columns of one width, row by row."""
    scaled = [
        one.convert("RGB").resize((width, round(one.height * width / one.width)), _FINE)
        for one in pictures
    ]
    rows = [scaled[k : k + columns] for k in range(0, len(scaled), columns)]
    heights = [max(one.height for one in row) for row in rows]
    whole = Image.new("RGB", (columns * width, sum(heights)), ground)
    for k, row in enumerate(rows):
        for j, one in enumerate(row):
            whole.paste(one, (j * width, sum(heights[:k])))
    return whole


def main():
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        light = [taken(browser, name, folder, 900) for name in scene_names()]
        dark = [taken(browser, name, folder, 900, color_scheme="dark")
                for name in ("two-basins", "factors")]  # fmt: skip
        phones = [taken(browser, name, folder, 360, device_scale_factor=2)
                  for name in ("trapped", "ties", "l1-linf", "joint")]  # fmt: skip
        browser.close()
    below = sheet(phones, 4, 340, "#fff")
    above = sheet(dark, 2, 680, dark[0].getpixel((2, 2)))
    for name, one in (
        ("explorer_scenes.webp", sheet(light, 2, 680, "#fff")),
        ("explorer_dark_phone.webp", sheet([above, below], 1, 1360, "#fff")),
    ):
        one.save(IMAGES / name, quality=82, method=6)
        print(IMAGES / name, one.size, (IMAGES / name).stat().st_size)


if __name__ == "__main__":
    main()
