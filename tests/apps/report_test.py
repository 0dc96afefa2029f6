#!/usr/bin/env python3
"""Tests nacre report: every figure on the page is that of a file of the run, the page needs nothing
else, and people can reach everything by keyboard and screen reader."""
import html
import html.parser
import itertools
import json
import math
import re
import shutil
import subprocess
import time
import urllib.parse

import cli
import recommend_test

TRAIN = ("train", "--data", "twin:cora@0.2", "--layers", 2, "--hidden", 8, "--device", "cpu", "--plan", "off")
# These elements of HTML have no end tag.
VOID = {"meta", "input", "line", "polyline", "circle", "rect", "path", "img"}
MOST_BYTES = 2_000_000
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
BAR = re.compile(r'<dt>([^<]*)</dt><dd><span class="bar" role="img" aria-label="([^"]*)">(.*?)</span> '
                 r'<data value="([^"]*)" data-from="([^"]*)">[^<]*</data></dd>')
PART = re.compile(r'<data class="part c\d" style="width:([\d.]+)%" value="([^"]*)" data-from="([^"]*)" '
                  r'title="([^"]*)"></data>')


def walk(value, path):
    """Returns the values at a path of keys and numbers; * stands for all of them."""
    if not path:
        return [value]
    if path[0] == "*":
        inside = value.values() if isinstance(value, dict) else value
        return [found for each in inside for found in walk(each, path[1:])]
    if isinstance(value, list):
        return walk(value[int(path[0])], path[1:])
    return walk(value[path[0]], path[1:]) if path[0] in value else []


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def picture_of(text, caption):
    """Returns the figure whose caption holds these words."""
    figures = [figure for figure in re.findall(r'<figure class="picture">.*?</figure>', text, re.S)
               if caption in figure.partition("</figcaption>")[0]]
    assert len(figures) == 1, (caption, len(figures))
    return figures[0]


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
            # A part of a bar has its text in the title, behind its name.
            self.figures.append([given["value"], given["data-from"], given.get("title", "").rpartition(": ")[2]])
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

    def handle_data(self, data):
        if self.open and self.open[-1] == "data":
            self.figures[-1][2] += data

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()}")


class Report(cli.CliTest):
    def page(self, *runs):
        self.ok("report", *runs, "-o", "page.html")
        text = (self.dir / "page.html").read_text()
        self.assertLess(len(text.encode()), MOST_BYTES)
        page = Page(text)
        self.assertEqual(page.problems, [])
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertLessEqual(set(page.links), set(page.ids))
        self.assertEqual(page.headings[0], 1)
        self.assertTrue(all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:])))
        self.assertNotRegex(text, r"https?://")
        return text, page

    def in_file(self, run, name):
        text = (self.dir / run / name).read_text()
        return [json.loads(line) for line in text.splitlines()] if name.endswith(".jsonl") else json.loads(text)

    def values_at(self, files, place):
        """Returns the values that a file has at a place such as result.json:test_acc."""
        name, *path = place.split(":")
        if name == "config.json":
            section, _, key = path[0].partition(".")
            return [files[name].get(section, {}).get(key, "")]
        if path[0] == "bill":
            path = ["bill", path[1], "items", ":".join(path[2:])]
        return walk(files[name], path)

    def expected(self, files, place):
        """Returns the value of a place, of the sum of its values (*), or of several places, and
        whether it is such a sum."""
        places = re.split(r" (plus|minus) ", place)
        if len(places) == 1 and "*" not in place:
            return self.values_at(files, place)[0], False
        signs = [1] + [1 if word == "plus" else -1 for word in places[1::2]]
        values = [sum(value or 0 for value in self.values_at(files, part)) for part in places[0::2]]
        return sum(sign * value for sign, value in zip(signs, values, strict=True)), True

    def check_text(self, value, text, place):
        """Checks that a figure says its value: in a unit, rounded, or as it is."""
        quantity = re.fullmatch(r"(\d+(?:\.(\d+))?) (\w+)", text)
        if quantity and quantity[3] in UNITS and number(value) is not None:
            key = place.rpartition(":")[2]
            whole = float(value) * (1e-3 if "ms" in key.split("_") else 2**20 if key.endswith("_mb") else 1)
            digit = UNITS[quantity[3]] / 10 ** len(quantity[2] or "")
            self.assertAlmostEqual(float(quantity[1]) * UNITS[quantity[3]], whole, delta=0.501 * digit, msg=place)
        elif long := re.fullmatch(r"(?:(\d+) h )?(\d+) min(?: (\d+) s)?", text):
            hours, minutes, seconds = (int(part or 0) for part in long.groups())
            self.assertAlmostEqual(3600 * hours + 60 * minutes + seconds, float(value), delta=0.51 if long[3] else 60,
                                   msg=place)
        elif number(value) is not None and text != value:
            self.assertIsNotNone(number(text), (place, text, value))
            self.assertTrue(math.isclose(number(text), number(value), rel_tol=5.1e-4), (place, text, value))
        else:
            self.assertEqual(text, value, place)

    def check_figures(self, page, runs):
        """Checks that every figure is the one of a file, and that its text says it; returns the
        names of the files."""
        self.assertGreater(len(page.figures), 50)
        names = ("config.json", "plan.json", "metrics.jsonl", "result.json")
        files = [{name: self.in_file(run, name) for name in names} for run in runs]
        seen = set()
        for value, origin, text in page.figures:
            run, _, place = origin.partition(":")
            expected, is_sum = self.expected(files[int(run)], place)
            seen.add(place.split(":")[0])
            if is_sum:
                self.assertTrue(math.isclose(float(value), expected, rel_tol=1e-9, abs_tol=1e-9), origin)
            elif isinstance(expected, str):
                self.assertEqual(value, expected, origin)
            elif isinstance(expected, float):
                self.assertEqual(float(value), expected, origin)
            else:
                self.assertEqual(json.loads(value), expected, origin)
            self.check_text(value, text, place)
        return seen

    def check_bars(self, text, runs):
        """Checks that bars are as long as their figures say, that none of them is missing, and that
        screen readers are told the same. check_figures() compares the figures with the files."""
        found = set()
        for figure in re.findall(r'<figure class="bars">.*?</figure>', text, re.S):
            bars = BAR.findall(figure)
            self.assertEqual(len(bars), figure.count("<dt>"))
            longest = max(float(bar[3]) for bar in bars)
            for _, words, inside, total, _ in bars:
                parts = PART.findall(inside)
                self.assertEqual(len(parts), inside.count("<data"))
                values = [float(value) for _, value, _, _ in parts]
                self.assertTrue(math.isclose(sum(values), float(total), rel_tol=1e-9))
                for width, value, origin, title in parts:
                    self.assertAlmostEqual(float(width), 100 * float(value) / longest, delta=0.001)
                    self.assertIn(title.replace(": ", " "), words)
                    found.add(html.unescape(origin))
        wanted = set()
        for number, run in enumerate(runs):
            for p, phase in enumerate(self.in_file(run, "result.json")["bill"]):
                wanted |= {f"{number}:result.json:bill:{p}:{what}" for what, size in phase["items"].items() if size > 0}
            lines = self.in_file(run, "metrics.jsonl")
            wanted.add(f"{number}:metrics.jsonl:*:seconds")
            for r, _ in enumerate(lines[0].get("ranks", [])):
                wanted |= {f"{number}:metrics.jsonl:*:ranks:{r}:{key}"
                           for key in ("computing_s", "communication_s", "waiting_s")
                           if sum(line["ranks"][r][key] for line in lines) > 0}
        self.assertLessEqual(wanted, found)
        others = {origin.partition(":")[2] for origin in found - wanted}
        self.assertLessEqual(others, {"result.json:plan_s", "result.json:seconds minus metrics.jsonl:*:seconds"})

    def test_every_figure_is_that_of_a_file(self):
        self.ok(*TRAIN, "--model", "gat", "--epochs", 7, "--select", "loss", "--checkpoint", "run")
        text, page = self.page("run")
        self.assertEqual(self.check_figures(page, ["run"]),
                         {"config.json", "plan.json", "metrics.jsonl", "result.json"})
        for title in ("Results", "Curves", "Time", "Memory", "A step", "Kernels", "Epochs", "Settings"):
            self.assertIn(f">{title}</h2>", text)
        self.assertIn("validation loss", text)
        self.check_bars(text, ["run"])
        # The marks of the axes have room at the left of the curves; a digit is 8 pixels wide.
        for x, mark in re.findall(r'<text class="mark" x="([\d.]+)" y="[\d.]+" text-anchor="end">([^<]*)<', text):
            self.assertLessEqual(8 * len(mark), float(x), mark)
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
        self.check_bars(text, runs)
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
        self.check_bars(text, ["run"])
        self.assertIn("rank 1", text)
        self.assertIn("communication", text)
        self.assertIn("There is no timeline of a step, because kernels are timed only in runs that", text)

    def test_many_ranks(self):
        self.ok(*TRAIN, "--model", "gcn", "--epochs", 2, "--checkpoint", "run")
        ranks = [{"computing_s": 0.5 / (r + 1), "communication_s": 0.25, "waiting_s": r / 64} for r in range(64)]
        lines = self.in_file("run", "metrics.jsonl")
        self.write("run/metrics.jsonl", "".join(json.dumps(dict(line, ranks=ranks)) + "\n" for line in lines))
        text, page = self.page("run")
        self.check_figures(page, ["run"])
        self.check_bars(text, ["run"])
        text, page = self.page("run", "run", "run", "run")
        self.check_figures(page, ["run"] * 4)
        self.assertIn("run: the first 32 of 64 ranks; metrics.jsonl has them all", text)

    def test_a_run_that_was_stopped_or_is_old(self):
        self.ok(*TRAIN, "--model", "gcn", "--epochs", 3, "--checkpoint", "run")
        for name in ("result.json", "plan.json", "metrics.jsonl"):
            (self.dir / "run" / name).unlink()
            text, page = self.page("run")
            self.assertIn("Settings", text)
            reason = "the run folder has no plan.json" if name != "result.json" else "result.json is missing"
            self.assertIn(reason, text)
        self.assertNotIn("Curves", text)

    def test_a_run_without_a_timeline_says_what_to_do(self):
        self.ok(*TRAIN, "--model", "gcn", "--epochs", 2, "--mode", "minibatch", "--batch-size", 64, "--checkpoint",
                "run")
        text, _ = self.page("run")
        self.assertNotIn('class="time"', text)
        self.assertIn("There is no timeline of a step, because kernels are timed only in runs that train a node "
                      "classifier on the whole graph on one CPU. To see when each part of another run works, add "
                      "--trace FILE to nacre train and open the file in Perfetto", text)

    def test_recommenders(self):
        self.write("tastes.npz", recommend_test.tastes_npz(*recommend_test.tastes()))
        trained = self.ok("train", "--data", "tastes.npz", "--model", "lightgcn", *recommend_test.COMMON, "--epochs", 5,
                          "--metric", "recall@8", "--checkpoint", "run")
        self.assertEqual(trained.out.splitlines()[-2:], ["run folder: run", "report: run/report.html"])
        text, page = self.page("run")
        self.assertEqual((self.dir / "run/report.html").read_text(), text)
        self.check_figures(page, ["run"])
        self.check_bars(text, ["run"])
        places = {origin for _, origin, _ in page.figures}
        self.assertLessEqual({f"0:result.json:{key}" for key in ("test", "last_recall", "last_ndcg", "users")}, places)
        self.assertIn("<figcaption>recall@8</figcaption>", text)
        points = dict(re.findall(r'data-name="([^"]*)" data-values="([^"]*)"', text))
        for name, key in (("training loss", "loss"), ("test", "test")):
            drawn = [tuple(map(float, pair.split(","))) for pair in points[name].split()]
            self.assertEqual(drawn, [(line["epoch"], line[key]) for line in self.in_file("run", "metrics.jsonl")])
        # With --json, stdout has the JSON alone, and the fields of the page are not among it.
        printed = self.ok("train", "--data", "tastes.npz", "--model", "lightgcn", *recommend_test.COMMON, "--epochs", 1,
                          "--json", "--checkpoint", "other").last_json()
        self.assertNotIn("bill", printed)
        self.assertTrue((self.dir / "other/report.html").exists())

    def test_many_deep_runs_stay_small(self):
        train = [word for word in TRAIN if word not in ("--plan", "off")]
        self.ok(*train, "--layers", 24, "--plan", "dst-id=1,edge-id=32", "--model", "gat", "--epochs", 2,
                "--checkpoint", "run")
        alone, _ = self.page("run")
        for caption in ("the partition", "timeline of a step", "the kernels of a step", "(DFG)"):
            picture_of(alone, caption)
        # Every run has all there is: long tables, many ranks, and a picture that grows threefold in
        # the page.
        ranks = [{"computing_s": r / 7, "communication_s": r / 9, "waiting_s": 1 / (r + 1)} for r in range(64)]
        lines = [{"epoch": e, "loss": 1 / e, "lr": 1 / 3e3, "seconds": 1 / 7, "train": 1 / 3, "val": 2 / 3,
                  "test": 1 / 7, "val_loss": 10 / 3, "ranks": ranks} for e in range(1, 501)]
        self.write("run/metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self.write("run/partition.svg", "<svg><!--" + '"' * 490_000 + "--></svg>")
        runs = [f"deep-{number}" for number in range(16)]
        for run in runs:
            shutil.copytree(self.dir / "run", self.dir / run)
        for count in (1, 2, 16):
            text, page = self.page(*runs[:count])
            self.check_figures(page, runs[:count])
            self.assertRegex(text, "Left out, because the page would become too large: [^.]*the partition")
            timelines = len(re.findall("<figcaption>[^<]*timeline of a step, ", text))
            if count < 16:
                self.assertEqual(timelines, count)
            else:
                self.assertLess(timelines, count)
        self.assertIn("nacre report deep-15.", text)

    def test_printed_pages_are_not_cut(self):
        """Paper does not scroll, so pictures must shrink and cells must wrap. browser_check.py
        measures the printed page where Chromium is installed."""
        self.ok(*TRAIN, "--model", "gcn", "--epochs", 2, "--checkpoint", "run")
        text, _ = self.page("run")
        rules = text[text.index("@media print"):text.index("</style>")]
        self.assertRegex(rules, r"\.scroll[^{}]*\{[^}]*overflow: visible")
        self.assertRegex(rules, r"\.picture svg \{[^}]*max-width: 100%")
        self.assertRegex(rules, r"th, td[^{}]*\{[^}]*white-space: normal; overflow-wrap: anywhere")

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

    def train_with_pictures(self):
        """Trains a run that has all pictures; returns its page and its plan."""
        train = [word for word in TRAIN if word not in ("--plan", "off")]
        self.ok(*train, "--plan", "dst-id=1,edge-id=32", "--model", "gat", "--epochs", 3, "--checkpoint", "run")
        text, page = self.page("run")
        self.check_figures(page, ["run"])
        return text, self.in_file("run", "plan.json")

    def test_pictures_of_the_plan(self):
        text, plan = self.train_with_pictures()
        kernels, graph = plan["kernels"], picture_of(text, "the kernels of a step")
        self.assertEqual(graph.count('<rect class="box'), len(kernels))
        self.assertEqual(graph.count('<rect class="box once"'), sum(kernel["once"] for kernel in kernels))
        written, links = {}, 0
        for number, kernel in enumerate(kernels):
            links += len({written[value] for value in kernel["reads"] if value in written})
            written.update({value: number for value in kernel["writes"]})
        self.assertEqual(graph.count('<path class="link"'), links)
        picture = urllib.parse.unquote(re.search(r'src="data:image/svg\+xml,([^"]*)"', text)[1])
        self.assertEqual(picture, (self.dir / "run/partition.svg").read_text())

    def test_the_timeline(self):
        self.train_with_pictures()
        # Some floors are unknown, and some are above the measured time.
        result = self.in_file("run", "result.json")
        shares = itertools.cycle((0.5, None, 2, 0))
        for kernel in result["kernels"]:
            share = next(shares)
            kernel["floor_ms"] = None if share is None else share * (kernel["ms"] or 1)
        self.write("run/result.json", json.dumps(result))
        text, page = self.page("run")
        self.check_figures(page, ["run"])
        kernels = self.in_file("run", "plan.json")["kernels"]
        self.assertEqual([kernel["ms"] is None for kernel in result["kernels"]], [kernel["once"] for kernel in kernels])
        timed = [(n, k["ms"], k["floor_ms"]) for n, k in enumerate(result["kernels"]) if k["ms"] is not None]
        timeline = picture_of(text, "timeline of a step")
        rows = re.findall(r"<g>(.*?)</g><text[^>]*>([^<]*)</text>", timeline)
        whole, begin = sum(ms for _, ms, _ in timed), 0
        for (row, label), (number, ms, floor) in zip(rows, timed, strict=True):
            title = re.search(r"<title>(\d+) [^:<]*: ([^,<]*)(?:, at least ([^<]*))?</title>", row)
            self.assertEqual((int(title[1]), title[2]), (number, label))
            self.check_text(str(ms), label, "ms")
            self.assertEqual(title[3] is None, floor is None)
            if floor is not None:
                self.check_text(str(floor), title[3], "ms")
            bars = re.findall(r'<rect class="(\w+)" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', row)
            wanted = [("time", 210 + 560 * begin / whole, max(1, 560 * ms / whole))]
            wanted += [("floor", 210 + 560 * begin / whole, 560 * min(floor, ms) / whole)] if floor else []
            for bar, (kind, x, width) in zip(bars, wanted, strict=True):
                self.assertEqual(bar[0], kind)
                self.assertAlmostEqual(float(bar[1]), x, delta=0.1)
                self.assertAlmostEqual(float(bar[2]), width, delta=0.1)
            begin += ms
        caption = re.search(r"step, (\d+) kernels in ([^;<]*); the sum of their floors is ([^<]*)</fig", timeline)
        self.assertEqual(int(caption[1]), len(timed))
        self.check_text(str(whole), caption[2], "ms")
        self.check_text(str(sum(floor or 0 for _, _, floor in timed)), caption[3], "ms")

    def test_the_picture_of_the_dfg(self):
        text, plan = self.train_with_pictures()
        lines = [line for line in plan["dfg"].splitlines() if line.startswith("%")]
        inputs = [sorted({int(n) for n in re.findall(r"%(\d+)", line.partition(" = ")[2].partition(" : ")[0])})
                  for line in lines]
        # A kernel computes the operations that it lists, and those that no kernel lists but that
        # lie between the values that it reads and its own.
        owners = [[k for k, kernel in enumerate(plan["kernels"]) if n in kernel["nodes"]] for n in range(len(lines))]
        listed = [bool(owner) for owner in owners]
        for k, kernel in enumerate(plan["kernels"]):
            seen, left = set(kernel["reads"]), list(kernel["nodes"])
            while left:
                for n in inputs[left.pop()]:
                    if n not in seen and not listed[n] and inputs[n]:
                        seen.add(n)
                        left.append(n)
                        owners[n].append(k)
        self.assertTrue(all(owner or not inputs[n] for n, owner in enumerate(owners)))
        words = [line + (f"  # kernel{'s' * (len(owner) > 1)} {', '.join(map(str, owner))}" if owner else "")
                 for line, owner in zip(lines, owners, strict=True)]
        picture = picture_of(text, "(DFG)")
        self.assertEqual([html.unescape(title) for title in re.findall(r"<title>([^<]*)</title>", picture)], words)
        self.assertEqual(html.unescape(re.search(r'<pre class="dfg">([^<]*)</pre>', picture)[1]).splitlines(), words)
        self.assertEqual([int(colour) for colour in re.findall(r'<rect class="own c(\d)"', picture)],
                         [owner[0] % 8 for owner in owners if owner])
        self.assertEqual(picture.count('<path class="link"'), sum(map(len, inputs)))
        self.assertIn(">%2 matmul<", picture)
        self.assertRegex(picture, r">%1 layers\.0\.lin\.weight<.*?>param p\[1433,8\]<")
        # Boxes do not cover one another, and lines lead downwards.
        places = re.findall(r'<rect class="box" x="(\d+)" y="(\d+)"', picture)
        self.assertEqual(len(set(places)), len(lines))
        for n, read in enumerate(inputs):
            self.assertTrue(all(int(places[m][1]) < int(places[n][1]) for m in read), lines[n])
        # A damaged text of the DFG gives a page, too.
        for damaged in ("%0 = input : v0[2] name=x\n%1 = relu(%7, %0, %99999999999) : v0[2]\n%1 = add(%1\n%x = y\n",
                        "%5 = ", "% = ", "%3 = )(%3 : ", ""):
            self.write("run/plan.json", json.dumps(dict(plan, dfg=damaged)))
            self.page("run")

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
