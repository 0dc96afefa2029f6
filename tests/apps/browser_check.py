#!/usr/bin/env python3
"""Opens the pages of nacre report in headless Chromium, at three widths, light and dark: there must
be no message of the console, no request, no sideways scrolling of the page, and no serious finding
of axe-core. The arrow keys must move along a curve. Printed on A4, no part of a page may lie beside
the paper.

    make browser-check [PICTURES=FOLDER FOR SCREENSHOTS AND PRINTED PAGES]

Not part of `make test`: it needs Chromium (Debian: chromium) and, from PyPI, playwright and
axe-playwright-python. It skips, with a reason, where one of them is missing.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (400, 1280, 1920)
# A4 between margins of 1 cm, in CSS pixels.
PAPER = {"width": 718, "height": 1047}
NEEDS = "the check needs Chromium (apt-get install chromium) and pip install playwright axe-playwright-python"
# Returns what lies beside the paper or is hidden in a box that would have to be scrolled.
CUT = """() => {
  const width = document.documentElement.clientWidth;
  const cut = element => {
    const box = element.getBoundingClientRect();
    if (box.width === 0 || element.closest('script, style, title')) return false;
    const scrolls = getComputedStyle(element).overflowX !== 'visible' && !(element instanceof SVGElement);
    return box.left < -1 || box.right > width + 1 || (scrolls && element.scrollWidth > element.clientWidth + 1);
  };
  return [...document.querySelectorAll('body *')].filter(cut).map(element => element.outerHTML.slice(0, 100));
}"""


def skip(why):
    print(f"browser_check: skipped: {why}; {NEEDS}")
    sys.exit(0)


def make_pages(program, folder):
    """Trains small runs; returns the pages of some of them, one page that compares three, and one
    that compares as many as fit."""
    def nacre(*arguments):
        subprocess.run([program, *map(str, arguments)], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    train = ("train", "--data", "twin:cora", "--layers", 2, "--hidden", 16, "--epochs", 30, "-q")
    nacre(*train, "--model", "gat", "--plan", "dst-id=1,edge-id=32", "--checkpoint", "gat", "--select", "loss")
    nacre(*train, "--model", "gcn", "--checkpoint", "gcn")
    nacre(*train, "--model", "gcn", "--devices", "cpu:1,cpu:1", "--checkpoint", "gcn-two-devices")
    nacre("report", "gat", "gcn", "gcn-two-devices", "-o", "compared.html")
    deep = [word if word != 2 else 12 for word in train]
    nacre(*deep, "--model", "gat", "--checkpoint", "a-deep-one")
    nacre("report", *["gat", "gcn", "gcn-two-devices", "a-deep-one"] * 4, "-o", "many.html")
    return [folder / name for name in ("gat/report.html", "a-deep-one/report.html", "compared.html", "many.html")]


def open_page(page, path):
    """Opens a page with everything that is folded away."""
    page.goto(path.as_uri())
    for details in page.query_selector_all("details"):
        details.evaluate("element => element.open = true")


def check_print(page, path):
    """Returns what is wrong with a printed page; it stays in the state in which it is printed."""
    page.set_viewport_size(PAPER)
    page.emulate_media(media="print")
    open_page(page, path)
    return [f"cut off on paper: {what}" for what in page.evaluate(CUT)[:5]]


def check(page, path, width, axe):
    """Returns what is wrong with a page at this width."""
    problems = []
    page.on("console", lambda message: problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"exception: {error}"))
    page.on("request", lambda request: problems.append(f"request: {request.url[:80]}")
            if not request.url.startswith(("file:", "data:")) else None)
    page.set_viewport_size({"width": width, "height": 900})
    open_page(page, path)
    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        wide = page.evaluate("[...document.querySelectorAll('body *')].filter(e => "
                             "e.getBoundingClientRect().right > innerWidth && !e.closest('.scroll'))"
                             ".slice(0, 3).map(e => e.outerHTML.slice(0, 80))")
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
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
    found = 0
    with tempfile.TemporaryDirectory() as work, sync_playwright() as play:
        pages = make_pages(program, pathlib.Path(work))
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for path in pages:
            name = path.parent.name if path.stem == "report" else path.stem
            for scheme in ("light", "dark"):
                for width in WIDTHS:
                    page = chromium.new_page(color_scheme=scheme)
                    problems = check(page, path, width, Axe())
                    found += len(problems)
                    print(f"{name}, {scheme}, {width} px:", "ok" if not problems else problems)
                    if pictures is not None:
                        page.screenshot(path=pictures / f"{name}-{scheme}-{width}.png", full_page=True)
                    page.close()
            page = chromium.new_page()
            problems = check_print(page, path)
            found += len(problems)
            print(f"{name}, printed:", "ok" if not problems else problems)
            if pictures is not None:
                page.pdf(path=pictures / f"{name}.pdf", format="A4",
                         margin={side: "1cm" for side in ("top", "right", "bottom", "left")})
            page.close()
            print(f"{name}: {path.stat().st_size} bytes")
        chromium.close()
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
