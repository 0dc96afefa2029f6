#!/usr/bin/env python3
"""Tests nacre report: every figure on the page is that of a file of the run, the page needs nothing
else, and people can reach everything by keyboard and screen reader."""
import html.parser
import json
import re
import unittest

import cli

TRAIN = ("train", "--data", "twin:cora@0.2", "--layers", 2, "--hidden", 8, "--device", "cpu", "--plan", "off")
# These elements of HTML have no end tag.
VOID = {"meta", "input", "line", "polyline", "circle"}


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
            if name in ("src", "href") and not value.startswith("#"):
                self.problems.append(f"the page needs {value}")
            if name == "href":
                self.links.append(value[1:])
        if tag == "svg" and not (given.get("role") == "img" and given.get("aria-label") and given.get("tabindex") == "0"):
            self.problems.append("a chart without words, or out of the keyboard's reach")
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
        for title in ("Results", "Curves", "Time", "Memory", "Kernels", "Epochs", "Settings"):
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

    def test_wrong_usage(self):
        self.refused("report", "nothing", says="no run folder")
        self.refused("report", says="RUN is missing")
        self.ok(*TRAIN, "--model", "gcn", "--epochs", 2, "--checkpoint", "run")
        self.refused("report", *["run"] * 17, says="at most 16")
        self.refused("report", "run", "-o", "absent/page.html", says="absent")
        (self.dir / "run/metrics.jsonl").write_text('{"epoch": 1}\nnonsense\n')
        self.refused("report", "run", says="line 2")
        self.ok(*TRAIN, "--model", "gcn", "--epochs", 2, "--checkpoint", "second")
        self.ok("report", "second")
        self.assertTrue((self.dir / "second/report.html").exists())


if __name__ == "__main__":
    cli.main()
