"""Nacre trains graph neural networks: give it a graph and a model.

    import nacre
    graph = nacre.Graph(edge_index, x=x, y=y, train_mask=train, val_mask=val, test_mask=test)
    run = nacre.train(graph, model="gcn", layers=2, hidden=64)
    print(run.result["test_acc"], run.predict())

Messages go to the logger "nacre" of the module logging; warnings appear on stderr.
"""
from __future__ import annotations

import atexit as _atexit
import logging as _logging

from . import _core
from ._core import ModelOptions, Napa, UserError, Value, __version__, stack_layers
from ._estimator import Estimator
from ._graph import Graph, load
from ._loader import NeighborLoader
from ._loggers import mlflow_logger, wandb_logger
from ._model import Model, model
from ._plan import Plan, plan
from ._run import Run, load_run, train
from ._sampler import Batch, Block, Sampler, sampler
from ._session import Session

__all__ = ["Batch", "Block", "Estimator", "Graph", "Model", "ModelOptions", "Napa", "NeighborLoader", "Plan", "Run", "Sampler",
           "Session", "UserError", "Value", "__version__", "load", "load_run", "mlflow_logger", "model", "plan", "sampler",
           "stack_layers", "train", "wandb_logger"]

UserError.__module__ = __name__  # messages and pickles name the class nacre.UserError
_core.set_log(_logging.getLogger("nacre").log)
_atexit.register(_core.end_interpreter)
