"""Estimator: trains with the methods of scikit-learn."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import chosen
from ._core import UserError
from ._graph import Graph
from ._run import Run, train


class Estimator:
    """A classifier of nodes with fit, predict and score.

        model = nacre.Estimator(model="gat", hidden=64).fit(graph)
        model.predict()[graph.test_idx]

    The settings are those of nacre.train(). scikit-learn's clone() and its searches understand them
    (get_params, set_params).
    """

    def __init__(self, **options: Any) -> None:
        self._options = options

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns all settings by name, as scikit-learn expects."""
        return dict(self._options)

    def set_params(self, **options: Any) -> Estimator:
        """Changes the given settings and returns the estimator."""
        self._options.update(options)
        return self

    def fit(self, graph: Graph, y: Any = None, nodes: Any = None) -> Estimator:
        """Trains on the training nodes of the graph. With `y` or `nodes`, these classes and
        training nodes (ids or truth values) are used instead of those of the graph."""
        if y is not None or nodes is not None:
            classes = graph.y if y is None else y
            seeds = graph.train_idx if nodes is None else chosen(nodes, "nodes", graph.num_nodes)
            held = set(np.asarray(seeds).tolist())
            val = [v for v in graph.val_idx.tolist() if v not in held]
            test = [v for v in graph.test_idx.tolist() if v not in held]
            graph = Graph(graph.edge_index, x=graph.x, y=classes, train_mask=np.asarray(seeds, np.int64),
                          val_mask=np.asarray(val, np.int64), test_mask=np.asarray(test, np.int64),
                          edge_weight=graph.edge_weight, edge_type=graph.edge_type, num_nodes=graph.num_nodes,
                          name=graph.name)
        self.run_: Run = train(graph, **self._options)
        self.classes_ = np.arange(graph.num_classes) if not graph.class_names else np.array(graph.class_names)
        return self

    def _fitted(self) -> Run:
        if not hasattr(self, "run_"):
            raise UserError("nacre.Estimator: is not trained yet (call fit() first)")
        return self.run_

    def predict(self, nodes: Any = None) -> np.ndarray:
        """Returns the predicted classes of all nodes, or of `nodes`. Classes with
        names are words."""
        run = self._fitted()
        predicted = run.predict()
        assert run.graph is not None
        if predicted.ndim == 1 and run.graph.class_names:
            predicted = self.classes_[predicted]
        return predicted if nodes is None else predicted[chosen(nodes, "nodes", run.graph.num_nodes)]

    def decision_function(self, nodes: Any = None) -> np.ndarray:
        """Returns the scores of all classes, for all nodes or for `nodes`."""
        run = self._fitted()
        assert run.graph is not None
        return run.scores() if nodes is None else run.scores()[chosen(nodes, "nodes", run.graph.num_nodes)]

    def score(self, graph: Graph | None = None, nodes: Any = None) -> float:
        """Returns the score of the test nodes or, with `nodes`, the share of these nodes whose
        class is predicted."""
        run = self._fitted()
        if graph is not None and graph is not run.graph:
            run = Run(run.folder, graph, {})
        if nodes is None:
            return run.evaluate()["test"]
        assert run.graph is not None
        ids = chosen(nodes, "nodes", run.graph.num_nodes)
        return float((run.predict()[ids] == run.graph.y[ids]).mean())

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"nacre.Estimator({settings})"
