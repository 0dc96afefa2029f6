"""Calls cuSPARSE's SpMM directly: descriptors and buffers are made once, every algorithm is
tried, and the fastest is kept for each width. PyTorch's own call offers no choice of algorithm
and no preprocessing."""
import ctypes
from ctypes import byref, c_float, c_int, c_int64, c_size_t, c_void_p

import torch

import timing

ALGORITHMS = {"default": 0, "csr1": 4, "csr2": 6, "csr3": 12}
INDEX = {torch.int32: 2, torch.int64: 3}
ROW_ORDER, FLOAT, NO_TRANSPOSE = 2, 0, 0
DENSE = [c_void_p, c_int64, c_int64, c_int64, c_void_p, c_int, c_int]
SPMM = [c_void_p, c_int, c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_int, c_void_p]
PROTOTYPES = {
    "cusparseCreate": [c_void_p],
    "cusparseSetStream": [c_void_p, c_void_p],
    "cusparseCreateCsr": [c_void_p] + [c_int64] * 3 + [c_void_p] * 3 + [c_int] * 4,
    "cusparseCreateDnMat": DENSE,
    "cusparseDestroyDnMat": [c_void_p],
    "cusparseSpMM_bufferSize": SPMM,
    "cusparseSpMM_preprocess": SPMM,
    "cusparseSpMM": SPMM,
}


class Library:
    """The copy of cuSPARSE that PyTorch has loaded, with one handle."""

    def __init__(self):
        error = None
        for name in ("libcusparse.so.12", "libcusparse.so.13", "libcusparse.so"):
            try:
                self.library = ctypes.CDLL(name)
                break
            except OSError as e:
                error = e
        else:
            raise error
        for name, types in PROTOTYPES.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = types, c_int
        self.handle = None

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: cuSPARSE status {status}")

    def on_stream(self):
        """Returns the handle, set to PyTorch's current stream."""
        if self.handle is None:
            handle = c_void_p()
            self.call("cusparseCreate", byref(handle))
            self.handle = handle
        self.call("cusparseSetStream", self.handle, torch.cuda.current_stream().cuda_stream)
        return self.handle


_library = None


def library():
    global _library
    if _library is None:
        _library = Library()
    return _library


class Dense:
    """The descriptor of a row-major f32 matrix, which lives as long as the call that needs it."""

    def __init__(self, tensor):
        self.descriptor = c_void_p()
        rows, cols = tensor.shape
        library().call("cusparseCreateDnMat", byref(self.descriptor), rows, cols, tensor.stride(0), tensor.data_ptr(),
                       FLOAT, ROW_ORDER)

    def __enter__(self):
        return self.descriptor

    def __exit__(self, *_):
        library().call("cusparseDestroyDnMat", self.descriptor)


class Plan:
    """One matrix, width and algorithm. Preprocessing belongs to the descriptor and the buffer,
    so each plan has its own."""

    def __init__(self, csr, name, x):
        lib = library()
        self.arrays, self.algorithm, self.name = csr, ALGORITHMS[name], name
        offsets, cols, values = csr
        self.rows = len(offsets) - 1
        self.one, self.zero = c_float(1.0), c_float(0.0)
        self.matrix = c_void_p()
        lib.call("cusparseCreateCsr", byref(self.matrix), self.rows, self.rows, len(cols), offsets.data_ptr(),
                 cols.data_ptr(), values.data_ptr(), INDEX[offsets.dtype], INDEX[cols.dtype], 0, FLOAT)
        y, size = self.output(x), c_size_t()
        self._call("cusparseSpMM_bufferSize", x, y, byref(size))
        self.buffer = torch.empty(max(1, size.value), dtype=torch.uint8, device=x.device)
        try:
            self._call("cusparseSpMM_preprocess", x, y, self.buffer.data_ptr())
        except RuntimeError:
            pass  # not every algorithm has preprocessing

    def output(self, x):
        return torch.empty(self.rows, x.size(1), device=x.device)

    def _call(self, name, x, y, last):
        lib = library()
        with Dense(x) as b, Dense(y) as c:
            lib.call(name, lib.on_stream(), NO_TRANSPOSE, NO_TRANSPOSE, byref(self.one), self.matrix, b,
                     byref(self.zero), c, FLOAT, self.algorithm, last)

    def multiply(self, x, y=None):
        y = self.output(x) if y is None else y
        self._call("cusparseSpMM", x, y, self.buffer.data_ptr())
        return y


class Matrix:
    """A CSR matrix whose product with a dense one uses the algorithm that is fastest for the
    width."""

    def __init__(self, csr):
        self.csr, self.plans = csr, {}

    def trials(self, x, seconds=0.05):
        """Returns [(ms, plan)], fastest first. An algorithm that refuses or gives another result
        is left out."""
        wanted = torch.sparse_csr_tensor(*self.csr, (x.size(0), x.size(0)), check_invariants=False) @ x
        y, done, refused = torch.empty_like(wanted), [], None
        for name in ALGORITHMS:
            try:
                plan = Plan(self.csr, name, x)
                plan.multiply(x, y)
                # This form of the comparison also refuses NaN.
                if not float((y - wanted).norm()) <= 1e-3 * float(wanted.norm()):
                    raise RuntimeError(f"{name}: wrong result")
                done.append((timing.repeated(lambda: plan.multiply(x, y), x.device, 5, seconds)["ms"], plan))
            except RuntimeError as error:
                refused = error
        if not done:
            raise refused
        return sorted(done, key=lambda pair: pair[0])

    def __matmul__(self, x):
        width = x.size(1)
        if width not in self.plans:
            self.plans[width] = self.trials(x)[0][1]
        return self.plans[width].multiply(x)
