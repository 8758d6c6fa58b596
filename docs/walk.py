"""Walk all built pages in Chromium, wide and narrow, light and dark, and fail if a reader could not read one.

    python docs/walk.py [folder of the built pages]

It finds pages that scroll sideways, pictures that are missing or have no alternative text, errors in the console, and
text whose contrast to its background is below 4.5, the minimum of WCAG 2.1 (level AA). Nothing is asked of the network.
"""

import asyncio
import http.server
import os
import shutil
import sys
import threading
from functools import partial
from itertools import chain
from pathlib import Path

from playwright.async_api import async_playwright

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")
TABS = 4
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
BUILT = Path(__file__).parent / "_build" / "html"
FOUND = """() => {
    const images = [...document.images];
    return [
        ...images.filter((one) => one.complete && !one.naturalWidth).map((one) => `missing ${one.src}`),
        ...images.filter((one) => !one.alt.trim()).map((one) => `no alternative text of ${one.src}`),
    ];
}"""
THEME = "scheme => document.documentElement.dataset.theme === scheme"
WIDER = "() => document.documentElement.scrollWidth - window.innerWidth"
# A text's background is that of its nearest ancestors, each over the next, down to one that is opaque.
FAINT = """() => {
    const channels = (colour) => {
        const [red, green, blue, alpha = 1] = colour.match(/-?[\\d.]+(e-?\\d+)?/g).map(Number);
        const scale = colour.startsWith("color(srgb ") ? 255 : 1;  // of a mixture of colours
        return [red * scale, green * scale, blue * scale, alpha];
    };
    const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
    const background = (one) => {
        if (!one) return [255, 255, 255, 1];
        const own = channels(getComputedStyle(one).backgroundColor);
        return own[3] === 1 ? own : over(own, background(one.parentElement));
    };
    const luminance = (colour) => {
        const [red, green, blue] = colour.slice(0, 3).map((value) => {
            const share = value / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const found = new Map();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const owner = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || owner.closest("script, style, noscript")) continue;
        if (!owner.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
        const below = background(owner);
        const text = over(channels(getComputedStyle(owner).color), below);
        const [high, low] = [luminance(text), luminance(below)].sort((one, other) => other - one);
        const contrast = (high + 0.05) / (low + 0.05);
        const key = `${text.map(Math.round)} on ${below.map(Math.round)}`;
        if (contrast < 4.5 && !found.has(key)) {
            const words = texts.currentNode.data.trim().slice(0, 30);
            found.set(key, `contrast ${contrast.toFixed(2)} of "${words}", ${owner.tagName}.${owner.className}`);
        }
    }
    return [...found.values()];
}"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments):
        pass


async def walked(browser, address, names):
    """What is wrong, as pairs of page and fault; names are taken from the list that all tabs share."""
    faults = []
    tab = await browser.new_page()
    tab.set_default_timeout(300_000)  # of a busy machine
    tab.on("pageerror", lambda error: faults.append((name, str(error))))

    def heard(said):
        if said.type == "error" and said.location["url"].startswith(address):  # else the network is asked in vain
            faults.append((name, said.text))

    tab.on("console", heard)
    while names:
        name = names.pop()
        await tab.set_viewport_size({"width": WIDTHS[0], "height": 800})
        await tab.goto(f"{address}/{name}", wait_until="load")
        await tab.add_style_tag(content="* { transition: none !important; }")  # lest colours be those in between
        faults += [(name, fault) for fault in await tab.evaluate(FOUND)]
        for width in WIDTHS:
            await tab.set_viewport_size({"width": width, "height": 800})
            wider = await tab.evaluate(WIDER)
            if wider > 0:
                faults.append((name, f"{wider} pixels wider than a window of {width}"))
        for scheme in SCHEMES:
            await tab.emulate_media(color_scheme=scheme)
            await tab.wait_for_function(THEME, arg=scheme)
            faults += [(name, f"{scheme}: {fault}") for fault in await tab.evaluate(FAINT)]
    await tab.close()
    return faults


async def walk(folder, chromium):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    names = [page.relative_to(folder).as_posix() for page in sorted(folder.rglob("*.html"), reverse=True)]
    names = [name for name in names if not name.startswith(("_static/", "reports/"))]
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", OFFLINE])
        found = await asyncio.gather(*(walked(browser, address, names) for _ in range(TABS)))
        await browser.close()
    return sorted(set(chain.from_iterable(found)))


if __name__ == "__main__":
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        print("walk: no Chromium is installed; look at the pages yourself.")
        sys.exit("GITHUB_ACTIONS" in os.environ)  # its machines have one
    faults = asyncio.run(walk(Path(sys.argv[1]) if len(sys.argv) > 1 else BUILT, chromium))
    print("\n".join(f"{name}: {fault}" for name, fault in faults))
    sys.exit(bool(faults))
