#!/usr/bin/env python3
"""Tests plans as users see them: asked for by name, table or file, searched and kept, explained,
drawn and measured."""
import csv
import json
import os
import shutil
import xml.etree.ElementTree as xml

import cli

TWIN = ("--data", "twin:cora@0.3")
SMALL = ("--hidden", 8, "--layers", 2)
MODELS = ("gcn", "sage", "gat", "rgcn", "gin", "sage-lstm")
# Passes of the planner that may be left out on the CPU, and those that run on GPUs only.
PASSES = ("merge_equal_nodes", "fold_dropout_into_relu_grad", "swap_indexing", "fold_expand", "inline_edges",
          "sink_summed_rows", "sink_tails", "join_products", "drop_unread", "order_for_memory")
GPU_PASSES = ("factor_sums", "delay_row_factors", "choose_variants")
NEEDED_PASSES = ("apply_choices", "recompute", "analyse", "group", "build_programs", "store_values", "estimate_costs",
                 "validate")
PLANS = ("off", "vertex", "edge", "tensor", "dst-id=1,edge-id=32", "src-id=64,edge-type=1", "dst-id=16,dst-degree=min")


class Profile(cli.ProfiledTest):
    def test_is_kept_and_says_how_well_it_fits(self):
        self.assertEqual(self.profile.returncode, 0, self.profile.stderr)
        j = json.loads(self.profile.stdout)
        self.assertEqual(j["folder"], self.cache)
        self.assertTrue([f for f in os.listdir(self.cache) if f.startswith("profile")])
        self.assertGreater(j["gemm_flops"], 1e8)
        self.assertGreater(j["stream_bytes"], 1e7)
        self.assertGreater(j["kernels"]["matmul"]["samples"], 0)
        self.assertGreaterEqual(j["kernels"]["matmul"]["median_error"], 0)

    def test_text_says_where_it_is(self):
        out = self.ok("profile", "--seconds", 0.1, "-q").out
        for word in ("GFLOP/s", "median error", "kept in " + self.cache):
            self.assertIn(word, out)
        self.refused("profile", "--seconds", -1, says="--seconds")


class Plans(cli.ProfiledTest):
    def test_every_plan_computes_the_same(self):
        for model in MODELS:
            losses = {}
            for plan in ("auto", *PLANS):
                r = self.ok("train", *TWIN, *SMALL, "--model", model, "--dropout", 0.3, "--epochs", 3, "--plan", plan,
                            "--no-checkpoint", "--json", "-q").last_json()
                self.assertEqual(r["plan"], plan)
                self.assertEqual(r["plan_source"], "rules" if plan in ("auto", "off") else "given")
                losses[plan] = r["loss"]
            for plan, loss in losses.items():
                self.assertLess(abs(loss - losses["auto"]), 1e-4 * abs(losses["auto"]), f"{model} {losses}")

    def test_every_model_trains_alike_without_a_pass(self):
        for model in (*MODELS, "gatv2", "mlp"):
            common = ("train", *TWIN, *SMALL, "--model", model, "--dropout", 0.3, "--epochs", 3, "--no-checkpoint",
                      "--json", "-q")
            want = self.ok(*common).last_json()["loss"]
            for names in (*PASSES, ",".join(PASSES)):
                got = self.ok(*common, "--disable-pass", names).last_json()["loss"]
                self.assertLess(abs(got - want), 1e-4 * abs(want), f"{model} without {names}: {got}, not {want}")

    def test_passes_that_are_left_out_are_part_of_the_plan(self):
        gcn = (*TWIN, *SMALL, "--model", "gcn")
        self.ok("plan", *gcn, "--disable-pass", "sink_tails", "--disable-pass", "Drop-Unread", "-o", "plan.json")
        j = json.loads(self.read("plan.json"))
        self.assertEqual(j["options"]["disabled_passes"], ["drop_unread", "sink_tails"])
        again = json.loads(self.ok("plan", *gcn, "--plan", "plan.json", "--json").out)
        self.assertEqual(again["options"], j["options"])
        self.ok("explain", *gcn, "--disable-pass", "inline_edges", "--steps", 0)
        self.ok("train", *gcn, "--disable-pass", "sink_tails,drop_unread", "--epochs", 1, "--checkpoint", "run")
        self.assertEqual(json.loads(self.read("run/config.json"))["execution"]["disable_pass"],
                         ["drop_unread", "sink_tails"])
        self.ok("train", "--config", "run/config.json", "--epochs", 1, "--checkpoint", "again")
        self.assertEqual(json.loads(self.read("again/plan.json"))["options"]["disabled_passes"],
                         ["drop_unread", "sink_tails"])

    def test_passes_that_cannot_be_left_out(self):
        for command in ("train", "plan", "explain"):
            for name in NEEDED_PASSES:
                self.refused(command, *TWIN, "--disable-pass", name, says="cannot be left out")
            self.refused(command, *TWIN, "--disable-pass", "sink_tail", says="did you mean 'sink_tails'?")
            for name in GPU_PASSES:
                self.refused(command, *TWIN, "--disable-pass", name, says="on GPUs only")
            self.refused(command, *TWIN, "--disable-pass", "choose_early_rows", says="on several devices only")
            self.refused(command, *TWIN, "--disable-pass", "store_as_bf16", says="with --precision bf16 only")
            for plan, name in (("vertex", "swap_indexing"), ("tensor", "sink_tails"), ("edge", "join_products"),
                               ("dst-id=1", "join_products")):
                self.refused(command, *TWIN, "--plan", plan, "--disable-pass", name, says="--disable-pass")
        self.ok("plan", *TWIN, *SMALL, "-o", "plan.json")
        self.write("bad.json", self.read("plan.json").replace(b'"fuse": true', b'"fuse": "yes"'))
        self.refused("train", *TWIN, *SMALL, "--plan", "bad.json", says="bad.json: has damaged options")
        self.refused("train", *TWIN, *SMALL, "--plan", "plan.json", "--disable-pass", "sink_tails",
                     says="is settled by the plan file")
        self.ok("plan", *TWIN, *SMALL, "--device", "cuda:typical", "--disable-pass", ",".join(GPU_PASSES))
        self.refused("plan", *TWIN, *SMALL, "--device", "cuda:typical", "--precision", "tf32", "--disable-pass",
                     "store_as_bf16", says="with --precision bf16 only")

    def test_values_stored_as_bf16(self):
        gpu = ("plan", *TWIN, "--model", "gcn", "--layers", 3, "--hidden", 64, "--device", "cuda:typical")
        bf16 = (*gpu, "--precision", "bf16")
        text = self.ok(*bf16, "-v", "-o", "bf16.json").out
        values = json.loads(self.read("bf16.json"))["bf16"]
        self.assertGreater(len(values), 3)
        self.assertRegex(text, rf"stored as bf16: {len(values)} values in .* instead of .*; at its peak, a step has .* instead")
        for value in values:
            self.assertRegex(text, rf"(?m)^  %{value} \w+ v\d\[64\]  ")
        again = self.ok(*bf16, "--plan", "bf16.json", "--json")
        self.assertEqual(json.loads(again.out)["bf16"], values)
        self.assertNotIn("bf16.json: ", again.err)
        wide = self.ok(*gpu, "--precision", "tf32", "--plan", "bf16.json", "-o", "tf32.json")
        self.assertIn(f"bf16.json: was made for --precision bf16; the {len(values)} values", wide.out + wide.err)
        self.assertNotIn("bf16", json.loads(self.read("tf32.json")))
        self.assertNotIn("stored as bf16", self.ok(*gpu, "-v").out)
        narrow = self.ok(*bf16, "--plan", "tf32.json", "-o", "made.json")
        self.assertIn("tf32.json: was made for another precision; by the rules", narrow.out + narrow.err)
        self.assertEqual(json.loads(self.read("made.json"))["bf16"], values)
        plan = json.loads(self.read("bf16.json"))
        self.write("fewer.json", json.dumps({**plan, "bf16": values[1:]}).encode())
        self.assertEqual(json.loads(self.ok(*bf16, "--plan", "fewer.json", "--json").out)["bf16"], values[1:])
        self.write("more.json", json.dumps({**plan, "bf16": [0, *values]}).encode())
        self.refused(*bf16, "--plan", "more.json", says="stores %0 as bf16, but it")
        self.assertNotIn("bf16", json.loads(self.ok(*bf16, "--disable-pass", "store_as_bf16", "--json").out))

    def test_planning_stops_after_a_pass(self):
        for name in (*PASSES, *GPU_PASSES, *NEEDED_PASSES):
            out = self.ok("plan", *TWIN, *SMALL, "--model", "sage", "--stop-after", name).out
            self.assertTrue(out.splitlines()[0].endswith(name), out)
            self.assertIn("output loss", out)
        out = self.ok("plan", *TWIN, *SMALL, "--stop-after", "Group", "--disable-pass", "inline_edges").out
        self.assertNotIn("inline_edges,", out.splitlines()[0])
        for device in ("cpu", "cuda:typical"):
            on = ("plan", *TWIN, *SMALL, "--device", device, "--stop-after")
            self.assertNotIn("variant of", self.ok(*on, "order_for_memory").out)
            for name in ("choose_variants", "validate"):
                self.assertEqual("variant of product: library" in self.ok(*on, name).out, device != "cpu")
        without = self.ok("plan", *TWIN, *SMALL, "--device", "cuda:typical", "--stop-after", "validate",
                          "--disable-pass", "choose_variants").out
        self.assertNotIn("variant of", without)
        self.refused("plan", *TWIN, "--stop-after", "groop", says="did you mean 'group'?")
        for option in ("--json", "--bill", "--space", "--output=p.json", "--picture=p.svg", "--emit-cuda=folder"):
            self.refused("plan", *TWIN, "--stop-after", "group", option, says="needs a whole plan")
        for command in ("train", "explain"):
            self.refused(command, *TWIN, "--stop-after", "group", says="unknown option '--stop-after'")

    def test_space(self):
        """The options of every group are the chosen one and those that were left out."""
        for device in ("cpu", "cuda:typical"):
            rgcn = (*TWIN, *SMALL, "--model", "rgcn", "--device", device, "--space")
            out = self.ok("plan", *rgcn).out
            self.assertRegex(out, r"space of plans: \d+ in \d+ groups of choices; \d+ planned and predicted")
            space = json.loads(self.ok("plan", *rgcn, "--json").out)["space"]
            plans = 1
            for group in space["groups"]:
                self.assertEqual(group["options"], 1 + sum(group["left_out"].values()), group)
                self.assertIn(f"{group['group']}: {group['options']} options", out)
                plans *= group["options"]
            self.assertEqual(space["plans"], plans)
            self.assertGreater(plans, 1)
        self.refused("plan", *TWIN, "--space", "--plan", "vertex", says="searches for nothing")
        self.refused("plan", *TWIN, "--space", "--bill", says="needs the data")
        self.refused("plan", *TWIN, "--output", "p.json", "--bill", says="needs the data")
        self.refused("plan", *TWIN, "--plan", "tensor", "--bill", says="does not go with --bill")
        self.refused("plan", *TWIN, "--space", "--devices", "cpu:1,cpu:1", says="is for one device")

    def test_files_keep_tables_and_choices(self):
        rgcn = (*TWIN, *SMALL, "--model", "rgcn")
        self.ok("plan", *rgcn, "-o", "plan.json")
        j = json.loads(self.read("plan.json"))
        self.assertTrue(j["options"]["choices"])
        j["options"]["table"] = "dst-id=16,edge-type=1"
        self.write("table.json", json.dumps(j))
        again = json.loads(self.ok("plan", *rgcn, "--plan", "table.json", "--json").out)
        self.assertEqual(again["options"], j["options"])
        self.assertEqual(again["dfg"], j["dfg"])
        common = ("train", *rgcn, "--epochs", 3, "--no-checkpoint", "--json", "-q")
        want = self.ok(*common).last_json()
        got = self.ok(*common, "--plan", "table.json").last_json()
        self.assertEqual(got["plan_source"], "file")
        self.assertAlmostEqual(got["loss"], want["loss"], delta=1e-4 * want["loss"])

    def test_nodes_in_another_order(self):
        common = ("train", *TWIN, *SMALL, "--model", "gcn", "--dropout", 0.3, "--json", "-q")
        given = self.ok(*common, "--epochs", 20, "--no-checkpoint").last_json()
        for order in ("degree", "rcm", "rabbit"):
            whole = self.ok(*common, "--epochs", 20, "--reorder", order, "--checkpoint", order).last_json()
            # With other numbers of the nodes, dropout drops other elements, so losses differ a bit.
            self.assertAlmostEqual(whole["loss"], given["loss"], delta=0.3)
            self.assertEqual(json.loads(self.read(f"{order}/plan.json"))["options"]["vertex_order"], order)
            self.assertEqual(json.loads(self.read(f"{order}/config.json"))["execution"]["reorder"], order)
            scored = json.loads(self.ok("eval", "--checkpoint", order, "--json", "-q").out)
            self.assertAlmostEqual(scored["test_acc"], whole["test_acc"], delta=0.005)
            file = self.ok(*common, "--epochs", 20, "--plan", f"{order}/plan.json", "--no-checkpoint").last_json()
            self.assertEqual((file["plan_source"], file["loss"]), ("file", whole["loss"]))
        self.ok(*common, "--epochs", 12, "--reorder", "rabbit", "--checkpoint", "part")
        self.ok("train", "--resume", "part", "--epochs", 20, "-q")
        weights = [(self.dir / run / "model.safetensors").read_bytes() for run in ("part", "rabbit")]
        self.assertEqual(*weights)
        summary = self.ok("plan", *TWIN, *SMALL, "--model", "gcn", "--reorder", "rcm").out
        self.assertIn("numbered in rcm order", summary)
        self.refused("train", *TWIN, "--model", "gcn", "--reorder", "hilbert", says="--reorder")
        self.refused("train", *TWIN, "--model", "mlp", "--reorder", "rcm", says="does not read the graph")
        self.refused("train", *TWIN, "--model", "gcn", "--reorder", "rcm", "--plan", "rcm/plan.json", says="the plan file")

    def test_wrong_plans_are_refused(self):
        for command in ("train", "plan", "explain"):
            for plan, says in (("dst-id=0", "dst-id=0"), ("dst-idd=3", "dst-idd"), ("vertx", "neither the name of a plan nor"),
                               ("absent/plan.json", "neither the name of a plan nor"), ("dst-id=1,dst-id=2", "dst-id"),
                               ("edge-degree=1", "edge-degree"), (".", "neither the name of a plan nor")):
                self.refused(command, *TWIN, "--plan", plan, says=says)
        self.refused("plan", *TWIN, "--picture", "p.svg", "--table", "dst-id=x", says="dst-id=x")
        self.refused("plan", *TWIN, "--table", "dst-id=1", says="--picture")
        self.refused("plan", *TWIN, "--picture", "absent/p.svg", says="absent/p.svg")
        self.refused("plan", *TWIN, "--picture", "p.svg", "--nodes", 0, says="nodes")
        self.refused("explain", says="--data")
        self.refused("explain", "--run", "absent", says="absent")

    def test_pictures_are_xml(self):
        self.ok("plan", *TWIN, *SMALL, "--model", "rgcn", "--picture", "chosen.svg")
        self.ok("plan", *TWIN, *SMALL, "--picture", "first.svg", "--first", 100, "--nodes", 20)
        self.assertIn(b"<svg", self.read("first.svg"))
        self.ok("plan", *TWIN, *SMALL, "--model", "gcn", "--emit-svg", "2d.svg", "--table", "src-id=64,dst-id=64")
        for name in ("chosen.svg", "2d.svg"):
            root = xml.fromstring(self.read(name))
            self.assertTrue(root.tag.endswith("svg"))
            self.assertGreater(len(root.findall(".//{*}path")), 1)
        self.assertIn(b"src-id=64", self.read("2d.svg"))

    def test_cuda_sources_need_no_gpu(self):
        for model, device in (("gcn", "cpu"), ("gat", "cuda:typical"), ("rgcn", "cuda:typical"), ("mlp", "auto")):
            with self.subTest(model):
                folder = "kernels/" + model
                out = self.ok("plan", *TWIN, *SMALL, "--model", model, "--dropout", 0.4, "--device", device,
                              "--emit-cuda", folder, "-v").out
                self.assertIn("memory of a run", out)
                sources = sorted(f for f in self.files() if f.startswith(folder) and f.endswith(".cu"))
                self.assertIn(f"CUDA source: {len(sources)} files", out)
                self.check_sources(folder, sources)
        self.compile_some([f for f in self.files() if f.endswith(".cu")])

    def check_sources(self, folder, sources):
        self.assertGreater(len(sources), 5)
        index = self.read(folder + "/kernels.txt").decode()
        kernels = index.split("\n\n")[1:]
        self.assertEqual([int(k.split()[0]) for k in kernels], list(range(len(kernels))))
        self.assertIn("matrix product of cuBLASLt", index)
        for name in sources:
            text = self.read(name).decode()
            number, kind = name.split("/")[-1][:-3].split("-")[:2]
            entry = text.split(":")[0].removeprefix("// ")
            self.assertRegex(text, rf'extern "C" __global__ [^;{{]*\b{entry}\(', name)
            self.assertIn(f"//   {int(number)} {kind} ", text, "says which kernels use it")
            self.assertRegex(text, r"//     \d+ blocks? of \d+ threads", "says how it is launched")
            self.assertIn("  " + name.split("/")[-1] + ": ", kernels[int(number)])
        texts = [self.read(name).decode().split("\n\n", 1)[1] for name in sources]
        self.assertEqual(len(set(texts)), len(texts), "one file per distinct source")

    def compile_some(self, sources):
        nvcc = shutil.which("nvcc")
        if nvcc is None:
            return
        for name in sources[::max(1, len(sources) // 5)]:
            done = cli.subprocess.run([nvcc, "-cubin", "-arch=sm_90", "-o", self.dir / "image", self.dir / name],
                                      stdout=cli.subprocess.PIPE, stderr=cli.subprocess.STDOUT, timeout=300)
            self.assertEqual(done.returncode, 0, done.stdout.decode())

    def test_plans_for_a_gpu_that_is_not_here(self):
        typical = ("--device", "cuda:typical", "--precision", "tf32")
        out = self.ok("plan", *TWIN, *SMALL, "--model", "sage-lstm", *typical, "-o", "gpu.json", "-v").out
        self.assertIn("for a typical GPU", out)
        self.assertIn("graph and work lists", out)
        j = json.loads(self.ok("plan", *TWIN, *SMALL, "--model", "sage-lstm", *typical, "--json").out)
        self.assertEqual(j["dfg"], json.loads(self.read("gpu.json"))["dfg"])
        self.ok("train", *TWIN, *SMALL, "--model", "sage-lstm", "--plan", "gpu.json", "--epochs", 1, "--no-checkpoint")
        self.assertEqual(self.files(), ["gpu.json"])

    def test_searched_plans_are_remembered(self):
        # With so many epochs a search pays; training stops early.
        run = (*TWIN, *SMALL, "--model", "gcn", "--epochs", 200000)
        self.assertIn("searched in", self.ok("plan", *run, "-v").out)
        self.assertIn("searched in an earlier run", self.ok("plan", *run).out)
        self.assertIn("searched: the fastest", self.ok("plan", *run, "--no-plan-cache").out)
        self.assertIn("by rules, which --deterministic", self.ok("plan", *run, "--deterministic").out)
        r = self.ok("train", *run, "--patience", 2, "--no-checkpoint", "--json")
        self.assertIn("from the cache", r.err)
        self.assertEqual(r.last_json()["plan_source"], "cached")


class Explain(cli.ProfiledTest):
    def test_text(self):
        out = self.ok("explain", *TWIN, *SMALL, "--model", "rgcn", "-v").out
        for word in ("attributes of the edges", "edge-type", "% removed", "choices", "typed_matmul@layers.0.weight",
                     "predicted", "measured", "over", "gTasks\n", "outliers", "alternatives", "chosen", "memory",
                     "total"):
            self.assertIn(word, out)
        self.assertIn("as written\ndfg", out)
        self.assertNotIn("as written\ndfg", self.ok("explain", *TWIN, *SMALL, "--model", "rgcn").out)
        out = self.ok("explain", *TWIN, *SMALL, "--model", "gcn", "-v").out
        self.assertIn("gTasks: no kernel runs over gTasks", out)

    def test_json(self):
        for model, plan in (("rgcn", "auto"), ("sage-lstm", "auto"), ("gcn", "vertex"), ("mlp", "auto")):
            with self.subTest(model):
                j = json.loads(self.ok("explain", *TWIN, *SMALL, "--model", model, "--plan", plan, "--json").out)
                steps = [k for k in j["kernels"] if not k["once"]]
                self.assertTrue(steps)
                for k in steps:
                    self.assertGreater(k["predicted_ms"], 0)
                    self.assertGreater(k["measured_ms"], 0)
                self.assertEqual(j["source"], "given" if plan == "vertex" else "rules")
                for t in j["tables"]:
                    self.assertGreater(t["tasks"], 0)
                    self.assertGreater(t["edges"], 3000)
                for group in {c["group"] for c in j["candidates"]}:
                    self.assertEqual(sum(c["chosen"] for c in j["candidates"] if c["group"] == group), 1, group)
                # The report has the tables that kernels run, and no others.
                self.assertEqual({t["table"] for t in j["tables"]}, {k["table"] for k in j["kernels"]} - {""})
                self.assertEqual(bool(j["tables"]), model in ("rgcn", "sage-lstm"))

    def test_rewriting_removes_duplicated_products(self):
        j = json.loads(self.ok("explain", *TWIN, "--model", "rgcn", "--relations", 1, "--hidden", 32, "--steps", 0,
                               "--json").out)
        self.assertGreater(j["dfg"]["neural_removed_percent"], 20)
        self.assertLess(j["dfg"]["product_flops"][1], j["dfg"]["product_flops"][0])
        self.assertIsNone(j["kernels"][0]["measured_ms"])

    def test_run_folder(self):
        self.ok("train", *TWIN, "--model", "gat", "--hidden", 16, "--dropout", 0.4, "--input-dropout", 0.2, "--epochs",
                2, "--plan", "dst-id=1,edge-id=32", "--checkpoint", "run")
        j = json.loads(self.ok("explain", "--run", "run", "--steps", 1, "--json").out)
        self.assertEqual((j["model"], j["source"]), ("gat", "file"))
        self.assertIn("dst-id=1,edge-id=32", {k["table"] for k in j["kernels"]})
        self.write("run/config.json", "[]")
        self.refused("explain", "--run", "run", says="config.json")


class Bench(cli.ProfiledTest):
    def rows(self, name):
        with open(self.dir / name, newline="") as file:
            return list(csv.DictReader(file))

    def test_figures(self):
        self.ok("bench", "wisegraph", "--graphs", "twin:cora@0.2", "--models", "rgcn,sage-lstm", "--hidden", 8,
                "--layers", 2, "--epochs", 1, "--lstm-scale", 0.5, "--out", "b", "-q")
        plans = self.rows("b/fig13.csv")
        self.assertEqual([r["plan"] for r in plans], ["vertex", "edge", "tensor", "off", "auto"] * 2)
        self.assertTrue(all(r["state"] == "ok" and float(r["ms"]) > 0 for r in plans))
        self.assertEqual([r["model"] for r in self.rows("b/fig13-speedup.csv")], ["rgcn", "sage-lstm", "all"])
        removed = [float(r["neural_removed_percent"]) for r in self.rows("b/fig17.csv") if r["dfg"] == "rewritten"]
        self.assertEqual(len(removed), 2)
        self.assertEqual(len(self.rows("b/fig16.csv")), 8)
        self.assertEqual([r["k"] for r in self.rows("b/fig18.csv")], ["1", "4", "16", "64", "256", "1024", "inf"] * 2)
        self.assertEqual(len(self.rows("b/fig19.csv")), 2)
        self.assertEqual(len(self.rows("b/table3.csv")), 2)
        drawn = [p for p in self.files() if p.endswith(".svg")]
        self.assertGreaterEqual(len(drawn), 7)
        for name in drawn:
            xml.fromstring(self.read(name))

    def test_several_devices(self):
        out = self.ok("bench", "wisegraph", "--graphs", "twin:cora@0.1", "--models", "gcn,gat", "--hidden", 8, "--layers",
                      2, "--epochs", 1, "--figures", "20,t2", "--devices", "cpu:1,cpu:1,cpu:1", "--out", "b", "-q").out
        rows = self.rows("b/fig20.csv")
        choices = ["late", "narrow", "early", "columns", "sums", "auto"]
        self.assertEqual([r["hidden"] for r in rows[::6]], ["16", "32", "64", "128", "256", "512", "1024"])
        self.assertEqual([r["rows"] for r in rows], choices * 7)
        for r in rows:
            self.assertGreater(float(r["ms"]), 0)
            self.assertEqual(r["counted_bytes"], r["predicted_bytes"])
        for hidden in range(0, len(rows), 6):
            predicted = {r["rows"]: float(r["predicted_ms"]) for r in rows[hidden:hidden + 6]}
            self.assertLessEqual(predicted["auto"], min(predicted[name] for name in ("late", "narrow", "early")))
        self.assertIn("the counted bytes are those predicted in 42 of 42 cases", out)
        table = json.loads(self.read("b/table2.json"))
        self.assertEqual([r["model"] for r in table], ["gcn", "gat"])
        for r in table:
            self.assertEqual(r["counted_bytes"], r["predicted_bytes"])
            self.assertGreater(r["one_device_ms"], 0)
        xml.fromstring(self.read("b/fig20.svg"))
        self.refused("bench", "wisegraph", "--figures", 13, "--devices", "cpu:1,cpu:1", says="figures 20 and t2")
        self.refused("bench", "wisegraph", "--figures", 20, "--devices", "cpu:0", says="threads of the host")

    def test_mini_batches(self):
        self.ok("bench", "graphtensor", "--graphs", "twin:cora@0.1#20,twin:cora@0.1#30", "--models", "gcn", "--batch-size",
                10, "--fanout", "4,3", "--batches", 3, "--rounds", 1, "--figures", "15,16,17,18,19,20", "--out", "b", "-q")
        styles = ["edge-wise dense (PyG)", "edge by edge (DGL)", "NAPA", "NAPA+DKP"]
        self.assertEqual([r["style"] for r in self.rows("b/fig15.csv")], styles * 2)
        measures = ["serial", "+overlap", "+subtasks", "+relax", "+stream"]
        end_to_end = self.rows("b/fig19.csv")
        self.assertEqual([r["variant"] for r in end_to_end], [*(s + ", serial" for s in styles[:3]), *measures] * 2)
        self.assertEqual({r["features"] for r in end_to_end}, {"20", "30"})
        for r in end_to_end:
            self.assertGreater(float(r["epoch_ms"]), 0)
            if r["variant"] == "serial":
                self.assertEqual(float(r["speedup"]), 1)
        for name in ("fig16", "fig17", "fig18", "fig20"):
            self.assertGreater(len(self.rows(f"b/{name}.csv")), 0, name)
        self.ok("bench", "graphtensor", "--graphs", "twin:cora@0.2", "--models", "gcn", "--figures", 19, "--variants",
                "serial,+stream", "--batch-size", 20, "--batches", 2, "--rounds", 1, "--out", "c", "-q")
        self.assertEqual([r["variant"] for r in self.rows("c/fig19.csv")], ["serial", "+stream"])
        self.refused("bench", "graphtensor", "--figures", "21", says="21")
        self.refused("bench", "graphtensor", "--shuffle", "adaptive", says="--shuffle adaptive: follows the accuracy")

    def test_questions(self):
        out = self.ok("bench", "wisegraph", "--graphs", "twin:cora@0.2", "--models", "gcn", "--hidden", 8, "--layers", 2,
                      "--scale", 0.5, "--out", "b", "-q", "--cost-model", "--dkp").out
        self.assertIn("among the predicted top 5", out)
        self.assertIn("measured best or within 3 %", out)
        self.assertGreaterEqual(len(self.rows("b/cost-model-groups.csv")), 2)
        sizes = {(r["features"], r["hidden"]) for r in self.rows("b/dkp.csv")}
        self.assertEqual(len(sizes), 9)
        out = self.ok("bench", "wisegraph", "--partition", "--scale", 0.05, "--out", "b", "-q").out
        self.assertIn("r2", out)
        self.assertEqual(len(self.rows("b/partition.csv")), 30)

    def test_limits_and_mistakes(self):
        self.ok("bench", "wisegraph", "--graphs", "twin:cora@0.2", "--models", "gcn", "--hidden", 8, "--epochs", 1,
                "--limit-s", 1e-9, "--figures", 13, "--out", "b", "-q")
        self.assertEqual({r["state"] for r in self.rows("b/fig13.csv")}, {"slow"})
        self.ok("bench", "wisegraph", "--graphs", "twin:cora@0.2", "--models", "gcn", "--hidden", 8, "--epochs", 1,
                "--memory-limit", 1000, "--figures", 13, "--out", "b", "-q")
        self.assertEqual({r["state"] for r in self.rows("b/fig13.csv")}, {"memory"})
        self.refused("bench", "wisegraph", "--figures", "14", says="14")
        self.refused("bench", "wisegraph", "--models", "gnc", says="gnc")

    def test_shares_of_unequal_devices(self):
        out = self.ok("bench", "nugnn", "--figures", "10,11,12,13,t5,t6", "--graphs", "twin:cora@0.2",
                      "--layers", 2, "--hidden", 8, "--devices", "cpu:1,cpu:2", "--devices", "cpu:1,cpu:1,cpu:1",
                      "--methods", "uniform,cores,auto", "--timed", 3, "--out", "b", "-q").out
        self.assertIn("geometric means", out)
        cells = self.rows("b/shares-epochs.csv")
        self.assertEqual(len(cells), 2 * 2 * 3)
        for cell in cells:
            self.assertEqual(cell["state"], "ok")
            self.assertGreater(float(cell["epoch_ms"]), 0)
            self.assertGreaterEqual(float(cell["waiting_percent"]), 0)
            if cell["shares"] == "uniform":
                self.assertEqual(float(cell["over_uniform"]), 1)
            if cell["shares"] == "auto":
                self.assertEqual(float(cell["received_of_auto"]), 1)
        ranks = self.rows("b/shares-ranks.csv")
        self.assertEqual(len(ranks), 2 * 3 * (2 + 3))
        self.assertEqual({float(r["share"]) for r in ranks if r["shares"] == "cores" and r["devices"] == "cpu:1,cpu:2"},
                         {0.3333, 0.6667})
        for summary in self.rows("b/shares-summary.csv"):
            self.assertEqual(summary["cells"], "2")
            self.assertGreater(float(summary["over_uniform"]), 0)
            self.assertGreater(float(summary["worst_of_best_simple"]), 0)

    def test_placement_of_features(self):
        out = self.ok("bench", "placement", "--data", "twin:cora@0.5", "--fanout", "5,3", "--batch-size", 20, "--groups",
                      "1;2+2", "--shares", "0.1,0.2", "--epochs", 20, "--json", "t.json", "-q").out
        self.assertIn("probability", out)
        rows = json.loads(self.read("t.json"))
        self.assertEqual(len(rows), 2 * 2 * 11)
        for row in rows:
            self.assertAlmostEqual(row["own_percent"] + row["peer_percent"] + row["host_percent"], 100, delta=0.1)
            # The rows of the look-ahead change, so no set of rows has an expectation.
            if row["method"] == "lookahead":
                self.assertIsNone(row["expected_host_percent"])
                if row["devices"] == 1:
                    self.assertLess(row["over_best"], 1)
                continue
            self.assertAlmostEqual(row["host_percent"], row["expected_host_percent"], delta=3)
            if row["method"] == "probability":
                self.assertLess(row["over_best"], 1.1)
            if row["method"] == "pagraph" or row["devices"] == 1:
                self.assertEqual(row["peer_percent"], 0)
        self.refused("bench", "placement", "--groups", "2+x", says="2+2")
        self.refused("bench", "placement", "--shares", "2", says="--shares")
        self.refused("bench", "placement", "--methods", "probabilty", says="probability")
        for option, value in (("--model", "gcn"), ("--hidden", 8), ("--train-epochs", 3)):
            self.refused("bench", "placement", option, value, says=f"{option}: is a setting of the runs with --scales")
        for option in ("--shuffle", "--feature-budget", "--placement", "--locality", "--host-rows", "--device"):
            self.refused("bench", "placement", option, 1, says=f"unknown option '{option}'")

    def test_loss_curves_of_locality(self):
        common = ("bench", "placement", "--data", "twin:cora@0.5", "--fanout", "5,3", "--batch-size", 20, "--groups", "1",
                  "--shares", "0.2", "--methods", "probability", "-q")
        out = self.ok(*common, "--scales", "1,4", "--train-epochs", 3, "--hidden", 8, "--curves", "curves.csv").out
        table = [line.split() for line in out.partition("locality-aware sampling")[2].splitlines()[1:]]
        off, same, four = (dict(zip(table[0], row)) for row in table[1:])
        self.assertEqual([off["scale"], same["scale"], four["scale"]], ["off", "1", "4"])
        self.assertEqual(off["rows"], same["rows"])
        self.assertLess(float(four["host_percent"]), float(off["host_percent"]))
        for column in ("train_over_off", "val_over_off"):
            self.assertAlmostEqual(float(same[column]), 1, delta=0.05)
        rows = self.rows("curves.csv")
        self.assertEqual([row["epoch"] for row in rows], ["1", "2", "3"] * 3)
        self.assertLess(float(rows[2]["train_loss"]), float(rows[0]["train_loss"]))
        self.refused(*common, "--scales", "0.5", says="from 1 to 1000")
        self.refused(*common, "--curves", "c.csv", says="add --scales")
        self.refused(*common, "--scales", "2", "--sampler", "layer", says="--fanout")

    def test_precisions(self):
        self.ok("bench", "nugnn", "--figures", "t2", "--graphs", "twin:cora@0.3", "--models", "gcn", "--layers", 2,
                "--hidden", 8, "--epochs", 5, "--device", "cpu", "--out", "b", "-q")
        rows = self.rows("b/table2.csv")
        self.assertEqual([r["precision"] for r in rows], ["f32", "tf32", "bf16"])
        self.assertEqual(rows[0]["state"], "ok")
        self.assertGreater(float(rows[0]["test_percent"]), 0)
        self.assertIn("needs a GPU", rows[2]["state"])
        self.assertEqual([r["paper"] for r in rows], ["FP32", "AMP-style", "BF16"])
        self.ok("bench", "nugnn", "--figures", "t2", "--graphs", "twin:cora@0.3", "--models", "gcn", "--layers", 2,
                "--hidden", 8, "--epochs", 5, "--device", "cpu", "--devices", "cpu:1,cpu:1", "--out", "b", "-q")
        rows = self.rows("b/table2.csv")[3:]
        self.assertEqual([r["precision"] for r in rows], ["f32", "tf32", "bf16", "auto"])
        self.assertEqual((rows[0]["devices"], rows[0]["state"]), ("cpu:1,cpu:1", "ok"))
        self.assertGreater(float(rows[0]["received_mib"]), 0)
        self.assertIn("needs a GPU", rows[3]["state"])

    def test_predicted_steps(self):
        out = self.ok("bench", "nugnn", "--figures", "t7", "--models", "gcn,gat", "--graphs",
                      "twin:cora@0.3,twin:pubmed@0.1,twin:citeseer@0.2", "--layers", 2, "--hidden", 8, "--seconds", 2,
                      "--folds", 3, "--out", "b", "-q").out
        self.assertIn("Table 7", out)
        rows = self.rows("b/table7.csv")
        self.assertEqual(len(rows), 2 * 9 * 3)
        self.assertEqual([r["model"] for r in rows if r["kept"] == "yes"], ["gcn", "gat"])
        for r in rows:
            for column in ("mse", "mae_ms", "mape_percent", "predict_us", "fit_ms"):
                self.assertGreaterEqual(float(r[column]), 0, column)
        parts = self.rows("b/table7-parts-gat.csv")
        self.assertGreaterEqual(len(parts), 3)
        self.assertEqual({r["graph"] for r in self.rows("b/table7-graphs-gcn.csv")},
                         {"twin:cora@0.3", "twin:pubmed@0.1", "twin:citeseer@0.2"})
        self.refused("bench", "nugnn", "--figures", "t8", says="t8")
        self.refused("bench", "nugnn", "--figures", "10", "--devices", "cpu:0", says="cpu:0")
        self.refused("bench", "nugnn", "--figures", "10", "--methods", "unifrom", says="did you mean 'uniform'")
        self.refused("bench", "nugnn", "--models", "gnc", says="gnc")


if __name__ == "__main__":
    cli.main()
