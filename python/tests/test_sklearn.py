"""Tests the estimator: by itself, and in the searches and pipelines of scikit-learn."""
import pickle
import types

import numpy as np
import pytest
from conftest import SMALL, communities, splits

import nacre

SETTINGS = {**SMALL, "epochs": 40, "lr": 0.03}


@pytest.fixture
def large():
    edge_index, x, y = communities(300)
    return nacre.Graph(edge_index, x=x, y=np.array(["a", "b", "c"])[y], **splits(300))


def test_estimator(large):
    model = nacre.Estimator(**SETTINGS)
    with pytest.raises(nacre.UserError, match="fit"):
        model.predict()
    assert model.fit(large) is model
    assert set(model.predict()) <= {"a", "b", "c"}
    assert model.score() > 0.8
    assert model.score(nodes=large.val_idx) > 0.8
    assert model.decision_function([1, 2]).shape == (2, 3)
    np.testing.assert_allclose(model.predict_proba([1, 2]).sum(axis=1), 1, rtol=1e-6)
    other = nacre.Estimator(**model.get_params()).set_params(hidden=4)
    assert other.get_params()["hidden"] == 4
    other.fit(large, nodes=np.arange(10))
    assert other.run_.graph.train_idx.tolist() == list(range(10))
    assert set(other.predict()) <= {"a", "b", "c"}  # the words are kept


def test_nodes_as_samples(large):
    ids = np.arange(0, 300, 2)
    words = np.array(["x", "y", "z"])[large.y]
    model = nacre.Estimator(graph=large, **SETTINGS).fit(ids, words[ids])
    assert model.run_.graph.train_idx.tolist() == ids.tolist() and not len(model.run_.graph.val_idx)
    assert (model.run_.graph.y[1::2] == -1).all()  # the classes of other nodes are not known
    assert list(model.classes_) == ["x", "y", "z"]
    held = np.arange(1, 300, 2)
    assert model.score(held, words[held]) == (model.predict(held) == words[held]).mean() > 0.8
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(held), model.predict(held))
    numbers = nacre.Estimator(graph=large, **SETTINGS).fit(ids, large.y[ids])
    np.testing.assert_array_equal(np.array(["x", "y", "z"])[numbers.predict()], model.predict())
    several = np.eye(3, dtype=int)[large.y]
    assert nacre.Estimator(graph=large, **SETTINGS).fit(ids, several[ids]).predict(held).shape == (150, 3)


def test_graphs_of_other_libraries(large):
    """What nacre.train() takes as a graph, fit() and predict() take, too."""
    data = types.SimpleNamespace(edge_index=large.edge_index, x=large.x, y=np.array(large.y), num_nodes=300,
                                 **splits(300))
    model = nacre.Estimator(**SETTINGS).fit(data)
    assert model.score() > 0.8 and model.score(data) == model.score()
    np.testing.assert_array_equal(model.predict(data), model.predict())
    np.testing.assert_array_equal(model.predict_proba(large), model.predict_proba())
    edge_index, x, _ = communities(60, seed=1)
    other = nacre.Graph(edge_index, x=x)  # a graph that the model was not trained on
    assert model.predict(other).shape == (60,) and model.decision_function(other).shape == (60, 3)


@pytest.mark.parametrize("y, text", [
    ([0, float("nan")], "holds nan for node 2"),
    (["a", None], "holds None for node 2"),
    ([-1, 1], "holds -1 for node 1, which is no class"),
    ([-1.0, 1.0], "holds -1.0 for node 1"),
])
def test_nodes_without_classes(large, y, text):
    with pytest.raises(nacre.UserError, match=text):
        nacre.Estimator(graph=large, **SETTINGS).fit([1, 2], y)


def test_shapes_of_classes(large):
    ids = np.arange(0, 300, 2)
    column = nacre.Estimator(graph=large, **SETTINGS).fit(ids, large.y[ids].reshape(-1, 1).astype(float))
    flat = nacre.Estimator(graph=large, **SETTINGS).fit(ids, large.y[ids])
    np.testing.assert_array_equal(column.predict(), flat.predict())
    with pytest.raises(nacre.UserError, match="nodes: node 300 does not exist"):
        column.predict([0, 300])


@pytest.mark.parametrize("settings, arguments, text", [
    ({}, (), "has no graph"),
    ({}, ([1, 2],), "without their graph"),
    ({"graph": "twin:cora"}, ([1, 2], [0]), "y: has 1 values for 2 nodes"),
])
def test_mistakes(settings, arguments, text):
    with pytest.raises(nacre.UserError, match=text):
        nacre.Estimator(**SETTINGS, **settings).fit(*arguments)


def test_scikit_learn(large):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
    from sklearn.pipeline import Pipeline
    model = nacre.Estimator(graph=large, **SETTINGS)
    assert is_classifier(model) and clone(model).get_params() == model.get_params()
    ids, y = np.arange(200), np.array(large.class_names)[large.y[:200]]
    search = GridSearchCV(model, {"hidden": [1, 8]}, cv=3, error_score="raise").fit(ids, y)
    assert search.best_params_ == {"hidden": 8} and search.best_score_ > 0.7
    assert search.score(np.arange(200, 300), np.array(large.class_names)[large.y[200:]]) > 0.7
    assert cross_val_score(model, ids, y, cv=2, scoring="f1_macro", error_score="raise").min() > 0.5
    assert cross_val_predict(model, ids.reshape(-1, 1), y, cv=2, method="predict_proba").shape == (200, 3)
    pipeline = Pipeline([("nacre", model)])
    assert pipeline.set_params(nacre__hidden=4).fit(ids, y).score(ids, y) > 0.7
    assert "nacre" in pipeline._repr_html_()
