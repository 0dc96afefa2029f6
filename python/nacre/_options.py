"""Turns settings of Python calls into the words of a command line, which the C++ code reads."""
from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from . import _core
from ._core import UserError


@functools.lru_cache(maxsize=None)
def flags(command: str) -> frozenset[str]:
    """Returns the long names of the options of a command that take no value."""
    return frozenset(_core.flag_names(command))


@functools.lru_cache(maxsize=None)
def names(command: str) -> frozenset[str]:
    """Returns the long names of all options of "train", "load" or "graph"."""
    return frozenset(_core.option_names(command))


def text(value: Any) -> str:
    """Returns a value as it is written on the command line."""
    if hasattr(value, "tolist"):  # NumPy values
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, (list, tuple)) for item in value):  # fan-outs by edge type
            return ",".join("/".join(text(item) for item in row) for row in value)
        return ",".join(text(item) for item in value)
    if isinstance(value, (set, frozenset)):
        return ",".join(sorted(text(item) for item in value))
    if hasattr(value, "folder"):  # the value is a run
        value = value.folder
    if isinstance(value, (os.PathLike, bytes)):
        return os.fsdecode(value)
    return str(value)


def words(command: str, options: dict[str, Any]) -> list[str]:
    """Returns the command line words for keyword arguments. Underscores become dashes; None stands
    for "not given"; True and False switch flags. For an option --no-NAME, NAME=False
    means the same as no_NAME=True."""
    known = names(command)
    switches = flags(command)
    result: list[str] = []
    for key, value in options.items():
        name = "--" + key.replace("_", "-")
        off = "--no-" + name[2:]
        if value is None:
            continue
        if isinstance(value, np.bool_):
            value = bool(value)
        if name == "--resume" and not isinstance(value, bool):
            result += [name, text(value)]
            continue
        if not isinstance(value, bool) and (name in switches or name not in known and off in switches):
            raise UserError(f"{name}: {value!r} does not switch this option on or off (give True or False)")
        if isinstance(value, bool):
            if name in known and name not in switches:
                raise UserError(f"{name}: {value} is not a value of this option")
            if name not in known and off in known:
                name, value = off, not value
            if value or name not in known:  # an unknown name is refused by the C++ code
                result.append(name)
        elif name == "--set" and isinstance(value, dict):
            result += [f"--set={knob}={text(number)}" for knob, number in value.items()]
        elif not text(value):
            raise UserError(f"{name}: {value!r} is empty (give a value, or leave the option out)")
        else:
            result.append(f"{name}={text(value)}")
    return result
