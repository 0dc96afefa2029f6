#!/usr/bin/env python3
"""Kills, stops and confuses ranks that are processes, and expects that all of them end in time
with one message that names the rank.

  python3 tests/cluster/mpi_faults_test.py $(which mpirun) build/release/mpi_worker -v
"""
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest

MPIRUN, WORKER = sys.argv[1:3]
RANKS = 4
SOON = 10  # seconds after which all processes must have ended, beside the timeout of the ranks
# How often a random rank is killed or stopped at a random time.
REPEATS = int(os.environ.get("NACRE_FAULT_REPEATS", "1"))


def exists(process):
    """Returns whether a process is there and has not ended yet."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Run:
    """Four ranks that make calls until they have made STEPS of them."""

    def __init__(self, timeout, steps, what=(), launcher=()):
        self.began = time.monotonic()
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.process = subprocess.Popen(
            [MPIRUN, "-n", str(RANKS), "--oversubscribe", "--bind-to", "none", *launcher, WORKER, str(timeout), str(steps),
             *map(str, what)], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines, self.ranks = [], {}
        while len(self.ranks) < RANKS:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError("the ranks did not start:\n" + "".join(self.lines))
            self.lines.append(line)
            # Two ranks may write into one line.
            self.ranks.update((int(rank), int(process)) for rank, process in re.findall(r"rank (\d) is process (\d+)", line))

    def signal(self, rank, number):
        os.kill(self.ranks[rank], number)

    def end(self, limit):
        """Returns what the run has printed; all processes must end within `limit` seconds."""
        try:
            rest, _ = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.remove()
            raise
        deadline = time.monotonic() + 3
        while any(map(exists, self.ranks.values())) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = [rank for rank, process in self.ranks.items() if exists(process)]
        self.remove()
        if left:
            raise AssertionError(f"processes of ranks {left} have not ended")
        return "".join(self.lines) + rest

    def remove(self):
        for process in (self.process.pid, *self.ranks.values()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


class Faults(unittest.TestCase):
    def expect_message(self, run, text, pattern):
        self.assertNotEqual(run.process.returncode, 0, text)
        self.assertEqual(len(re.findall(pattern, text)), 1, f"{pattern} in\n{text}")

    def expect_success(self, run):
        text = run.end(SOON + 50)
        self.assertEqual(run.process.returncode, 0, text)
        self.assertIn("all ranks have ended", text)
        self.assertNotIn("error", text)

    def random_ranks(self, seed):
        dice = random.Random(seed)
        for _ in range(REPEATS):
            yield dice.randrange(RANKS), dice.random() * 0.5

    def test_a_killed_rank_ends_the_run(self):
        for rank, delay in self.random_ranks(1):
            with self.subTest(rank=rank, delay=delay):
                run = Run(60, 100000)
                time.sleep(delay)
                run.signal(rank, signal.SIGKILL)
                # Usually mpirun notices the killed rank before the other ranks do.
                self.expect_message(run, run.end(SOON), rf"rank {rank} with PID|error of rank \d: rank {rank}:")

    def test_ranks_notice_a_killed_one_even_if_the_launcher_does_not(self):
        run = Run(60, 100000, launcher=("--enable-recovery",))
        time.sleep(0.2)
        run.signal(0, signal.SIGKILL)  # the rank that chooses among reports
        text = run.end(SOON)  # this mpirun says that all went well
        self.assertEqual(len(re.findall(r"error of rank \d: rank 0: its process has ended", text)), 1, text)

    def test_a_stopped_rank_ends_the_run(self):
        for rank, delay in self.random_ranks(2):
            with self.subTest(rank=rank, delay=delay):
                run = Run(1, 100000)
                time.sleep(delay)
                run.signal(rank, signal.SIGSTOP)
                self.expect_message(
                    run, run.end(1 + SOON),
                    rf"error of rank \d: rank {rank}: it keeps other ranks waiting for more than 1 s and does not answer")

    def test_a_run_that_is_stopped_as_a_whole_goes_on(self):
        run = Run(1, 200)
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for rank in range(RANKS):
                run.signal(rank, number)
            time.sleep(2)
        self.expect_success(run)

    def test_a_rank_that_computes_for_long_is_waited_for(self):
        self.expect_success(Run(20, 20, ("compute", 1)))

    def test_a_rank_that_hangs_is_named(self):
        run = Run(1, 20, ("hang", 2))
        self.expect_message(run, run.end(1 + SOON),
                            r"error of rank \d: rank 2: it keeps other ranks waiting for more than 1 s;")

    def test_a_rank_that_throws_is_named(self):
        run = Run(60, 20, ("throw", 3))
        text = run.end(SOON)
        self.expect_message(run, text, r"error of rank 3: no memory is left")
        self.expect_message(run, text, r"error of rank")

    def test_a_rank_that_ends_without_a_word_is_named(self):
        run = Run(60, 20, ("leave", 1))
        text = run.end(SOON)
        self.assertNotEqual(run.process.returncode, 0, text)
        self.assertRegex(text, r"error of rank \d: rank 1: its process has ended|process rank 1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
