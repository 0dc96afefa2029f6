#!/usr/bin/env python3
"""Kills and stops random ranks of `mpirun -n 4 nacre train` at random times. All processes must
end in time with one message that names the rank, and the newest checkpoint must be whole. The run
then continues on one to four ranks and must reach the score of a run that nobody disturbed.

    NACRE_FAULT_REPEATS=50 python3 tests/apps/rank_faults_test.py build/release/nacre -v

kills 50 ranks and stops 10 while they run; without the variable there are 2 and 1.
NACRE_FAULT_SEED chooses other ranks and times.
"""
import os
import random
import re
import signal
import subprocess
import sys
import time

import cli
from launched import SOON, LaunchedTest

RANKS = 4
TIMEOUT = 3  # seconds of --comm-timeout; on a busy disk, a checkpoint may take a few seconds
REPEATS = int(os.environ.get("NACRE_FAULT_REPEATS", "2"))
SEED = int(os.environ.get("NACRE_FAULT_SEED", "1"))
EPOCHS = 60
# What is printed if a rank is stopped while MPI ends: by the other ranks, or by the launcher after
# the system has killed this rank.
ENDED = r"nacre: rank {rank}: it has not ended within 4 s after the end of the run|rank {rank} with PID"
TRAIN = ("train", "--data", "twin:cora", "--model", "gcn", "--hidden", 16, "--dropout", 0.3, "--epochs", EPOCHS)


class Faults(LaunchedTest):
    def setUp(self):
        super().setUp()
        self.undisturbed = self.ok(*TRAIN, "--checkpoint", "undisturbed", "--device", "cpu", "--json", "-q").last_json()
        self.ends, self.lost, self.late, self.hung_launchers = [], 0, 0, 0

    def begin(self, run):
        """Starts a run and returns its launcher and the processes of its ranks."""
        process = self.start_launched(RANKS, *TRAIN, "--checkpoint", run, "--checkpoint-every", 3, "--comm-timeout", TIMEOUT,
                                      "--threads", 1)
        patience = time.monotonic() + 30
        ranks = {}
        while len(ranks) < RANKS:
            self.assertLess(time.monotonic(), patience, "the ranks do not start")
            ranks = self.processes_of(process)
        return process, ranks

    def end(self, process, ranks, limit):
        """Returns what the run has printed. All processes must end within `limit` seconds."""
        began = time.monotonic()
        try:
            process.wait(timeout=limit)
            while any(map(cli.exists, ranks.values())) and time.monotonic() - began < limit:
                time.sleep(0.02)
            left = [rank for rank, number in ranks.items() if cli.exists(number)]
            self.assertEqual(left, [], "ranks that have not ended")
        except subprocess.TimeoutExpired:
            states = {rank: self.state_of(number) for rank, number in ranks.items()}
            # If a rank is killed while MPI starts, the launcher of Open MPI 4.1 ends the others. It
            # then waits for a lock of its own for ever about once in a hundred times.
            hangs = "PMIX ERROR: UNREACHABLE" in self.read("stderr.txt").decode(errors="replace")
            if hangs and all(state == "ended" or state.startswith("Z") for state in states.values()):
                self.hung_launchers += 1
                return self.read("stderr.txt").decode(errors="replace")
            self.fail(f"the launcher has not ended within {limit} s; it is in the state "
                      f"{self.state_of(process.pid)!r} and its ranks in the states {states}; its messages:\n"
                      f"{self.read('stderr.txt').decode(errors='replace')}")
        finally:
            for number in ranks.values():
                if cli.exists(number):
                    os.kill(number, signal.SIGKILL)
            process.kill()
            process.wait()
        self.ends.append(time.monotonic() - began)
        return self.read("stderr.txt").decode(errors="replace")

    @staticmethod
    def state_of(number):
        """Returns the state of a process and what it waits for, as the system names them."""
        try:
            with open(f"/proc/{number}/stat", encoding="ascii", errors="replace") as stat, \
                    open(f"/proc/{number}/wchan", encoding="ascii") as waits:
                return f"{stat.read().rpartition(')')[2].split()[0]} {waits.read()}"
        except OSError:
            return "ended"

    def continues(self, run, ranks):
        """Checks the newest checkpoint of a run, continues the run, and compares its score."""
        if list((self.dir / run).glob("epoch-*")):
            self.ok("eval", "--checkpoint", run, "--json", "-q")
        else:
            self.lost += 1
        again = (*TRAIN, "--checkpoint", run, "--resume", "--json", "-q")
        made = (self.ok(*again, "--device", "cpu") if ranks == 1 else self.launched(ranks, *again, "--threads", 1)).last_json()
        self.assertEqual([m["epoch"] for m in self.metrics(run)], list(range(1, EPOCHS + 1)))
        for score in ("test_acc", "val_acc", "last_test_acc"):
            self.assertAlmostEqual(made[score], self.undisturbed[score], delta=0.003, msg=f"{run} on {ranks} ranks, {score}")
        left = [name for name in self.files() if name.startswith(run + "/") and ".tmp" in name]
        self.assertEqual(left, [], "files that were not written to their end")

    def disturb(self, number, repeats, limit, message):
        # In every second run, a rank is killed at any time, also while the run starts. In the other
        # runs, a rank is disturbed while it trains, because MPI itself notices late that a rank was
        # stopped at its start.
        dice = random.Random(SEED * 1000 + number)
        disturbed = 0
        for i in range(3 * repeats):
            if disturbed == repeats:
                break
            rank = i % RANKS if i < RANKS else dice.randrange(RANKS)
            run = f"{number.name}-{i}"
            wait_for_start = number == signal.SIGSTOP or i % 2 == 0
            process, ranks = self.begin(run)
            if wait_for_start:
                self.wait_for_epochs(process, run, 1)
            delay = dice.random() * (0.4 if wait_for_start else 2)
            time.sleep(delay)
            with self.subTest(rank=rank, delay=delay, run=i):
                if self.disturbed(process, ranks, rank, number, limit, message):
                    disturbed += 1
                else:
                    self.late += 1
                self.continues(run, 1 + i % RANKS)
        self.assertEqual(disturbed, repeats, "too many runs had ended before they were disturbed")
        print(f"{repeats} × {number.name}: {self.lost} before the first checkpoint; all processes ended within "
              f"{max(self.ends, default=0):.1f} s; {self.late} runs had ended before; {self.hung_launchers} launchers "
              "did not end", file=sys.stderr)

    def disturbed(self, process, ranks, rank, number, limit, message):
        """Sends a signal to a rank and checks how the run ends. Returns false if the run had ended
        before."""
        try:
            os.kill(ranks[rank], number)
        except ProcessLookupError:
            pass
        text = self.end(process, ranks, limit)
        if process.returncode == 0:
            return False
        self.assertRegex(text, message.format(rank=rank))
        # The program names the failed rank at most once. The launcher may name it, too. On a busy
        # machine, the launcher may be late in ending ranks that also wait for MPI to end.
        errors = [line for line in self.errors(text) if "MPI: one of the processes has not ended" not in line]
        self.assertLessEqual(len(errors), 1, text)
        self.assertEqual(set(re.findall(r"nacre: rank (\d):", text)) - {str(rank)}, set(), text)
        return True

    def test_killed_ranks(self):
        # Usually mpirun notices the killed rank before the other ranks do.
        self.disturb(signal.SIGKILL, REPEATS, SOON, r"rank {rank} with PID|nacre: rank {rank}:")

    def test_stopped_ranks(self):
        self.disturb(signal.SIGSTOP, max(1, REPEATS // 5), SOON + TIMEOUT,
                     r"nacre: rank {rank}: it keeps other ranks waiting for more than 3 s and does not answer|" + ENDED)

    def test_rank_stopped_at_the_end(self):
        """The results are there and MPI ends when the rank is stopped. The launcher alone would
        wait for this rank for ever."""
        for delay in (0, 0.02, 0.04, 0.06):
            process, ranks = self.begin(f"end-{delay}")
            while not (self.dir / f"end-{delay}/result.json").exists():
                time.sleep(0.001)
            time.sleep(delay)
            with self.subTest(delay=delay):
                message = r"nacre: rank {rank}: it keeps other ranks waiting|" + ENDED
                if not self.disturbed(process, ranks, 2, signal.SIGSTOP, SOON + TIMEOUT, message):
                    self.late += 1
        print(f"{self.late} of 4 runs had ended before they were disturbed", file=sys.stderr)


if __name__ == "__main__":
    cli.main()
