"""Small data of every kind that the program takes. All of them can be learned: a run that does
not learn has a fault."""
import random
import subprocess
import sys

import cli

NODES, CLASSES, WIDTH = 96, 3, 8
TRAIN, VAL = 48, 24  # the rest is for testing
USERS, ITEMS = 40, 30


def edges():
    """Returns edges: every node has about three neighbours, mostly of its own class, node 0 is a
    hub, node 95 is alone."""
    draw = random.Random(1)
    found = set()
    for v in range(NODES - 1):
        for _ in range(3):
            other = draw.randrange(NODES - 1)
            if draw.random() < 0.85:
                other = (other - other % CLASSES + v % CLASSES) % (NODES - 1)
            if other % CLASSES == v % CLASSES or draw.random() < 0.3:
                found.add((v, other))
    found |= {(v, 0) for v in range(3, NODES - 1, 3)}
    return sorted(found | {(b, a) for a, b in found})


def features(count=NODES, width=WIDTH, seed=2):
    draw = random.Random(seed)
    return [draw.uniform(0, 1) + (1.6 if j == v % CLASSES else 0) for v in range(count) for j in range(width)]


def pair_array(pairs):
    return cli.npy([a for a, _ in pairs] + [b for _, b in pairs], (2, len(pairs)))


def splits():
    return {"train_idx": cli.npy(list(range(TRAIN))), "val_idx": cli.npy(list(range(TRAIN, TRAIN + VAL))),
            "test_idx": cli.npy(list(range(TRAIN + VAL, NODES)))}


def plain(**more):
    return {"edge_index": pair_array(edges()), "x": cli.npy(features(), (NODES, WIDTH), "<f4"),
            "y": cli.npy([v % CLASSES for v in range(NODES)]), **splits(), **more}


def weighted():
    draw = random.Random(3)
    return plain(edge_weight=cli.npy([draw.uniform(0.5, 2) for _ in edges()], descr="<f4"))


def typed():
    return plain(edge_type=cli.npy([(a + 2 * b) % 3 for a, b in edges()]))


def multilabel():
    """Returns a set in which every node has the label of its class, and every second node also has
    the label of the next class."""
    y = [int(k == v % CLASSES or (k == (v + 1) % CLASSES and v % 2 == 0)) for v in range(NODES) for k in range(CLASSES)]
    x = [value + (1.6 if j == CLASSES and v % 2 == 0 else 0)
         for v in range(NODES) for j, value in enumerate(features()[v * WIDTH:(v + 1) * WIDTH])]
    return plain(y=cli.npy(y, (NODES, CLASSES)), x=cli.npy(x, (NODES, WIDTH), "<f4"))


def words(*names):
    return cli.npy(b"".join(name.encode().ljust(8, b"\0") for name in names), (len(names),), "|S8")


def kinds():
    """Returns a set of three kinds: papers have labels, authors have narrower features, and fields
    have no features. Papers cite papers, authors write papers, and fields have papers."""
    papers, authors, fields = NODES, 30, 6
    found = [(a, b, 0) for a, b in edges()]
    for v in range(papers):
        writer = papers + (v * 7) % authors
        found += [(writer, v, 1), (papers + authors + v % fields, v, 2)]
    found.sort()
    total = papers + authors + fields
    return {"edge_index": pair_array([edge[:2] for edge in found]), "edge_type": cli.npy([edge[2] for edge in found]),
            "node_types": words("paper", "author", "field"),
            "node_offsets": cli.npy([0, papers, papers + authors, total]),
            "relation_name": words("cites", "writes", "has"), "relation_src": cli.npy([0, 1, 2]),
            "relation_dst": cli.npy([0, 0, 0]), "x_paper": cli.npy(features(), (papers, WIDTH), "<f4"),
            "x_author": cli.npy(features(authors, 5), (authors, 5), "<f4"),
            "y": cli.npy([v % CLASSES if v < papers else -1 for v in range(total)]), **splits()}


def users():
    """Returns a set in which users like the items of their own third. Two items of every user are
    held out."""
    train, test = [], []
    for user in range(USERS):
        chosen = random.Random(user).sample([item for item in range(ITEMS) if item % 3 == user % 3], 8)
        train += [(user, item) for item in sorted(chosen[:-2])]
        test += [(user, item) for item in chosen[-2:]]
    column = lambda pairs, k: cli.npy([pair[k] for pair in pairs], descr="<i4")
    return {"train_user": column(train, 0), "train_item": column(train, 1), "test_user": column(test, 0),
            "test_item": column(test, 1), "num_users": cli.npy([USERS], shape=()),
            "num_items": cli.npy([ITEMS], shape=())}


def write_all(folder, program):
    for name, members in (("plain", plain()), ("weighted", weighted()), ("typed", typed()), ("kinds", kinds()),
                          ("multilabel", multilabel()), ("users", users())):
        (folder / f"{name}.npz").write_bytes(cli.npz(members))
    (folder / "edges.txt").write_text("".join(f"{a} {b}\n" for a, b in edges()))
    (folder / "x.npy").write_bytes(cli.npy(features(), (NODES, WIDTH), "<f4"))
    (folder / "y.txt").write_text("".join(f"{v % CLASSES}\n" for v in range(NODES)))
    (folder / "s.npz").write_bytes(cli.npz(splits()))
    for name in ("plain", "weighted"):
        subprocess.run([program, "data", "convert", "-q", f"{name}.npz", f"{name}.nacre"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=sys.stderr)
