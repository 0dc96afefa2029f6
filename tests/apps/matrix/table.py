"""These tables hold every option of the commands that train and use a model, the values worth
trying, and what must not be combined.

A factor's values are arguments of the program. {5} is repeated for every layer: 5,5 for two.
scripts/check_options.py compares the options named here with those the program has, so that a
new option cannot be forgotten.
"""
from cover import Rule

EDGES = "--data data/edges.txt --labels data/y.txt --splits data/s.npz --num-nodes 96"

BASE = "--json -q --seed 1"

DATA = {
    "npz": "--data data/plain.npz --format npz",
    "nacre": "--data data/plain.nacre",
    "edges": EDGES + " --features data/x.npy",
    "weighted": "--data data/weighted.npz",
    "weighted-nacre": "--data data/weighted.nacre",
    "typed": "--data data/typed.npz",
    "multilabel": "--data data/multilabel.npz",
    "kinds": "--data data/kinds.npz --input-dim 8",
    "users": "--data data/users.npz",
    "degree features": EDGES + " --features degree",
    "learned features": EDGES + " --features learned",
    "twin": "--data twin:google@0.0004 --data-seed 3",
}

MODELS = ("gcn", "sage", "sage-lstm", "gat", "gatv2", "rgcn", "gin", "mlp", "ngcf", "lightgcn")

FACTORS = {
    "model": {name: f"--model {name}" for name in MODELS},
    "data": DATA,
    "mode": {"full": "", "minibatch": "--mode minibatch"},
    "sampler": {
        "default": "",
        "few": "--sampler neighbor --fanout {3}",
        "all": "--fanout {-1}",
        "by type": "--fanout {4/2/3}",
        "replace": "--fanout {5} --replace",
        "by weight": "--fanout {3} --sample-weighted",
        "layer": "--sampler layer --fanout {40}",
        "saint-vertex": "--sampler saint-vertex --budget 40 --norm-samples 20",
        "saint-edge": "--sampler saint-edge --budget 60",
        "saint-walk": "--sampler saint-walk --budget 12 --walk-length 3",
    },
    "batch": {"default": "", "small": "--batch-size 10", "odd": "--batch-size 7"},
    "shuffle": {"always": "", "never": "--shuffle never", "adaptive": "--shuffle adaptive"},
    "batch schedule": {"auto": "", "in-turn": "--schedule in-turn", "cpu-only": "--schedule cpu-only",
                       "salient": "--schedule salient", "cpu-sample": "--schedule cpu-sample",
                       "all-gpu": "--schedule all-gpu", "daha": "--schedule daha", "bytegnn": "--schedule bytegnn"},
    "staleness": {"0": "", "1": "--staleness 1", "3": "--staleness 3"},
    "loader": {
        "default": "",
        "none ahead": "--prefetch 0",
        "many ahead": "--prefetch 7",
        "plain": "--no-subtasks --no-relax --no-stream",
        "no relax": "--no-relax",
        "no stream": "--no-stream --prefetch 2",
        "no subtasks": "--no-subtasks --prefetch 1",
    },
    "features on": {"default": "", "auto": "--features-on auto", "host": "--features-on host",
                    "device": "--features-on device"},
    "feature budget": {"default": "", "one row": "--feature-budget 40", "some rows": "--feature-budget 1K"},
    "placement": {"default": "", "probability": "--placement probability", "random": "--placement random"},
    "row cache": {"default": "", "static": "--cache static", "lookahead": "--cache lookahead"},
    "locality": {"off": "", "fixed": "--locality 4"},
    "host rows": {"default": "", "link": "--host-rows link", "copy": "--host-rows copy"},
    "feature type": {"f32": "", "bf16": "--feature-type bf16", "f16": "--feature-type f16"},
    "host budget": {"default": "", "enough": "--host-budget 64M"},
    "sample on": {"default": "", "auto": "--sample-on auto", "host": "--sample-on host",
                  "device": "--sample-on device"},
    "plan": {
        "auto": "",
        "off": "--plan off",
        "vertex": "--plan vertex",
        "edge": "--plan edge",
        "tensor": "--plan tensor",
        "table by edge": "--plan dst-id=1,edge-id=32",
        "table by type": "--plan src-id=64,edge-type=1",
        "deterministic": "--deterministic",
    },
    "recompute": {"auto": "", "fit": "--recompute fit"},
    "reorder": {"auto": "", "none": "--reorder none", "degree": "--reorder degree", "rcm": "--reorder rcm",
                "rabbit": "--reorder rabbit"},
    "passes": {"all": "", "no tails": "--disable-pass sink_tails,sink_summed_rows", "few": "--disable-pass "
               "merge_equal_nodes,fold_dropout_into_relu_grad --disable-pass drop_unread,order_for_memory",
               "no swaps": "--disable-pass swap_indexing,fold_expand", "no inlining": "--disable-pass inline_edges",
               "no joins": "--disable-pass join_products"},
    "cache": {"cold": "", "warm": "", "not used": "--no-plan-cache", "no home": "", "not writable": ""},
    "threads": {"all": "", "1": "--threads 1", "3": "--threads 3"},
    "memory": {"free": "", "limited": "--memory-limit 2G"},
    "device": {"auto": "", "cpu": "--device cpu", "cuda": "--device cuda", "share": "--device cuda:0@8"},
    "devices": {"one": "", "equal": "--devices cpu:1,cpu:1", "shared": "--devices cpu:1,cpu:2,cpu:1 --shares 2,1,1",
                "uniform": "--devices cpu:1,cpu:2 --shares uniform", "by cores": "--devices cpu:1,cpu:2 --shares cores",
                "by itself": "--devices cpu:1,cpu:2 --shares auto"},
    "partition": {"default": "", "metis": "--partition metis", "fennel": "--partition fennel",
                  "range": "--partition range", "random": "--partition random"},
    "halo rows": {"default": "", "late": "--halo-rows late", "early": "--halo-rows early",
                  "narrow": "--halo-rows narrow", "columns": "--halo-rows columns",
                  "sums": "--halo-rows sums"},
    "communication": {"default": "", "set": "--no-overlap --comm-timeout 100", "patient": "--comm-timeout 100",
                      "processes": "--comm staged"},
    "precision": {"f32": "", "tf32": "--precision tf32", "bf16": "--precision bf16",
                  "auto": "--precision auto"},
    "layers": {"2": "", "1": "--layers 1", "3": "--layers 3"},
    "hidden": {"default": "", "12": "--hidden 12", "36": "--hidden 36"},
    "heads": {"default": "", "1": "--heads 1", "2": "--heads 2 --out-heads 2", "4": "--heads 4 --out-heads 3"},
    "norm": {"none": "", "layer": "--norm layer", "batch": "--norm batch"},
    "activation": {"default": "", "none": "--activation none", "relu": "--activation relu",
                   "leaky_relu": "--activation leaky_relu", "elu": "--activation elu",
                   "sigmoid": "--activation sigmoid", "tanh": "--activation tanh"},
    "aggregator": {"default": "", "mean": "--aggr mean", "sum": "--aggr sum", "max": "--aggr max",
                   "lstm": "--aggr lstm"},
    "dropout": {"none": "", "between": "--dropout 0.2", "input": "--input-dropout 0.1",
                "attention": "--attention-dropout 0.2"},
    "residual": {"no": "", "yes": "--residual"},
    "bases": {"0": "", "2": "--num-bases 2"},
    "relations": {"default": "", "3": "--relations 3"},
    "knobs": {"default": "", "edge-dropout": "--set edge-dropout=0.1", "authors": "--set authors=1 --set normalize=1"},
    "input": {"auto": "", "row": "--normalize-features row", "none": "--normalize-features none"},
    "split": {"own": "", "drawn": "--split random:0.6/0.2/0.2 --split-seed 5"},
    "edge weights": {"used": "", "ignored": "--ignore-edge-weights"},
    "undirected": {"no": "", "yes": "--undirected"},
    "optimizer": {
        "adam": "--lr 0.03",
        "adam set": "--lr 0.03 --beta1 0.8 --beta2 0.99 --eps 1e-7",
        "adamw": "--optimizer adamw --lr 0.03 --weight-decay 0.01",
        "sgd": "--optimizer sgd --lr 0.02 --momentum 0.9",
    },
    "gradients": {"plain": "", "clipped": "--clip-grad-norm 1", "averaged": "--ema 0.5"},
    "loss": {"plain": "", "smooth": "--label-smoothing 0.1", "class weights": "--class-weights balanced"},
    "schedule": {
        "constant": "",
        "plateau": "--lr-schedule plateau --lr-patience 5",
        "step": "--lr-schedule step --lr-step 10 --lr-gamma 0.7",
        "cosine": "--lr-schedule cosine --lr-final 0.3",
        "linear": "--lr-schedule linear --lr-final 0.3 --warmup 2",
    },
    "select": {"best": "", "loss": "--select loss", "last": "--select last"},
    "evaluation": {"every epoch": "", "every third": "--eval-every 3", "patience": "--patience 25"},
    "metric": {"auto": "", "accuracy": "--metric accuracy", "micro_f1": "--metric micro_f1",
               "macro_f1": "--metric macro_f1", "average_precision": "--metric average_precision",
               "roc_auc": "--metric roc_auc", "recall": "--metric recall@8", "ndcg": "--metric ndcg@8"},
    "pairs": {"default": "", "set": "--embedding-decay 1e-3 --embedding-init 0.2 --positives pairs"},
    # What is done with the run afterwards (runs.py).
    "then": {"nothing": "--no-checkpoint", "eval": "--checkpoint run", "predict": "--checkpoint run",
             "embeddings": "--checkpoint run", "resume": "--checkpoint run --checkpoint-every 5 --keep 1",
             "plan file": "--checkpoint run", "plan": "--no-checkpoint", "trace": "--no-checkpoint --trace t.json "
             "--metrics m.jsonl"},
}

# The options that runs.py gives the commands that follow training.
AFTERWARDS = "--epochs --resume --scores --embeddings --output --steps --search-seconds"

NO_GPU = (
    Rule("device=cuda|share", "was not found"),
    Rule("precision=tf32|bf16", "needs a GPU"),
    Rule("precision=auto & devices!=one", "needs a GPU"),
    Rule("mode=minibatch & data!=users & features on!=default", "--features-on"),
    Rule("mode=minibatch & data!=users & feature budget!=default", "--feature-budget"),
    Rule("mode=minibatch & data!=users & placement!=default", "--placement"),
    Rule("mode=minibatch & data!=users & row cache!=default", "--cache"),
    Rule("mode=minibatch & data!=users & locality!=off", "--locality"),
    Rule("mode=minibatch & data!=users & host rows!=default", "--host-rows"),
    Rule("mode=minibatch & data!=users & sample on!=default", "--sample-on"),
    Rule("mode=minibatch & data!=users & devices=one & batch schedule=salient|cpu-sample|all-gpu|bytegnn",
         "needs a GPU"),
)

GPU = (
    Rule("data=learned features & mode=minibatch & features on=host", "learned features are weights"),
    Rule("data=learned features & mode=minibatch & feature budget!=default", "learned features are weights"),
    Rule("data=learned features & mode=minibatch & placement!=default", "learned features are weights"),
    Rule("data=learned features & mode=minibatch & row cache=lookahead", "learned features are weights"),
    Rule("data=learned features & mode=minibatch & host rows!=default", "learned features are weights"),
    Rule("data=kinds & mode=minibatch & feature budget!=default", "works for one table of features"),
    Rule("data=kinds & mode=minibatch & placement!=default", "works for one table of features"),
    Rule("data=kinds & mode=minibatch & row cache=lookahead", "works for one table of features"),
    Rule("data=kinds & mode=minibatch & host rows!=default", "works for one table of features"),
    Rule("data=kinds & mode=minibatch & features on=device & feature type!=f32", "are gathered on the host"),
    Rule("mode=minibatch & features on=host|device & feature budget!=default", "give one of the two"),
    Rule("mode=minibatch & features on=host|device & placement!=default", "has no effect with"),
    Rule("mode=minibatch & features on=host|device & row cache=lookahead", "has no effect with"),
    Rule("mode=minibatch & row cache=lookahead & locality!=off", "together with --locality"),
    Rule("mode=minibatch & row cache=lookahead & batch schedule=in-turn|daha|bytegnn", "draws samples ahead by itself"),
    Rule("mode=minibatch & features on=device & host rows!=default", "has no effect with"),
    Rule("mode=minibatch & locality!=off & feature budget=default", "needs --feature-budget"),
    Rule("mode=minibatch & locality!=off & sampler=saint-vertex|saint-edge|saint-walk", "draws a whole subgraph"),
    Rule("mode=minibatch & locality!=off & sampler=all", "all neighbours are taken"),
    Rule("mode=minibatch & locality!=off & sample on=device", "drawn on the host"),
    Rule("mode=minibatch & feature budget!=default & host budget!=default", "together with --host-budget yet"),
    Rule("mode=minibatch & placement!=default & host budget!=default", "together with --host-budget yet"),
    Rule("mode=minibatch & row cache=lookahead & host budget!=default", "together with --host-budget yet"),
    Rule("mode=minibatch & host rows!=default & host budget!=default", "together with --host-budget yet"),
    Rule("mode=minibatch & data!=users & devices=one & batch schedule=cpu-only", "is for the CPU"),
    Rule("batch schedule=salient|cpu-sample|all-gpu|daha|bytegnn & sample on!=default", "is settled by --schedule"),
    Rule("batch schedule=salient|cpu-sample & features on!=default", "is settled by --schedule"),
    Rule("batch schedule=salient|cpu-sample & feature budget!=default", "is settled by --schedule"),
    Rule("batch schedule=salient|cpu-sample & placement!=default", "is settled by --schedule"),
    Rule("batch schedule=salient|cpu-sample & row cache!=default", "is settled by --schedule"),
    Rule("batch schedule=salient|cpu-sample & host rows!=default", "is settled by --schedule"),
    Rule("batch schedule=cpu-sample|all-gpu & loader=none ahead|many ahead|no stream|no subtasks",
         "is settled by --schedule"),
    Rule("batch schedule=salient|cpu-sample & data=learned features", "learned features are weights"),
    Rule("batch schedule=all-gpu & locality!=off", "drawn on the host"),
    Rule("batch schedule=daha|bytegnn & locality!=off", "says who draws each batch"),
    Rule("batch schedule=bytegnn & device=share", "needs a GPU that draws neighbours"),
    Rule("batch schedule=bytegnn & sampler=by type|layer|saint-vertex|saint-edge|saint-walk",
         "needs a GPU that draws neighbours"),
    Rule("batch schedule=all-gpu & device=share", "a part of a GPU (cuda:0@32) cannot sample"),
    Rule("batch schedule=all-gpu & sampler=by type|layer|saint-vertex|saint-edge|saint-walk", "--schedule all-gpu"),
    Rule("sample on=device & device=share", "a part of a GPU (cuda:0@32) cannot sample"),
    Rule("sample on=device & sampler=by type", "--sample-on"),
    Rule("sample on=device & sampler=layer|saint-vertex|saint-edge|saint-walk", "--sample-on"),
    Rule("sample on=device & devices!=one", "a part of a GPU (cuda:0@32) cannot sample"),
    Rule("devices!=one & mode=minibatch & precision=auto", "share the nodes of the whole graph"),
    Rule("devices=one & precision=mixed", "the run has one device"),
    Rule("devices=shared & precision=mixed", "needs a GPU, but is given for"),
)

RULES = (
    Rule("precision=auto & devices=one", "'auto' is for several devices"),
    # data and model
    Rule("data=weighted|weighted-nacre & edge weights=used & model=sage-lstm|gat|gatv2|rgcn|gin|mlp",
         "does not use edge weights"),
    Rule("data=weighted|weighted-nacre & edge weights=used & model=sage & aggregator=max|lstm",
         "does not use edge weights"),
    Rule("data=edges|degree features|learned features & split=drawn", "give one of the two"),
    Rule("data=multilabel & metric=accuracy", "does not fit multi-label data"),
    Rule("data!=users & metric=recall|ndcg", "unknown metric"),
    Rule("data=kinds & mode=minibatch & host budget!=default", "works for one table of features"),
    # users and items
    Rule("data=users & layers=1 & model!=ngcf|lightgcn", "has no hidden layer"),
    Rule("data=users & metric=accuracy|micro_f1|macro_f1|roc_auc|average_precision", "does not score recommendations"),
    Rule("data=users & mode=minibatch", "--mode"),
    Rule("data=users & evaluation=patience", "needs validation nodes"),
    Rule("data=users & loader=plain|no relax|no stream|no subtasks", "recommenders use all neighbours"),
    Rule("data=users & sampler!=default", "recommenders use all neighbours"),
    Rule("data=users & shuffle!=always", "recommenders use all neighbours"),
    Rule("data=users & staleness!=0", "recommenders use all neighbours"),
    Rule("data=users & batch schedule!=auto", "recommenders use all neighbours"),
    Rule("data=users & features on!=default", "--features-on"),
    Rule("data=users & feature budget!=default", "--feature-budget"),
    Rule("data=users & placement!=default", "--placement"),
    Rule("data=users & row cache!=default", "--cache"),
    Rule("data=users & locality!=off", "--locality"),
    Rule("data=users & host rows!=default", "--host-rows"),
    Rule("data=users & feature type!=f32", "--feature-type"),
    Rule("data=users & sample on!=default", "--sample-on"),
    Rule("data=users & host budget!=default", "--host-budget"),
    Rule("data!=users & pairs=set", "is for recommenders"),
    Rule("data=users & loss!=plain", "the data are users and items"),
    Rule("data=users & split=drawn", "--split"),
    # models
    Rule("model!=gat|gatv2 & heads!=default", "is for models with attention"),
    Rule("model!=gat|gatv2 & dropout=attention", "is for models with attention"),
    Rule("model!=sage|sage-lstm & aggregator!=default", "is for models with a choice of aggregator"),
    Rule("model=sage-lstm & aggregator=mean|sum|max", "unknown aggregator"),
    Rule("model!=rgcn & bases=2", "is for models with edge types"),
    Rule("model!=rgcn & relations=3", "is for models with edge types"),
    Rule("model=rgcn & data=typed|kinds|users & relations=3", "this graph has its own"),
    Rule("model=lightgcn & activation!=default", "layers only propagate"),
    Rule("model=lightgcn & norm!=none", "layers only propagate"),
    Rule("model=lightgcn & residual=yes", "layers only propagate"),
    Rule("model!=ngcf|lightgcn & knobs!=default", "has no setting"),
    Rule("model=lightgcn & knobs=authors", "has no setting"),
    Rule("layers=1 & hidden!=default & model=gcn|gat|gatv2|rgcn|mlp & data!=users|kinds|learned features",
         "--hidden: has no effect"),
    Rule("layers=1 & hidden!=default & model=sage & aggregator!=lstm & data!=users|kinds|learned features",
         "--hidden: has no effect"),
    # plans
    Rule("cache=not used & plan!=auto", "has no effect if no plan is searched for"),
    Rule("recompute=fit & plan=vertex|edge|tensor|table by edge|table by type", "the given plan decides it"),
    Rule("reorder!=auto & mode=minibatch", "train on the whole graph, on one device"),
    Rule("reorder!=auto & devices!=one", "train on the whole graph, on one device"),
    Rule("reorder!=auto & data=users", "train on the whole graph, on one device"),
    Rule("reorder!=auto & model=mlp", "does not read the graph"),
    Rule("reorder=degree|rcm|rabbit & data=learned features", "learned features are stored by the nodes' numbers"),
    Rule("reorder=degree|rcm|rabbit & data=kinds", "learn a row for each node"),
    Rule("reorder=degree|rcm|rabbit & model=sage-lstm", "in the order of their numbers"),
    Rule("reorder=degree|rcm|rabbit & aggregator=lstm", "in the order of their numbers"),
    Rule("passes=no swaps & plan=vertex|edge|tensor", "take the model as written"),
    Rule("passes=no tails|no inlining & plan=tensor", "which fuses nothing"),
    Rule("passes=no joins & plan=vertex|edge|tensor|table by edge|table by type", "--disable-pass"),
    # several devices
    Rule("devices=one & partition!=default", "is for several devices"),
    Rule("devices=one & halo rows!=default", "is for several devices"),
    Rule("devices=one & communication=set|patient", "is for several devices"),
    Rule("communication=processes", "is for processes that mpirun or srun has started"),
    Rule("devices!=one & mode=minibatch & partition!=default", "mini-batches share out batches"),
    Rule("devices!=one & mode=minibatch & halo rows!=default", "mini-batches share out batches"),
    Rule("devices!=one & mode=minibatch & communication=set", "mini-batches share out batches"),
    Rule("devices!=one & mode=minibatch & host budget!=default", "one device of a process"),
    Rule("devices!=one & data=users", "recommenders train on one device"),
    Rule("devices!=one & mode=full & data=kinds|learned features", "several kinds of nodes"),
    Rule("devices!=one & device!=auto", "is for one device"),
    Rule("devices!=one & threads!=all", "is for one device"),
    Rule("devices!=one & cache=not used", "plans for several devices are made by rules"),
    # mini-batches
    Rule("mode=full & data!=users & sampler!=default", "--mode minibatch"),
    Rule("mode=full & data!=users & batch!=default", "--mode minibatch"),
    Rule("mode=full & data!=users & shuffle!=always", "--mode minibatch"),
    Rule("mode=full & data!=users & staleness!=0", "--mode minibatch"),
    Rule("mode=full & data!=users & batch schedule!=auto", "--mode minibatch"),
    Rule("mode=minibatch & batch schedule=daha|bytegnn & data=learned features|kinds", "needs one table of features"),
    Rule("mode=minibatch & batch schedule=daha|bytegnn & host budget!=default", "needs features in memory"),
    Rule("mode=minibatch & batch schedule=daha|bytegnn & plan=deterministic", "leave out --deterministic"),
    Rule("mode=minibatch & data!=users & devices!=one & batch schedule!=auto", "for one device"),
    Rule("mode=minibatch & data!=users & batch=default & devices=one & staleness!=0", "too much for epochs of"),
    Rule("mode=minibatch & data!=users & devices!=one & staleness!=0", "several devices add up the gradients"),
    Rule("mode=full & data!=users & loader!=default", "--mode minibatch"),
    Rule("mode=full & data!=users & features on!=default", "--mode minibatch"),
    Rule("mode=full & data!=users & feature budget!=default", "--mode minibatch"),
    Rule("mode=full & data!=users & placement!=default", "--mode minibatch"),
    Rule("mode=full & data!=users & row cache!=default", "--mode minibatch"),
    Rule("mode=full & data!=users & locality!=off", "--mode minibatch"),
    Rule("mode=full & data!=users & host rows!=default", "--mode minibatch"),
    Rule("mode=full & data!=users & feature type!=f32", "--mode minibatch"),
    Rule("mode=full & data!=users & sample on!=default", "--mode minibatch"),
    Rule("mode=minibatch & shuffle!=always & sampler=saint-vertex|saint-edge|saint-walk", "GraphSAINT draws"),
    Rule("mode=minibatch & data!=users & shuffle=adaptive & host budget!=default", "--host-budget"),
    Rule("data=learned features & mode=minibatch & feature type!=f32", "learned features are weights"),
    Rule("mode=full & data!=users & host budget!=default", "--mode minibatch"),
    Rule("mode=minibatch & data=learned features & host budget!=default", "learned features are weights"),
    Rule("mode=minibatch & data!=users & feature type!=f32 & host budget!=default", "rows on disk are f32"),
    Rule("model=mlp & sampler=few|all|by type|replace|by weight|layer", "does not use neighbours"),
    Rule("data!=weighted|weighted-nacre|users & sampler=by weight", "has no edge weights"),
    Rule("data=weighted|weighted-nacre & edge weights=ignored & sampler=by weight", "has no edge weights"),
    Rule("data!=typed|kinds|users & sampler=by type", "has no edge types"),
    Rule("data=kinds & sampler=by type & undirected=yes", "has 3 numbers for"),
    # afterwards
    Rule("then=resume & schedule=cosine|linear", "was written by a run with other"),
    Rule("then=resume & evaluation=every third & select!=last", "was written by a run with other"),
    Rule("then=resume & evaluation=every third & schedule=plateau", "was written by a run with other"),
    Rule("then=plan & data=users", ""),
    Rule("then=embeddings & layers=1 & model!=ngcf|lightgcn", "has no hidden layer"),
)

# Combinations with known faults, which are left out until these are mended.
OPEN = ()

# Options that have tests of their own, because a run here would not show what they do.
ELSEWHERE = {
    "--config": "tests/apps/train_test.py",
    "-v": "tests/apps/plan_test.py",
    "--bill": "tests/apps/memory_test.py",
    "--init": "tests/apps/basics_test.py",
    "--init-partial": "tests/apps/basics_test.py",
    "--seeds": "tests/apps/basics_test.py",
    "--log": "tests/apps/log_test.py",
    "--open": "tests/apps/report_test.py",
    "--emit-cuda": "tests/apps/plan_test.py",
    "--picture": "tests/apps/plan_test.py",
    "--table": "tests/apps/plan_test.py",
    "--stop-after": "tests/apps/plan_test.py",
    "--space": "tests/apps/plan_test.py",
    "--nodes": "tests/apps/plan_test.py",
    "--first": "tests/apps/plan_test.py",
    "--run": "tests/apps/plan_test.py",
    "--pack": "tests/apps/disk_test.py",
    "--pack-folder": "tests/apps/disk_test.py",
    "--save-profile": "tests/apps/simulate_test.py",
    "--hardware": "tests/apps/simulate_test.py",
    "--ranks": "tests/apps/simulate_test.py",
    "--count-on": "tests/apps/simulate_test.py",
    "--top": "tests/apps/recommend_test.py",
    "--shares": "tests/apps/partition_test.py",
    "--parts": "tests/apps/partition_test.py",
    "--method": "tests/apps/partition_test.py",
    "--row-work": "tests/apps/partition_test.py",
    "--edge-work": "tests/apps/partition_test.py",
    "--imbalance": "tests/apps/partition_test.py",
    "--passes": "tests/apps/partition_test.py",
    "--no-partition-cache": "tests/apps/partition_test.py",
}

# Rows that cannot learn, or not in so few steps. Their loss must be finite; nothing else is
# checked.
WEAK = (
    Rule("optimizer=sgd & data=users|twin|kinds|learned features"),
    Rule("data=degree features"),  # degrees say little about classes
    # Without edges, only the rows of training nodes are learned.
    Rule("data=learned features & model=mlp"),
    # The features of the twin have both signs, so the sums of rows are near zero.
    Rule("data=twin & input=row"),
    Rule("data=users & select=last & gradients=averaged"),
    # GIN adds up rows without a norm, so many small batches with long steps learn nothing.
    Rule("model=gin & data=users & batch=odd"),
    # Rows whose sums are 1 differ little, and steps are small.
    Rule("data=multilabel & input=row & optimizer=sgd"),
    # Such rows also learn nothing if the steps become smaller every ten epochs.
    Rule("input=row & optimizer=sgd & schedule=step"),
)

# Rows whose loss may grow without bound, however they are computed. They may end with the error
# that says so.
DIVERGES = (
    # Rows that were divided by sums near zero are large, and NGCF multiplies rows by each other.
    Rule("model=ngcf & data=twin & input=row"),
    # Sums over neighbours grow from layer to layer, and nothing limits the steps.
    Rule("model=gin & optimizer=sgd & gradients!=clipped"),
)

# The least score of a run that has learned; random guesses score less.
ABOVE_CHANCE = {
    "accuracy": 0.45, "micro_f1": 0.45, "macro_f1": 0.4, "roc_auc": 0.6, "average_precision": 0.45,
    "twin accuracy": 0.1, "twin micro_f1": 0.1, "twin macro_f1": 0.05, "twin roc_auc": 0.55,
    "twin average_precision": 0.1,
    "recall@8": 0.45, "ndcg@8": 0.2, "recall@20": 0.85, "ndcg@20": 0.3,
}


def factors(device):
    if device == "cpu":
        return FACTORS
    return {**FACTORS, "device": {"cuda": "--device cuda", "auto": "", "share": "--device cuda:0@8"},
            "devices": {"one": "", "equal": "--devices cuda:0@8,cuda:0@8",
                        "shared": "--devices cuda:0@8,cpu:2 --shares 3,1",
                        "by cores": "--devices cuda:0@8,cuda:0@16 --shares cores",
                        "by flops": "--devices cuda:0@8,cuda:0@16 --shares flops",
                        "by clock": "--devices cuda:0@8,cuda:0@8 --shares frequency",
                        "by itself": "--devices cuda:0@8,cuda:0@16 --shares auto"},
            "precision": {**FACTORS["precision"], "mixed": "--precision tf32,bf16"}}


def rules(device):
    return RULES + OPEN + (NO_GPU if device == "cpu" else GPU)
