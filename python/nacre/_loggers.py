"""These callbacks of nacre.train() send the figures of every epoch to experiment trackers."""
from __future__ import annotations

from typing import Any, Callable

from ._convert import imported

Report = dict[str, Any]


def _figures(report: Report) -> dict[str, float]:
    return {name: value for name, value in report.items() if name != "epoch" and value is not None}


def wandb_logger(run: Any = None, **settings: Any) -> Callable[[Report], None]:
    """Returns a callback that logs to Weights & Biases: to the given run, or to a new one that
    wandb.init(**settings) begins.

        nacre.train(graph, model="gcn", callback=nacre.wandb_logger(project="cora"))
    """
    if run is None:
        run = imported("wandb", "nacre.wandb_logger()").init(**settings)

    def log(report: Report) -> None:
        run.log(_figures(report), step=report["epoch"])

    return log


def mlflow_logger(run_id: str | None = None) -> Callable[[Report], None]:
    """Returns a callback that logs to MLflow: to the run of that id, or to the active one, which is
    begun if there is none.

        with mlflow.start_run():
            nacre.train(graph, model="gcn", callback=nacre.mlflow_logger())
    """
    mlflow = imported("mlflow", "nacre.mlflow_logger()")

    def log(report: Report) -> None:
        mlflow.log_metrics(_figures(report), step=report["epoch"], **({"run_id": run_id} if run_id else {}))

    return log
