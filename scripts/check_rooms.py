#!/usr/bin/env python3
"""Checks the borders between the rooms of src/nacre.

- A room's CMakeLists.txt may list under USES only rooms that the table below lets it use.
- A file may include headers of its own room and of rooms its USES reach.
- Headers include no third-party headers, so that no user of nacre compiles them. Two kinds are
  exempt: `*-inl.h` files, which are parts of one .cpp (SIMD code compiled once per instruction set)
  and no interfaces, and the headers of `cuda`, which only the plug-in sees.
"""
import re

import tree

# Maps a room to the rooms that it may use directly. It may also use what those may use.
MAY_USE = {
    "base": (),
    "tensor": ("base",),
    "graph": ("tensor",),
    "data": ("graph",),
    "dfg": ("tensor",),
    "model": ("dfg",),
    "cost": ("graph", "dfg"),
    "device": ("cost",),
    "cuda": ("device",),
    "nccl": ("device",),
    "gtask": ("graph", "dfg"),
    "kernel": ("tensor", "gtask"),
    "sample": ("graph",),
    "place": ("sample", "partition", "cost"),
    "partition": ("graph", "cost"),
    "cluster": ("graph", "cost", "partition"),
    "mpi": ("cluster",),
    "schedule": ("cost", "sample"),
    "tier": ("schedule",),
    "plan": ("data", "model", "cost", "gtask", "kernel", "place", "cluster", "schedule"),
    "engine": ("kernel", "plan", "device", "sample", "schedule", "cluster", "partition"),
    "train": ("engine", "tier"),
    "report": ("base",),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
USES = re.compile(r"\bUSES\b([^)]*?)(?:\b[A-Z]{2,}\b|\))", re.S)
# Headers of the system's C library, which are allowed beside those of the C++ library.
SYSTEM = re.compile(r"[a-z_0-9]+|(?:sys|linux)/[a-z_]+\.h|(?:fcntl|unistd|signal|immintrin|time)\.h")
# Matches types that headers define at the margin, in whatever namespace.
NAMESPACE = re.compile(r"^namespace ([\w:]+) {", re.M)
TYPE = re.compile(r"^(?:struct|class|enum class|enum) (\w+)\b[^;{]*{", re.M)


def types_of(text):
    for match in TYPE.finditer(text):
        spaces = NAMESPACE.findall(text, 0, match.start())
        yield f"{spaces[-1] if spaces else ''}::{match.group(1)}"


def closure(room, direct):
    reached, todo = set(), [room]
    while todo:
        for other in direct.get(todo.pop(), ()):
            if other not in reached:
                reached.add(other)
                todo.append(other)
    return reached


def room_of(path):
    parts = path.parts
    return parts[2] if len(parts) > 3 and parts[:2] == ("src", "nacre") else None


def main():
    problems, uses, homeless = [], {}, set()
    for path in tree.files("CMakeLists.txt"):
        room = room_of(path)
        if room is None:
            continue
        if room not in MAY_USE:
            problems.append(f"{path}: room '{room}' is not in the table of scripts/check_rooms.py")
            continue
        text = re.sub(r"#.*", "", tree.read(path))
        named = {name for block in USES.findall(text) for name in block.split()}
        uses[room] = uses.get(room, set()) | named
        for name in sorted(named - closure(room, MAY_USE)):
            problems.append(f"{path}: room '{room}' may not use '{name}'")

    # Two types of the same name are no error for a compiler, and the linker would use one of them
    # for both.
    defined = {}
    for path in tree.files(".h"):
        if room_of(path) is None:
            continue
        for name in types_of(tree.read(path)):
            if defined.setdefault(name, path) != path:
                problems.append(f"{path}: {name} is also the name of a type in {defined[name]}")

    for path in tree.files(".h", ".cpp", ".cu", ".cuh"):
        room = room_of(path)
        if room is None or room in homeless:
            continue
        if room not in uses:
            homeless.add(room)
            problems.append(f"src/nacre/{room}: no CMakeLists.txt declares this room")
            continue
        reach = closure(room, uses) | {room}
        internal = path.name.endswith("-inl.h") or room == "cuda"
        for name in INCLUDE.findall(tree.read(path)):
            if name.startswith("nacre/"):
                other = name.split("/")[1]
                if other not in reach:
                    problems.append(f"{path}: includes {name}, but USES of room '{room}' does not reach '{other}'")
            elif path.suffix == ".h" and not internal and not SYSTEM.fullmatch(name):
                problems.append(f"{path}: a header may not include <{name}>; use it in the .cpp")
    tree.finish("check_rooms", problems)


if __name__ == "__main__":
    main()
