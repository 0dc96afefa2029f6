#!/usr/bin/env python3
"""Trains recommenders from files of users and items, checks recall@k, and interrupts and resumes
runs."""
import json
import random

import cli

USERS, ITEMS = 60, 45


def tastes():
    """Returns training and test pairs of users who like the items of their own third. Two items of
    each user are held out. Item 0 is never taken."""
    train, test = [], []
    for user in range(USERS):
        chosen = random.Random(user).sample([item for item in range(1, ITEMS) if item % 3 == user % 3], 9)
        train += [(user, item) for item in chosen[:-2]]
        test += [(user, item) for item in chosen[-2:]]
    return sorted(train + [(0, ITEMS - 1)]), test


def tastes_npz(train, test):
    column = lambda pairs, k: cli.npy([pair[k] for pair in pairs], descr="<i4")
    return cli.npz({"train_user": column(train, 0), "train_item": column(train, 1), "test_user": column(test, 0),
                    "test_item": column(test, 1), "num_users": cli.npy([USERS], shape=()),
                    "num_items": cli.npy([ITEMS], shape=())})


COMMON = ("--hidden", 16, "--layers", 2, "--batch-size", 64, "--lr", 0.02, "--plan", "off")


class Recommend(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.train, self.test = tastes()
        self.write("tastes.npz", tastes_npz(self.train, self.test))

    def metrics(self, run):
        return [json.loads(line) for line in self.read(run + "/metrics.jsonl").splitlines()]

    def test_both_models_learn_what_users_like(self):
        for model in ("lightgcn", "ngcf"):
            with self.subTest(model):
                r = self.ok("train", "--data", "tastes.npz", "--model", model, *COMMON, "--epochs", 20, "--metric",
                            "recall@8", "--checkpoint", model, "--json")
                j = r.last_json()
                self.assertEqual(j["metric"], "recall@8")
                self.assertGreater(j["test"], 0.7)  # a random ranking would give about 0.2
                self.assertEqual(j["last_recall"], j["test"])
                self.assertGreater(j["last_ndcg"], 0.3)
                self.assertEqual(j["users"], USERS)
                lines = self.metrics(model)
                self.assertEqual([line["epoch"] for line in lines], list(range(1, 21)))
                self.assertLess(lines[-1]["loss"], 0.6 * lines[0]["loss"])

    def test_text_lists_are_the_same_data(self):
        for name, pairs in (("train", self.train), ("test", self.test)):
            text = ""
            for user in range(USERS):
                text += " ".join(str(n) for n in [user] + [item for u, item in pairs if u == user]) + "\n"
            self.write("lists/%s.txt" % name, text)
        command = ("--model", "lightgcn", *COMMON, "--epochs", 2, "--json")
        one = self.ok("train", "--data", "tastes.npz", *command, "--checkpoint", "one").last_json()
        two = self.ok("train", "--data", "lists", *command, "--checkpoint", "two").last_json()
        self.assertEqual(one["loss"], two["loss"])
        self.assertEqual(one["test"], two["test"])
        self.assertEqual(one["metric"], "recall@20")

    def test_resumed_runs_end_with_the_same_weights(self):
        command = ("train", "--data", "tastes.npz", "--model", "ngcf", "--dropout", 0.1, "--set", "edge-dropout=0.1",
                   *COMMON)
        self.ok(*command, "--epochs", 4, "--checkpoint", "whole", "--threads", 1)
        self.ok(*command, "--epochs", 2, "--checkpoint", "parts", "--threads", 2)
        self.ok(*command, "--epochs", 4, "--checkpoint", "parts", "--resume")
        self.assertEqual(self.read("parts/model.safetensors"), self.read("whole/model.safetensors"))
        self.refused(*command, "--epochs", 6, "--checkpoint", "parts", "--resume", "--embedding-decay", 0.5,
                     says="parts")

    def test_items_are_recommended_by_name_and_rank(self):
        j = self.ok("train", "--data", "tastes.npz", "--model", "ngcf", *COMMON, "--epochs", 10, "--metric", "recall@8",
                    "--checkpoint", "run", "--json").last_json()
        saved = ("--data", "tastes.npz", "--checkpoint", "run")
        again = self.ok("eval", *saved, "--json").last_json()
        self.assertEqual((again["test"], again["ndcg"], again["users"]), (j["test"], j["last_ndcg"], USERS))
        self.ok("predict", *saved, "--top", 8, "-o", "best.csv")
        lines = [line.split(",") for line in self.read("best.csv").decode().splitlines()]
        self.assertEqual(lines[0], ["user", "rank", "item", "score"])
        taken, held = set(self.train), set(self.test)
        best = {}
        for user, rank, item, score in lines[1:]:
            mine = best.setdefault(int(user), [])
            self.assertEqual(int(rank), len(mine) + 1)
            self.assertNotIn((int(user), int(item)), taken)
            if mine:
                self.assertLessEqual(float(score), mine[-1][1] + 1e-5)
            mine.append((int(item), float(score)))
        self.assertEqual(sorted(best), list(range(USERS)))
        hits = sum((user, item) in held for user in best for item, _ in best[user])
        # Every user has two held-out items.
        self.assertAlmostEqual(hits / len(held), j["test"], places=5)
        # More than there are items: all of them are written.
        self.ok("predict", *saved, "--top", 100, "-o", "best.npy")
        self.assertIn(b"(60,45", self.read("best.npy")[:128])
        self.ok("predict", *saved, "--embeddings", "-o", "rows.csv")
        self.assertEqual(len(self.read("rows.csv").splitlines()), 1 + USERS + ITEMS)
        self.refused("predict", *saved, "-o", "best.safetensors", says=".csv or .npy")
        self.refused("predict", *saved, "--scores", says="--scores")

    def test_bad_settings_are_refused(self):
        command = ("train", "--data", "tastes.npz", "--model", "lightgcn", "--no-checkpoint")
        self.refused(*command, "--metric", "accuracy", says="does not score recommendations")
        self.refused(*command, "--embedding-decay", -1, says="--embedding-decay")
        self.refused(*command, "--batch-size", 0, says="--batch-size")
        self.refused(*command, "--set", "edge-dropout=1", says="edge-dropout: 1 is not a share")
        self.refused(*command, "--positives", "all", says="choose users or pairs")
        self.refused(*command, "--activation", "relu", says="activation")
        self.refused(*command, "--fanout", "5,5", says="--fanout")
        self.refused(*command, "--split", "random:0.6/0.2/0.2", says="but the data are users and items")

    def test_messages_say_what_the_data_are(self):
        column = lambda k: cli.npy([pair[k] for pair in self.train], descr="<i4")
        self.write("untested.npz", cli.npz({"train_user": column(0), "train_item": column(1)}))
        for command in ("train", "plan", "explain"):
            says = self.refused(command, "--data", "untested.npz", "--model", "lightgcn", says="no pairs to test")
            self.assertIn("add test_user and test_item", says)
        self.assertIn("no pairs to test a recommender on", self.ok("data", "info", "untested.npz").out)
        for command in ("plan", "explain"):
            self.refused(command, "--data", "tastes.npz",
                         says="nacre plan and nacre explain show only models that classify nodes")


if __name__ == "__main__":
    cli.main()
