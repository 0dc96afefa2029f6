"""Defines what the tests of the Python package share."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import nacre


def program(*arguments, folder=None):
    """Runs the command line: the program that NACRE_PROGRAM names, or python -m nacre."""
    named = os.environ.get("NACRE_PROGRAM")
    command = [named] if named else [sys.executable, "-m", "nacre"]
    return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, cwd=folder)


def communities(nodes=60, classes=3, seed=0):
    """Returns arrays of a graph whose classes can be learned: edges, features and classes."""
    random = np.random.default_rng(seed)
    y = (np.arange(nodes) % classes).astype(np.int32)
    dst = np.repeat(np.arange(nodes), 6)
    src = random.integers(0, nodes // classes, len(dst)) * classes + y[dst]
    x = random.random((nodes, 8), dtype=np.float32)
    x[np.arange(nodes), y] += 1
    return np.stack([src, dst]), x, y


def splits(nodes=60):
    """Returns masks of the training, validation and test nodes."""
    third = np.arange(nodes) * 3 // nodes
    return {"train_mask": third == 0, "val_mask": third == 1, "test_mask": third == 2}


@pytest.fixture
def graph():
    edge_index, x, y = communities()
    return nacre.Graph(edge_index, x=x, y=y, **splits())


@pytest.fixture(autouse=True)
def private_plan_cache(tmp_path, monkeypatch):
    """Gives tests a cache folder of their own, so that they do not use plans and profiles of
    the user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NACRE_PYTHON", sys.executable)  # models written in Python need this


SMALL = {"model": "gcn", "layers": 2, "hidden": 8, "epochs": 5, "plan": "off", "device": "cpu"}


def words(options):
    """Returns settings as the words of a command line."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]


def weights_bytes(folder):
    return pathlib.Path(folder, "model.safetensors").read_bytes()
