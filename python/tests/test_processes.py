"""Tests what surrounds a training: signals, processes that are forked, and the module alone."""
import pathlib
import subprocess
import sys

import nacre


def child(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def test_no_exception_of_a_signal_handler_is_lost():
    """A signal handler may run while a message is logged. Its exception must end the training that
    is under way or, if none is, be raised when the call ends."""
    done = child("""
import signal, nacre

class Enough(Exception):
    pass

def enough(*_):
    raise Enough

signal.signal(signal.SIGUSR1, enough)
g = nacre.Graph([[0, 1], [1, 0]], x=[[1.0], [2.0]], y=[0, 1], train_mask=[0, 1])
settings = dict(epochs=10_000_000, plan="off", device="cpu", hidden=4)

def in_a_message(level, text):
    if armed:
        armed.clear()
        signal.raise_signal(signal.SIGUSR1)

armed = [True]
nacre._core.set_log(in_a_message)
try:
    nacre.train(g, **settings)
except Enough as error:
    print("ended", error.run.result["interrupted"])
armed = [True]
try:
    nacre.Session(g, plan="off", device="cpu")
    print("never", nacre.__version__)
except Enough:
    print("ended")
print(nacre.train(g, **{**settings, "epochs": 2}).result["epochs"])
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ended True\nended\n2\n"


def test_forked_children_beside_a_training():
    """A child that was forked while another thread trains must never wait for that thread."""
    done = child("""
import os, pickle, threading, time, nacre
g = nacre.load("twin:cora")
expected = nacre.Graph(g).edge_index.sum()
go_on = True
thread = threading.Thread(target=lambda: nacre.train(g, epochs=10_000_000, plan="off", device="cpu", callback=lambda _: go_on))
thread.start()
time.sleep(0.3)

def refused(work):
    try:
        work()
    except nacre.UserError as error:
        assert "forked" in str(error)
        return
    raise AssertionError("not refused")

for _ in range(10):
    child = os.fork()
    if child == 0:
        assert g.edge_index.sum() == expected
        refused(lambda: pickle.dumps(g))
        refused(lambda: g.save("never.nacre"))
        refused(lambda: nacre.Session(g))
        os._exit(7)
    for _ in range(2000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        status = -1
    if status != 7 << 8:
        go_on = False
        raise SystemExit(f"the child ended with status {status}")
go_on = False
thread.join()
""")
    assert done.returncode == 0, done.stderr


def test_the_module_needs_no_numpy():
    """pip has no NumPy while it builds the package and writes the stub of the module."""
    folder = pathlib.Path(nacre._core.__file__).parent
    done = child("""
import sys
sys.modules["numpy"] = None
sys.path.insert(0, sys.argv[1])
import _core
print(_core.UserError.__name__)
""", folder)
    assert done.returncode == 0 and done.stdout == "UserError\n", done.stderr
    assert nacre.UserError.__module__ == "nacre"
    stub = (folder / "_core.pyi").read_text()
    assert "import nacre" not in stub and "from nacre" not in stub and "class UserError(" in stub
