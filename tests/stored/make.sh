#!/bin/sh
# How the files beside this were written, by the version that the folder's README names.
set -e
for name in tokens.npz tokens.safetensors corpus.npz corpus.safetensors corpus.txt head.npz; do
    attractor example "${name%%.*}" "$name"
done
attractor solve tokens.npz --out solution.nc --certificate certificate.json
attractor train tokens.npz --steps 20 --seeds 2 --out run.nc
attractor verify run.nc --out verify
attractor train tokens.npz --steps 4000 --seeds 4 --checkpoint checkpoint --out unfinished.nc &
python - $! <<'PYTHON'
import os, pathlib, signal, sys, time
while not list(pathlib.Path("checkpoint").glob("state*")):
    time.sleep(0.01)
os.kill(int(sys.argv[1]), signal.SIGKILL)
PYTHON
attractor check tokens.npz --steps 50 --seeds 1 --out check
attractor matrix --optimizer gd --lr 0.1 --data-sets 1 --steps 30 --out matrix
attractor basins tokens.npz --starts 4 --steps 50 --out basins
attractor in-context --dimension 2 --lengths 8,inf --steps 50 --batch 4 --out in-context
attractor corpus corpus.txt --train --steps 20 --out corpus
attractor prompt-length head.npz --queries 20 --out prompt-length
attractor claims transformers-as-svms/rank --out claims
attractor figures max-margin/global-and-local --out figures
python - <<'PYTHON'
import math
import jax
import numpy as np
import attractor as at
from attractor import datasets, files, models, monitor
from attractor.prompt.regression import RegressionTask

loaded = at.load("tokens.npz")
tokens, head = loaded.tokens, loaded.head
at.regularization_path(tokens, head, radii=[1.0, 10.0], starts=1).save("path.nc")
at.gradient_flow(tokens, head, log_time=5.0).save("flow.nc")
watching = monitor.HeadMonitor(monitor.WatchedHead("head", lambda W: W, tokens))
for step, size in enumerate((0.1, 10.0)):
    watching.record(step, size * np.eye(10))
watching.save("monitor.nc")
task = RegressionTask(np.array([[1.0, 0.5], [0.5, 1.0]]))
files.save_regression("regression.npz", files.LoadedRegression(task, (10,), 0.1, 0.1, math.inf))
labels = {"optimizer": ["p = 1.1", "p = 2"], "seed": [0, 1],
          "matrix": ["queries", "keys", "values"], "block": [1, 2], "epoch": [1, 2]}
rng = np.random.default_rng(0)
results = {name: (axes, rng.random([len(labels[axis]) for axis in axes]))
           for name, (axes, _) in files.CLASSIFIERS_LAYOUT.items()}
results["status"] = (("optimizer", "seed"), np.zeros((2, 2), int))
import xarray as xr
results = xr.Dataset(results, labels, {"data": "text", "chance": 0.5, "test_examples": 2000})
files.save_classifiers("classifiers.nc", files.LoadedClassifiers(results))
config = models.TextTransformerConfig(vocabulary=9, length=4, width=4, blocks=1, heads=2, hidden=8)
models.save_model("model.safetensors", models.build_model(config, key=jax.random.key(0)))
datasets.train_tokenizer(["a good film", "a bad film"], vocabulary=40, minimum_count=1).save("tokenizer.json")
PYTHON
# Pictures and pages are large: one of each is enough.
find check verify basins corpus in-context prompt-length claims matrix \
    \( -name "*.png" -o -name "*.svg" -o -name "*.html" -o -name "*.csv" \) \
    ! -path matrix/report.html -delete
rm figures/index.html
