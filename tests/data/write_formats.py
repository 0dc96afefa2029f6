"""One small data set in every layout Nacre reads, written by NumPy and Python's own modules.

write_all(folder) returns the cases: where each lies, how it is to be read, and what must come out.
"""
import gzip
import json
import random
from pathlib import Path

import numpy as np

import old_pickle

NODES = 12  # vertices 10 and 11 have no edges
# A hub, a self loop, repeated edges, edges both ways.
EDGES = [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (0, 1), (5, 5), (3, 4), (3, 4), (7, 8), (8, 7), (9, 2), (2, 9)]
CLASSES = 3
_rng = random.Random(11)
FEATURES = np.array([[_rng.randrange(-8, 9) / 4 for _ in range(5)] for _ in range(NODES)], np.float32)
LABELS = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]
TRAIN, VAL, TEST = [0, 1, 2, 3, 4], [5, 6], [7, 8, 10]
TARGETS = np.array([[(v >> c) & 1 for c in range(4)] for v in range(NODES)], np.uint8)


def edge_rows(edges, weight=None):
    return sorted([a, b, 0, 1 if weight is None else weight[i]] for i, (a, b) in enumerate(edges))


PLAIN = dict(nodes=NODES, edges=edge_rows(EDGES), edge_types=1, features=FEATURES.tolist(), labels=LABELS, classes=CLASSES,
             train=TRAIN, val=VAL, test=TEST, targets=None, node_types=[], relations=[], type_features=[])


class Case:
    def __init__(self, name, path, expected, format="", files=()):
        self.name, self.path, self.expected, self.format, self.files = name, Path(path), expected, format, files


def text(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(str(line) + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def npy(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


def npz(path, packed=False, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    (np.savez_compressed if packed else np.savez)(path, **arrays)


def pairs(edges):
    return np.array(edges, np.int64).reshape(-1, 2).T


def rows(values):
    return [",".join(repr(float(x)) for x in row) for row in values]


def masks(values=(TRAIN, VAL, TEST)):
    return [np.isin(np.arange(NODES), ids) for ids in values]


# One kind of vertex


def edges_and_files(d):
    files = [text(d / "x.csv", rows(FEATURES)), text(d / "y.txt", LABELS), d / "splits.npz"]
    npz(files[2], train_idx=TRAIN, val_idx=VAL, test_idx=TEST)
    text(d / "graph.txt", ["# a comment"] + [f"{a}\t{b}" for a, b in EDGES])
    return Case("edges", d / "graph.txt", PLAIN, files=files + [NODES])


def one_npz(d):
    npz(d / "set.npz", True, edge_index=pairs(EDGES), x=FEATURES, y=np.array(LABELS), train_idx=TRAIN, val_idx=VAL, test_idx=TEST)
    return Case("npz", d / "set.npz", PLAIN)


def ogb_splits(d, ids=(TRAIN, VAL, TEST)):
    for name, part in zip(("train", "valid", "test"), ids):
        text(d / f"{name}.csv.gz", part)


def ogb_csv(d, name="ogbn_arxiv", expected=None, labels=LABELS, features=True):
    d = d / name
    text(d / "raw/edge.csv.gz", [f"{a},{b}" for a, b in EDGES])
    text(d / "raw/num-node-list.csv.gz", [NODES])
    text(d / "raw/num-edge-list.csv.gz", [len(EDGES)])
    text(d / "raw/node_year.csv.gz", [2000] * NODES)
    text(d / "raw/node-label.csv.gz", labels)
    if features:
        text(d / "raw/node-feat.csv.gz", rows(FEATURES))
    ogb_splits(d / "split/time")
    return Case("ogb " + name, d, expected or PLAIN)


def ogb_products(d):
    return ogb_csv(d, "ogbn_products", dict(PLAIN, edges=edge_rows(EDGES + [(b, a) for a, b in EDGES])))


def ogb_proteins(d):
    expected = dict(PLAIN, edges=edge_rows(EDGES + [(b, a) for a, b in EDGES]), labels=[], targets=TARGETS.tolist(), classes=4,
                    features=None)
    return ogb_csv(d, "proteins", expected, [",".join(map(str, row)) for row in TARGETS], features=False)


def ogb_npz(d):
    d = d / "ogbn_papers100M"
    npz(d / "raw/data.npz", edge_index=pairs(EDGES), num_nodes_list=[NODES], num_edges_list=[len(EDGES)], node_feat=FEATURES,
        node_year=np.zeros((NODES, 1)))
    npz(d / "raw/node-label.npz", node_label=np.array(LABELS, np.float32).reshape(-1, 1))
    ogb_splits(d / "split/time")
    return Case("ogb npz", d, PLAIN)


def ogb_npz_unlabelled(d):
    case = ogb_npz(d)
    labels = np.array(LABELS, np.float32)
    labels[[9, 11]] = np.nan
    npz(case.path / "raw/node-label.npz", True, node_label=labels.reshape(-1, 1))
    case.name, case.expected = "ogb npz NaN", dict(PLAIN, labels=[-1 if v in (9, 11) else c for v, c in enumerate(LABELS)])
    return case


def adjacency():
    matrix = np.zeros((NODES, NODES), np.float32)
    for a, b in set(EDGES):
        matrix[a, b] = 1
    return matrix


def saint(d, several=False):
    # SciPy's save_npz: plain arrays and the name of the format. Repeated edges are repeated
    # indices.
    order = sorted(EDGES)
    indptr = np.searchsorted([a for a, _ in order], np.arange(NODES + 1))
    npz(d / "adj_full.npz", True, indices=np.array([b for _, b in order], np.int32), indptr=indptr.astype(np.int32),
        format=np.array(b"csr"), shape=np.array([NODES, NODES]), data=np.ones(len(EDGES), bool))
    npy(d / "feats.npy", np.asfortranarray(FEATURES.astype(np.float64)))
    classes = {str(v): TARGETS[v].tolist() if several else LABELS[v] for v in range(NODES)}
    (d / "class_map.json").write_text(json.dumps(classes))
    (d / "role.json").write_text(json.dumps(dict(tr=TRAIN, va=VAL, te=TEST)))
    several_labels = dict(PLAIN, labels=[], targets=TARGETS.tolist(), classes=4)
    return Case("saint several" if several else "saint", d, several_labels if several else PLAIN)


def saint_several(d):
    return saint(d, True)


def dgl_reddit(d):
    kinds = np.zeros(NODES, np.int64)
    for i, ids in enumerate((TRAIN, VAL, TEST)):
        kinds[ids] = i + 1
    npz(d / "reddit_data.npz", feature=FEATURES, label=np.array(LABELS, np.int32), node_types=kinds, node_ids=np.arange(NODES))
    edges = np.array(EDGES, np.int32)
    npz(d / "reddit_graph.npz", row=edges[:, 0], col=edges[:, 1], data=np.ones(len(EDGES)), shape=[NODES, NODES], format="coo")
    return Case("dgl-reddit", d, PLAIN)


def both_ways(edges):
    return edge_rows({(a, b) for e in edges for a, b in (e, e[::-1]) if a != b})


def shchur(d):
    data, indices, indptr = old_pickle.csr_parts(adjacency())
    values, columns, starts = old_pickle.csr_parts(FEATURES)
    npz(d / "amazon.npz", True, adj_data=data, adj_indices=indices, adj_indptr=indptr, adj_shape=[NODES, NODES],
        attr_data=values, attr_indices=columns, attr_indptr=starts, attr_shape=FEATURES.shape, labels=LABELS,
        class_names=np.array(["a", "b"], object))
    return Case("shchur", d / "amazon.npz", dict(PLAIN, edges=both_ways(EDGES), train=[], val=[], test=[]))


def geom_gcn(d, film=False):
    lists = [sorted(random.Random(v).sample(range(932), 1 + v % 4)) for v in range(NODES)]
    binary = (FEATURES > 0).astype(int)
    body = [",".join(map(str, lists[v] if film else binary[v])) for v in range(NODES)]
    text(d / "out1_node_feature_label.txt",
         ["node_id\tfeature\tlabel"] + [f"{v}\t{body[v]}\t{LABELS[v]}" for v in reversed(range(NODES))])
    text(d / "out1_graph_edges.txt", ["node_id\tnode_id"] + [f"{a}\t{b}" for a, b in EDGES])
    for k in (0, 1):
        train, val, test = masks((TRAIN, VAL, TEST) if k == 1 else (VAL, TRAIN, TEST))
        npz(d / f"film_split_0.6_0.2_{k}.npz", train_mask=train, val_mask=val, test_mask=test)
    features = np.zeros((NODES, 932)) if film else binary
    for v in range(NODES if film else 0):
        features[v, lists[v]] = 1
    expected = dict(PLAIN, edges=edge_rows(set(EDGES)), features=features.astype(float).tolist())
    return Case("geom-gcn film" if film else "geom-gcn", d, expected, "geom-gcn:1")


def geom_gcn_film(d):
    return geom_gcn(d, True)


def planetoid(d, protocol=2):
    # Vertices 0 to 6 are in allx; of the test ids 7 to 11, number 10 has no row, as in Citeseer.
    test = [9, 7, 11, 8]
    onehot = np.eye(CLASSES, dtype=np.int32)[LABELS]
    features = np.abs(FEATURES)
    d.mkdir(parents=True, exist_ok=True)
    for name, value in dict(x=old_pickle.csr_matrix(features[:4]), allx=old_pickle.csr_matrix(features[:7]),
                            tx=old_pickle.csr_matrix(features[test]), y=onehot[:4], ally=onehot[:7], ty=onehot[test],
                            graph=old_pickle.adjacency_dict(EDGES, NODES)).items():
        (d / f"ind.tiny.{name}").write_bytes(old_pickle.python2(value, protocol))
    text(d / "ind.tiny.test.index", test)
    features[10] = 0
    labels = [-1 if v == 10 else c for v, c in enumerate(LABELS)]
    expected = dict(PLAIN, edges=both_ways(EDGES), features=features.tolist(), labels=labels, train=[0, 1, 2, 3], val=[4, 5, 6],
                    test=sorted(test), name="tiny")
    return Case(f"planetoid protocol {protocol}", d, expected)


def planetoid_1(d):
    return planetoid(d, 1)


def linqs(d):
    names = [f"paper{31 * v % 17}" for v in range(NODES)]
    words = ["Theory", "Agents", "ML"]  # in order of name: 2, 0, 1
    number = {"Agents": 0, "ML": 1, "Theory": 2}
    text(d / "cora.content", [f"{names[v]}\t" + "\t".join(str(float(x)) for x in FEATURES[v]) + "\t" + words[LABELS[v]]
                              for v in range(NODES)])
    text(d / "cora.cites", [f"{names[b]}\t{names[a]}" for a, b in EDGES] + ["unknown\tpaper0"])
    return Case("linqs", d, dict(PLAIN, labels=[number[words[c]] for c in LABELS], train=[], val=[], test=[], node_names=names))


def dgl_csv(d):
    text(d / "meta.yaml", ["dataset_name: tiny", "edge_data:", "- file_name: edges.csv", "node_data:", "- file_name: nodes.csv"])
    order = list(range(NODES))
    random.Random(5).shuffle(order)
    flags = masks()
    text(d / "nodes.csv", ["node_id,label,train_mask,val_mask,test_mask,feat"] + [
        f'{v},{LABELS[v]},{flags[0][v]},{int(flags[1][v])},{flags[2][v]},"{", ".join(str(float(x)) for x in FEATURES[v])}"'
        for v in order])
    text(d / "edges.csv", ["src_id,dst_id"] + [f"{a},{b}" for a, b in EDGES])
    return Case("dgl-csv", d, dict(PLAIN, name="tiny", original_ids=[]))


def graphbolt(d, format="numpy"):
    meta = ["dataset_name: tiny", "graph:", "  nodes:", f"    - num: {NODES}", "  edges:", f"    - format: {format}",
            "      path: edges/cites", "feature_data:", "  - {domain: node, type: null, name: feat, format: numpy, in_memory: true, path: data/x.npy}",
            "tasks:", "  - name: node_classification", f"    num_classes: {CLASSES}"]
    d.mkdir(parents=True, exist_ok=True)
    (d / "edges").mkdir()
    if format == "numpy":
        with open(d / "edges/cites", "wb") as file:
            np.save(file, pairs(EDGES))
    else:
        text(d / "edges/cites", [f"{a},{b}" for a, b in EDGES])
    npy(d / "data/x.npy", FEATURES)
    rest = [v for v in range(NODES) if v not in TRAIN + VAL + TEST]
    labels = [-1 if v in rest else c for v, c in enumerate(LABELS)]
    for name, ids in (("train", TRAIN), ("validation", VAL), ("test", TEST)):
        meta += [f"    {name}_set:", "      - data:"]
        for part, values in (("seeds", ids), ("labels", [LABELS[v] for v in ids])):
            npy(d / f"data/{name}_{part}.npy", np.array(values))
            meta += [f"          - name: {part}", "            format: numpy", f"            path: data/{name}_{part}.npy"]
    text(d / "metadata.yaml", meta)
    return Case("graphbolt " + format, d, dict(PLAIN, labels=labels))


def graphbolt_csv(d):
    return graphbolt(d, "csv")


BARE = dict(nodes=NODES, features=None, labels=[], classes=0, train=[], edge_types=1)


def matrix_market(d):
    weights = [i / 4 for i in range(len(EDGES))]
    text(d / "graph.mtx", ["%%MatrixMarket matrix coordinate real general", "% a comment", f"{NODES} {NODES} {len(EDGES)}"] +
         [f"{a + 1} {b + 1} {w}" for (a, b), w in zip(EDGES, weights)])
    return Case("mtx", d / "graph.mtx", dict(BARE, edges=edge_rows(EDGES, weights)))


def matrix_market_symmetric(d):
    lower = sorted({(max(e), min(e)) for e in EDGES})
    text(d / "graph.mtx.gz", ["%%MatrixMarket matrix coordinate pattern symmetric", f"{NODES} {NODES} {len(lower)}"] +
         [f"{a + 1} {b + 1}" for a, b in lower])
    return Case("mtx symmetric", d / "graph.mtx.gz", dict(BARE, edges=edge_rows(lower + [(b, a) for a, b in lower if a != b])))


def snap(d):
    ids = [10**12 - 7 * v for v in range(NODES)]  # falling, beyond 32 bits
    used = sorted({ids[v] for e in EDGES for v in e})
    place = {v: used.index(ids[v]) for e in EDGES for v in e}
    text(d / "web.txt.gz", ["# Directed graph", "# FromNodeId\tToNodeId"] + [f"{ids[a]}\t{ids[b]}" for a, b in EDGES])
    return Case("snap", d / "web.txt.gz", dict(nodes=len(used), edges=edge_rows([(place[a], place[b]) for a, b in EDGES]),
                                               original_ids=used, features=None), "snap")


# Several kinds: 12 papers, 5 authors, 3 institutions.

AUTHORS, INSTITUTIONS = 5, 3
WRITES = [(0, 0), (0, 1), (1, 1), (2, 11), (4, 11)]
AFFILIATED = [(0, 2), (1, 0), (4, 2), (4, 2)]
AUTHOR_FEATURES = np.array([[v + 0.5, -v] for v in range(AUTHORS)], np.float32)


def kinds(types, relations, features, **more):
    """Returns what reading a set of several kinds must give. `types` are (name, count), and
    `relations` are (source, name, destination, edges)."""
    names = [name for name, _ in types]
    offsets = [sum(count for _, count in types[:k]) for k in range(len(types) + 1)]
    edges, triples = [], []
    for r, (src, name, dst, part) in enumerate(relations):
        a, b = offsets[names.index(src)], offsets[names.index(dst)]
        edges += [[a + s, b + t, r, 1] for s, t in part]
        triples.append([names.index(src), name, names.index(dst)])
    paper = offsets[names.index("paper")]
    labels = [-1] * offsets[-1]
    labels[paper:paper + NODES] = LABELS
    expected = dict(nodes=offsets[-1], edges=sorted(edges), edge_types=len(relations), node_types=names, node_offsets=offsets,
                    relations=triples, features=None, labels=labels, classes=CLASSES, targets=None,
                    type_features=[features[n].tolist() if n in features else None for n in names])
    for part, ids in (("train", TRAIN), ("val", VAL), ("test", TEST)):
        expected[part] = [paper + v for v in ids]
    return dict(expected, **more)


SORTED_KINDS = kinds([("author", AUTHORS), ("institution", INSTITUTIONS), ("paper", NODES)],
                     [("author", "affiliated_with", "institution", AFFILIATED), ("author", "writes", "paper", WRITES),
                      ("paper", "cites", "paper", EDGES)], dict(paper=FEATURES))
RELATIONS = {"paper___cites___paper": EDGES, "author___writes___paper": WRITES,
             "author___affiliated_with___institution": AFFILIATED}


def ogb_hetero_csv(d):
    d = d / "ogbn_mag"
    text(d / "raw/num-node-dict.csv.gz", ["paper,author,institution", f"{NODES},{AUTHORS},{INSTITUTIONS}"])
    text(d / "raw/triplet-type-list.csv.gz", [key.replace("___", ",") for key in RELATIONS])
    for key, edges in RELATIONS.items():
        text(d / f"raw/relations/{key}/edge.csv.gz", [f"{a},{b}" for a, b in edges])
        text(d / f"raw/relations/{key}/num-edge-list.csv.gz", [len(edges)])
        text(d / f"raw/relations/{key}/edge_reltype.csv.gz", [0] * len(edges))
    text(d / "raw/nodetype-has-label.csv.gz", ["paper,author,institution", "True,False,False"])
    text(d / "raw/node-feat/paper/node-feat.csv.gz", rows(FEATURES))
    text(d / "raw/node-label/paper/node-label.csv.gz", LABELS)
    text(d / "split/time/nodetype-has-split.csv.gz", ["paper,author,institution", "True,False,False"])
    ogb_splits(d / "split/time/paper")
    return Case("ogb-hetero csv", d, SORTED_KINDS)


def ogb_hetero_npz(d):
    npz(d / "raw/edge_index_dict.npz", **{key: pairs(edges) for key, edges in RELATIONS.items()})
    npz(d / "raw/num_nodes_dict.npz", paper=NODES, author=AUTHORS, institution=INSTITUTIONS)
    npz(d / "raw/node_feat.npz", paper=FEATURES)
    npz(d / "raw/node-label.npz", paper=np.array(LABELS).reshape(-1, 1))
    ogb_splits(d / "split/time/paper")
    return Case("ogb-hetero npz", d, SORTED_KINDS)


def mag240m(d):
    d = d / "mag240m_kddcup2021"
    npy(d / "processed/paper/node_feat.npy", FEATURES.astype(np.float16))
    labels = np.array(LABELS, np.float32)
    labels[8] = np.nan
    npy(d / "processed/paper/node_label.npy", labels)
    for key, edges in RELATIONS.items():
        npy(d / f"processed/{key}/edge_index.npy", pairs(edges))
    old_pickle.torch_file(d / "meta.pt", dict(paper=NODES, author=AUTHORS, institution=INSTITUTIONS + 1, num_classes=CLASSES))
    old_pickle.torch_file(d / "split_dict.pt", dict(train=np.array(TRAIN), valid=old_pickle.Tensor(VAL), test=np.array(TEST)))
    expected = kinds([("paper", NODES), ("author", AUTHORS), ("institution", INSTITUTIONS + 1)],
                     [("author", "affiliated_with", "institution", AFFILIATED), ("author", "writes", "paper", WRITES),
                      ("paper", "cites", "paper", EDGES)], dict(paper=FEATURES))
    expected["labels"][8], expected["test"] = -1, [7, 10]
    return Case("mag240m", d, expected)


def igb(d):
    d = d / "tiny"
    npy(d / "processed/paper/node_feat.npy", FEATURES)
    npy(d / "processed/paper/node_label_19.npy", np.array(LABELS, np.float32))
    npy(d / "processed/paper__cites__paper/edge_index.npy", pairs(EDGES).T)
    old_pickle.torch_file(d / "processed/train_idx.pt", old_pickle.Tensor(TRAIN))
    old_pickle.torch_file(d / "processed/val_idx.pt", old_pickle.Tensor(VAL))
    return Case("igb", d, dict(PLAIN, test=[]))


def igbh(d):
    """Writes papers and authors without a header, as the large sets have them."""
    wide = np.zeros((NODES, 1024), np.float32)
    wide[:, :5] = FEATURES
    people = np.ones((AUTHORS, 1024), np.float32)
    for kind, features in (("paper", wide), ("author", people)):
        (d / f"processed/{kind}").mkdir(parents=True)
        (d / f"processed/{kind}/node_feat.npy").write_bytes(features.tobytes())
    (d / "processed/paper/node_label_2K.npy").write_bytes(np.array(LABELS, np.float32).tobytes())
    npy(d / "processed/institute/node_feat.npy", AUTHOR_FEATURES[:INSTITUTIONS])
    written = [(b, a) for a, b in WRITES]
    for key, edges in (("paper__cites__paper", EDGES), ("paper__written_by__author", written),
                       ("author__affiliated_to__institute", AFFILIATED)):
        npy(d / f"processed/{key}/edge_index.npy", np.array(edges))
    expected = kinds([("paper", NODES), ("author", AUTHORS), ("institute", INSTITUTIONS)],
                     [("author", "affiliated_to", "institute", AFFILIATED), ("paper", "cites", "paper", EDGES),
                      ("paper", "written_by", "author", written)],
                     dict(paper=wide, author=people, institute=AUTHOR_FEATURES[:INSTITUTIONS]))
    for part in ("train", "val", "test"):  # drawn at random; the test looks at their sizes
        del expected[part]
    return Case("igbh", d, expected, "igb:2K")


def igbh_large(d):
    """Writes enough edges for several sorted runs, and features of three kinds. Fields of study
    (fos) have no features."""
    rng = np.random.default_rng(3)
    counts = dict(paper=20000, author=3000, institute=50, fos=400)
    for kind, width in (("paper", 256), ("author", 2048), ("institute", 8)):
        npy(d / f"processed/{kind}/node_feat.npy", rng.integers(-8, 9, (counts[kind], width)).astype(np.float32) / 4)
    npy(d / "processed/paper/node_label_19.npy", rng.integers(0, 19, counts["paper"]).astype(np.float32))
    for src, name, dst, edges in (("paper", "cites", "paper", 500000), ("paper", "written_by", "author", 150000),
                                  ("author", "affiliated_to", "institute", 5000), ("paper", "topic", "fos", 100000)):
        ends = [rng.integers(0, counts[kind], edges) for kind in (src, dst)]
        npy(d / f"processed/{src}__{name}__{dst}/edge_index.npy", np.stack(ends, axis=1))
    return Case("igbh large", d, {}, "igb")


def dgl_csv_kinds(d):
    """Writes tables with words as ids and semicolons as separators. The rows of both tables of
    nodes are in another order than the vertices."""
    text(d / "meta.yaml", ["version: 1.0.0", "dataset_name: words", "separator: ';'", "edge_data:", "  - file_name: writes.csv",
                           "    etype: [author, writes, paper]", "    src_id_field: who", "    dst_id_field: what",
                           "  - file_name: cites.csv", "    etype:", "      - paper", "      - cites", "      - paper",
                           "node_data:", "  - file_name: authors.csv", "    ntype: author", "  - file_name: papers.csv",
                           "    ntype: paper", "    node_id_field: doi"])
    who = [f"author {chr(97 + v)}" for v in range(AUTHORS)]
    what = [f"10.1/{v:03}" for v in range(NODES)]
    flags = masks()
    text(d / "authors.csv", ["node_id;feat"] + [f'"{who[v]}";{AUTHOR_FEATURES[v, 0]},{AUTHOR_FEATURES[v, 1]}'
                                               for v in reversed(range(AUTHORS))])
    text(d / "papers.csv", ["doi;label;year;train_mask;val_mask;test_mask"] + [
        f"{what[v]};{LABELS[v]};1999;{flags[0][v]};{flags[1][v]};{flags[2][v]}" for v in reversed(range(NODES))])
    text(d / "writes.csv", ["who;what"] + [f"{who[a]};{what[b]}" for a, b in WRITES])
    text(d / "cites.csv", ["src_id;dst_id"] + [f"{what[a]};{what[b]}" for a, b in EDGES])
    return Case("dgl-csv kinds", d, kinds(
        [("author", AUTHORS), ("paper", NODES)], [("author", "writes", "paper", WRITES), ("paper", "cites", "paper", EDGES)],
        dict(author=AUTHOR_FEATURES), node_names=who + what))


def graphbolt_kinds(d):
    meta = ["dataset_name: mag", "graph:", "  nodes:", f"  - {{type: author, num: {AUTHORS}}}", f"  - {{type: paper, num: {NODES}}}",
            "  edges:", "  - {type: 'author:writes:paper', format: csv, path: writes.csv}",
            "  - {type: 'paper:cites:paper', format: numpy, path: cites.npy}", "feature_data:",
            "- {domain: node, type: paper, name: feat, format: numpy, path: x.npy}",
            "- {domain: node, type: author, name: feat, format: numpy, path: authors.npy}", "tasks:", "- name: other",
            "- name: classes", f"  num_classes: {CLASSES}"]
    text(d / "writes.csv", [f"{a},{b}" for a, b in WRITES])
    npy(d / "cites.npy", pairs(EDGES))
    npy(d / "x.npy", FEATURES)
    npy(d / "authors.npy", AUTHOR_FEATURES)
    for name, ids in (("train", TRAIN + [9, 11]), ("validation", VAL), ("test", TEST)):
        npy(d / f"{name}.npy", np.array(ids))
        npy(d / f"{name}_y.npy", np.array([LABELS[v] for v in ids]))
        meta += [f"  {name}_set:", "  - type: paper", "    data:", f"    - {{name: seeds, format: numpy, path: {name}.npy}}",
                 f"    - {{name: labels, format: numpy, path: {name}_y.npy}}"]
    text(d / "metadata.yaml", meta)
    expected = kinds([("author", AUTHORS), ("paper", NODES)], [("author", "writes", "paper", WRITES), ("paper", "cites", "paper", EDGES)],
                     dict(author=AUTHOR_FEATURES, paper=FEATURES))
    expected["train"] = [AUTHORS + v for v in TRAIN + [9, 11]]
    return Case("graphbolt kinds", d, expected, "graphbolt:classes")


TRIPLES = [[("a", "likes", "b"), ("b", "likes", "c"), ("c", "knows", "a"), ("c", "knows", "a")], [("a", "knows", "d")],
           [("d", "likes", "a"), ("b", "knows", "b")]]


def triples(d, numbered=False, dictionary=False):
    words, relations = (["d", "c", "b", "a"], ["knows", "likes"]) if dictionary else (["a", "b", "c", "d"], ["likes", "knows"])
    code = [[[words.index(h), words.index(t), relations.index(r)] for h, r, t in part] for part in TRIPLES]
    for name, part, numbers in zip(("train", "valid", "test"), TRIPLES, code):
        text(d / f"{name}.txt", [f"{h} {r} {t}" for h, t, r in numbers] if numbered else ["\t".join(triple) for triple in part])
    if dictionary:
        text(d / "entities.dict", [f"{i}\t{w}" for i, w in enumerate(words)])
        text(d / "relations.dict", [f"{i}\t{w}" for i, w in enumerate(relations)])
    expected = dict(nodes=4, edges=sorted([h, t, r, 1] for h, t, r in code[0]), edge_types=2, node_types=["entity"], node_offsets=[0, 4],
                    relations=[[0, str(i) if numbered else r, 0] for i, r in enumerate(relations)], val_edges=code[1],
                    test_edges=code[2], node_names=[] if numbered else words)
    return Case(f"triples{' numbered' if numbered else ''}{' dictionary' if dictionary else ''}", d, expected)


def triples_numbered(d):
    return triples(d, numbered=True)


def triples_dictionary(d):
    return triples(d, dictionary=True)


def lightgcn(d):
    train, test = {0: [0, 2], 1: [], 2: [1, 2, 3]}, {0: [4], 3: [0, 1]}
    for name, lists in (("train", train), ("test", test)):
        text(d / f"{name}.txt", [" ".join(map(str, [user] + items)) for user, items in lists.items()])
    users, items = 4, 5
    taken = [(u, users + i) for u, part in train.items() for i in part]
    expected = dict(nodes=users + items, node_types=["user", "item"], node_offsets=[0, users, users + items], edge_types=2,
                    relations=[[0, "takes", 1], [1, "rev_takes", 0]],
                    edges=sorted([[a, b, 0, 1] for a, b in taken] + [[b, a, 1, 1] for a, b in taken]),
                    test_edges=[[u, users + i, 0] for u, part in test.items() for i in part])
    return Case("lightgcn", d, expected)


# These hold the same graph, features, labels and splits.
SAME = [edges_and_files, one_npz, ogb_csv, ogb_npz, saint, dgl_reddit, dgl_csv]
OTHERS = [ogb_products, ogb_proteins, ogb_npz_unlabelled, saint_several, shchur, geom_gcn, geom_gcn_film, planetoid, planetoid_1, linqs,
          graphbolt, graphbolt_csv, matrix_market, matrix_market_symmetric, snap, ogb_hetero_csv, ogb_hetero_npz, mag240m, igb, igbh,
          dgl_csv_kinds, graphbolt_kinds, triples, triples_numbered, triples_dictionary, lightgcn]


def write(writer, folder):
    folder = Path(folder) / writer.__name__
    folder.mkdir(parents=True)
    return writer(folder)


def write_all(folder):
    return [write(writer, folder) for writer in SAME + OTHERS]
