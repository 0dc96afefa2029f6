"""Trains models, and opens the runs that training leaves."""
from __future__ import annotations

import functools
import json
import os
import pathlib
import shutil
import tempfile
import weakref
from typing import Any, Callable, Iterable, Optional, Union

import numpy as np

from . import _core
from ._arrays import integers, whole
from ._convert import imported
from ._core import UserError
from ._graph import Graph, graph_of, is_path
from ._options import words

Report = dict[str, Any]
Callback = Callable[[Report], Optional[bool]]
Data = Union[Graph, str, "os.PathLike[str]", Any, None]


class Run:
    """A training run: its results, its metrics and its trained model.

    result    a dictionary of the results, as nacre train --json prints them: test_acc, val_acc,
              epochs, best_epoch, epoch_ms_median, …; empty for a run that was loaded
    folder    the run folder: config.json, plan.json, metrics.jsonl, model.safetensors, checkpoints

    Scores are computed on the device that the run was trained on, unless another one is named, as
    in run.predict(device="cpu") or nacre.load_run(path, device="cpu").
    """

    def __init__(self, folder: str, graph: Graph | None, result: dict[str, Any],
                 temporary: _TemporaryFolder | None = None, device: str | None = None) -> None:
        self.folder = os.path.abspath(folder)  # the program may change the current folder
        self.graph = graph
        self.result = result
        self._temporary = temporary
        self._device = None if device is None else str(device)
        self._models: dict[tuple[str, bool], _core.Predictor] = {}
        self._recommenders: dict[str, _core.Recommender] = {}

    @functools.cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """One dictionary for each epoch, as metrics.jsonl holds them: epoch, loss, lr, seconds and
        the scores train, val and test."""
        named = self.config.get("output", {}).get("metrics")
        started_in = self.config.get("data", {}).get("folder", "")
        return _json_lines(pathlib.Path(started_in, named) if named else pathlib.Path(self.folder, "metrics.jsonl"))

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """All settings of the run, as config.json holds them."""
        return _json(pathlib.Path(self.folder, "config.json"))

    @functools.cached_property
    def plan(self) -> dict[str, Any]:
        """The plan of the run, as plan.json holds it."""
        return _json(pathlib.Path(self.folder, "plan.json"))

    @property
    def class_names(self) -> list[str]:
        """The words for the classes; empty if classes are numbers."""
        model = next(iter(self._models.values()), None)
        return (self._model(False, None) if model is None else model).class_names

    def scores(self, device: str | None = None) -> np.ndarray:
        """Returns the scores of all nodes and classes before softmax or sigmoid, float32
        [num_nodes, num_classes], with the weights that the run has kept."""
        return self._model(False, device).scores()

    def predict(self, device: str | None = None) -> np.ndarray:
        """Returns the predicted class of every node or, if a node may have several, rows of 0 and
        1."""
        model = self._model(False, device)
        scores = model.scores()
        return (scores > 0).astype(np.uint8) if model.multilabel else scores.argmax(axis=1)

    def embeddings(self, device: str | None = None) -> np.ndarray:
        """Returns the input of the last layer of all nodes, float32 [num_nodes, width]; of a
        recommender, the embeddings of all users and items."""
        return self._recommender(device).embeddings() if self.recommends else self._model(True, device).embeddings()

    def evaluate(self, device: str | None = None) -> dict[str, float]:
        """Returns the scores train, val and test; NaN for a split that does not exist. Returns the
        scores test, val, recall and ndcg of a recommender."""
        return self._recommender(device).evaluate() if self.recommends else self._model(False, device).evaluate()

    @property
    def recommends(self) -> bool:
        """Whether the model is a recommender of items for users."""
        return "recommend" in self.config

    def recommend(self, users: Any = None, k: int = 20, device: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k best items of each user that the user has not taken in training, the best
        first, as two arrays of shape [users, k], or with fewer columns if there are fewer than k
        items: the numbers of the items, counted from 0 (-1 where no item is left), and their
        scores. `users` are numbers of users; default: all users."""
        if not self.recommends:
            raise UserError("recommend: the model predicts classes of nodes (use run.predict())")
        of = None if users is None else integers(users, "users")
        return self._recommender(device).best(of, whole(k, "k"))

    def weights(self) -> dict[str, np.ndarray]:
        """Returns the weights that the run has kept, by name."""
        return _core.read_weights(self.folder)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copies the run folder to `path`, which must not exist or be empty. The command line can
        use and continue it."""
        target = pathlib.Path(path)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise UserError(f"{target}: exists already (choose another folder)")
        shutil.copytree(self.folder, target, dirs_exist_ok=True)

    def report(self, path: str | os.PathLike[str], *others: Run) -> None:
        """Writes one HTML page about the run, and other runs beside it, as nacre report does."""
        page = _core.report([run.folder for run in (self, *others)])
        pathlib.Path(path).write_text(page, encoding="utf-8")

    def _model(self, embeddings: bool, device: str | None) -> _core.Predictor:
        place = self._place(device)
        for kind in (embeddings, True):  # a model that gives embeddings also gives scores
            if (place, kind) in self._models:
                return self._models[place, kind]
        graph = None if self.graph is None else self.graph._data
        self._models[place, embeddings] = _core.Predictor(graph, self.folder, place, embeddings)
        return self._models[place, embeddings]

    def _recommender(self, device: str | None) -> _core.Recommender:
        place = self._place(device)
        if place not in self._recommenders:
            graph = None if self.graph is None else self.graph._data
            self._recommenders[place] = _core.Recommender(graph, self.folder, place)
        return self._recommenders[place]

    def _place(self, device: str | None) -> str:
        """Returns the device that was named now or when the run was loaded, or else the one that
        the run was trained on."""
        if device is not None or self._device is not None:
            return str(self._device if device is None else device)
        execution = self.config.get("execution", {})
        return "auto" if execution.get("devices") else execution.get("device", "auto")

    def __reduce__(self) -> Any:
        folder = pathlib.Path(self.folder)
        files = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
        return _restored, (files, self.graph, self.result, self._device)

    def __repr__(self) -> str:
        place = "" if self._temporary is not None else f" in {self.folder}"
        if not self.result:
            return f"<nacre.Run{place}>"
        test, val = (self.result.get(f"{part}_acc", self.result.get(part)) for part in ("test", "val"))
        return (f"<nacre.Run of {self.result['model']} on {self.result['data']}: {self.result['epochs']} epochs, "
                f"{self.result['metric']} test {test}, validation {val}{place}>")


def train(graph: Data = None, *, callback: Callback | Iterable[Callback] | None = None, progress: bool = False,
          **options: Any) -> Run:
    """Plans and trains a model, and returns the run.

    graph     a Graph, what nacre.load() takes or what Graph() takes; may be left out with resume or
              config. From users and items (Graph.from_pairs(), or data with held-out pairs), a
              recommender is trained.
    callback  a function, or several, called after every epoch with a dictionary: epoch, loss, lr,
              seconds, train, val and test (None unless the epoch was evaluated). If one returns
              False, training ends, and the best weights are kept.
    progress  shows a bar (needs tqdm)

    Further settings are the options of nacre train with underscores: model, layers, hidden, heads,
    dropout, epochs, lr, patience, device, mode, fanout, batch_size, seed, ….
    print(nacre.train.options()) lists them all. Without checkpoint="FOLDER", the run folder is
    temporary and ends with the run; run.save() keeps it.

    Ctrl-C ends training after the current step and raises KeyboardInterrupt, whose attribute run is
    the run so far.
    """
    temporary = None
    if "data" in options:
        raise UserError("--data: give the data as the first argument of nacre.train()")
    if _is_off(options.get("resume")):
        options.pop("resume", None)
    if options.get("checkpoint") is None and "resume" not in options:
        temporary = _TemporaryFolder()
        options["checkpoint"] = temporary.name
    calls = _functions(callback)
    if graph is not None and not is_path(graph):
        graph = graph_of(graph)
    if isinstance(graph, Graph):
        data, arguments = graph._data, words("train", options)
    else:
        named = {} if graph is None else {"data": graph}
        data, arguments = None, words("train", {**named, **options})
    with _Bar(progress, options.get("epochs")) as bar:
        if progress:
            calls.append(bar.update)
        trained = _core.train(data, arguments, functools.partial(_call_all, calls) if calls else None)
    used = graph if isinstance(graph, Graph) else Graph._of(trained.graph)
    run = Run(trained.folder, used, json.loads(trained.result), temporary)
    if trained.stopped_by is not None:
        trained.stopped_by.run = run
        raise trained.stopped_by
    return run


train.options = functools.partial(_core.options_text, "train")  # type: ignore[attr-defined]


def load_run(path: str | os.PathLike[str], graph: Graph | str | os.PathLike[str] | None = None,
             device: str | None = None) -> Run:
    """Opens a run folder that nacre.train() or the command line has written. Without `graph`, the
    data of the run are read again when they are needed. Scores are computed on `device`: auto, cpu,
    cuda or cuda:1; default: the device that the run was trained on."""
    folder = os.fspath(path)
    if not os.path.exists(os.path.join(folder, "config.json")):
        raise UserError(f"{folder}: is no run folder (it has no config.json)")
    return Run(folder, None if graph is None else graph_of(graph), {}, device=device)


def _is_off(resume: Any) -> bool:
    """Returns whether `resume` says that no run is continued."""
    return resume is None or (isinstance(resume, (bool, np.bool_)) and not resume)


def _text(path: pathlib.Path, remedy: str) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror} ({remedy})") from None


def _json(path: pathlib.Path) -> dict[str, Any]:
    """Returns what a JSON file of a run folder holds."""
    remedy = "copy the whole run folder again"
    try:
        return json.loads(_text(path, remedy))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: line {error.lineno} is no JSON: {error.msg} ({remedy})") from None


def _json_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    """Returns what the lines of a metrics file hold. A run that was killed may have left half a
    line at the end, which does not count."""
    text = _text(path, "a run writes its metrics after its first epoch; if the file was moved, move it back")
    found = []
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            found += [json.loads(line)] if line.strip() else []
        except json.JSONDecodeError as error:
            raise UserError(f"{path}: line {number} is no JSON: {error.msg} (remove this line)") from None
    return found


def _restored(files: dict[str, bytes], graph: Graph | None, result: dict[str, Any],
              device: str | None = None) -> Run:
    """Returns a run that was pickled; its folder is temporary."""
    temporary = _TemporaryFolder()
    for name, content in files.items():
        path = pathlib.Path(temporary.name, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Run(temporary.name, graph, result, temporary, device)


def _functions(callback: Callback | Iterable[Callback] | None) -> list[Callback]:
    """Returns a list of the callbacks that were given."""
    calls = [] if callback is None else [callback] if callable(callback) else callback
    if not isinstance(calls, Iterable) or not all(callable(call) for call in calls):
        raise UserError(f"callback: {callback!r} is no function and no list of functions")
    return list(calls)


def _call_all(calls: list[Callback], report: Report) -> bool:
    answers = [call(dict(report)) for call in calls]
    return not any(isinstance(answer, (bool, np.bool_)) and not answer for answer in answers)


class _TemporaryFolder:
    """A folder that is removed with its last user, unless that is a process that was forked: the
    folder then still belongs to the other process."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="nacre-run-")
        self._finalizer = weakref.finalize(self, _remove, self.name, os.getpid())


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


class _Bar:
    """Shows the epochs as a tqdm bar, if the caller wants one."""

    def __init__(self, wanted: bool, epochs: Any) -> None:
        self._bar = None
        if wanted:
            self._bar = imported("tqdm.auto", "progress=True").tqdm(total=_count(epochs), unit="epoch")

    def update(self, report: Report) -> None:
        """Shows that an epoch is over."""
        assert self._bar is not None
        figures = {"loss": f"{report['loss']:.4f}"}
        if report["val"] is not None:
            figures["val"] = f"{report['val']:.4f}"
        self._bar.update(report["epoch"] - self._bar.n)
        self._bar.set_postfix(figures)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _count(epochs: Any) -> int | None:
    """Returns the number of epochs, or None if the setting is not given or no number; C++ refuses
    the latter."""
    try:
        return None if epochs is None else int(epochs)
    except (TypeError, ValueError):
        return None
