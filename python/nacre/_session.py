"""Session: trains step by step, for people who write their own training loop."""
from __future__ import annotations

import json
from typing import Any, Mapping

import numpy as np

from . import _core
from ._arrays import ready, to_numpy
from ._graph import graph_of
from ._options import words


class Session:
    """A model that is planned, allocated and ready to train, step by step.

        session = nacre.Session(graph, model="gcn", hidden=64)
        while session.epoch < 100:
            loss = session.step()
        print(session.evaluate())

    The settings are those of nacre.train(), except those about files: a session writes none. The
    same steps give the same weights as nacre.train() with select="last". Several threads may use a
    session; they wait for one another.
    """

    def __init__(self, graph: Any, **options: Any) -> None:
        self.graph = graph_of(graph)
        self._loop = _core.OwnLoop(self.graph._data, words("train", options))

    @property
    def config(self) -> dict[str, Any]:
        """All settings, as config.json of a run holds them."""
        return json.loads(self._loop.settings)

    @property
    def epoch(self) -> int:
        """The number of epochs that are done."""
        return self._loop.epoch

    @property
    def steps(self) -> int:
        """The number of steps that are done."""
        return self._loop.steps

    @property
    def steps_per_epoch(self) -> int:
        """The number of steps of an epoch: the number of batches, or 1 on the whole graph."""
        return self._loop.steps_per_epoch

    @property
    def metric(self) -> str:
        """The name of the score that evaluate() computes, for example accuracy."""
        return self._loop.metric

    @property
    def memory(self) -> dict[str, int]:
        """The bytes of device memory, by what they are used for."""
        return dict(self._loop.memory())

    def step(self, lr: float | None = None) -> float:
        """Runs the forward pass, the backward pass and the update of one step, and returns its
        loss. Without `lr`, the learning rate follows the settings."""
        return self._loop.step(lr)

    def evaluate(self) -> dict[str, float]:
        """Returns the scores train, val and test and the loss val_loss with the current weights;
        NaN for a split that does not exist."""
        return self._loop.evaluate()

    def scores(self) -> np.ndarray:
        """Returns the scores of all nodes and classes with the current weights."""
        return self._loop.scores()

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns writable views of the parameters by name, without copies. They know DLPack, so
        that torch.from_dlpack() takes them. If the model trains on a GPU, they are
        views of the host's copies, which this call brings up to date. After writing to them, call
        weights_changed()."""
        return self._loop.parameters()

    def weights_changed(self) -> None:
        """Tells the session that parameters were written to. Call this after every such change."""
        self._loop.weights_changed()

    def state_dict(self) -> dict[str, np.ndarray]:
        """Returns copies of the parameters by name."""
        return self._loop.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Sets all parameters. Names and shapes must be those of state_dict()."""
        self._loop.load_state({name: ready(to_numpy(values, name), np.float32)
                               for name, values in state.items()})
