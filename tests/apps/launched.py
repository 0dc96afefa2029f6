"""Helps the tests of runs over several devices, as threads and as processes of mpirun."""
import json
import pathlib
import re
import shutil
import subprocess
import time

import cli

MPIRUN = shutil.which("mpirun")
SOON = 10  # seconds after which all processes must have ended


class RankTest(cli.CliTest):
    def environment(self):
        return dict(super().environment(), NACRE_CACHE=str(self.dir / "cache"))

    def metrics(self, run):
        return [json.loads(line) for line in self.read(run + "/metrics.jsonl").splitlines()]

    def train(self, run, *arguments):
        return self.ok("train", "-q", "--json", "--checkpoint", run, *arguments).last_json()

    def same(self, run, other, first=10):
        """Compares two runs: the losses of the first epochs, and the scores of the last one."""
        got, want = self.metrics(run), self.metrics(other)
        self.assertEqual([m["epoch"] for m in got], [m["epoch"] for m in want])
        for a, b in list(zip(got, want))[:first]:
            self.assertLess(abs(a["loss"] - b["loss"]), 1e-5 * abs(b["loss"]), f"{run}, epoch {a['epoch']}")
        for split in ("train", "val", "test"):
            self.assertAlmostEqual(got[-1][split], want[-1][split], delta=0.01, msg=f"{run}, {split}")

    def wait_for_epochs(self, process, run, count):
        """Waits until a run has written a checkpoint and the metrics of some epochs."""
        folder = self.dir / run
        patience = time.monotonic() + 60
        while not ((folder / "metrics.jsonl").exists() and len(self.metrics_so_far(run)) >= count and
                   list(folder.glob("epoch-*/state.json"))):
            self.assertIsNone(process.poll(), self.read("stderr.txt").decode())
            self.assertLess(time.monotonic(), patience)
            time.sleep(0.02)

    def metrics_so_far(self, run):
        return self.read(run + "/metrics.jsonl").splitlines()


class LaunchedTest(RankTest):
    """The base of tests that start processes with mpirun."""

    def setUp(self):
        if MPIRUN is None:
            self.skipTest("mpirun is not installed")
        if cli.SANITIZED or not (pathlib.Path(cli.PROGRAM).parent / "libnacre_mpi.so").exists():
            self.skipTest("this build has no plug-in for MPI, or is built with sanitizers")
        super().setUp()

    def environment(self):
        return dict(super().environment(), TERM="dumb")

    def command(self, ranks, *arguments):
        return [MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), cli.PROGRAM,
                *map(str, arguments)]

    def launch(self, ranks, *arguments):
        return self.launch_command(self.command(ranks, *arguments))

    def launch_unlike(self, settings, *arguments):
        """Starts a process for each entry of `settings`, which are variables of its environment."""
        command = self.command(1, *arguments)
        one = command[command.index("-n"):]
        every = command[:command.index("-n")]
        for i, variables in enumerate(settings):
            every += [":"] * (i > 0) + one[:2]
            for name, value in variables.items():
                every += ["-x", f"{name}={value}"]
            every += one[2:]
        return self.launch_command(every)

    def launch_command(self, command):
        start = time.monotonic()
        done = subprocess.run(command, cwd=self.dir, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        return cli.Result(done.returncode, done.stdout, done.stderr, time.monotonic() - start)

    def launched(self, ranks, *arguments):
        result = self.launch(ranks, *arguments)
        self.assertEqual(result.code, 0, f"{arguments}\n{result}")
        return result

    def start_launched(self, ranks, *arguments):
        """Starts processes, and returns the process of the launcher."""
        self.addCleanup(lambda: process.poll() is None and process.kill())
        with open(self.dir / "stdout.txt", "wb") as out, open(self.dir / "stderr.txt", "wb") as err:
            process = subprocess.Popen(self.command(ranks, *arguments), cwd=self.dir, env=self.environment(),
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        return process

    def processes_of(self, launcher):
        """Returns the ids of the processes that are ranks, by rank, as far as they have started."""
        found = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                rank = re.search(rb"\0OMPI_COMM_WORLD_RANK=(\d+)\0", (folder / "environ").read_bytes())
            except OSError:
                continue
            if parent == launcher.pid and rank:
                found[int(rank[1])] = int(folder.name)
        return found

    def process_of(self, launcher, rank):
        found = self.processes_of(launcher)
        self.assertIn(rank, found, f"rank {rank} has no process")
        return found[rank]

    def errors(self, text):
        """Returns the error lines that the program printed."""
        return [line for line in text.splitlines() if line.startswith("nacre: ")]
