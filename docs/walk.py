"""Walk all built pages in Chromium, narrow and wide: no sideways scroll, no missing image, no empty alternative text.

    python docs/walk.py [folder of the built pages]

It needs playwright and an installed Chromium, prints what it finds, and exits with 1 if that is anything.
"""

import http.server
import shutil
import sys
import threading
from functools import partial
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTHS = (390, 1280)
BUILT = Path(__file__).parent / "_build" / "html"
FOUND = """() => ({
    sideways: document.documentElement.scrollWidth - window.innerWidth,
    broken: [...document.images].filter((one) => one.complete && !one.naturalWidth).map((one) => one.src),
    silent: [...document.images].filter((one) => !one.alt.trim()).map((one) => one.src),
})"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments):
        pass


def faults(folder):
    """What is wrong, as lines, page by page."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("walk: no Chromium is installed; install one, or look at the pages yourself.")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width in WIDTHS:
            tab = browser.new_page(viewport={"width": width, "height": 800})
            errors = []
            tab.on("pageerror", lambda error, kept=errors: kept.append(str(error)))
            for page in sorted(folder.rglob("*.html")):
                name = page.relative_to(folder).as_posix()
                if name.startswith(("_", "reports/")):
                    continue
                errors.clear()
                tab.goto(f"http://127.0.0.1:{server.server_port}/{name}", wait_until="load")
                found = tab.evaluate(FOUND)
                if found["sideways"] > 0:
                    yield f"{name} at {width} pixels: {found['sideways']} pixels wider than the window"
                yield from (f"{name}: {kind} {which}" for kind in ("broken", "silent") for which in found[kind])
                yield from (f"{name}: {error}" for error in errors)
            tab.close()
        browser.close()


if __name__ == "__main__":
    lines = list(dict.fromkeys(faults(Path(sys.argv[1]) if len(sys.argv) > 1 else BUILT)))
    print("\n".join(lines))
    sys.exit(bool(lines))
