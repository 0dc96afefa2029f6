#!/usr/bin/env python3
"""Gives the program bad input. It must end with one clear line and exit code 2, leave nothing
behind, and take little time and memory."""
import gzip
import json
import os
import random
import stat
import struct

import cli

TWIN = "twin:cora@0.1"


class BadFiles(cli.CliTest):
    def refused_everywhere(self, name, **options):
        self.refused("train", "--data", name, "--checkpoint", "run", **options)
        return self.refused("data", "convert", name, "out.nacre", **options)

    def test_not_a_file(self):
        self.refused_everywhere("absent.npz", says="absent.npz")
        self.refused_everywhere("no/such/folder.nacre")
        self.refused_everywhere("", says="")
        (self.dir / "folder.npz").mkdir()
        self.refused_everywhere("folder.npz", says="folder.npz")
        if os.path.exists("/dev/null"):
            self.refused_everywhere("/dev/null")

    def test_empty_and_random_bytes(self):
        noise = random.Random(7)
        for ending in ("npz", "npy", "nacre", "txt", "csv", "tsv", "gz", "txt.gz", "mtx", "bin"):
            name = self.write("empty." + ending, b"")
            self.refused_everywhere(name, says=name)
            for size in (1, 100, 70000):
                name = self.write(f"noise{size}." + ending, noise.randbytes(size))
                self.refused("data", "info", name, says=name)

    def test_truncated(self):
        whole = cli.small_npz()
        self.write("whole.npz", whole)
        self.ok("data", "convert", "whole.npz", "whole.nacre")
        native = self.read("whole.nacre")
        packed = gzip.compress(b"0 1\n1 2\n" * 1000)
        for content, ending in ((whole, "npz"), (native, "nacre"), (packed, "txt.gz"), (cli.npy([0, 1, 1, 2], (2, 2)), "npy")):
            for share in (0.02, 0.3, 0.6, 0.9, 0.999):
                name = self.write("cut." + ending, content[:int(len(content) * share)])
                self.refused("data", "info", name, says=name)

    def test_damaged_bytes(self):
        self.write("whole.npz", cli.npz(cli.small_members(), compress=False))
        self.ok("data", "convert", "whole.npz", "whole.nacre")
        noise = random.Random(3)
        for source in ("whole.npz", "whole.nacre"):
            content = self.read(source)
            for _ in range(12):
                damaged = bytearray(content)
                for _ in range(3):
                    damaged[noise.randrange(len(damaged))] ^= 1 << noise.randrange(8)
                name = self.write("damaged" + os.path.splitext(source)[1], bytes(damaged))
                result = self.nacre("data", "info", name)
                # Bytes of padding and comments do not matter.
                self.assertIn(result.code, (0, 2), result)

    def test_wrong_types(self):
        complex_x = cli.npy(b"\0" * 16 * cli.NODES, (cli.NODES, 1), "<c16")
        objects = cli.npy(b"\x80\x04K\x01.", (1,), "|O")
        text = cli.npy(b"a\0\0\0" * cli.NODES, (cli.NODES,), "<U1")
        fractions = cli.npy([0.5] * cli.NODES, None, "<f4")
        flat = cli.npy([0, 1, 2, 3])
        for changes in ({"x": complex_x}, {"x": objects}, {"x": text}, {"y": text}, {"y": fractions}, {"y": objects},
                        {"edge_index": cli.npy([0.5] * 4, (2, 2), "<f8")}, {"edge_index": flat}, {"edge_index": objects},
                        {"edge_index": cli.npy([0] * 9, (3, 3))}, {"train_idx": cli.npy([0.25], None, "<f4")},
                        {"edge_index": None}, {"x": b"no array"}, {"x": b""},
                        {"x": cli.npy([1.0] * 10, (2, 5), "<f4")}, {"y": cli.npy([0, 1])}):
            name = self.write("bad.npz", cli.small_npz(**changes))
            self.refused_everywhere(name, says="bad.npz")

    def test_out_of_range(self):
        n = cli.NODES
        for changes in ({"edge_index": cli.npy([0, n, 1, 2], (2, 2))}, {"edge_index": cli.npy([0, -1, 1, 2], (2, 2))},
                        {"edge_index": cli.npy([0, 1 << 40, 1, 2], (2, 2))}, {"y": cli.npy([1 << 40] + [0] * (n - 1))},
                        {"y": cli.npy([-7] + [0] * (n - 1))}, {"y": cli.npy([2000000000] + [0] * (n - 1))},
                        {"train_idx": cli.npy([n])}, {"val_idx": cli.npy([-1])}, {"test_idx": cli.npy([1 << 62])},
                        {"train_idx": cli.npy([1, 1])}, {"val_idx": cli.npy([0])}):
            name = self.write("bad.npz", cli.small_npz(**changes))
            self.refused_everywhere(name, says="bad.npz")

    def test_not_finite(self):
        for value in (float("nan"), float("inf"), -float("inf")):
            x = [1.0] * (cli.NODES * cli.FEATURES)
            x[77] = value
            name = self.write("bad.npz", cli.small_npz(x=cli.npy(x, (cli.NODES, cli.FEATURES), "<f4")))
            self.refused_everywhere(name, says="finite")
        big = [1e300] * (cli.NODES * cli.FEATURES)
        name = self.write("bad.npz", cli.small_npz(x=cli.npy(big, (cli.NODES, cli.FEATURES), "<f8")))
        self.refused_everywhere(name)

    def test_enormous_claims(self):
        huge = "{'descr': '<f4', 'fortran_order': False, 'shape': (40, 1000000000000), }"
        overflow = "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905, 4), }"
        negative = "{'descr': '<f4', 'fortran_order': False, 'shape': (-40, 5), }"
        for header in (huge, overflow, negative, "{" * 60000, "", "{'shape': ()}"):
            name = self.write("bad.npz", cli.small_npz(x=cli.npy(b"\0" * 64, header=header)))
            self.refused_everywhere(name, says="bad.npz")
        self.write("bad.npy", b"\x93NUMPY\x02\x00" + b"\xff\xff\xff\xff" + b"{" * 100)
        self.refused_everywhere("bad.npy")
        # A few kilobytes of deflated data claim to hold 40 GB of zeros.
        self.write("zeros.npz", cli.small_npz(x=cli.npy(b"\0" * (64 << 20), header=huge)))
        self.refused_everywhere("zeros.npz")
        self.write("ids.txt", "0 4294967295\n4000000000 1\n")
        self.refused("train", "--data", "ids.txt", "--checkpoint", "run")
        self.write("overflow.txt", "0 99999999999999999999999\n")
        self.refused_everywhere("overflow.txt", says="overflow.txt")

    def test_bad_text(self):
        for content in ("a b c\nd e f\n", "0\n1\n2\n", "1 2\n3\n", "1 2\nx y\n", "-1 2\n", "1.5 2\n", "1 2 nan\n", "\0\0\0\0",
                        "1 2 0.5\n3 4\n"):
            name = self.write("bad.txt", content)
            self.refused_everywhere(name, says="bad.txt")

    def test_bad_files_beside_an_edge_list(self):
        self.write("e.txt", "0 1\n1 2\n2 0\n")
        self.write("x.csv", "1,2\n3,4\n5,6\n")
        self.write("y.txt", "0\n1\n0\n")
        for option, content in (("--features", "1,2\n3\n5,6\n"), ("--features", "1,2\n3,x\n5,6\n"), ("--features", "1,2\n"),
                                ("--features", ""), ("--features", "1,nan\n2,3\n4,5\n"), ("--labels", "0\n1\n"),
                                ("--labels", "0\nx\n1\n"), ("--labels", "0\n-5\n1\n"), ("--splits", "train\nval\n"),
                                ("--splits", "train\nval\nnowhere\n")):
            self.write("bad.txt", content)
            arguments = {"--features": "x.csv", "--labels": "y.txt", option: "bad.txt"}
            self.refused("train", "--data", "e.txt", *(w for pair in arguments.items() for w in pair), "--checkpoint", "run")
        self.refused("train", "--data", "e.txt", "--features", "absent.csv", says="absent.csv")

    def test_bad_weights(self):
        self.write("small.npz", cli.small_npz())
        self.ok("train", "--data", "small.npz", "--epochs", 2, "--checkpoint", "run")
        whole = self.read("run/model.safetensors")
        length = struct.unpack("<Q", whole[:8])[0]
        header = json.loads(whole[8:8 + length])

        def with_header(change):
            changed = json.loads(json.dumps(header))
            change(changed)
            text = json.dumps(changed).encode()
            return struct.pack("<Q", len(text)) + text + whole[8 + length:]

        def config(text):
            return with_header(lambda h: h["__metadata__"].update({"nacre.config": text}))

        good = json.loads(header["__metadata__"]["nacre.config"])
        wide = json.dumps(dict(good, model=dict(good["model"], hidden=16)))
        endless = json.dumps(dict(good, model=dict(good["model"], layers=1000000000)))
        other = json.dumps(dict(good, model=dict(good["model"], model="transformer")))
        elsewhere = json.dumps(dict(good, data=dict(good["data"], data="gone.npz")))
        for content in (b"", b"noise", whole[:7], whole[:50], whole[:-1], whole + b"x", struct.pack("<Q", 1 << 60) + b"{}",
                        with_header(lambda h: h.pop("__metadata__")), with_header(lambda h: h.pop(list(h)[-1])),
                        config(""), config("[]"), config(wide), config(endless), config(other), config(elsewhere)):
            self.write("bad.safetensors", content)
            for command in (("eval",), ("predict", "--output", "p.csv")):
                self.refused(*command, "--checkpoint", "bad.safetensors")
        self.refused("eval", "--checkpoint", "absent")
        self.refused("predict", "--checkpoint", "run", "--output", "p.xlsx", says="p.xlsx")
        self.write("wide.npz", cli.small_npz(x=cli.npy([1.0] * 40 * 9, (40, 9), "<f4")))
        self.refused("eval", "--checkpoint", "run", "--data", "wide.npz", says="trained for")
        self.refused("eval", "--checkpoint", "run", "--data", TWIN, says="trained for")


class BadUsage(cli.CliTest):
    def refused_train(self, *arguments, says=""):
        return self.refused("train", "--data", "small.npz", *arguments, says=says)

    def setUp(self):
        super().setUp()
        self.write("small.npz", cli.small_npz())

    def test_values_out_of_range(self):
        for option, values in {"--lr": ("nan", "-1", "0", "inf", "fast", ""), "--hidden": ("0", "-4", "1.5", "99999999999", "x"),
                               "--layers": ("0", "-1", "100000", "two"), "--epochs": ("0", "-5", "1e99", "x"),
                               "--dropout": ("1.0", "1.5", "-0.1", "nan", "x"), "--input-dropout": ("1",),
                               "--weight-decay": ("-1", "nan", "inf"), "--seed": ("-1", "x", "99999999999999999999999"),
                               "--threads": ("-1", "x"), "--eval-every": ("0",), "--patience": ("-1",), "--keep": ("0",),
                               "--checkpoint-every": ("-1",), "--memory-limit": ("0", "-1", "lots", "1Q", "nan", "1G x"),
                               "--momentum": ("1", "nan"), "--beta1": ("1",), "--beta2": ("-1",), "--eps": ("0",),
                               "--warmup": ("-1",), "--lr-step": ("0",), "--lr-gamma": ("0", "2"), "--lr-final": ("-1",),
                               "--set": ("x", "x=y", "=1"), "--num-bases": ("-1", "3")}.items():
            for value in values:
                self.refused_train(f"{option}={value}", says=option.split("-")[2])

    def test_no_number_is_within_bounds(self):
        self.refused("profile", "--seconds", "nan", says="'nan' is not between")
        self.refused("simulate", "--data", "twin:cora", "--count-on", "0", says="'0' is not between")

    def test_unknown_choices_name_a_remedy(self):
        for option, value, hint in (("--model", "gnc", "gcn"), ("--optimizer", "adamm", "adam"),
                                    ("--lr-schedule", "cosin", "cosine"), ("--metric", "acuracy", "accuracy"),
                                    ("--select", "first", "best"), ("--norm", "bach", "batch"), ("--activation", "rleu", "relu"),
                                    ("--device", "tpu", "cpu"), ("--normalize-features", "column", "row"),
                                    ("--format", "parquet", "npz")):
            self.refused_train(option, value, says=hint)
        self.refused_train("--model", "sage", "--aggr", "men", says="mean")

    def test_devices_that_mean_nothing(self):
        for device in ("tpu", "cuda0", "cuda:", "cuda:x", "cuda:-1", "cuda:1.5", "cuda:99999999999999999999",
                       "cuda:0@", "cuda:0@x", "cuda@-1", "cuda:0@8@8", "cpu:0", "cuda:typical"):
            for command in ("train", "explain"):
                line = self.refused(command, "--data", "small.npz", f"--device={device}", says="unknown device")
                self.assertIn("cuda:0@32", line)
        self.refused("plan", "--data", "small.npz", "--device", "cuda:typicle", says="unknown device")

    def test_devices_that_are_not_here(self):
        commands = (("train", "--data", "small.npz"), ("plan", "--data", "small.npz"), ("explain", "--data", "small.npz"),
                    ("profile",), ("bench", "gpu"))
        for command in commands:
            for device in ("cuda", "cuda:0", "cuda:7", "cuda:0@32"):
                line = self.refused(*command, "--device", device, says=f"'{device}' was not found")
                self.assertIn("plug-in", line, "says why")
                self.assertIn("nacre devices", line, "says what to do")
        j = json.loads(self.ok("devices", "--json").out)
        self.assertEqual(j["cuda"], [])
        self.assertIn("plug-in", j["why_no_cuda"])
        self.assertGreater(j["cpu"]["threads"], 0)

    def test_precisions(self):
        for device in ("cpu", "auto"):
            for precision in ("tf32", "bf16"):
                self.refused_train("--device", device, "--precision", precision, says=f"'{precision}' needs a GPU")
        for precision in ("", "f64", "bf", "tf"):
            self.refused_train(f"--precision={precision}", says="--precision")
            self.refused("plan", "--data", "small.npz", "--device", "cuda:typical", f"--precision={precision}",
                         says="--precision")

    def test_benchmarks_of_a_gpu(self):
        for device in ("cpu", "auto"):
            self.refused("bench", "gpu", "--device", device, says="is not a GPU of this machine")
        self.refused("profile", "--device", "tpu", says="unknown device")

    def test_options_that_do_not_fit_the_model(self):
        self.refused_train("--model", "gat", "--hidden", 10, "--heads", 4, says="heads")
        self.refused_train("--model", "gcn", "--heads", 4, says="gat")
        self.refused_train("--model", "gcn", "--aggr", "max")
        self.refused_train("--model", "gcn", "--attention-dropout", 0.5)
        self.refused_train("--model", "rgcn", "--num-bases", 99)
        self.refused_train("--model", "rgcn", "--relations", 0, says="--relations")
        self.refused_train("--metric", "f_two", says="--metric")
        weighted = dict(edge_weight=cli.npy([1.0] * 120, None, "<f4"))
        self.write("weighted.npz", cli.small_npz(**weighted))
        self.refused("train", "--data", "weighted.npz", "--model", "gat", says="weights")

    def test_unknown_twins(self):
        self.assertIn("cora", self.refused("train", "--data", "twin:coar"))
        for spec in ("twin:", "twin:cora@", "twin:cora@0", "twin:cora@-1", "twin:cora@nan", "twin:cora@x", "twin:cora@1e30"):
            self.refused("train", "--data", spec)

    def test_commands(self):
        for arguments in ((), ("trian",), ("train",), ("train", "--data"), ("train", "--hiden", 8, "--data", "small.npz"),
                          ("train", "small.npz"), ("data",), ("data", "info"), ("data", "convert", "small.npz"), ("eval",),
                          ("predict",), ("bench",), ("bench", "tpu"), ("--frobnicate",)):
            self.refused(*arguments)
        self.refused_train("--resume", says="--checkpoint")
        self.refused_train("--resume", "--checkpoint", "x", "--no-checkpoint", says="--no-checkpoint")

    def test_memory_limit_refuses_before_anything_is_written(self):
        line = self.refused_train("--memory-limit", "1K", "--checkpoint", "run", says="--memory-limit")
        self.assertIn("--hidden", line)

    def test_line_breaks_stay_in_one_line(self):
        self.refused("train", "--data", "a\nb\nnacre: c.npz")
        self.refused("tr\nain")


class Outputs(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.write("small.npz", cli.small_npz())
        self.ok("train", "--data", "small.npz", "--epochs", 2, "--checkpoint", "run")

    def test_folders_that_cannot_be_written(self):
        self.write("file", "")
        self.refused("train", "--data", "small.npz", "--checkpoint", "file/run", says="file/run")
        self.refused("train", "--data", "small.npz", "--checkpoint", "file")
        self.refused("train", "--data", "small.npz", "--no-checkpoint", "--trace", "absent/t.json", says="absent/t.json")
        self.refused("train", "--data", "small.npz", "--no-checkpoint", "--metrics", "absent/m", says="absent/m")
        self.refused("data", "convert", "small.npz", "absent/out.nacre", says="absent/out.nacre")
        self.refused("data", "convert", "small.npz", "file/out.npz")
        self.refused("predict", "--checkpoint", "run", "--output", "absent/p.csv", says="absent/p.csv")
        self.refused("plan", "--data", "small.npz", "--output", "absent/plan.json", says="absent/plan.json")
        self.refused("plan", "--data", "small.npz", "--emit-cuda", "file", says="is not a folder")
        self.refused("plan", "--data", "small.npz", "--emit-cuda", "file/kernels", says="is not a folder")

    def test_folders_without_permission(self):
        if os.geteuid() == 0:
            self.skipTest("root may write anywhere")
        locked = self.dir / "locked"
        locked.mkdir()
        locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
        self.refused("train", "--data", "small.npz", "--checkpoint", "locked/run", says="locked")
        self.refused("data", "convert", "small.npz", "locked/out.nacre", says="locked")

    def test_full_disk_leaves_the_old_file(self):
        def refused(*arguments):
            self.refused(*arguments, code=1, file_size=1000)

        for name in ("out.nacre", "out.npz", "p.csv", "p.safetensors", "plan.json"):
            self.write(name, "old content")
        refused("data", "convert", "twin:cora@0.1", "out.nacre", "--force")
        refused("data", "convert", "twin:cora@0.1", "out.npz", "--force")
        refused("plan", "--data", "small.npz", "--output", "plan.json")
        self.ok("train", "--data", "twin:cora@0.1", "--epochs", 1, "--checkpoint", "twin")
        refused("predict", "--checkpoint", "twin", "--output", "p.csv")
        refused("predict", "--checkpoint", "twin", "--output", "p.safetensors")
        for name in ("out.nacre", "out.npz", "p.csv", "p.safetensors", "plan.json"):
            self.assertEqual(self.read(name), b"old content", name)

    def test_full_disk_keeps_the_checkpoints(self):
        common = ("train", "--data", "small.npz", "--hidden", 200, "--checkpoint-every", 1)
        self.ok(*common, "--epochs", 6, "--checkpoint", "whole")
        self.ok(*common, "--epochs", 3, "--checkpoint", "part")
        before = {name: self.read(name) for name in self.files() if (self.dir / name).is_file() and "epoch-" in name}
        for size in (100, 3000, 8000):
            result = self.nacre(*common, "--epochs", 6, "--checkpoint", "part", "--resume", file_size=size)
            self.assertEqual(result.code, 1, result)
            self.assertEqual(sum(line.startswith("nacre: ") for line in result.err.splitlines()), 1, result)
            for name, content in before.items():
                self.assertEqual(self.read(name), content, name)
        self.ok(*common, "--epochs", 6, "--checkpoint", "part", "--resume")
        self.assertEqual(self.read("part/model.safetensors"), self.read("whole/model.safetensors"))
        self.assertFalse([name for name in self.files() if "tmp" in name])


if __name__ == "__main__":
    cli.main()
