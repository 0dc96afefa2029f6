#!/usr/bin/env python3
"""Tests nacre partition: parts, figures, files, the cache, and what is refused."""
import array
import json
import random

import cli


def grid(side):
    """Returns the edges of a square grid, in both directions."""
    src, dst = [], []
    for v in range(side * side):
        for u in ([v + 1] if (v + 1) % side else []) + ([v + side] if v + side < side * side else []):
            src += [v, u]
            dst += [u, v]
    return src, dst


class Partition(cli.CliTest):
    def environment(self):
        return dict(super().environment(), NACRE_CACHE=str(self.dir / "cache"))

    def graph(self, src, dst, nodes, **more):
        members = {"edge_index": cli.npy(src + dst, (2, len(src))), "x": cli.npy([0.5] * nodes, (nodes, 1), "<f4"),
                   "y": cli.npy([v % 2 for v in range(nodes)]), **more}
        return self.write("graph.npz", cli.npz(members))

    def partition(self, *arguments):
        return self.ok("partition", "--data", "graph.npz", "--json", "-q", *arguments).last_json()

    def parts(self, name):
        data = self.read(name)
        values = array.array("i")
        values.frombytes(data[10 + int.from_bytes(data[8:10], "little"):])
        return list(values)

    def test_figures_agree_with_the_file(self):
        src, dst = grid(30)
        self.graph(src, dst, 900)
        for method in ("metis", "fennel", "range", "random"):
            made = self.partition("--shares", "1,2,4", "--method", method, "-o", "parts.npy", "--picture", "parts.svg")
            part = self.parts("parts.npy")
            self.assertEqual(len(part), 900)
            cut = sum(part[u] != part[v] for u, v in zip(src, dst))
            self.assertEqual((made["cut_edges"], made["num_edges"]), (cut, len(src)))
            self.assertEqual(made["method"], method)
            for p, figures in enumerate(made["parts"]):
                halo = {u for u, v in zip(src, dst) if part[v] == p and part[u] != p}
                self.assertEqual(figures["halo"], len(halo))
                self.assertEqual(figures["nodes"], part.count(p))
                self.assertEqual(figures["edges"], sum(part[v] == p for v in dst))
            self.assertEqual(made["volume"], sum(figures["halo"] for figures in made["parts"]))
            self.assertEqual(sum(map(sum, made["between"])), len(src))
            self.assertLess(made["imbalance"], 0.05)
            self.assertTrue(self.read("parts.svg").startswith(b"<svg "))
        self.assertLess(self.partition("--shares", "1,2,4")["cut_edges"], 0.2 * len(src))

    def test_text_for_people(self):
        self.graph(*grid(10), 100)
        text = self.ok("partition", "--data", "graph.npz", "--parts", 2).out
        for line in ("graph: 2 parts by metis", "cut ", "exchange ", "imbalance ", " part "):
            self.assertIn(line, text)

    def test_work_of_nodes_and_edges(self):
        # Node 0 has as many edges as all others have together.
        src = [v for v in range(1, 101)] + [v for v in range(1, 101)]
        dst = [0] * 100 + [v % 100 + 1 for v in range(1, 101)]
        self.graph(src, dst, 101)
        by_edges = self.partition("--parts", 2, "--row-work", 0, "--edge-work", 1)
        for part in by_edges["parts"]:
            self.assertTrue(97 <= part["edges"] <= 103, by_edges)
        by_nodes = self.partition("--parts", 2, "--row-work", 1, "--edge-work", 0)
        self.assertLessEqual(abs(by_nodes["parts"][0]["nodes"] - by_nodes["parts"][1]["nodes"]), 3)

    def test_the_cache(self):
        self.graph(*grid(20), 400)
        common = ("--shares", "1,3")
        self.assertFalse(self.partition(*common, "-o", "a.npy")["cached"])
        self.assertTrue(self.partition(*common, "-o", "b.npy")["cached"])
        self.assertEqual(self.read("a.npy"), self.read("b.npy"))
        for other in (("--seed", 1), ("--imbalance", 0.1), ("--row-work", 3), ("--no-partition-cache",),
                      ("--method", "fennel"), ("--method", "fennel", "--passes", 2)):
            self.assertFalse(self.partition(*common, *other)["cached"], other)
        # A damaged entry is made again.
        for entry in (self.dir / "cache" / "partitions").iterdir():
            entry.write_bytes(cli.resealed(entry.read_bytes(), b"\xff" * 800))
        self.assertFalse(self.partition(*common, "-o", "c.npy")["cached"])
        self.assertEqual(self.read("a.npy"), self.read("c.npy"))

    def test_threads_do_not_change_a_byte(self):
        noise = random.Random(1)
        nodes = 5000
        src = [noise.randrange(nodes) for _ in range(40_000)]
        dst = [noise.randrange(nodes) for _ in range(40_000)]
        self.graph(src, dst, nodes)
        for method in ("metis", "fennel", "random"):
            for threads in (1, 3):
                cache = () if method == "random" else ("--no-partition-cache",)
                self.partition("--shares", "1,2,3", "--method", method, "--threads", threads, *cache, "-o",
                               f"{method}{threads}.npy")
            self.assertEqual(self.read(f"{method}1.npy"), self.read(f"{method}3.npy"))

    def test_odd_graphs(self):
        self.graph([0, 0, 1], [0, 1, 1], 3)
        one = self.partition("--shares", "5")
        self.assertEqual((one["cut_edges"], one["imbalance"]), (0, 0))
        empty = self.partition("--shares", "1,0")
        self.assertEqual([p["nodes"] for p in empty["parts"]], [3, 0])
        many = self.partition("--parts", 7)
        self.assertEqual(sum(p["nodes"] for p in many["parts"]), 3)
        self.graph([], [], 10)
        for method in ("metis", "fennel", "range", "random"):
            none = self.partition("--parts", 2, "--method", method)
            self.assertEqual(none["cut_edges"], 0)
            self.assertEqual([p["nodes"] for p in none["parts"]], [5, 5])

    def test_users_and_items_and_types(self):
        pairs = [(u, i) for u in range(30) for i in range(12) if (u * 7 + i) % 5 == 0]
        self.write("users.npz", cli.npz({"train_user": cli.npy([u for u, _ in pairs]),
                                         "train_item": cli.npy([i for _, i in pairs]),
                                         "test_user": cli.npy([0]), "test_item": cli.npy([11])}))
        made = self.ok("partition", "--data", "users.npz", "--parts", 2, "--json", "-q").last_json()
        self.assertEqual(sum(p["nodes"] for p in made["parts"]), 42)
        typed = self.ok("partition", "--data", "twin:mag@0.0005", "--shares", "1,2", "--json", "-q").last_json()
        self.assertLess(typed["imbalance"], 0.04)

    def test_ids_of_the_source(self):
        self.write("edges.csv", "source,target\n" + "".join(f"n{v},n{(v + 1) % 20}\n" for v in range(20)))
        self.ok("partition", "--data", "edges.csv", "--parts", 2, "-o", "parts.npy")
        self.assertEqual(len(self.parts("parts.npy")), 20)
        self.assertIn("n0", self.read("parts.nodes.csv").decode())

    def test_what_is_refused(self):
        self.graph(*grid(5), 25)
        data = ("partition", "--data", "graph.npz")
        self.refused(*data, says="either --shares or --parts")
        self.refused(*data, "--shares", "1,2", "--parts", 2, says="either --shares or --parts")
        self.refused(*data, "--shares", "1,two", says="'two' is not a number")
        self.refused(*data, "--shares", "1,-1", says="-1 is not a share")
        self.refused(*data, "--shares", "0,0", says="all shares are 0")
        self.refused(*data, "--shares", "", says="no shares")
        self.refused(*data, "--parts", 2000, says="--parts")
        self.refused(*data, "--parts", 2, "--method", "mettis", says="did you mean 'metis'")
        self.refused(*data, "--parts", 2, "--passes", 3, says="is for the method fennel")
        self.refused(*data, "--parts", 2, "--method", "range", "--seed", 3, says="is for the methods metis and random")
        self.refused(*data, "--parts", 2, "--method", "random", "--imbalance", 0.1, says="metis and fennel")
        self.refused(*data, "--parts", 2, "--method", "range", "--no-partition-cache", says="metis and fennel")
        self.refused(*data, "--parts", 2, "--row-work", -1, says="--row-work")
        self.refused(*data, "--parts", 2, "--row-work", 0, "--edge-work", 0, says="neither nodes nor edges")
        self.refused(*data, "--parts", 2, "--imbalance", 0, says="--imbalance")
        self.refused(*data, "--parts", 2, "-o", "parts.csv", says="does not end in .npy")
        self.refused(*data, "--parts", 2, "--picture", "parts.png", says="does not end in .svg")
        self.refused(*data, "--parts", 2, "-o", "absent/parts.npy", says="absent")
        self.refused(*data, "--parts", 2, "--memory-limit", "1M", says="--memory-limit")
        self.refused(*data, "--parts", 2, "--data-seed", 3, says="--data-seed")
        self.refused("partition", "--data", "absent.npz", "--parts", 2, says="absent.npz")

    def test_the_bill_comes_first(self):
        for method in ("metis", "fennel", "range", "random"):
            result = self.ok("partition", "--data", "twin:arxiv", "--parts", 2, "--method", method, "--json")
            self.assertIn("partitioning ", result.err)
            bill = result.err.split("in all, at most")[1].split()
            size = float(bill[0]) * {"MiB": 1, "GiB": 1024}[bill[1]]
            if not cli.SANITIZED:
                self.assertLess(json.loads(result.out)["peak_mb"], size, method)


if __name__ == "__main__":
    cli.main()
