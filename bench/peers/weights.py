"""Nacre's parameters in the peers' models: the same starting weights, and gradients compared
under the same names."""
import json
import math
import pathlib
import struct

import numpy as np
import torch

NAMES = {  # from nacre's name after "layers.<l>." to (attribute of PyG's layer, stored transposed)
    "gcn": {"lin.weight": ("lin.weight", True), "lin.bias": ("bias", False)},
    "sage": {"lin_l.weight": ("lin_l.weight", True), "lin_l.bias": ("lin_l.bias", False),
             "lin_r.weight": ("lin_r.weight", True)},
    "gat": {"lin.weight": ("lin.weight", True), "att_src": ("att_src", False), "att_dst": ("att_dst", False),
            "bias": ("bias", False)},
    "rgcn": {"weight": ("weight", False), "root.weight": ("root", False), "root.bias": ("bias", False)},
}


class Slot:
    """One parameter of a peer's model under nacre's name and in nacre's layout."""

    def __init__(self, name, parameter, transposed):
        self.name, self.parameter, self.transposed = name, parameter, transposed

    def as_nacre(self, tensor):
        tensor = tensor.detach()
        if self.name.endswith(("att_src", "att_dst")):
            return tensor.view(tensor.shape[-2:])  # PyG's parameter has a leading dimension of 1
        return tensor.t() if self.transposed else tensor

    def fill(self, values):
        target = self.as_nacre(self.parameter)
        if tuple(values.shape) != tuple(target.shape):
            raise ValueError(f"{self.name}: shape {tuple(values.shape)} given, {tuple(target.shape)} expected")
        target.copy_(values)


def slots(model, net):
    """Returns the slots of a pyg_models.Net; other models bring their own `slots()`."""
    if hasattr(net, "slots"):
        return net.slots()
    return [Slot(f"layers.{layer}.{name}", conv.get_parameter(attribute), transposed)
            for layer, conv in enumerate(net.convs) for name, (attribute, transposed) in NAMES[model].items()]


def read_safetensors(path):
    """Returns {name: tensor} of the f32 entries."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    found = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            found[name] = torch.from_numpy(np.frombuffer(data[begin:end], np.float32).copy()).view(entry["shape"])
    return found


def find(path, model):
    """Returns the file for a model: `path`, or in a folder MODEL.safetensors,
    MODEL/model.safetensors or model.safetensors."""
    path = pathlib.Path(path)
    names = (f"{model}.safetensors", f"{model}/model.safetensors", "model.safetensors")
    for candidate in (path, *(path / name for name in names)):
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"no weights of {model} in {path}")


MASK = (1 << 64) - 1


def _mix_key(a, b):
    z = (a + 0x9E3779B97F4A7C15 * (b + 1)) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def _philox(key, count):
    """Returns `count` Philox4x32-10 words, those of the counters 0, 1, …."""
    low = np.uint64(0xFFFFFFFF)
    c = [np.arange((count + 3) // 4, dtype=np.uint64)] + [np.zeros((count + 3) // 4, np.uint64) for _ in range(3)]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), p1 & low,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), p0 & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=1).reshape(-1)[:count]


def initial(name, shape, seed=0):
    """Returns the initial value that nacre gives the parameter: zero for biases, otherwise
    Glorot-uniform in the last two dimensions."""
    if name.endswith("bias"):
        return torch.zeros(shape)
    digest = len(name)
    for letter in name.encode():
        digest = _mix_key(digest, letter)
    bits = _philox(_mix_key(seed, digest), math.prod(shape))
    unit = (bits >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    bound = np.float32(math.sqrt(6 / (shape[-2] + shape[-1])))
    return torch.from_numpy((np.float32(2) * unit - np.float32(1)) * bound).view(shape)


def start(model, net, path=None, seed=0):
    """Fills the model with the weights in `path`. Without a path, or if the file has only
    gradients, uses those that nacre's --seed gives."""
    given = read_safetensors(find(path, model)) if path else {}
    fresh = all(name.startswith("grad:") for name in given)
    for slot in slots(model, net):
        shape = tuple(slot.as_nacre(slot.parameter).shape)
        slot.fill(initial(slot.name, shape, seed) if fresh else given[slot.name])


def gradient_errors(model, net, path):
    """Returns {name: ‖nacre − peer‖ / ‖peer‖} for the gradients in `path` ("grad:<name>") and
    those in the model."""
    given = read_safetensors(find(path, model))
    errors = {}
    for slot in slots(model, net):
        peer = slot.as_nacre(slot.parameter.grad).cpu().double()
        mine = given.get("grad:" + slot.name)
        size = float(peer.norm())
        difference = math.inf if mine is None else float((mine.double().view(peer.shape) - peer).norm())
        errors[slot.name] = difference / size if size > 0 else difference
    return errors
