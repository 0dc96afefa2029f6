"""Pickles as Python 2 wrote them, with NumPy arrays and SciPy matrices of those days, and files
as torch.save writes them.

The classes that were pickled need not be installed: stand-ins carry their names.
"""
import collections
import io
import pickle
import struct
import sys
import types
import zipfile

import numpy as np


def _stand_in(module, name, value):
    """Makes `value` known as module.name, as pickle insists on finding it."""
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
    setattr(sys.modules[module], name, value)
    value.__module__, value.__qualname__, value.__name__ = module, name, name
    return value


def _global(module, name):
    return _stand_in(module, name, type(name, (), {}))


class _Python2(pickle._Pickler):
    """str and bytes are one type, written as a string of bytes."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_string(self, obj):
        data = obj.encode("latin1") if isinstance(obj, str) else obj
        short = len(data) < 256
        self.write((b"U" + bytes([len(data)]) if short else b"T" + struct.pack("<i", len(data))) + data)
        self.memoize(obj)

    dispatch[str] = dispatch[bytes] = save_string


def python2(value, protocol=2):
    out = io.BytesIO()
    _Python2(out, protocol, fix_imports=True).dump(value)
    return out.getvalue()


csr_class = _global("scipy.sparse.csr", "csr_matrix")


def csr_parts(dense, dtype=np.float32):
    """Returns data, indices and indptr of a dense matrix."""
    rows, columns = np.nonzero(dense)
    indptr = np.zeros(dense.shape[0] + 1, np.int32)
    np.add.at(indptr, rows + 1, 1)
    return dense[rows, columns].astype(dtype), columns.astype(np.int32), np.cumsum(indptr).astype(np.int32)


def csr_matrix(dense):
    matrix = csr_class()
    data, indices, indptr = csr_parts(dense)
    matrix.__dict__.update(_shape=dense.shape, maxprint=50, data=data, indices=indices, indptr=indptr)
    return matrix


def adjacency_dict(edges, nodes):
    graph = collections.defaultdict(list)
    for v in range(nodes):
        graph[v] = [int(b) for a, b in edges if a == v]
    return graph


class Tensor:
    def __init__(self, values):
        self.values = np.asarray(values, np.int64)


_LongStorage = _global("torch", "LongStorage")
_rebuild = _global("torch._utils", "_rebuild_tensor_v2")


class _TorchPickler(pickle._Pickler):
    def __init__(self, out, storages):
        super().__init__(out, 2)
        self.storages = storages

    def persistent_id(self, obj):
        if not isinstance(obj, np.ndarray) or not any(obj is s for s in self.storages):
            return None
        index = next(i for i, s in enumerate(self.storages) if s is obj)
        return ("storage", _LongStorage, str(index), "cpu", len(obj))

    def reducer_override(self, obj):
        return NotImplemented

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, Tensor):
            self.storages.append(obj.values)
            shape = (obj.values, 0, (len(obj.values),), (1,), False, collections.OrderedDict())
            self.save_reduce(_rebuild, shape, obj=obj)
        else:
            super().save(obj, save_persistent_id)


def torch_file(path, value):
    out, storages = io.BytesIO(), []
    _TorchPickler(out, storages).dump(value)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", out.getvalue())
        archive.writestr("archive/byteorder", "little")
        for i, storage in enumerate(storages):
            archive.writestr(f"archive/data/{i}", storage.tobytes())
        archive.writestr("archive/version", "3\n")
