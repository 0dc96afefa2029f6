"""Turns arrays of any library into NumPy arrays, without copies where that is possible."""
from __future__ import annotations

import numbers
import operator
from typing import Any

import numpy as np

from ._core import UserError


def to_numpy(value: Any, where: str) -> np.ndarray:
    """Returns a NumPy array of the values. NumPy arrays, and arrays of other libraries in host
    memory that know DLPack, are not copied. `where` names the argument in error messages."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise UserError(f"{where}: has masked values (fill them first)")
    if isinstance(value, np.ndarray):
        return value
    if getattr(value, "requires_grad", False):
        value = value.detach()
    if hasattr(value, "todense"):  # sparse matrices of SciPy
        return np.asarray(value.todense())
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError):
            pass  # the array lies on a device, or NumPy does not know its type
        if hasattr(value, "cpu"):
            value = value.cpu()
        elif hasattr(value, "get"):
            value = value.get()
    try:
        if hasattr(value, "to_pylist") and not hasattr(value, "columns"):  # an array of Arrow
            return value.to_numpy(zero_copy_only=False)
        if hasattr(value, "to_numpy"):  # tables of pandas and Arrow
            return value.to_numpy()
        if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # a type that NumPy does not have
            value = value.float()
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: is no array: {error}") from None


def integers(value: Any, where: str) -> np.ndarray:
    """Returns a contiguous, one-dimensional array of int64."""
    array = to_numpy(value, where)
    if array.ndim > 1 and array.size != max(array.shape):
        raise UserError(f"{where}: has the shape {list(array.shape)}; one dimension is needed")
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise UserError(f"{where}: holds {array.dtype}, not whole numbers (use an integer type)")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise UserError(f"{where}: {array.max()} is too large")
    return ready(array.reshape(-1), np.int64)


def floats(value: Any, where: str, dims: int) -> np.ndarray:
    """Returns a contiguous array of float32 with this number of dimensions."""
    array = to_numpy(value, where)
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if array.dtype.kind not in "fiub":
        raise UserError(f"{where}: holds {array.dtype}, not numbers (use float32)")
    if array.ndim == 1 and dims == 2:
        array = array.reshape(-1, 1)
    if array.ndim == 2 and dims == 1 and array.shape[1] == 1:
        array = array.reshape(-1)
    if array.ndim != dims:
        raise UserError(f"{where}: has the shape {list(array.shape)}; {dims} dimensions are needed")
    with np.errstate(over="ignore"):  # infinite values are refused later, with their place
        return ready(array, np.float32)


def ready(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Returns a contiguous array of this type whose values lie at addresses that C++ can read. An
    array that is so already is not copied."""
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED", "ENSUREARRAY"])


def missing(values: np.ndarray) -> np.ndarray:
    """Returns a truth value for each value: whether it is None, NaN, or what pandas writes in the
    place of a value that is missing."""
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind in "biuUS":
        return np.zeros(len(values), bool)
    return np.array([_is_missing(value) for value in values.tolist()], dtype=bool)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, numbers.Number) and bool(value != value)


def unlabelled(count: int, like: np.ndarray) -> np.ndarray:
    """Returns an array for the classes of `count` nodes, which are of the type of `like`. It says
    that no node has a class: it holds None if classes are words, -1 if they are numbers, and rows
    of 0 if a node may have several."""
    shape = (count, *like.shape[1:])
    if like.dtype.kind in "OUST":
        return np.full(shape, None, object)
    if like.ndim > 1:
        return np.zeros(shape, like.dtype)
    return np.full(shape, -1, np.float64 if like.dtype.kind == "f" else np.int64)


def both_ends(value: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the two rows of an array of shape [2, P], or both arrays of a pair, as int64."""
    rows = value if isinstance(value, (tuple, list)) else to_numpy(value, where)
    shape = f"length {len(rows)}" if isinstance(rows, (tuple, list)) else f"shape {list(rows.shape)}"
    if (isinstance(rows, np.ndarray) and rows.ndim != 2) or len(rows) != 2:
        raise UserError(f"{where}: has the {shape}; an array of shape [2, P] or a pair of arrays is needed")
    return integers(rows[0], f"{where}[0]"), integers(rows[1], f"{where}[1]")


def whole(value: Any, where: str) -> int:
    """Returns `value` as an int. Raises UserError unless it is a whole number below 2^63."""
    try:
        number = operator.index(value)
    except TypeError:
        raise UserError(f"{where}: {value!r} is not a whole number") from None
    if not 0 <= number < 2 ** 63:
        raise UserError(f"{where}: {number} is out of range")
    return number


def chosen(value: Any, where: str, num_nodes: int) -> np.ndarray | None:
    """Returns the ids of the nodes that a mask (one truth value for each node) or a list of ids
    chooses. Masks may also be written as 0 and 1."""
    if value is None:
        return None
    array = to_numpy(value, where)
    if array.dtype != np.bool_:
        if not _is_mask(array, num_nodes):
            return _existing(integers(array, where), where, num_nodes)
        array = array.astype(bool)
    if array.shape != (num_nodes,):
        raise UserError(f"{where}: has the shape {list(array.shape)}, but the graph has {num_nodes:,} nodes "
                        "(give one truth value for each node, or the ids of nodes)")
    return np.flatnonzero(array).astype(np.int64)


def _existing(ids: np.ndarray, where: str, num_nodes: int) -> np.ndarray:
    """Returns the ids. Raises UserError unless all of them are ids of nodes."""
    wrong = np.flatnonzero((ids < 0) | (ids >= num_nodes))
    if len(wrong):
        raise UserError(f"{where}: node {ids[wrong[0]]} does not exist: the graph has {num_nodes:,} nodes (it is at "
                        f"position {wrong[0]}; number the nodes from 0)")
    return ids


def _is_mask(array: np.ndarray, num_nodes: int) -> bool:
    """Returns whether numbers can only be meant as truth values: there is a 0 or a 1 for each node.
    Among ids, one of the two would occur twice, unless there are at most two nodes."""
    if array.shape != (num_nodes,) or array.dtype.kind not in "iu" or not np.isin(array, (0, 1)).all():
        return False
    return num_nodes > 2 or array.dtype == np.uint8
