"""Tests recommenders: data from pairs, the same bits as the command line, and recommended items."""
import pickle

import numpy as np
import pytest
from conftest import program, words

import nacre


SETTINGS = {"model": "lightgcn", "layers": 2, "hidden": 8, "epochs": 4, "batch_size": 64, "lr": 0.01, "metric": "recall@4",
            "plan": "off", "device": "cpu"}


def tastes(users=40, items=30, seed=0):
    """Returns pairs of users who like items of their own group, some of them held out."""
    random = np.random.default_rng(seed)
    likes = random.random((users, items)) < np.where(np.arange(users)[:, None] % 3 == np.arange(items) % 3, 0.6, 0.03)
    likes[:, 0] = likes[0, :] = True
    pairs = np.stack(likes.nonzero())
    held = (random.random(pairs.shape[1]) < 0.2) & (pairs[0] > 0) & (pairs[1] > 0)
    return pairs[:, ~held], pairs[:, held]


@pytest.fixture
def pairs():
    return tastes()


def test_a_graph_of_pairs(pairs):
    graph = nacre.Graph.from_pairs(pairs[0], test=tuple(pairs[1]), name="tastes")
    assert graph.node_types == ["user", "item"] and graph.node_offsets == [0, 40, 70]
    assert graph.num_edges == 2 * pairs[0].shape[1] and graph.name == "tastes"
    more = nacre.Graph.from_pairs(pairs[0], val=pairs[1], num_users=50, num_items=60)
    assert more.node_offsets == [0, 50, 110]
    many = nacre.Graph.from_pairs(pairs[0], test=pairs[1], num_users=2_000_000)
    assert many.node_offsets == [0, 2_000_000, 2_000_030]


def test_the_same_bits_as_the_command_line(pairs, tmp_path):
    (train, test), data = pairs, tmp_path / "tastes.npz"
    np.savez(data, train_user=train[0], train_item=train[1], test_user=test[0], test_item=test[1])
    run = nacre.train(nacre.Graph.from_pairs(train, test=test), checkpoint=str(tmp_path / "python"), **SETTINGS)
    done = program("train", f"--data={data}", f"--checkpoint={tmp_path / 'program'}", *words(SETTINGS))
    assert done.returncode == 0, done.stderr
    assert run.result["metric"] == "recall@4" and len(run.metrics) == 4
    assert run.result["test"] is not None and "recall@4 test" in repr(run)
    loaded = nacre.load_run(tmp_path / "program")
    for name, values in run.weights().items():
        np.testing.assert_array_equal(loaded.weights()[name], values)
    np.testing.assert_array_equal(loaded.recommend(k=3)[0], run.recommend(k=3)[0])
    other = nacre.train(data, **SETTINGS)
    np.testing.assert_array_equal(other.embeddings(), run.embeddings())


def test_recommended_items(pairs):
    train, test = pairs
    graph = nacre.Graph.from_pairs(train, test=test)
    run = nacre.train(graph, **{**SETTINGS, "epochs": 30})
    items, scores = run.recommend(k=30)
    rows = run.embeddings()
    taken = {tuple(pair) for pair in train.T}
    for user in range(40):
        kept = items[user][items[user] >= 0]
        assert not any((user, item) in taken for item in kept)
        assert len(kept) == 30 - sum(pair[0] == user for pair in taken)
        np.testing.assert_allclose(scores[user][:len(kept)], rows[40 + kept] @ rows[user], rtol=1e-4, atol=1e-6)
        assert np.all(np.diff(scores[user][:len(kept)]) <= 1e-6)
    np.testing.assert_array_equal(run.recommend([5, 3], k=2)[0], items[[5, 3], :2])
    assert run.recommend(users=[], k=2)[0].shape == (0, 2)
    # Compute recall@4 without Nacre, to compare.
    held = {user: set(test[1][test[0] == user]) for user in set(test[0])}
    recall = np.mean([len(set(items[user][:4]) & held[user]) / len(held[user]) for user in held])
    assert run.evaluate()["recall"] == pytest.approx(recall) and run.evaluate()["test"] == pytest.approx(recall)
    assert recall > 0.25
    again = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(again.recommend(k=30)[0], items)


def test_callbacks_of_recommenders(pairs):
    seen = []
    run = nacre.train(nacre.Graph.from_pairs(pairs[0], test=pairs[1]), **{**SETTINGS, "epochs": 100},
                      callback=lambda report: seen.append(report["epoch"]) or len(seen) < 3)
    assert seen == [1, 2, 3] and run.result["epochs"] == 3


@pytest.mark.parametrize("call, text", [
    (lambda p, g: nacre.Graph.from_pairs(p[0]), "needs test or val"),
    (lambda p, g: nacre.Graph.from_pairs(p[0].T, test=p[1]), "shape"),
    (lambda p, g: nacre.Graph.from_pairs(([0, 1], [0]), test=p[1]), "has 1 values, but the graph has 2 pairs"),
    (lambda p, g: nacre.Graph.from_pairs(p[0], test=p[1], num_users=3), "num_users"),
    (lambda p, g: nacre.Graph.from_pairs(([-1], [0]), test=p[1]), "does not exist"),
    (lambda p, g: nacre.Graph.from_pairs(5, test=p[1]), "shape"),
    (lambda p, g: nacre.Graph.from_pairs(([0], [10**8]), test=p[1]), "give num_items"),
    (lambda p, g: nacre.Graph(g, name="copy"), "holds pairs out"),
    (lambda p, g: nacre.train(g, **{**SETTINGS, "devices": "cpu:1,cpu:1", "device": None}), "one device"),
    (lambda p, g: nacre.train(g, **SETTINGS).predict(), "use run.recommend"),
    (lambda p, g: nacre.train(g, **SETTINGS).recommend([40]), "user 40 does not exist"),
    (lambda p, g: nacre.train(g, **SETTINGS).recommend(k=0), "k: must be at least 1"),
    (lambda p, g: nacre.Session(g, **SETTINGS), r"use nacre.train\(\)"),
])
def test_what_is_refused(pairs, call, text):
    graph = nacre.Graph.from_pairs(pairs[0], test=pairs[1])
    with pytest.raises(nacre.UserError, match=text):
        call(pairs, graph)


def test_classifiers_recommend_nothing(graph):
    run = nacre.train(graph, epochs=2, hidden=4, device="cpu", plan="off")
    assert not run.recommends
    with pytest.raises(nacre.UserError, match="predicts classes"):
        run.recommend()
