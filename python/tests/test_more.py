"""Tests sessions, samplers and plans."""
import gc
import json
import sys
import threading
import types

import numpy as np
import pytest
from conftest import SMALL, program, words

import nacre


@pytest.mark.parametrize("options", [
    {},
    {"model": "sage", "mode": "minibatch", "fanout": [3, 3], "batch_size": 8, "lr_schedule": "cosine"},
])
def test_a_loop_of_ones_own_gives_the_same_bits(graph, options):
    options = {**SMALL, **options}
    session = nacre.Session(graph, **options)
    losses = []
    while session.epoch < options["epochs"]:
        losses.append(np.mean([session.step() for _ in range(session.steps_per_epoch)]))
    run = nacre.train(graph, select="last", **options)
    assert losses == pytest.approx([line["loss"] for line in run.metrics], rel=1e-12)
    for name, values in run.weights().items():
        np.testing.assert_array_equal(session.state_dict()[name], values)
    assert session.evaluate()["test"] == run.metrics[-1]["test"]
    np.testing.assert_array_equal(session.scores(), run.scores())
    assert session.memory and session.config["model"]["hidden"] == 8


def test_a_loop_of_ones_own_cannot_be_stale(graph):
    with pytest.raises(nacre.UserError, match="end one by one"):
        nacre.Session(graph, **{**SMALL, "model": "sage", "mode": "minibatch", "batch_size": 8, "staleness": 1})


def test_parameters_are_views(graph):
    session = nacre.Session(graph, **SMALL)
    before = session.scores()
    kept = session.state_dict()
    for view in session.parameters().values():
        view[:] = 0
    session.weights_changed()
    assert np.abs(session.scores()).max() == 0
    assert session.step(lr=0.0) == pytest.approx(np.log(3), rel=1e-5)
    session.load_state_dict(kept)
    np.testing.assert_array_equal(session.scores(), before)
    views = session.parameters()
    del session
    assert all(np.isfinite(view).all() for view in views.values())
    other = nacre.Session(graph, **SMALL)
    with pytest.raises(nacre.UserError):
        other.load_state_dict({name: values[:1] for name, values in kept.items()})


def test_parameters_of_torch(graph):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    session = nacre.Session(graph, **SMALL)
    for name, view in session.parameters().items():
        tensor = torch.from_dlpack(view)
        assert tensor.data_ptr() == view.__array_interface__["data"][0], name


def test_sampled_blocks(graph):
    batches = list(nacre.sampler(graph, fanout=[2, 3], batch_size=8, seed=1))
    assert [batch.batch_size for batch in batches] == [8, 8, 4]
    assert sorted(np.concatenate([batch.seeds for batch in batches])) == list(range(20))
    edges = {(s, d) for s, d in graph.edge_index.T.tolist()}
    src, dst = graph.edge_index
    for batch in batches:
        assert len(set(batch.n_id.tolist())) == len(batch.n_id)
        for block, fanout in zip(batch.blocks, [3, 2]):
            local = block.edge_index
            assert local[0].max() < block.num_src and local[1].max() < block.num_dst
            assert np.bincount(local[1]).max() <= fanout
            assert {(s, d) for s, d in batch.n_id[local].T.tolist()} <= edges
            np.testing.assert_array_equal(src[block.edge_id], batch.n_id[local[0]])
            np.testing.assert_array_equal(dst[block.edge_id], batch.n_id[local[1]])
        assert batch.blocks[-1].num_dst == batch.batch_size
        assert batch.blocks[0].num_src == len(batch.n_id)


def test_blocks_of_tensors(graph, recwarn):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    options = {"fanout": [2, 3], "batch_size": 8, "seed": 1, "sampler": "ladies"}
    for arrays, tensors in zip(nacre.sampler(graph, **options), nacre.sampler(graph, output="torch", **options)):
        pairs = [(arrays.n_id, tensors.n_id), (arrays.seeds, tensors.seeds)]
        for block, same in zip(arrays.blocks, tensors.blocks):
            assert (block.num_src, block.num_dst) == (same.num_src, same.num_dst)
            pairs += [(block.edge_index, same.edge_index), (block.edge_id, same.edge_id), (block.scale, same.scale)]
        for array, tensor in pairs:
            assert (array is None) == (tensor is None)
            assert array is None or torch.equal(torch.from_numpy(np.array(array)), tensor)
        assert arrays.num_edges == tensors.num_edges
    assert not recwarn.list


def test_tensors_share_memory(monkeypatch):
    """A stand-in for torch sees the memory of the arrays, as memory that may be written to."""
    from nacre._convert import tensor
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(from_numpy=lambda array: array))
    fixed = np.arange(6.0).reshape(2, 3)[:, ::2]
    fixed.flags.writeable = False
    shown = tensor(fixed)
    assert shown.flags.writeable and shown.ctypes.data == fixed.ctypes.data
    address = fixed.ctypes.data
    del fixed
    gc.collect()
    assert shown.tolist() == [[0, 2], [3, 5]] and shown.ctypes.data == address
    free = np.arange(3)
    assert tensor(free) is free


def test_samples_repeat_themselves(graph):
    first, second = (nacre.sampler(graph, fanout=[2, 2], batch_size=8) for _ in range(2))
    one = [batch.n_id.tolist() for batch in first]
    assert one == [batch.n_id.tolist() for batch in second]
    assert one != [batch.n_id.tolist() for batch in first]  # the next turn is the next epoch
    plain = nacre.sampler(graph, np.arange(60) < 10, fanout=[2], batch_size=4, shuffle=False, drop_last=True)
    assert [batch.seeds.tolist() for batch in plain] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert len(plain) == 2


def test_samplers_of_papers(graph):
    batch = next(iter(nacre.sampler(graph, sampler="saint-vertex", budget=10, layers=2, norm_samples=3)))
    assert batch.batch_size == len(batch.n_id) and len(batch.loss_scale) == batch.batch_size
    batch = next(iter(nacre.sampler(graph, sampler="ladies", fanout=[4, 4], batch_size=4)))
    assert len(batch.blocks) == 2


@pytest.mark.parametrize("options, text", [
    ({"fanout": [2], "batch_size": 0}, "--batch-size"),
    ({"fanout": ["x"]}, "--fanout"),
    ({"sampler": "neighbour", "fanout": [-5]}, ""),
    ({"fan_ot": [2]}, "did you mean '--fanout'"),
    ({"fanout": [2], "nodes": [1, 1]}, "occurs twice"),
    ({"fanout": [2], "nodes": [99]}, "nodes: node 99 does not exist"),
    ({"fanout": [2], "output": "jax"}, "output: 'jax' is no kind of arrays"),
])
def test_wrong_samplers(graph, options, text):
    with pytest.raises(nacre.UserError) as error:
        list(nacre.sampler(graph, **options))
    assert text in str(error.value)


def test_sampling_while_training(graph):
    expected = [batch.n_id.tolist() for batch in nacre.sampler(graph, fanout=[3, 3], batch_size=4)]
    wrong = []

    def sample():
        for _ in range(20):
            got = [batch.n_id.tolist() for batch in nacre.sampler(graph, fanout=[3, 3], batch_size=4)]
            wrong.extend([] if got == expected else [got])

    thread = threading.Thread(target=sample)
    thread.start()
    run = nacre.train(graph, **{**SMALL, "epochs": 50})
    thread.join()
    assert not wrong and run.result["epochs"] == 50


def test_plan(graph, tmp_path):
    plan = nacre.plan(graph, model="gat", layers=2, hidden=8, heads=2, plan="off", device="cpu")
    assert "gat" in str(plan) and plan.kernels
    assert "<pre>" in plan._repr_html_()
    assert json.loads(plan.to_json())["format"] == "nacre-plan"
    plan.save(tmp_path / "plan.json")
    run = nacre.train(graph, model="gat", layers=2, hidden=8, heads=2, epochs=2, device="cpu",
                      plan=tmp_path / "plan.json")
    assert run.result["plan_source"] == "file"
    with pytest.raises(nacre.UserError, match="unknown option '--picture'"):
        nacre.plan(graph, picture="x.svg")


def test_the_plan_of_the_command_line(tmp_path):
    options = {"model": "gcn", "layers": 2, "hidden": 8, "plan": "off", "device": "cpu"}
    done = program("plan", "--data=twin:cora", *words(options), "-o", tmp_path / "theirs.json")
    assert done.returncode == 0, done.stderr
    ours = json.loads(nacre.plan("twin:cora", **options).to_json())
    theirs = json.loads((tmp_path / "theirs.json").read_text())
    assert ours["dfg"] == theirs["dfg"] and ours["kernels"] == theirs["kernels"]


def test_report(graph, tmp_path):
    run, other = nacre.train(graph, **SMALL), nacre.train(graph, **{**SMALL, "hidden": 4})
    run.report(tmp_path / "one.html")
    run.report(tmp_path / "both.html", other)
    one, both = ((tmp_path / name).read_text() for name in ("one.html", "both.html"))
    assert f'value="{run.metrics[-1]["loss"]}"' in one and "Memory" in one
    assert f'value="{other.metrics[-1]["loss"]}"' in both
    with pytest.raises(nacre.UserError, match="no run folder"):
        nacre.Run(str(tmp_path), graph, {}).report(tmp_path / "none.html")
