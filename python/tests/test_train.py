"""Tests that training from Python has the same options, messages and bits as the command line."""
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest
from conftest import SMALL, communities, program, splits, weights_bytes, words

import nacre


def test_three_lines():
    edge_index, x, y = communities(300)
    graph = nacre.Graph(edge_index, x=x, y=y, **splits(300))
    run = nacre.train(graph, model="gcn", layers=2, hidden=16, epochs=40, device="cpu", plan="off")
    assert run.result["test_acc"] > 0.9
    assert run.predict().shape == (300,)
    assert (run.predict() == y).mean() > 0.9
    assert run.embeddings().shape == (300, 16)
    assert run.scores().dtype == np.float32
    assert run.evaluate()["test"] == pytest.approx(run.result["test_acc"])
    assert "gcn" in repr(run)


@pytest.mark.parametrize("options", [
    {"model": "gat", "heads": 2, "dropout": 0.5},
    {"model": "sage", "mode": "minibatch", "fanout": "5,5", "batch_size": 32},
    {"model": "rgcn", "relations": 3, "optimizer": "sgd", "momentum": 0.9, "seed": 7},
])
def test_same_bits_as_the_command_line(tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    options = {**SMALL, "epochs": 3, **options}
    done = program("train", "--data=twin:cora", *words(options), "--checkpoint=theirs", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    nacre.train(nacre.load("twin:cora"), checkpoint="ours", **options)
    assert weights_bytes("ours") == weights_bytes("theirs")
    nacre.train("twin:cora", checkpoint="again", **options)
    assert weights_bytes("again") == weights_bytes("theirs")
    ours, theirs = (json.loads((tmp_path / folder / "config.json").read_text()) for folder in ("ours", "theirs"))
    assert ours == theirs


def test_same_bits_from_arrays(tmp_path):
    edge_index, x, y = communities()
    masks = splits()
    np.savez(tmp_path / "g.npz", edge_index=edge_index, x=x, y=y, **masks)
    done = program("train", "--data", tmp_path / "g.npz", *words(SMALL), "--checkpoint", tmp_path / "theirs")
    assert done.returncode == 0, done.stderr
    run = nacre.train(nacre.Graph(edge_index, x=x, y=y, **masks), **SMALL)
    theirs = nacre.load_run(tmp_path / "theirs").weights()
    ours = run.weights()
    assert sorted(ours) == sorted(theirs)
    for name, values in ours.items():
        assert values.tobytes() == theirs[name].tobytes(), name


@pytest.mark.parametrize("options", [
    {"epoch": 3},
    {"learning_rat": 0.1},
    {"optimizer": "adm"},
    {"epochs": 0},
    {"epochs": "many"},
    {"lr": -1},
    {"heads": 4},
    {"device": "gpu:77"},
    {"fanout": [5, 5]},
])
def test_same_errors_as_the_command_line(options):
    written = [f"--{name.replace('_', '-')}={','.join(map(str, value)) if isinstance(value, list) else value}"
               for name, value in options.items()]
    done = program("train", "--data=twin:cora", *written)
    assert done.returncode == 2
    with pytest.raises(nacre.UserError) as error:
        nacre.train("twin:cora", **options)
    printed = done.stderr.splitlines()[-1].removeprefix("nacre: ").replace(" (nacre help COMMAND lists the options)", "")
    assert str(error.value) == printed


def test_values_of_options(graph):
    run = nacre.train(graph, model="sage", layers=2, hidden=8, epochs=2, mode="minibatch", fanout=[3, 3],
                      batch_size=np.int64(16), plan="off", device="cpu", deterministic=False, patience=None)
    batches = run.config["batches"]
    assert batches["fanout"] == [3, 3] and batches["batch_size"] == 16
    run = nacre.train(graph, **SMALL, class_weights=[1, 2, 0.5], disable_pass=["sink_tails"], num_layers=3)
    assert run.config["training"]["class_weights"] == "1,2,0.5" and run.config["model"]["layers"] == 3
    assert "--fanout" in nacre.train.options()
    for empty in ("", []):  # the option after --fanout must not become its value
        with pytest.raises(nacre.UserError, match="--fanout: .* is empty"):
            nacre.train(graph, fanout=empty, **SMALL)


def test_flags_that_switch_off(graph):
    small = {**SMALL, "plan": "auto", "epochs": 1}
    with pytest.raises(nacre.UserError, match="--no-plan-cache: has no effect"):
        nacre.train(graph, **{**small, "plan": "off"}, plan_cache=False)
    nacre.train(graph, **small, plan_cache=False)
    nacre.train(graph, **small, plan_cache=True)


def test_data_options_belong_to_the_graph(graph):
    with pytest.raises(nacre.UserError, match="--split: .*when the graph is made or loaded"):
        nacre.train(graph, split="random:0.6/0.2/0.2", **SMALL)
    with pytest.raises(nacre.UserError, match="--data"):
        nacre.train(graph, data="twin:cora")
    with pytest.raises(nacre.UserError, match="unknown option '--json'"):
        nacre.train(graph, json=True)


def test_metrics(graph):
    run = nacre.train(graph, **SMALL)
    assert [line["epoch"] for line in run.metrics] == [1, 2, 3, 4, 5]
    assert run.metrics[-1]["loss"] == run.result["loss"]
    assert run.plan["dfg"].startswith("dfg gcn")


def test_metrics_of_a_run_that_was_killed(graph, tmp_path):
    run = nacre.train(graph, **SMALL, checkpoint=tmp_path / "run")
    with open(tmp_path / "run/metrics.jsonl", "ab") as file:
        file.write(b'{"epoch":6,"loss":0.')
    assert nacre.load_run(tmp_path / "run").metrics == run.metrics
    (tmp_path / "run/metrics.jsonl").write_text('{"epoch":1\n{"epoch":2}\n')
    with pytest.raises(nacre.UserError, match="metrics.jsonl: line 1 is no JSON"):
        nacre.load_run(tmp_path / "run").metrics
    (tmp_path / "run/metrics.jsonl").unlink()
    with pytest.raises(nacre.UserError, match="metrics.jsonl: cannot be read: No such file .*after its first epoch"):
        nacre.load_run(tmp_path / "run").metrics
    (tmp_path / "run/plan.json").write_text("{")
    with pytest.raises(nacre.UserError, match="plan.json: line 1 is no JSON"):
        nacre.load_run(tmp_path / "run").plan


def test_words_of_other_languages(tmp_path):
    """The files of a run are read as UTF-8 whatever the locale is."""
    edge_index, x, y = communities()
    graph = nacre.Graph(edge_index, x=x, y=np.array(["ä", "ö", "ü"])[y], **splits())
    nacre.train(graph, **SMALL, checkpoint=tmp_path / "run")
    code = "import sys, nacre; print(ascii(nacre.load_run(sys.argv[1]).config['model']['class_names']))"
    done = subprocess.run([sys.executable, "-X", "utf8=0", "-c", code, tmp_path / "run"], timeout=60, text=True,
                          capture_output=True, env={**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"})
    assert done.stdout == ascii(["ä", "ö", "ü"]) + "\n", done.stderr


@pytest.mark.parametrize("resume", [False, np.False_, None])
def test_a_run_that_continues_none(graph, tmp_path, monkeypatch, resume):
    monkeypatch.chdir(tmp_path)
    run = nacre.train(graph, resume=resume, **SMALL)
    assert os.path.exists(os.path.join(run.folder, "config.json")) and run.folder != str(tmp_path)
    assert len(run.metrics) == 5 and run.predict().shape == (60,)


def test_devices_of_a_run(graph, tmp_path):
    """A run that was trained on a device which is not here is used on another one."""
    run = nacre.train(graph, **SMALL)
    run.save(tmp_path / "run")
    config = json.loads((tmp_path / "run/config.json").read_text())
    config["execution"]["device"] = "cuda:77"
    (tmp_path / "run/config.json").write_text(json.dumps(config))
    elsewhere = nacre.load_run(tmp_path / "run", graph)
    with pytest.raises(nacre.UserError, match="'cuda:77' was not found"):
        elsewhere.predict()
    np.testing.assert_array_equal(elsewhere.predict(device="cpu"), run.predict())
    np.testing.assert_array_equal(elsewhere.scores("cpu"), run.scores())
    np.testing.assert_array_equal(elsewhere.embeddings(device="cpu"), run.embeddings())
    assert elsewhere.evaluate(device="cpu") == run.evaluate() and elsewhere.class_names == []
    moved = nacre.load_run(tmp_path / "run", graph, device="cpu")
    np.testing.assert_array_equal(moved.predict(), run.predict())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(moved)).predict(), run.predict())
    with pytest.raises(nacre.UserError, match="unknown device 'tpu'"):
        moved.predict(device="tpu")


class Bar:
    """A Bar looks like a bar of tqdm."""

    made = []

    def __init__(self, total, unit):
        self.total, self.unit, self.n, self.closed, self.figures = total, unit, 0, False, None
        Bar.made.append(self)

    def update(self, steps):
        self.n += steps

    def set_postfix(self, figures):
        self.figures = figures

    def close(self):
        self.closed = True


@pytest.mark.parametrize("epochs, total", [(5, 5), ("5", 5), (np.int64(5), 5)])
def test_progress(graph, monkeypatch, epochs, total):
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    run = nacre.train(graph, **{**SMALL, "epochs": epochs}, progress=True)
    bar = Bar.made.pop()
    assert (bar.total, bar.n, bar.closed) == (total, 5, True)
    assert bar.figures == {name: f"{run.metrics[-1][name]:.4f}" for name in ("loss", "val")}
    with pytest.raises(nacre.UserError, match="--epochs"):
        nacre.train(graph, **{**SMALL, "epochs": "many"}, progress=True)
    assert Bar.made.pop().total is None


def test_callbacks(graph):
    seen = []

    def watch(report):
        seen.append(report)
        return len(seen) < 3

    run = nacre.train(graph, callback=[watch, lambda report: None], **SMALL)
    assert run.result["stopped_early"] and run.result["epochs"] == 3
    assert [report["epoch"] for report in seen] == [1, 2, 3]
    for report, line in zip(seen, run.metrics):
        assert report["loss"] == line["loss"] and report["val"] == line["val"]

    def broken(report):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nacre.train(graph, callback=broken, **SMALL)
    assert nacre.train(graph, **SMALL).result["epochs"] == 5


def test_save_load_and_resume(graph, tmp_path):
    run = nacre.train(graph, **SMALL)
    run.save(tmp_path / "kept")
    with pytest.raises(nacre.UserError, match="exists already"):
        run.save(tmp_path / "kept")
    again = nacre.load_run(tmp_path / "kept", graph)
    np.testing.assert_array_equal(again.scores(), run.scores())
    assert again.metrics == run.metrics
    with pytest.raises(nacre.UserError, match="give the graph"):
        nacre.load_run(tmp_path / "kept").predict()
    with pytest.raises(nacre.UserError, match="no run folder"):
        nacre.load_run(tmp_path)
    longer = nacre.train(graph, resume=tmp_path / "kept", epochs=8)
    assert longer.result["epochs"] == 8
    whole = nacre.train(graph, **{**SMALL, "epochs": 8})
    for name, values in whole.weights().items():
        np.testing.assert_array_equal(longer.weights()[name], values)


def test_the_folder_of_a_run_is_temporary(graph):
    run = nacre.train(graph, **SMALL)
    folder = run.folder
    assert os.path.exists(folder)
    del run
    assert not os.path.exists(folder)


def test_predictions_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = nacre.train("twin:cora", checkpoint="run", **SMALL)
    done = program("predict", "--checkpoint", "run", "--device", "cpu", "-o", "p.npy", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), run.scores())
    done = program("predict", "--checkpoint", "run", "--device", "cpu", "--embeddings", "-o", "e.npy", folder=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "e.npy"), run.embeddings())
    np.testing.assert_array_equal(nacre.load_run("run").predict(), run.predict())


def test_several_classes_of_a_node():
    edge_index, x, y = communities()
    several = np.stack([y == 0, y != 2], axis=1)
    graph = nacre.Graph(edge_index, x=x, y=several, **splits())
    run = nacre.train(graph, **SMALL)
    assert run.predict().shape == (60, 2) and set(np.unique(run.predict())) <= {0, 1}
    assert run.result["metric"] == "micro_f1"


def test_start_with_the_weights_of_a_run(graph):
    first = nacre.train(graph, **SMALL)
    second = nacre.train(graph, **{**SMALL, "lr": 1e-9, "epochs": 1}, init=first)
    for name, values in first.weights().items():
        np.testing.assert_allclose(second.weights()[name], values, atol=1e-6)


def test_messages_go_to_logging(graph, caplog):
    with caplog.at_level(logging.INFO, logger="nacre"):
        nacre.train(graph, **SMALL)
    assert any("plan" in record.message for record in caplog.records)


def test_the_interpreter_runs_while_training(graph):
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    start = time.time()
    nacre.train("twin:cora", **{**SMALL, "epochs": 30})
    seconds = time.time() - start
    done.set()
    thread.join()
    assert counted[0] > 50 * seconds


def test_two_threads_train_at_once(graph):
    expected = nacre.train(graph, **SMALL).weights()
    results = {}

    def work(number):
        results[number] = nacre.train(graph, **SMALL).weights()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for weights in results.values():
        for name, values in expected.items():
            np.testing.assert_array_equal(weights[name], values)
    assert len(results) == 2


@pytest.fixture
def ctrl_c():
    """Restores the handler of Ctrl-C, because a shell starts background jobs without it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_leaves_a_usable_interpreter(graph, tmp_path, ctrl_c):
    random = np.random.default_rng(0)
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        # Start the timer where KeyboardInterrupt is expected: on a slow machine it may come at
        # once.
        timer = threading.Timer(random.uniform(0.01, 0.12), os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt) as stopped:
            timer.start()
            nacre.train(graph, **{**SMALL, "epochs": 100_000}, checkpoint=folder)
        timer.join()
        run = getattr(stopped.value, "run", None)
        if run is not None:
            assert run.result["interrupted"]
            assert len(run.metrics) == run.result["epochs"]
            assert run.predict().shape == (60,)
            checkpoint = sorted(folder.glob("epoch-*"))[-1]
            again = nacre.train(graph, resume=folder, epochs=len(run.metrics) + 1)
            assert again.result["epochs"] == len(run.metrics) + 1, checkpoint
        assert not list(folder.rglob("*.tmp*"))
    assert nacre.train(graph, **SMALL).result["epochs"] == 5


def test_training_while_another_thread_samples(graph):
    expected = nacre.train(graph, **SMALL, patience=None).weights()
    one = [batch.n_id.tolist() for batch in nacre.sampler(graph, fanout=[2, 2], batch_size=4)]
    seen, done = [], threading.Event()

    def draw():
        while not done.is_set():
            seen.append([batch.n_id.tolist() for batch in nacre.sampler(graph, fanout=[2, 2], batch_size=4)])

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for _ in range(5):
            weights = nacre.train(graph, **SMALL).weights()
            for name, values in expected.items():
                np.testing.assert_array_equal(weights[name], values)
    finally:
        done.set()
        thread.join()
    assert seen and all(batches == one for batches in seen)


def test_a_forked_child_is_refused(graph):
    code = """
import os, nacre
g = nacre.Graph([[0, 1], [1, 0]], x=[[1.0], [2.0]], y=[0, 1], train_mask=[0, 1])
settings = dict(epochs=1, plan="off", device="cpu")
nacre.train(g, **settings)
child = os.fork()
if child == 0:
    try:
        nacre.train(g, **settings)
    except nacre.UserError as error:
        os._exit(7 if "forked" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
nacre.train(g, **settings)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_a_child_that_was_forked_before_the_first_use_works():
    code = """
import os, nacre
child = os.fork()
g = nacre.Graph([[0, 1], [1, 0]], x=[[1.0], [2.0]], y=[0, 1], train_mask=[0, 1])
nacre.train(g, epochs=1, plan="off", device="cpu")
if child: assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_module_as_a_program():
    command = [sys.executable, "-m", "nacre"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == f"nacre {nacre.__version__}"
    done = subprocess.run([*command, "tran"], capture_output=True, text=True)
    assert done.returncode == 2 and "did you mean 'train'" in done.stderr
