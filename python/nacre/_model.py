"""Users write models of their own here: a function describes a model once, and C++ trains it."""
from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import os
import pathlib
import sys
import threading
import traceback
import types
from typing import Any, Callable, Iterator, Mapping, Sequence, overload

from . import _core
from ._core import ModelOptions, Napa, UserError, Value

BuildFunction = Callable[[Napa, ModelOptions], Value]

# While a thread runs a file of models, _loading.names holds the names of the models that the file
# has defined. Each thread has names of its own.
_loading = threading.local()


class Model:
    """Model is what nacre.train(model=…) takes. @nacre.model makes a Model of a function."""

    def __init__(self, function: BuildFunction, info: _core.ModelInfo) -> None:
        self.name: str = info.name
        self.function = function
        self.__doc__ = function.__doc__
        _core.add_model(info, function, _file_of(function, info.name))
        if getattr(_loading, "names", None) is not None:
            _loading.names.append(info.name)

    def __call__(self, net: Napa, options: ModelOptions) -> Value:
        """Builds the model, so that the function of another model can use it as a part."""
        return self.function(net, options)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<nacre.Model {self.name}>"


@overload
def model(function: BuildFunction) -> Model: ...


@overload
def model(function: None = None, *, name: str | None = None, about: str = "", needs_self_loops: bool = False,
          needs_types: bool = False, supports_edge_weight: bool = False, heads: int = 0, aggregators: Sequence[str] = (),
          activation: str = "relu", knobs: Mapping[str, float] | None = None) -> Callable[[BuildFunction], Model]: ...


def model(function: BuildFunction | None = None, *, name: str | None = None, about: str = "",
          needs_self_loops: bool = False, needs_types: bool = False, supports_edge_weight: bool = False,
          heads: int = 0, aggregators: Sequence[str] = (), activation: str = "relu",
          knobs: Mapping[str, float] | None = None) -> Any:
    """Registers a model that a function builds:

        @nacre.model(needs_self_loops=True)
        def my_gcn(net, options):
            def layer(x, out, last):
                return net.pull_linear(x, "lin", out, weighting=net.symmetric_norm(x))
            return nacre.stack_layers(net, options, layer)

        nacre.train(graph, model=my_gcn, layers=3)

    The function is called when a run is planned, never while it trains: the steps it describes are
    differentiated, compiled to kernels and run as those of the models that come with Nacre. It
    returns the logits, a value of the nodes of width options.out_dim. docs/add_a_model.md explains
    the steps, which have the same names in C++.

    name                  for model=…; default: the name of the function
    needs_self_loops      self loops are added to the graph
    needs_types           edges must have types
    supports_edge_weight  the model reads net.edge_weight() in every layer
    heads                 usual number of attention heads; 0: the model has none
    aggregators           what aggr=… may be; the first is the usual one
    activation            the usual activation
    knobs                 settings of this model only, with their defaults: set={"sharpness": 2}

    A model of the same name that was registered before is replaced.
    """
    def register(build: BuildFunction) -> Model:
        info = _core.ModelInfo()
        info.name = name or build.__name__
        info.about = about or (inspect.getdoc(build) or "").partition("\n")[0]
        info.needs_self_loops, info.needs_types = needs_self_loops, needs_types
        info.supports_edge_weight, info.heads = supports_edge_weight, heads
        info.aggregators, info.activation = list(aggregators), activation
        info.knobs = [_core.ModelKnob(knob, value) for knob, value in (knobs or {}).items()]
        return Model(build, info)

    return register if function is None else register(function)


def _file_of(function: BuildFunction, name: str) -> str:
    """Returns what --model takes to find the model again: the file of a module that can be run by
    itself. The models of notebooks, of scripts, of other functions and of parts of packages have
    none, and those of a file that --model names are told by that name."""
    if getattr(_loading, "names", None) is not None or "<locals>" in function.__qualname__:
        return ""
    module = sys.modules.get(getattr(function, "__module__", ""))
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__ == "__main__" or getattr(module, "__package__", ""):
        return ""
    return f"{os.path.abspath(file)}:{name}" if file.endswith(".py") else ""


@contextlib.contextmanager
def _beside(folder: str) -> Iterator[None]:
    """Lets modules beside a model file be imported while it runs."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


@contextlib.contextmanager
def _known(module: types.ModuleType) -> Iterator[None]:
    """Lets the module of a model file be found in sys.modules, where dataclasses and annotations
    look for it, while the file runs and afterwards. If the file fails, what was there before it is
    put back."""
    name = module.__name__
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    except BaseException:
        if sys.modules.get(name) is module:
            sys.modules.pop(name)
            sys.modules.update({} if before is None else {name: before})
        raise


def _module_name(file: pathlib.Path) -> str:
    """Returns a name for the module of a model file. Files of the same name in other folders have
    other names, and no file hides a module that can be imported."""
    return f"nacre_model_{file.stem.replace('.', '_')}_{hashlib.sha256(os.fsencode(file)).hexdigest()[:16]}"


def _run(path: str) -> list[str]:
    """Runs a file of models and returns the names of those that it defines."""
    file = pathlib.Path(path).resolve()
    spec = importlib.util.spec_from_file_location(_module_name(file), file)
    if spec is None or spec.loader is None:
        raise UserError(f"{path}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    before, _loading.names = getattr(_loading, "names", None), []
    try:
        with _beside(str(file.parent)), _known(module):
            spec.loader.exec_module(module)
        return list(dict.fromkeys(_loading.names))
    finally:
        _loading.names = before


def _explained(error: BaseException) -> str:
    """Returns an exception of a model file in one line, as the command line shows it."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if not frame.filename.startswith(("<frozen", os.path.dirname(__file__)))]
    what = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    return f"{frames[-1].filename}, line {frames[-1].lineno}: {what}" if frames else what


_core.set_model_runner(_run)
