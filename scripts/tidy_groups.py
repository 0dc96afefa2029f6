"""Divides sources among groups that clang-tidy can check as one source that includes them.

Unlike the groups of the build, these cross the borders of rooms. So a name that a source defines
for itself must also not be in a header that only other sources of the group include."""
import collections
import functools
import pathlib
import re

import together
import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*"(nacre/[^"]+|[\w-]+\.h)"', re.M)
ALIAS = re.compile(r"^using (\w+) =", re.M)
TYPE = re.compile(r"^(?:struct|union|enum class|enum|class) (\w+)[^;{]*\{|^using (\w+) =", re.M)
# A group has at most this many sources. It then takes about half a minute and 0.8 GB of memory.
MOST = 40
# A source that clashes with at least this many others is put into a group first, while all groups
# still have room.
OFTEN = 40

def reach(path, seen):
    """Adds `path` and every header of ours that it includes."""
    if path in seen or not (tree.ROOT / path).is_file():
        return
    seen.add(path)
    for name in INCLUDE.findall(tree.read(path)):
        base = pathlib.Path("src") if name.startswith("nacre/") else path.parent
        reach(base / name, seen)


@functools.cache
def names_in(path):
    """Returns the names that a source or header defines in lines that are not indented."""
    text = tree.read(path)
    return together.names_in(text) | set(ALIAS.findall(text))


@functools.cache
def types_of(header):
    return [first or second for first, second in TYPE.findall(tree.read(header))]


class Source:
    """A Source holds the names it defines, those of its headers, and its headers' types."""

    def __init__(self, path):
        headers = set()
        reach(path, headers)
        headers.discard(path)
        self.path = path
        self.names = names_in(path)
        self.reached = set().union(*(names_in(header) for header in headers))
        self.own = self.names - self.reached
        self.types = {name: header for header in sorted(headers) for name in types_of(header)}


class Group:
    """A Group holds sources that are checked together and the names and types of all of them."""

    def __init__(self):
        self.paths, self.names, self.reached, self.own, self.types = [], set(), set(), set(), {}

    def fits(self, source):
        if source.names & self.names or source.own & self.reached or self.own & source.reached:
            return False
        return all(self.types.get(name, header) == header for name, header in source.types.items())

    def add(self, source):
        self.paths.append(source.path)
        self.names |= source.names
        self.reached |= source.reached
        self.own |= source.own
        self.types |= source.types


def divide(paths, cores):
    """Returns groups of paths. Paths that follow each other are in the same group if possible,
    because they share headers."""
    most = max(1, min(MOST, -(-len(paths) // cores)))
    sources = [Source(path) for path in sorted(paths)]
    defined = collections.Counter(name for source in sources for name in source.names)
    seen = collections.Counter(name for source in sources for name in source.reached)
    types = collections.Counter(item for source in sources for item in source.types.items())
    named = collections.Counter(name for source in sources for name in source.types)
    clashes = {source.path: sum(defined[name] - 1 for name in source.names) + sum(seen[name] for name in source.own)
               + sum(named[item[0]] - types[item] for item in source.types.items()) for source in sources}
    groups = []
    for source in sorted(sources, key=lambda s: (-clashes[s.path] if clashes[s.path] >= OFTEN else 0, s.path)):
        group = next((group for group in groups if len(group.paths) < most and group.fits(source)), None)
        if group is None:
            group = Group()
            groups.append(group)
        group.add(source)
    return [group.paths for group in groups]
