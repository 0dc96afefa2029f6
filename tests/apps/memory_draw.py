"""Random runs for memory_test.py: data of every kind, and options of every kind."""
import array
import gzip
import random
import re

import cli

# Few and many features, sparse and dense graphs, several labels at once, typed edges; some take 100
# to 300 MiB.
TWINS = ("cora", "citeseer", "arxiv@0.05", "arxiv@0.5", "reddit@0.02", "reddit@0.05", "cs@0.1", "cs@0.25",
         "products@0.01", "products@0.05", "yelp@0.03", "mag@0.02", "proteins@0.02", "flickr@0.2")
KINDS = ("twin", "twin", "nacre", "nacre", "npz", "ogb", "saint", "edges", "csv", "gz", "words", "mtx", "snap")
MODELS = ("gcn", "sage", "sage-lstm", "gat", "gatv2", "gin", "rgcn", "mlp", "ngcf", "lightgcn")
SAMPLERS = ("neighbor", "neighbor", "layer", "saint-vertex", "saint-edge", "saint-walk")
# Nodes and features of lists of edges.
LISTS = ((2000, 16), (20000, 256), (50000, 512), (200000, 32))
USERS = ((2000, 3000, 40000), (20000, 30000, 600000))


class Drawer:
    """Draws the arguments of runs, and makes their data in the folder of a test."""

    def __init__(self, test):
        self.test, self.dir = test, test.dir

    # ---- data

    def data(self, draw):
        """Returns arguments that name a data set."""
        kind = draw.choice(KINDS)
        if kind in ("edges", "csv", "gz", "words", "mtx", "snap"):
            return self.list_of_edges(draw, kind)
        twin = draw.choice(TWINS)
        if kind == "twin":
            return [f"twin:{twin}"]
        name = re.sub(r"\W", "_", twin)
        stored = f"{name}.nacre"
        if not (self.dir / stored).exists():
            self.test.ok("data", "make", f"twin:{twin}", stored, timeout=300)
        if kind == "nacre":
            return [stored]
        # These layouts cannot hold everything.
        format_of = {"npz": "npz", "ogb": "ogb", "saint": "saint"}
        target = f"{name}.npz" if kind == "npz" else f"{name}_{kind}"
        if not (self.dir / target).exists():
            made = self.test.nacre("data", "export", stored, target, "--format", format_of[kind], timeout=300)
            if made.code != 0:
                return [stored]
        return [target]

    def list_of_edges(self, draw, kind, size=None):
        nodes, width = size or draw.choice(LISTS)
        self.make_files_of_nodes(nodes, width)
        name = f"list_{nodes}"
        ending = {"edges": "txt", "csv": "csv", "gz": "txt.gz", "words": "words", "mtx": "mtx", "snap": "snap"}[kind]
        path = self.dir / f"{name}.{ending}"
        if not path.exists():
            noise = random.Random(nodes)
            pairs = [(noise.randrange(nodes), noise.randrange(nodes)) for _ in range(5 * nodes)]
            path.write_bytes(self.text(kind, nodes, pairs))
        options = [path.name]
        if kind == "snap":
            options += ["--format", "snap"]
        if kind in ("words", "snap"):
            # Nodes are numbered by the file: what belongs to them is made or drawn.
            options += ["--labels", self.labels_by_name(nodes, kind), "--split", "random:0.5/0.2/0.3"]
            options += ["--features", draw.choice(("degree", "learned"))]
        else:
            options += ["--labels", f"{name}.labels", "--splits", f"{name}.splits"]
            options += [] if kind == "mtx" else ["--num-nodes", nodes]
            made = ("degree", "learned") + (("onehot",) if nodes < 5000 else ())
            options += ["--features", draw.choice((f"{name}.npy", f"{name}.npy", f"{name}.x.csv", *made))]
        return options + ["--lr", "1e-30"] + (["--undirected"] if draw.random() < 0.5 else [])

    @staticmethod
    def text(kind, nodes, pairs):
        if kind == "csv":
            return ("src,dst\n" + "".join(f"{a},{b}\n" for a, b in pairs)).encode()
        if kind == "words":
            return "".join(f"node-{a} node-{b}\n" for a, b in pairs).encode()
        if kind == "snap":
            return "".join(f"{7 * a + 5} {7 * b + 5}\n" for a, b in pairs).encode()
        if kind == "mtx":
            head = f"%%MatrixMarket matrix coordinate pattern general\n{nodes} {nodes} {len(pairs)}\n"
            return (head + "".join(f"{a + 1} {b + 1}\n" for a, b in pairs)).encode()
        lines = "".join(f"{a} {b}\n" for a, b in pairs).encode()
        return gzip.compress(lines, 1) if kind == "gz" else lines

    def make_files_of_nodes(self, nodes, width):
        name = f"list_{nodes}"
        if (self.dir / f"{name}.npy").exists():
            return
        self.test.write(f"{name}.labels", "".join(f"{v % 7}\n" for v in range(nodes)))
        parts = ("train\n", "train\n", "val\n", "test\n")
        self.test.write(f"{name}.splits", "".join(parts[v % 4] for v in range(nodes)))
        noise = random.Random(nodes)
        payload = array.array("f", [noise.random() - 0.5 for _ in range(1 << 16)]).tobytes()
        wanted = nodes * width * 4
        payload = (payload * (wanted // len(payload) + 1))[:wanted]
        self.test.write(f"{name}.npy", cli.npy(payload, (nodes, width), "<f4"))
        row = ",".join(f"{noise.random():.4f}" for _ in range(min(width, 24)))
        self.test.write(f"{name}.x.csv", (row + "\n") * nodes)

    def labels_by_name(self, nodes, kind):
        name = f"list_{nodes}.{kind}.labels"
        if not (self.dir / name).exists():
            of = (lambda v: f"node-{v}") if kind == "words" else (lambda v: str(7 * v + 5))
            edges = (self.dir / f"list_{nodes}.{kind}").read_text().split()
            there = set(edges)
            self.test.write(name, "".join(f"{of(v)},{v % 7}\n" for v in range(nodes) if of(v) in there))
        return name

    def pairs_of_users(self, draw):
        """Returns an argument that names an .npz file or a folder of users and items."""
        users, items, count = draw.choice(USERS)
        name = f"users_{users}"
        folder = self.dir / name
        if not folder.exists():
            noise = random.Random(users)
            folder.mkdir()
            with open(folder / "train.txt", "w") as train, open(folder / "test.txt", "w") as test:
                for user in range(users):
                    chosen = noise.sample(range(items), count // users)
                    train.write(f"{user} {' '.join(map(str, chosen[:-2]))}\n")
                    test.write(f"{user} {' '.join(map(str, chosen[-2:]))}\n")
        target = f"{name}.npz"
        if not (self.dir / target).exists():
            made = self.test.nacre("data", "export", name, target, timeout=300)
            if made.code != 0:
                return [name]
        return [draw.choice((name, target))]

    # ---- options

    def run(self, draw):
        """Returns the arguments of nacre train, except for where the run is kept, and whether the
        run recommends."""
        recommends = draw.random() < 0.08
        data = self.pairs_of_users(draw) if recommends else self.data(draw)
        model = draw.choice(("lightgcn", "ngcf")) if recommends else draw.choice(MODELS)
        if model == "sage-lstm" and any(dense in data[0] for dense in ("reddit", "proteins")):
            model = "sage"  # an LSTM over thousands of neighbours takes minutes
        layers = draw.choice((1, 2, 2, 3))
        options = ["--device", "cpu", "--json", "--data", *data, "--model", model, "--layers", layers, "--seed",
                   draw.randrange(1000), "--threads", draw.choice((1, 2, 3, 4)), "--epochs", draw.choice((1, 2))]
        if layers > 1 or model in ("gin", "lightgcn", "ngcf") or "learned" in data:
            options += ["--hidden", draw.choice((8, 16, 64, 128))]
        options += ["--plan", draw.choice(("off", "off", "auto", "vertex"))]
        options += self.training(draw, recommends)
        if recommends:
            # Every batch walks the whole graph: small batches of many pairs take minutes.
            return options + ["--batch-size", draw.choice((4096, 16384) if "20000" in data[0] else (512, 4096))]
        if draw.random() < 0.2:
            options += ["--normalize-features", draw.choice(("row", "none"))]
        if draw.random() >= 0.4:
            return options
        narrow = "learned" not in data and draw.random() < 0.3
        return options + self.batches(draw, layers, model) + (["--feature-type", "bf16"] if narrow else [])

    @staticmethod
    def training(draw, recommends):
        options = ["--optimizer", draw.choice(("adam", "adam", "adamw", "sgd"))]
        sometimes = [["--dropout", 0.5], ["--ema", 0.9], ["--clip-grad-norm", 1], ["--select", "loss"]]
        if not recommends:
            sometimes += [["--norm", draw.choice(("layer", "batch"))], ["--label-smoothing", 0.1],
                          ["--class-weights", "balanced"], ["--residual"], ["--recompute", "fit"],
                          ["--metric", draw.choice(("macro_f1", "roc_auc", "average_precision"))]]
        for option in sometimes:
            if draw.random() < 0.15:
                options += option
        return options

    @staticmethod
    def batches(draw, layers, model):
        options = ["--mode", "minibatch", "--batch-size", draw.choice((64, 512, 2048)), "--prefetch",
                   draw.choice((0, 1, 3))]
        sampler = draw.choice(SAMPLERS)
        options += ["--sampler", sampler]
        if sampler == "neighbor":
            fanout = [draw.choice((5, 10, -1 if layers < 3 else 15)) for _ in range(layers)]
            options += ["--fanout", ",".join(map(str, fanout))] + (["--replace"] if draw.random() < 0.2 else [])
        elif sampler == "layer":
            options += ["--fanout", ",".join(["256"] * layers)]
        else:
            options += ["--norm-samples", 5]
        # A model without neighbours takes no numbers of neighbours.
        return options[:options.index("--fanout")] if model == "mlp" and "--fanout" in options else options
