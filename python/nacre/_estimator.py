"""Estimator: trains with the methods of scikit-learn."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import chosen, missing, to_numpy, unlabelled
from ._convert import holds_graph
from ._core import UserError
from ._graph import Graph, graph_of, is_path
from ._run import Run, train


class Estimator:
    """A classifier of nodes with fit, predict and score.

        model = nacre.Estimator(model="gat", hidden=64).fit(graph)
        model.predict()[graph.test_idx]

    The settings are those of nacre.train(). For the searches, pipelines and cross validation of
    scikit-learn, the graph is a setting, too, and the samples are the ids of nodes:

        search = GridSearchCV(nacre.Estimator(graph=graph, model="gcn"), {"hidden": [16, 64]})
        search.fit(graph.train_idx, graph.y[graph.train_idx])
    """

    _estimator_type = "classifier"  # for scikit-learn before 1.6

    def __init__(self, graph: Any = None, **options: Any) -> None:
        self._options = options if graph is None else {"graph": graph, **options}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns all settings by name, as scikit-learn expects."""
        return dict(self._options)

    def set_params(self, **options: Any) -> Estimator:
        """Changes the given settings and returns the estimator."""
        self._options.update(options)
        return self

    def fit(self, graph: Any = None, y: Any = None, nodes: Any = None) -> Estimator:
        """Trains on the training nodes of the graph. With `y` or `nodes`, these classes and
        training nodes (ids or truth values) are used instead of those of the graph.

        If the graph is a setting, fit(nodes, y) trains on these nodes, with `y` as their classes.
        Other nodes then influence the weights only by their features and edges. No node validates,
        so the weights of the last epoch are kept."""
        options = dict(self._options)
        known = options.pop("graph", None)
        if graph is None and known is None:
            raise UserError("nacre.Estimator: has no graph (write fit(graph) or nacre.Estimator(graph=…))")
        if graph is None or _is_graph(graph):
            whole = graph_of(known if graph is None else graph)
            used = whole if y is None and nodes is None else _with(whole, y, nodes)
        elif known is None:
            raise UserError("nacre.Estimator: nodes were given without their graph (write nacre.Estimator(graph=…))")
        else:
            whole = graph_of(known)
            used = _of_nodes(whole, chosen(graph, "nodes", whole.num_nodes), y)
        self.run_: Run = train(used, **options)
        self._whole = whole
        self.classes_ = np.arange(used.num_classes) if not used.class_names else np.array(used.class_names)
        return self

    def _fitted(self) -> Run:
        if not hasattr(self, "run_"):
            raise UserError("nacre.Estimator: is not trained yet (call fit() first)")
        return self.run_

    def _asked(self, nodes: Any) -> tuple[Run, Any]:
        """Returns the run that answers for `nodes`, and the nodes or None. If `nodes` is a graph,
        the weights are used on all nodes of that graph."""
        run = self._fitted()
        return (_on(run, graph_of(nodes)), None) if _is_graph(nodes) else (run, nodes)

    def predict(self, nodes: Any = None) -> np.ndarray:
        """Returns the predicted classes of all nodes, of `nodes`, or of all nodes of another graph.
        Classes with names are words."""
        run, nodes = self._asked(nodes)
        predicted = run.predict()
        if predicted.ndim == 1:
            predicted = self.classes_[predicted]
        return self._rows(predicted, nodes)

    def decision_function(self, nodes: Any = None) -> np.ndarray:
        """Returns the scores of all classes; `nodes` is as in predict()."""
        run, nodes = self._asked(nodes)
        return self._rows(run.scores(), nodes)

    def predict_proba(self, nodes: Any = None) -> np.ndarray:
        """Returns the probabilities of all classes; `nodes` is as in predict()."""
        scores = self.decision_function(nodes)
        if self._fitted().config["model"]["loss"] == "bce":  # a node may have several classes
            return 0.5 + 0.5 * np.tanh(0.5 * scores)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def _rows(self, values: np.ndarray, nodes: Any) -> np.ndarray:
        """Returns the rows of these nodes, or all if `nodes` is None."""
        return values if nodes is None else values[chosen(nodes, "nodes", len(values))]

    def score(self, graph: Any = None, y: Any = None, nodes: Any = None) -> float:
        """Returns the score of the test nodes or, with `nodes`, the share of these nodes whose
        class is predicted. score(nodes, y) is what scikit-learn calls."""
        run = self._fitted()
        if graph is not None and not _is_graph(graph):
            graph, nodes = None, graph
        whole = self._whole if graph is None else graph_of(graph)
        if graph is not None or nodes is None:
            run = _on(run, whole)
        if nodes is None:
            return run.evaluate()["test"]
        ids = chosen(nodes, "nodes", whole.num_nodes)
        truth = _named(whole)[ids] if y is None else to_numpy(y, "y")
        predicted = run.predict()[ids]
        return float(((self.classes_[predicted] if predicted.ndim == 1 else predicted) == truth).mean())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "run_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags
        return Tags(estimator_type="classifier", target_tags=TargetTags(required=False), classifier_tags=ClassifierTags())

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"nacre.Estimator({settings})"


def _is_graph(value: Any) -> bool:
    """Returns whether a value is a graph or the place of one, not ids of nodes."""
    return isinstance(value, Graph) or is_path(value) or holds_graph(value)


def _on(run: Run, graph: Graph) -> Run:
    """Returns a run that uses the weights of `run` on this graph."""
    return run if graph is run.graph else Run(run.folder, graph, {})


def _named(graph: Graph) -> np.ndarray:
    """Returns the classes of all nodes; those with names are words."""
    if graph.y is None:
        raise UserError(f"{graph.name}: has no classes (give y)")
    return np.array([*graph.class_names, ""])[graph.y] if graph.class_names and graph.y.ndim == 1 else graph.y


def _with(graph: Graph, y: Any, nodes: Any) -> Graph:
    """Returns the graph with other classes, other training nodes, or both."""
    seeds = graph.train_idx if nodes is None else chosen(nodes, "nodes", graph.num_nodes)
    val, test = (np.setdiff1d(ids, seeds) for ids in (graph.val_idx, graph.test_idx))
    return Graph(graph, y=y, train_mask=seeds.astype(np.int64), val_mask=val.astype(np.int64), test_mask=test.astype(np.int64))


def _of_nodes(graph: Graph, ids: np.ndarray, y: Any) -> Graph:
    """Returns the graph with these training nodes and no others to validate or test with. `y` has
    the classes of these nodes, or is None if the graph has them."""
    none = np.empty(0, np.int64)
    if y is None:
        return Graph(graph, train_mask=np.unique(ids), val_mask=none, test_mask=none)
    given = to_numpy(y, "y")
    if len(given) != len(ids):
        raise UserError(f"y: has {len(given):,} values for {len(ids):,} nodes (give one for each of them)")
    if given.ndim == 2 and given.shape[1] == 1:
        given = given.reshape(-1)
    _require_classes(given, ids)
    classes = unlabelled(graph.num_nodes, given)
    classes[ids] = given
    counted = given.ndim == 1 and classes.dtype.kind != "O"
    count = max(graph.num_classes, int(classes.max(initial=-1)) + 1) if counted else None
    return Graph(graph, y=classes, num_classes=count, train_mask=np.unique(ids), val_mask=none, test_mask=none)


def _require_classes(y: np.ndarray, ids: np.ndarray) -> None:
    """Raises UserError unless each of these nodes has a class."""
    if y.ndim > 1:
        return
    wrong = np.flatnonzero(missing(y) | (y < 0 if y.dtype.kind in "if" else False))
    if len(wrong):
        value = y.tolist()[wrong[0]]
        raise UserError(f"y: holds {value!r} for node {ids[wrong[0]]}, which is no class: classes are words or numbers "
                        "from 0, and None, NaN and -1 mean that a node has none (leave such nodes out, or name the "
                        "classes)")
