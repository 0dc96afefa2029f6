#!/usr/bin/env python3
"""Opens the pages of nacre report in headless Chromium, at three widths, light and dark: there must
be no message of the console, no request, no sideways scrolling of the page, and no serious finding
of axe-core. The arrow keys must move along a curve.

    python3 tests/apps/browser_check.py build/release/nacre [FOLDER FOR SCREENSHOTS]

Not part of `make test`: it needs Chromium (Debian: chromium) and, from PyPI, playwright and
axe-playwright-python. It skips, with a reason, where one of them is missing.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (400, 1280, 1920)


def skip(why):
    print(f"browser_check: skipped: {why}")
    sys.exit(0)


def make_pages(program, folder):
    """Trains three small runs; returns the page of one and the page that compares them."""
    def nacre(*arguments):
        subprocess.run([program, *map(str, arguments)], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    train = ("train", "--data", "twin:cora", "--layers", 2, "--hidden", 16, "--epochs", 30, "-q")
    nacre(*train, "--model", "gat", "--plan", "dst-id=1,edge-id=32", "--checkpoint", "gat", "--select", "loss")
    nacre(*train, "--model", "gcn", "--checkpoint", "gcn")
    nacre(*train, "--model", "gcn", "--devices", "cpu:1,cpu:1", "--checkpoint", "gcn-two-devices")
    nacre("report", "gat", "gcn", "gcn-two-devices", "-o", "compared.html")
    return [folder / "gat/report.html", folder / "compared.html"]


def check(page, path, width, axe):
    """Returns what is wrong with a page at this width."""
    problems = []
    page.on("console", lambda message: problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"exception: {error}"))
    page.on("request", lambda request: problems.append(f"request: {request.url[:80]}")
            if not request.url.startswith(("file:", "data:")) else None)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(path.as_uri())
    for details in page.query_selector_all("details"):
        details.evaluate("element => element.open = true")
    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        wide = page.evaluate("[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth"
                             " && !e.closest('.scroll')).slice(0, 3).map(e => e.outerHTML.slice(0, 80))")
        problems.append(f"the page scrolls sideways: {wide}")
    chart = page.query_selector("svg[data-x]")
    chart.focus()
    page.keyboard.press("ArrowLeft")
    if not chart.evaluate("element => element.parentElement.querySelector('.readout').textContent"):
        problems.append("the arrow keys do not move along the curve")
    for finding in axe.run(page).response["violations"]:
        where = finding["nodes"][0]["html"][:120]
        if finding["impact"] in ("serious", "critical"):
            problems.append(f"axe {finding['impact']}: {finding['id']}: {finding['help']}: {where}")
        else:
            print(f"  axe {finding['impact']}: {finding['id']}: {where}")
    return problems


def main():
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        skip("Chromium is not installed")
    try:
        from axe_playwright_python.sync_playwright import Axe
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        skip(f"{error.name} is not installed")
    program = pathlib.Path(sys.argv[1]).resolve()
    pictures = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    found = 0
    with tempfile.TemporaryDirectory() as work, sync_playwright() as play:
        pages = make_pages(program, pathlib.Path(work))
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for path in pages:
            for scheme in ("light", "dark"):
                for width in WIDTHS:
                    page = chromium.new_page(color_scheme=scheme)
                    problems = check(page, path, width, Axe())
                    found += len(problems)
                    name = f"{path.parent.name if path.stem == 'report' else path.stem}-{scheme}-{width}"
                    print(name, "ok" if not problems else problems)
                    if pictures is not None:
                        pictures.mkdir(parents=True, exist_ok=True)
                        page.screenshot(path=pictures / f"{name}.png", full_page=True)
                    page.close()
            print(f"{path.name}: {path.stat().st_size} bytes")
        chromium.close()
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
