#!/usr/bin/env python3
"""Writes the corpus of fuzz_folder: every small layout of tests/data/write_formats.py as one input.

    python3 tests/fuzz/pack_folders.py tests/fuzz/corpus/folder
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))
import write_formats as w

WRITERS = [w.ogb_csv, w.ogb_npz, w.ogb_hetero_csv, w.ogb_hetero_npz, w.mag240m, w.igb, w.saint, w.saint_several, w.dgl_reddit, w.shchur,
           w.geom_gcn, w.planetoid, w.linqs, w.dgl_csv, w.dgl_csv_kinds, w.graphbolt, w.graphbolt_csv, w.graphbolt_kinds, w.matrix_market,
           w.snap, w.triples, w.triples_dictionary, w.lightgcn]
FORMATS = {"ogb": "ogb", "ogb_hetero": "ogb-hetero", "saint": "saint", "geom_gcn": "geom-gcn", "dgl_csv": "dgl-csv", "dgl_reddit": "dgl-reddit",
           "graphbolt": "graphbolt", "matrix_market": "mtx", "triples": "triples"}


def format_of(writer):
    names = [prefix for prefix in FORMATS if writer.__name__.startswith(prefix)]
    return FORMATS[max(names, key=len)] if names else writer.__name__


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for writer in WRITERS:
        with tempfile.TemporaryDirectory() as folder:
            case = w.write(writer, folder)
            root = case.path if case.path.is_dir() else case.path.parent
            packed = (case.format or format_of(writer)).encode()
            for file in sorted(p for p in root.rglob("*") if p.is_file()):
                packed += b"\n--- " + str(file.relative_to(root)).encode() + b"\n" + file.read_bytes()
            (target / writer.__name__).write_bytes(packed)
