#!/usr/bin/env python3
"""The comparison with peers on a GPU (bench/peers/gpu.py), with measurements made up here.
SCRIPT PROGRAM SOURCE_ROOT"""
import contextlib
import io
import json
import pathlib
import sys
import unittest.mock

import cli

# Appends its cells as nacre bench gpu does, and dies on the graph called reddit.
NACRE = """#!/usr/bin/env python3
import json, os, sys
argument = lambda name: sys.argv[sys.argv.index(name) + 1]
assert os.path.getsize(argument("--data")) == 3
if argument("--name") == "reddit":
    sys.exit(3)
with open(argument("--out"), "a") as file:
    for model in argument("--models").split(","):
        line = {"kind": "epoch", "model": model, "data": argument("--name"), "epoch_ms": 2.0, "p10": 1.9, "p90": 2.1,
                "peak_mb": 100.0, "first_losses": [1.5, 1.25], "hidden": argument("--hidden")}
        print(json.dumps(line), file=file)
"""


class Worker:
    """Stands in for the measuring process. GAT's eager steps run out of memory, and the expert
    takes three times as long as nacre."""

    def __init__(self, out):
        self.out, self.about, self.jobs, self.opened, self.seconds = out, {"torch": "none"}, [], [], 1e6

    def open(self, source):
        self.opened.append((source["shape"], source["hidden"]))

    def ask(self, job):
        lines = self.out.read_text().splitlines() if self.out.exists() else []
        reported = sum("its eager step has failed" not in line for line in lines)
        assert reported == len(self.jobs), "a result is in the file before the next job begins"
        self.jobs.append((self.opened[-1][0], *(job.get(key) for key in ("kind", "model", "path"))))
        self.seconds -= 1
        if self.seconds < 0:
            return {"error": "no time left"}
        if job["kind"] == "write":
            pathlib.Path(job["to"]).write_text("npz")
            return {"bytes": 3}
        if job["model"] == "gat":
            return {"error": "out of memory"}
        ms = {"edge_index": 20.0, "sparse": 16.0, "expert": 6.0, "tuned": 8.0, "compile@sparse": 12.0}
        return {"epoch_ms": ms.get(job["path"], 30.0), "peak_mb": 400.0, "first_losses": [1.5, 1.25]}


class Peers(cli.CliTest):
    def setUp(self):
        super().setUp()
        sys.path.insert(0, str(pathlib.Path(SOURCE_ROOT) / "bench" / "peers"))
        self.addCleanup(sys.path.pop, 0)
        import gpu
        import gpu_table

        self.gpu, self.table = gpu, gpu_table
        self.program = self.dir / "nacre"
        self.program.write_text(NACRE)
        self.program.chmod(0o755)
        self.worker = Worker(self.dir / "peers.jsonl")

    def compare(self, *arguments):
        """Returns what the command prints, and the lines of the peers."""
        argv = ["gpu.py", "--nacre", self.program, "--out", self.worker.out, "--nacre-out", self.dir / "nacre.jsonl",
                "--folder", self.dir, *arguments]
        self.worker.stop = lambda: None
        made = unittest.mock.patch.object(self.gpu, "Worker", lambda argv, timeout, left: self.worker)
        out = io.StringIO()
        with made, unittest.mock.patch.object(sys, "argv", [str(a) for a in argv]), contextlib.redirect_stdout(out):
            with contextlib.redirect_stderr(io.StringIO()) as err, self.assertRaises(SystemExit) as end:
                self.gpu.main()
        self.status, self.err = end.exception.code, err.getvalue()
        return out.getvalue(), [json.loads(line) for line in self.worker.out.read_text().splitlines()]

    def test_one_command_compares_everything(self):
        out, lines = self.compare("--models", "gcn,gat,rgcn", "--shape", "cora,arxiv,reddit")
        self.assertEqual(self.status, 0)
        self.assertEqual(self.worker.opened, [("cora", 64), ("arxiv", 256), ("reddit", 256), ("arxiv", 256)])
        cell = lambda name, model, *paths: [(name, "epoch", model, path) for path in paths]
        whole = lambda name: [(name, "write", None, None), *cell(name, "gcn", "edge_index", "sparse", "expert", "tuned"),
                              *cell(name, "gat", "edge_index", "sparse"), *cell(name, "rgcn", "edge_index", "sparse")]
        late = [*cell("arxiv", "gcn", "compile@sparse", "reduce-overhead@sparse", "compile@edge_index",
                      "reduce-overhead@edge_index"),
                *cell("arxiv", "rgcn", "compile@edge_index", "reduce-overhead@edge_index")]
        self.assertEqual(self.worker.jobs, [*whole("cora"), *whole("arxiv"), *whole("reddit"), *late])
        self.assertEqual([p for p in self.dir.iterdir() if p.name.startswith("nacre-peers-")], [])
        errors = {(r["data"], r["model"], r["path"]): r["error"] for r in lines if "error" in r}
        self.assertEqual(errors["cora", "gat", "edge_index"], "out of memory")
        self.assertEqual(errors["cora", "gat", "expert@edge_index"], "its eager step has failed")
        self.assertIn("nacre on reddit: it ended with status 3", self.err)
        rows = [[c.strip() for c in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("| gcn")]
        self.assertEqual([rows[0][i] for i in (1, 5, 9, 10, 11, 12, 13)],
                         ["cora", "8.00", "3.00", "0.25", "0.25", "0e+00", "0e+00"])
        self.assertEqual(rows[1][4:6], ["12 (0.39) compile@sparse", "6.00"])
        self.assertEqual(rows[2][2], "–")
        self.assertIn("geometric mean over the expert at least 1.5: 3.00 over 2 cells, smallest 3.00", out)
        self.assertIn("gat edge_index on reddit: out of memory", out)

    def test_what_is_cut_off_is_said(self):
        self.worker.seconds = 3
        out, lines = self.compare("--models", "gcn", "--shape", "cora", "--compiled", "none")
        self.assertEqual([r.get("error") for r in lines], [None, None, None, "no time left", "no time left"])
        self.assertIn("gcn tuned on cora: no time left", out)
        self.assertIn("| gcn | cora | 2 (0.10) |", out)

    def test_settings_nacre_does_not_share_are_refused(self):
        self.worker.out.write_text("")
        self.compare("--seed", 3)
        self.assertEqual(self.status, 2)
        self.assertIn("--nacre has weights", self.err)
        self.assertEqual(self.worker.jobs, [])

    def test_a_worker_that_dies_is_replaced(self):
        script = self.dir / "worker.py"
        script.write_text("import json, sys\nprint('{}', flush=True)\nfor line in sys.stdin:\n"
                          "    job = json.loads(line)\n    if job['kind'] == 'die': sys.exit(7)\n"
                          "    print(json.dumps({'seen': job['kind']}), flush=True)\n")
        with unittest.mock.patch.object(self.gpu, "__file__", str(script)):
            worker = self.gpu.Worker([], 20, lambda: 100)
            self.addCleanup(worker.stop)
            worker.open({"kind": "open"})
            self.assertEqual(worker.ask({"kind": "epoch", "how": "eager"}), {"seen": "epoch"})
            self.assertIn("status 7", worker.ask({"kind": "die"})["error"])
            self.assertEqual(worker.ask({"kind": "epoch", "how": "eager"}), {"seen": "epoch"})
            worker.stop()
            worker.left = lambda: 0
            self.assertEqual(worker.ask({"kind": "epoch"}), {"error": "no time left"})


class Partition(cli.CliTest):
    """Tests bench/peers/partition.py, which needs gpmetis and numpy."""

    def test_cut_beside_metis(self):
        script = pathlib.Path(SOURCE_ROOT) / "bench" / "peers" / "partition.py"
        for python in ("/usr/bin/python3", sys.executable):
            has = cli.subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False)
            if has.returncode == 0:
                break
        done = cli.subprocess.run([python, script, "--nacre", cli.PROGRAM, "--data", "twin:cora@0.5", "--shares", "1,2"],
                                  env=self.environment(), capture_output=True, text=True, timeout=60, check=False)
        if "skipped" in done.stderr:
            self.assertEqual(done.returncode, 0, done.stderr)
            self.skipTest(done.stderr.strip())
        self.assertRegex(done.stdout, r"\| twin:cora@0.5 \| 1,2 \| [\d.]+ % \| [\d.]+ % \| [\d.]+ \|", done.stderr)
        row = json.loads([line for line in done.stderr.splitlines() if line.startswith("{")][-1])
        self.assertLess(row["ratio"], 1.3)
        self.assertLess(row["nacre_off"], 0.031)


if __name__ == "__main__":
    SOURCE_ROOT = sys.argv.pop(2)
    cli.main()
