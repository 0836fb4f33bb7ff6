"""A page with an explorer, as tests drive it."""

import time

from attractor.explorer import Explorer

INSIDE = ("file:", "data:", "blob:", "about:", "http://localhost", "ws://localhost",
          "http://127.0.0.1", "ws://127.0.0.1")  # fmt: skip


class Shown:
    """A page with an explorer, and what a test does with it."""

    def __init__(self, page):
        self.page = page
        self.messages, self.refused = [], []
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on(
            "console",
            lambda said: said.type in ("error", "warning") and self.messages.append(said.text),
        )

        def judge(route):
            if route.request.url.startswith(INSIDE):
                return route.continue_()
            self.refused.append(route.request.url)
            return route.abort()

        page.context.route("**/*", judge)

    def visit(self, address):
        self.page.goto(address)
        self.ready()

    def ready(self):
        self.until("e !== undefined")

    def until(self, expression, seconds=15):
        """Waits for an expression to be true; pages forbid what playwright would wait with."""
        end = time.monotonic() + seconds
        while not self.explorer(expression):
            assert time.monotonic() < end, expression
            self.page.wait_for_timeout(20)

    def explorer(self, expression):
        """The value of an expression of the explorer ``e``."""
        return self.page.locator(".attractor-explorer").first.evaluate(
            f"host => {{ const e = host.explorer; return {expression}; }}", timeout=120_000
        )

    @property
    def state(self):
        return self.explorer("e.state")

    @property
    def library(self):
        """What the library has of the same state."""
        return Explorer(self.state)

    def token(self, i, t):
        return self.page.locator(f"[data-token='{i},{t}']")

    def middle(self, locator):
        box = locator.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def number(self, name):
        """What the certificate says of the first training."""
        row = self.page.locator(".certificate tr", has=self.page.locator("th", has_text=name))
        return row.locator("td").first.inner_text()

    def settled(self):
        """Waits until what was dragged has been let go, drawn, and saved."""
        self.until("e.settled")

    def save(self, item):
        """Chooses an item of the menu of what can be saved; returns what is downloaded."""
        self.page.get_by_role("button", name="Save").click()
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name=item).click()
        return download.value.path()
