"""Helpers of the tests of the program: they run it under limits and write small files.

Only the standard library, so that the tests run wherever the program is built.
"""
import array
import io
import json
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

PROGRAM = ""
# Sanitizers reserve terabytes of address space and are slow, so some limits do not apply.
SANITIZED = False


class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def last_json(self):
        """Returns the output of a command with --json, which prints one JSON object and nothing
        else."""
        return json.loads(self.out)

    def __str__(self):
        return f"exit {self.code} after {self.seconds:.1f} s\nstdout: {self.out[-2000:]}\nstderr: {self.err[-2000:]}"


def exists(process):
    """Returns whether a process is there and has not ended yet."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def limits(memory, file_size):
    def apply():
        if memory and not SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return apply


class CliTest(unittest.TestCase):
    """Every test gets an empty folder of its own and runs the program in it."""

    # True: use a GPU if there is one; False: hide it, so that runs without --device use the CPU
    # everywhere.
    gpu = False

    def environment(self):
        return dict(os.environ) if self.gpu else dict(os.environ, NACRE_PLUGIN_PATH="/absent")

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="nacre-cli-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def nacre(self, *arguments, timeout=120, memory=None, file_size=None, stdout=subprocess.PIPE):
        start = time.monotonic()
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.dir, env=self.environment(),
                              stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=timeout,
                              preexec_fn=limits(memory, file_size))
        text = [(stream or b"").decode(errors="replace") for stream in (done.stdout, done.stderr)]
        return Result(done.returncode, *text, time.monotonic() - start)

    def ok(self, *arguments, **options):
        result = self.nacre(*arguments, **options)
        self.assertEqual(result.code, 0, f"{arguments}\n{result}")
        return result

    def start(self, *arguments):
        """Starts the program and returns its process. Its output goes to stdout.txt and
        stderr.txt."""
        self.addCleanup(lambda: process.poll() is None and process.kill())
        with open(self.dir / "stdout.txt", "wb") as out, open(self.dir / "stderr.txt", "wb") as err:
            process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.dir, env=self.environment(),
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        return process

    def files(self):
        return sorted(str(p.relative_to(self.dir)) for p in self.dir.rglob("*"))

    def refused(self, *arguments, code=2, says="", seconds=10, memory=2 << 30, file_size=None):
        """Checks that the program ends with one clear line of error and leaves the folder as it
        was; returns the line."""
        before = self.files()
        result = self.nacre(*arguments, timeout=120, memory=memory, file_size=file_size)
        what = f"{arguments}\n{result}"
        self.assertEqual(result.code, code, what)
        errors = [line for line in result.err.splitlines() if line.startswith("nacre: ")]
        self.assertEqual(len(errors), 1, what)
        self.assertEqual(result.err.splitlines()[-1], errors[0], what)
        self.assertNotIn("internal error", result.err, what)
        self.assertNotIn("json.exception", result.err, what)
        self.assertIn(says, errors[0], what)
        self.assertEqual(self.files(), before, what)
        if not SANITIZED:
            self.assertLess(result.seconds, seconds, what)
        return errors[0]

    def write(self, name, content):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def read(self, name):
        return (self.dir / name).read_bytes()


CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B"}


class ProfiledTest(CliTest):
    """All tests share one profile of the machine, which is measured quickly."""

    @classmethod
    def setUpClass(cls):
        cls.cache = tempfile.mkdtemp(prefix="nacre-cache-")
        cls.addClassCleanup(shutil.rmtree, cls.cache, ignore_errors=True)
        before = os.environ.get("NACRE_CACHE")
        cls.addClassCleanup(lambda: os.environ.pop("NACRE_CACHE") if before is None
                            else os.environ.update(NACRE_CACHE=before))
        os.environ["NACRE_CACHE"] = cls.cache
        cls.profile = subprocess.run([PROGRAM, "profile", "--json", "--seconds", "0.5", "-q"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        if cls.profile.returncode != 0:
            raise AssertionError(f"nacre profile failed: {cls.profile.stderr.decode(errors='replace')}")


def npy(values, shape=None, descr="<i8", header=None):
    """Returns the bytes of an .npy file. If `header` is given, it replaces the whole dictionary."""
    if shape is None:
        shape = (len(values),)
    payload = values if isinstance(values, bytes) else array.array(CODES[descr], values).tobytes()
    if header is None:
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    text = header.encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + payload


def npz(members, compress=True):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name + ".npy", content)
    return buffer.getvalue()


NODES, FEATURES, CLASSES = 40, 5, 3


def small_members(**changes):
    """Returns the arrays of a data set: 40 nodes in a ring with chords. `changes` replace
    arrays; None leaves one out."""
    src = [v for v in range(NODES) for _ in range(3)]
    dst = [(v + step) % NODES for v in range(NODES) for step in (1, 3, 9)]
    x = [((v * 7 + j * 3) % 11 - 5) / 4 + (2 if j == v % CLASSES else 0) for v in range(NODES) for j in range(FEATURES)]
    members = {"edge_index": npy(src + dst, (2, len(src))), "x": npy(x, (NODES, FEATURES), "<f4"),
               "y": npy([v % CLASSES for v in range(NODES)]), "train_idx": npy(list(range(20))),
               "val_idx": npy(list(range(20, 30))), "test_idx": npy(list(range(30, 40)))}
    members.update(changes)
    return {name: content for name, content in members.items() if content is not None}


def small_npz(**changes):
    return npz(small_members(**changes))


def mixed(a, b):
    """Computes one step of the checksum of files in the cache folder."""
    z = (a + 0x9E3779B97F4A7C15 * (b + 1)) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return z ^ (z >> 31)


def resealed(entry, value):
    """Returns a file of the cache with another value and a matching checksum
    (src/nacre/base/file_cache.cpp)."""
    key = entry[24:24 + struct.unpack("<Q", entry[8:16])[0]]
    text = b"nacreKV1" + struct.pack("<QQ", len(key), len(value)) + key + value
    h = mixed(0, len(text))
    for at in range(0, len(text), 8):
        h = mixed(h, int.from_bytes(text[at:at + 8], "little"))
    return text + struct.pack("<Q", h)


def datasets(source_root):
    """Returns the folder of real data sets, or None if it is not there."""
    folder = pathlib.Path(os.environ.get("NACRE_DATASETS", "../shared/datasets"))
    folder = folder if folder.is_absolute() else pathlib.Path(source_root) / folder
    return folder if (folder / "cora.npz").exists() else None


def main():
    """Runs a script that was started with PROGRAM [--sanitized] [unittest arguments …]."""
    global PROGRAM, SANITIZED
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if "--sanitized" in sys.argv:
        sys.argv.remove("--sanitized")
        SANITIZED = True
    unittest.main(module="__main__")
