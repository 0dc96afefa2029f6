"""Tests models written in Python: the same plans and bits as in C++, files, and mistakes."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import SMALL, program, weights_bytes, words

import nacre

MODELS = pathlib.Path(__file__).with_name("same_models.py").read_text()

GATED = '''
import nacre


@nacre.model(supports_edge_weight=True, knobs={"sharpness": 1.0})
def gated_mean(net, options):
    def layer(x, out, last):
        z = net.linear(x, "lin", out, bias=False)
        gate = net.neighbor_apply(net.dot(z, "gate_src"), net.dot(z, "gate_dst"),
                                  lambda s, d: net.activation(options.knobs["sharpness"] * (s + d), "sigmoid"))
        weight = net.edge_weight(x)
        if weight is not None:
            gate = gate * weight
        return net.pull(z, "mean", gate) + net.linear(net.self(x), "root", out)
    return nacre.stack_layers(net, options, layer)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Returns a folder with files of models and makes it the current one."""
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "gated.py").write_text(GATED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name, options", [
    ("gcn", {}),
    ("gat", {"heads": 2, "attention_dropout": 0.3}),
    ("gat", {"mode": "minibatch", "fanout": "4,4", "batch_size": 16}),
])
def test_the_same_plan_and_bits_as_in_cpp(graph, folder, name, options):
    options = {**SMALL, "dropout": 0.5, **options}
    theirs = nacre.train(graph, **{**options, "model": name})
    ours = nacre.train(graph, **{**options, "model": f"models.py:py_{name}"})
    assert ours.plan["dfg"].replace(f"py_{name}", name) == theirs.plan["dfg"]
    assert ours.plan["kernels"] == theirs.plan["kernels"]
    for key, values in theirs.weights().items():
        np.testing.assert_array_equal(ours.weights()[key], values)
    plans = [nacre.plan(graph, **{**options, "model": model}).to_json() for model in (name, f"models.py:py_{name}")]
    assert plans[0] == plans[1].replace(f"py_{name}", name)


def test_a_model_in_a_program(graph):
    seen = []

    @nacre.model(name="plain_sum", knobs={"factor": 2.0})
    def build(net, options):
        """sums neighbours"""
        seen.append((options.layers, options.knobs["factor"]))
        x = net.features()
        for layer in range(options.layers):
            net.begin_layer(layer)
            total = net.pull(x) / 4 + -net.self(x) * 0.5 - 1.0
            x = net.linear(options.knobs["factor"] * total, "lin", options.width(layer))
        net.end_layers()
        return x

    run = nacre.train(graph, **{**SMALL, "model": build}, set={"factor": 3})
    assert (2, 3.0) in seen and run.result["model"] == "plain_sum" == str(build)
    assert run.config["model"].get("file") is None
    assert run.predict().shape == (60,)
    assert sorted(run.weights()) == [f"layers.{layer}.lin.{part}" for layer in (0, 1) for part in ("bias", "weight")]

    @nacre.model(name="plain_sum")
    def other(net, options):
        return net.linear(net.pull(net.features()), "one", options.out_dim)

    assert list(nacre.train(graph, **{**SMALL, "model": "plain-sum", "layers": 1, "hidden": None}).weights()) == [
        "one.weight", "one.bias"]


def test_mistakes(graph):
    def refused(function, text, error=nacre.UserError, **options):
        nacre.model(name="wrong", **options)(function)
        with pytest.raises(error, match=text):
            nacre.train(graph, **{**SMALL, "model": "wrong"})

    kept = []
    refused(lambda net, options: None, "must return a value")
    refused(lambda net, options: net.features(), "as logits")
    refused(lambda net, options: net.linear(net.features(), "a", 3) + net.pull(net.features()), "add")
    refused(lambda net, options: net.pull(net.features(), "median"), "unknown aggregate 'median'")
    refused(lambda net, options: net.split_heads(net.features(), 3), "cannot be divided")
    refused(lambda net, options: net.neighbor_apply(net.features(), net.features(), lambda s, d: 1), "must return a value")
    refused(lambda net, options: options.nothing, "nothing", AttributeError)
    refused(lambda net, options: kept.append(net.features()), "must return")
    with pytest.raises(nacre.UserError, match="after the model's function has returned"):
        kept[0] + kept[0]
    refused(lambda net, options: kept[0] * 2, "after the model's function has returned")
    with pytest.raises(nacre.UserError, match="name of a model of Nacre"):
        nacre.model(name="gcn")(lambda net, options: None)
    assert nacre.train(graph, **SMALL).result["epochs"] == 5


def test_files_and_the_command_line(folder):
    options = {**SMALL, "model": "gated.py", "epochs": 3}
    data = "twin:cora"
    nacre.train(data, **options, set={"sharpness": 2}, checkpoint="ours")
    done = program("train", f"--data={data}", *words(options), "--set=sharpness=2", "--checkpoint=theirs", folder=folder)
    assert done.returncode == 0, done.stderr
    assert weights_bytes("ours") == weights_bytes("theirs")
    config = json.loads((folder / "theirs/config.json").read_text())
    assert config["model"]["model"] == "gated_mean" and config["model"]["file"] == "gated.py:gated_mean"
    # Use the run from another folder, and then continue it.
    (folder / "elsewhere").mkdir()
    for command in (["eval", "--checkpoint", "../theirs"], ["predict", "--checkpoint", "../theirs", "-o", "p.npy"],
                    ["train", "--resume", "../theirs", "--epochs", "4"]):
        done = program(*command, folder=folder / "elsewhere")
        assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(folder / "elsewhere/p.npy"), nacre.load_run("ours").scores())
    again = nacre.train(data, **{**options, "epochs": 4}, set={"sharpness": 2}).weights()
    for name, values in nacre.load_run("theirs").weights().items():
        np.testing.assert_array_equal(values, again[name])
    # A run does not continue with a model whose file was changed.
    changed = (folder / "gated.py").read_text().replace('"sigmoid"', '"tanh"')
    assert "tanh" in changed
    (folder / "gated.py").write_text(changed)
    done = program("train", "--resume", "theirs", "--epochs", "5", folder=folder)
    assert done.returncode == 2 and "other data, model or training settings" in done.stderr, done.stderr


@pytest.mark.parametrize("text, arguments, says", [
    ("x = 1", [], "defines no model"),
    ("x = ", [], "wrong.py, line 1: invalid syntax"),
    (MODELS, [], "defines the models py_gcn or py_gat (say which: --model wrong.py:py_gcn)"),
    (MODELS, [":py-gcm"], "unknown model 'py-gcm' (did you mean 'py_gcn'"),
    (MODELS.replace("lin", "lin", 1).replace("symmetric_norm(x)", "symmetric(x)"), [":py_gcn"], "line 10: AttributeError"),
    ("import nothing_here", [], "ModuleNotFoundError"),
])
def test_wrong_files(folder, text, arguments, says):
    (folder / "wrong.py").write_text(text)
    done = program("train", "--data=twin:cora", f"--model=wrong.py{''.join(arguments)}", "--no-checkpoint", folder=folder)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


ANNOTATED = """from __future__ import annotations
import dataclasses
import sys
import typing
import nacre


@dataclasses.dataclass
class Settings:
    bias: bool = {bias}


@nacre.model
def annotated(net, options):
    assert typing.get_type_hints(Settings) == {{"bias": bool}} and sys.modules[Settings.__module__].Settings is Settings
    return net.linear(net.pull(net.features()), "one", options.out_dim, bias=Settings().bias)
"""


def test_model_files_are_modules(graph, folder):
    """Dataclasses and annotations look for the module of a model file in sys.modules."""
    (folder / "one").mkdir()
    (folder / "one/json.py").write_text(ANNOTATED.format(bias=True))
    (folder / "two").mkdir()
    (folder / "two/json.py").write_text(ANNOTATED.format(bias=False))
    before = set(sys.modules)
    for name, weights in (("one", ["one.bias", "one.weight"]), ("two", ["one.weight"])) * 2:
        run = nacre.train(graph, **{**SMALL, "model": folder / name / "json.py", "layers": 1, "hidden": None})
        assert sorted(run.weights()) == weights
    assert sys.modules["json"] is json and len(set(sys.modules) - before) == 2
    done = program("train", "--data=twin:cora", "--model=one/json.py", "--epochs=1", "--layers=1", "--no-checkpoint",
                   folder=folder)
    assert done.returncode == 0, done.stderr


def test_model_files_that_fail_leave_no_module(graph, folder):
    (folder / "broken.py").write_text("raise KeyError('mine')")
    before = dict(sys.modules)
    with pytest.raises(KeyError, match="mine"):
        nacre.train(graph, **{**SMALL, "model": "broken.py"})
    assert not [name for name in set(sys.modules) - set(before) if "broken" in name]
    (folder / "broken.py").write_text(ANNOTATED.format(bias=True))
    nacre.train(graph, **{**SMALL, "model": "broken.py", "layers": 1, "hidden": None})
    kept = {name: module for name, module in sys.modules.items() if "broken" in name}
    (folder / "broken.py").write_text("raise KeyError('mine again')")
    with pytest.raises(KeyError, match="mine again"):
        nacre.train(graph, **{**SMALL, "model": "broken.py"})
    assert len(kept) == 1 and {name: sys.modules[name] for name in kept} == kept


def test_no_package(folder, monkeypatch, tmp_path):
    """If the interpreter does not have the package, the program must say what is missing."""
    if "NACRE_PROGRAM" not in os.environ:
        pytest.skip("python -m nacre has the package")
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$1" "$2" "" "$4" "$5"\n')
    bare.chmod(0o755)
    monkeypatch.setenv("NACRE_PYTHON", str(bare))
    done = program("train", "--data=twin:cora", "--model=gated.py")
    assert done.returncode == 2 and "needs the Python package nacre (install it" in done.stderr
    monkeypatch.setenv("NACRE_PYTHON", "/absent/python")
    done = program("train", "--data=twin:cora", "--model=gated.py")
    assert done.returncode == 2 and "NACRE_PYTHON" in done.stderr
    assert program("train", "--data=twin:cora", "--model=absent.py").returncode == 2


def test_a_library_of_models(graph):
    """The C++ example, built as a shared library, must work in the program and the package."""
    library = os.environ.get("NACRE_MODEL_LIBRARY")
    if not library:
        pytest.skip("NACRE_MODEL_LIBRARY does not name a library")
    done = program("train", "--data=twin:cora", *words({**SMALL, "model": library}), "--no-checkpoint")
    assert done.returncode == 0, done.stderr
    run = nacre.train(graph, **{**SMALL, "model": library})
    assert run.result["model"] == "gated-mean"
    assert run.config["model"]["file"] == f"{library}:gated-mean"
    assert run.predict().shape == (60,)


def test_types_of_the_decorator(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "typed.py").write_text("""import nacre
@nacre.model(heads=2)
def one(net: nacre.Napa, options: nacre.ModelOptions) -> nacre.Value:
    return net.features()
@nacre.model
def two(net: nacre.Napa, options: nacre.ModelOptions) -> nacre.Value:
    return one(net, options)
named: str = two.name
wrong: int = two.name
""")
    place = os.path.dirname(os.path.dirname(nacre.__file__))
    environment = os.environ if "site-packages" in place else {**os.environ, "MYPYPATH": place}
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "typed.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    errors = [line for line in done.stdout.splitlines() if line.startswith("typed.py")]
    assert len(errors) == 1 and errors[0].startswith("typed.py:9: error: Incompatible types"), done.stdout
