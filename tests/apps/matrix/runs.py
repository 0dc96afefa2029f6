"""Runs a row of the array as commands of the program, and checks what must hold after each of
them."""
import contextlib
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

import table

ENOUGH = 60
EPOCHS = ENOUGH  # with fewer epochs than ENOUGH, runs need not learn anything
# Time limit of one command; most take a tenth of a second, but the machine may be busy.
SECONDS = 400


class Fault(Exception):
    """A Fault says what is wrong with a run, and with which command to see it."""


def arguments(row, factors):
    """Returns the settings of the row as arguments of nacre train."""
    text = " ".join(factors[name][value] for name, value in row.items())
    layers = {"2": 2}.get(row.get("layers", "2")) or int(row["layers"])
    repeated = lambda match: ",".join([match.group(1)] * layers)
    return shlex.split(re.sub(r"\{([^}]*)\}", repeated, f"{table.BASE} --epochs {EPOCHS} {text}"))


def only(accepted, words):
    """Returns the options among `words`, with their values, whose names `accepted` has."""
    kept, keep = [], False
    for word in words:
        if word.startswith("-") and not re.fullmatch(r"-\d.*", word):
            keep = word in accepted
        if keep:
            kept.append(word)
    return kept


def matches(row, rules):
    return any(all((row[name] in values) != excluded for name, excluded, values in rule.terms) for rule in rules)


class Place:
    """A folder for one row, with the data and with caches as the row says. It is removed at the
    end."""

    def __init__(self, shared, row, plugin):
        self.path = tempfile.mkdtemp(prefix="row-", dir=shared.folder)
        os.symlink(shared.folder / "data", os.path.join(self.path, "data"))
        self.rates = shared.folder / "rates"
        self.env = {key: value for key, value in os.environ.items()
                    if key not in ("NACRE_CACHE", "XDG_CACHE_HOME", "NACRE_PLUGIN_PATH")}
        if plugin is not None:
            self.env["NACRE_PLUGIN_PATH"] = plugin
        self.weak = matches(row, table.WEAK) or EPOCHS < ENOUGH
        cache = row["cache"]
        if cache == "no home":
            self.env.pop("HOME", None)
        elif cache == "not writable":
            self.env["XDG_CACHE_HOME"] = "/dev/null/none"
        else:
            self.env["XDG_CACHE_HOME"] = str(shared.folder / "warm" if cache == "warm" else self.path + "/cache")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    @contextlib.contextmanager
    def known_rates(self):
        """Lends the row the rates of this machine that other rows have measured, and takes what
        the row measures. Measuring them takes seconds."""
        cache = pathlib.Path(self.env.get("XDG_CACHE_HOME", "/dev/null")) / "nacre"
        lends = cache.is_relative_to(self.path)
        if lends:
            # The folder is missing if training has cached nothing yet.
            cache.mkdir(parents=True, exist_ok=True)
            copy_files(self.rates, cache)
        yield
        if lends:
            copy_files(cache, self.rates)


def copy_files(source, target):
    """Copies the profiles that `target` does not have; each of them appears whole."""
    for profile in source.glob("profile-*.json"):
        if not (target / profile.name).exists():
            copy = tempfile.mktemp(prefix="copy-", dir=target)
            shutil.copyfile(profile, copy)
            os.replace(copy, target / profile.name)


class Runner:
    def __init__(self, program, place):
        self.program, self.place = program, place
        self.commands = []

    def fault(self, what, done=None):
        shown = "\n".join(self.commands)
        text = f"{what}\n{shown}"
        if done is not None:
            text += f"\nstdout: {done.stdout[-800:]}\nstderr: {done.stderr[-1500:]}"
        return Fault(text)

    def run(self, *words, code=0, says=""):
        self.commands.append("nacre " + shlex.join(words))
        try:
            done = subprocess.run([self.program, *words], cwd=self.place.path, env=self.place.env, text=True,
                                  errors="replace", stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise self.fault(f"did not end within {SECONDS} s") from None
        for words_of_a_crash in ("internal error", "terminate called", "json.exception", "Sanitizer"):
            if words_of_a_crash in done.stderr + done.stdout:
                raise self.fault(f"'{words_of_a_crash}'", done)
        if done.returncode != code:
            raise self.fault(f"exit status {done.returncode} instead of {code}", done)
        if says not in done.stderr:
            raise self.fault(f"the message does not say '{says}'", done)
        if code == 2 and len([line for line in done.stderr.splitlines() if line.startswith("nacre: ")]) != 1:
            raise self.fault("a refusal is one line that begins with 'nacre: '", done)
        return done

    def train(self, words):
        done = self.run("train", *words)
        try:
            result = json.loads(done.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            raise self.fault("stdout does not end with a JSON object", done) from None
        if not math.isfinite(result["loss"] if result["loss"] is not None else math.nan):
            raise self.fault(f"the loss is {result['loss']}", done)
        metric, score = result["metric"], test_score(result)
        twin = "twin " if result["data"].startswith("twin:") else ""
        chance = table.ABOVE_CHANCE[twin + metric]
        if score is None or not (score > chance or self.place.weak):
            raise self.fault(f"{metric} is {score}, not above {chance}", done)
        self.check_memory(result, done)
        return result


    def check_memory(self, result, done):
        """Checks that the bill holds: on the CPU for the process, on a GPU for its memory."""
        used, planned = result["peak_mb"], result["planned_mb"]
        if result.get("device_peak_mb") is not None:
            used, planned = result["device_peak_mb"], 1.1 * planned + 8
        if result["device"].startswith("cpu") or result.get("device_peak_mb") is not None:
            if used > planned:
                raise self.fault(f"{used:.1f} MiB used, {planned:.1f} MiB planned", done)


def test_score(result):
    return result.get("test_acc", result.get("test"))


# These functions do what follows training, one for each value of the factor "then". They take the
# runner, the arguments of training, the result of training, and the options of each command.
def then_eval(runner, words, result, accepted):
    done = runner.run("eval", "--checkpoint", "run", "--json", "-q", *only(accepted["eval"], words_without_data(words)))
    again = json.loads(done.stdout.strip().splitlines()[-1])
    # Inference layer by layer adds in another order than inference on the whole graph.
    if abs(test_score(again) - test_score(result)) > 0.05:
        raise runner.fault(f"eval gives {test_score(again)}, training {test_score(result)}", done)


def then_predict(runner, words, result, accepted):
    scores = [] if "users" in words[words.index("--data") + 1] else ["--scores"]
    done = runner.run("predict", "--checkpoint", "run", "-o", "p.csv", "-q", *scores,
                      *only(accepted["predict"], words_without_data(words)))
    with open(os.path.join(runner.place.path, "p.csv")) as file:
        lines = file.read().splitlines()
    if len(lines) < 90 or any(word in line for line in lines[1:] for word in ("nan", "inf")):
        raise runner.fault(f"p.csv has {len(lines)} lines, or numbers that are not finite", done)


def then_embeddings(runner, words, result, accepted):
    done = runner.run("predict", "--checkpoint", "run", "--embeddings", "--output", "e.npy", "-q",
                      *only(accepted["predict"], words_without_data(words)))
    if os.path.getsize(os.path.join(runner.place.path, "e.npy")) < 90 * 4:
        raise runner.fault("e.npy has too few numbers", done)


def then_resume(runner, words, result, accepted):
    longer = list(words)
    longer[longer.index("--epochs") + 1] = str(EPOCHS + 5)
    if runner.train([*longer, "--resume"])["epochs"] < result["epochs"]:
        raise runner.fault("a resumed run has fewer epochs than before")


def then_plan_file(runner, words, result, accepted):
    again = list(words)
    for option in ("--checkpoint", "--plan", "--recompute", "--reorder", "--disable-pass"):
        while option in again:
            del again[again.index(option):again.index(option) + 2]
    again = [word for word in again if word not in ("--no-plan-cache", "--deterministic")]
    if runner.train([*again, "--no-checkpoint", "--plan", "run/plan.json"])["plan_source"] != "file":
        raise runner.fault("the plan of the file was not used")


def then_plan(runner, words, result, accepted):
    # With --schedule, plan measures operations for seconds (tests/apps/schedule_test.py).
    runner.run("plan", *only(accepted["plan"] - {"--schedule"}, words), "--output", "plan.json")
    with runner.place.known_rates():
        runner.run("explain", *only(accepted["explain"], words), "--steps", "1", "--search-seconds", "0.05")


def then_trace(runner, words, result, accepted):
    with open(os.path.join(runner.place.path, "m.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    with open(os.path.join(runner.place.path, "t.json")) as file:
        json.load(file)
    if len(lines) != result["epochs"] or not all(math.isfinite(line["loss"]) for line in lines):
        raise runner.fault(f"{len(lines)} lines of metrics for {result['epochs']} epochs")


THEN = {"eval": then_eval, "predict": then_predict, "embeddings": then_embeddings, "resume": then_resume,
        "plan file": then_plan_file, "plan": then_plan, "trace": then_trace}


def words_without_data(words):
    """Returns the words without the options that say where the data are and how they are read. The
    commands that use a run take these settings from its folder."""
    at = words.index("--data")
    rest = words[:at] + words[at + 2:]
    for option in ("--format", "--features", "--labels", "--splits", "--num-nodes", "--data-seed", "--checkpoint"):
        if option in rest:
            del rest[rest.index(option):rest.index(option) + 2]
    # These commands use one device, so they take neither a list of precisions nor auto.
    if "--precision" in rest and ("," in rest[rest.index("--precision") + 1] or "auto" in rest):
        del rest[rest.index("--precision"):rest.index("--precision") + 2]
    return [word for word in rest if word not in ("--undirected", "--json", "-q")]


def run_row(shared, row, rule=None):
    """Runs a row; with the rule it breaks, the program must refuse it. Returns the commands run."""
    with Place(shared, row, shared.plugin) as place:
        runner = Runner(shared.program, place)
        words = arguments(row, shared.factors)
        if rule is None or rule.text.startswith("then="):
            try:
                result = runner.train(words)
            except Fault as fault:
                if matches(row, table.DIVERGES) and "the loss is no longer a number" in str(fault):
                    return runner.commands
                raise
            try:
                if row["then"] in THEN:
                    THEN[row["then"]](runner, words, result, shared.accepted)
            except Fault as fault:
                if rule is None or rule.says not in str(fault) or "exit status 2 instead" not in str(fault):
                    raise
            else:
                if rule is not None:
                    raise runner.fault(f"is not refused: {rule.text}")
        else:
            runner.run("train", *words, code=2, says=rule.says)
        return runner.commands
