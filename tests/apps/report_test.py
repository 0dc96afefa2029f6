#!/usr/bin/env python3
"""Tests nacre report: every figure on the page is that of a file of the run, the page needs nothing
else, and people can reach everything by keyboard and screen reader."""
import html.parser
import json
import re
import subprocess
import time
import urllib.parse

import cli

TRAIN = ("train", "--data", "twin:cora@0.2", "--layers", 2, "--hidden", 8, "--device", "cpu", "--plan", "off")
# These elements of HTML have no end tag.
VOID = {"meta", "input", "line", "polyline", "circle", "rect", "path", "img"}


class Page(html.parser.HTMLParser):
    """Keeps the figures of a page, and checks that its elements are nested and named well."""

    def __init__(self, text):
        super().__init__()
        self.figures, self.open, self.problems, self.ids, self.links = [], [], [], [], []
        self.headings = []
        self.feed(text)
        self.close()
        if self.open:
            self.problems.append(f"not closed: {self.open}")

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "data":
            self.figures.append((given["value"], given["data-from"]))
        if "id" in given:
            self.ids.append(given["id"])
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name, value in attributes:
            if name in ("src", "href") and not value.startswith(("#", "data:image/svg+xml,")):
                self.problems.append(f"the page needs {value}")
            if name == "href":
                self.links.append(value[1:])
        # The keyboard must reach a chart, but a picture that can be scrolled is reached through the
        # element that scrolls it.
        reached = given.get("tabindex") == "0" or "data-x" not in given
        if tag == "svg" and not (given.get("role") == "img" and given.get("aria-label") and reached):
            self.problems.append("a chart without words, or out of the keyboard's reach")
        if tag == "img" and not given.get("alt"):
            self.problems.append("a picture without words")
        if tag == "th" and "scope" not in given:
            self.problems.append("a heading of a table without scope")

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()}")


class Report(cli.CliTest):
    def page(self, *runs):
        self.ok("report", *runs, "-o", "page.html")
        text = (self.dir / "page.html").read_text()
        self.assertLess(len(text.encode()), 2 << 20)
        page = Page(text)
        self.assertEqual(page.problems, [])
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertLessEqual(set(page.links), set(page.ids))
        self.assertEqual(page.headings[0], 1)
        self.assertTrue(all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:])))
        self.assertNotRegex(text, r"https?://")
        return text, page

    def in_file(self, run, place):
        """Returns the value that a file has at a place such as result.json:test_acc."""
        name, *path = place.split(":")
        if name == "metrics.jsonl":
            line, key = path
            return json.loads((self.dir / run / name).read_text().splitlines()[int(line)])[key]
        value = json.loads((self.dir / run / name).read_text())
        if name == "config.json":
            section, _, key = path[0].partition(".")
            return value.get(section, {}).get(key, "")
        if path[0] == "bill":
            return value["bill"][int(path[1])]["items"][":".join(path[2:])]
        for key in path:
            value = value[int(key)] if isinstance(value, list) else value[key]
        return value

    def check_figures(self, page, runs):
        self.assertGreater(len(page.figures), 50)
        seen = set()
        for value, origin in page.figures:
            number, _, place = origin.partition(":")
            expected = self.in_file(runs[int(number)], place)
            seen.add(place.split(":")[0])
            if isinstance(expected, str):
                self.assertEqual(value, expected, origin)
            elif isinstance(expected, float):
                self.assertEqual(float(value), expected, origin)
            else:
                self.assertEqual(json.loads(value), expected, origin)
        return seen

    def test_every_figure_is_that_of_a_file(self):
        self.ok(*TRAIN, "--model", "gat", "--epochs", 7, "--select", "loss", "--checkpoint", "run")
        text, page = self.page("run")
        self.assertEqual(self.check_figures(page, ["run"]), {"config.json", "plan.json", "metrics.jsonl", "result.json"})
        for title in ("Results", "Curves", "Time", "Memory", "A step", "Kernels", "Epochs", "Settings"):
            self.assertIn(f">{title}</h2>", text)
        self.assertIn("validation loss", text)
        # The points of the curves are those of metrics.jsonl.
        lines = [json.loads(line) for line in (self.dir / "run/metrics.jsonl").read_text().splitlines()]
        points = dict(re.findall(r'data-name="([^"]*)" data-values="([^"]*)"', text))
        for name, key in (("training loss", "loss"), ("test", "test"), ("seconds", "seconds")):
            drawn = [tuple(map(float, pair.split(","))) for pair in points[name].split()]
            self.assertEqual(drawn, [(line["epoch"], line[key]) for line in lines])

    def test_several_runs_side_by_side(self):
        for model in ("gcn", "sage", "mlp"):
            self.ok(*TRAIN, "--model", model, "--epochs", 3, "--checkpoint", f"runs/{model}")
        runs = ["runs/gcn", "runs/sage", "runs/mlp"]
        text, page = self.page(*runs)
        self.check_figures(page, runs)
        self.assertIn("only settings that differ", text.replace("\n", " "))
        differing = re.findall(r'<tr class="differs"><th scope="row">([^<]*)', text)
        self.assertIn("model.model", differing)
        self.assertNotIn("model.layers", differing)

    def test_many_epochs_stay_small(self):
        self.ok(*TRAIN, "--model", "mlp", "--epochs", 2, "--checkpoint", "run")
        lines = [{"epoch": e, "loss": 1 / e, "lr": 0.01, "seconds": 0.123456789012345, "train": 0.5, "val": 0.5,
                  "test": 1 / 3} for e in range(1, 20001)]
        (self.dir / "run/metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        text, page = self.page("run")
        self.check_figures(page, ["run"])
        self.assertIn("of 20,000 epochs", text)
        self.page(*["run"] * 16)

    def test_ranks(self):
        self.ok(*TRAIN[:-4], "--plan", "off", "--model", "gcn", "--epochs", 3, "--devices", "cpu:1,cpu:1",
                "--checkpoint", "run")
        text, page = self.page("run")
        self.check_figures(page, ["run"])
        self.assertIn("rank 1", text)
        self.assertIn("communication", text)

    def test_a_run_that_was_stopped_or_is_old(self):
        self.ok(*TRAIN, "--model", "gcn", "--epochs", 3, "--checkpoint", "run")
        for name in ("result.json", "plan.json", "metrics.jsonl"):
            (self.dir / "run" / name).unlink()
            text, page = self.page("run")
            self.assertIn("Settings", text)
        self.assertNotIn("Curves", text)

    def test_names_cannot_write_html(self):
        self.ok(*TRAIN, "--model", "gcn", "--epochs", 2, "--checkpoint", "run")
        hostile = self.dir / "<script>alert(1)<"
        (self.dir / "run").rename(hostile)
        config = json.loads((hostile / "config.json").read_text())
        config["data"]["data"] = "\"><img src=x onerror=alert(1)>\n"
        (hostile / "config.json").write_text(json.dumps(config))
        text, _ = self.page(hostile.name)
        self.assertNotIn("<img", text)
        self.assertEqual(text.count("<script>"), 1)

    def test_pictures_of_the_plan(self):
        train = [word for word in TRAIN if word not in ("--plan", "off")]
        self.ok(*train, "--plan", "dst-id=1,edge-id=32", "--model", "gat", "--epochs", 3, "--checkpoint", "run")
        text, page = self.page("run")
        self.check_figures(page, ["run"])
        kernels = json.loads((self.dir / "run/plan.json").read_text())["kernels"]
        self.assertEqual(text.count('<rect class="box'), len(kernels))
        self.assertEqual(text.count('<rect class="box once"'), sum(kernel["once"] for kernel in kernels))
        written, links = {}, 0
        for number, kernel in enumerate(kernels):
            links += len({written[value] for value in kernel["reads"] if value in written})
            written.update({value: number for value in kernel["writes"]})
        self.assertEqual(text.count('<path class="link"'), links)
        # The bars of the timeline must be as long as the times in result.json.
        times = [kernel["ms"] for kernel in json.loads((self.dir / "run/result.json").read_text())["kernels"]]
        self.assertEqual([ms is None for ms in times], [kernel["once"] for kernel in kernels])
        widths = [float(width) for width in re.findall(r'<rect class="time" [^>]*width="([\d.]+)"', text)]
        times = [ms for ms in times if ms is not None]
        for width, ms in zip(widths, times, strict=True):
            self.assertAlmostEqual(width, max(1, 560 * ms / sum(times)), delta=0.1)
        picture = urllib.parse.unquote(re.search(r'src="data:image/svg\+xml,([^"]*)"', text)[1])
        self.assertEqual(picture, (self.dir / "run/partition.svg").read_text())

    def test_the_page_of_a_run(self):
        trained = self.ok(*TRAIN, "--model", "gcn", "--epochs", 2, "--checkpoint", "run")
        self.assertEqual(trained.out.splitlines()[-1], "report: run/report.html")
        written = self.read("run/report.html")
        self.ok("report", "run")
        self.assertEqual(self.read("run/report.html"), written)

    def test_open(self):
        self.ok(*TRAIN, "--model", "gcn", "--epochs", 2, "--checkpoint", "run")
        self.write("browser", "#!/bin/sh\necho \"$1\" > seen.tmp; mv seen.tmp seen\n")
        (self.dir / "browser").chmod(0o755)
        command = [cli.PROGRAM, "report", "run", "--open"]
        done = subprocess.run(command, cwd=self.dir, env=dict(self.environment(), BROWSER=str(self.dir / "browser")))
        self.assertEqual(done.returncode, 0)
        for _ in range(100):
            if (self.dir / "seen").exists():
                break
            time.sleep(0.05)
        self.assertEqual((self.dir / "seen").read_text().strip(), str(self.dir / "run/report.html"))
        done = subprocess.run(command, cwd=self.dir, env={"PATH": "/absent"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("set BROWSER", done.stderr)

    def test_wrong_usage(self):
        self.refused("report", "nothing", says="no run folder")
        self.refused("report", says="RUN is missing")
        self.ok(*TRAIN, "--model", "gcn", "--epochs", 2, "--checkpoint", "run")
        self.refused("report", *["run"] * 17, says="at most 16")
        self.refused("report", "run", "-o", "absent/page.html", says="absent")
        self.refused("report", "run", "-o", ".", says=".: ")
        whole = (self.dir / "run/metrics.jsonl").read_text()
        # A run that was killed may leave half of a line.
        (self.dir / "run/metrics.jsonl").write_text(whole + '{"epoch": 3, "lo')
        self.assertEqual(self.ok("report", "run").code, 0)
        (self.dir / "run/metrics.jsonl").write_text('{"epoch": 1}\nnonsense\n')
        self.refused("report", "run", says="line 2")
        self.ok(*TRAIN, "--model", "gcn", "--epochs", 2, "--checkpoint", "second")
        self.ok("report", "second")
        self.assertTrue((self.dir / "second/report.html").exists())


if __name__ == "__main__":
    cli.main()
