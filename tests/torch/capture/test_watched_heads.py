"""Heads of models of transformers watched while they are fine-tuned."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tiny_models import Letters, letters, small  # noqa: E402 - after the skip

from attractor.heads import HeadMonitor, trainer_callback, watched_heads  # noqa: E402
from attractor.heads.capture import capture_heads  # noqa: E402
from attractor.support.errors import AttractorWarning, InvalidInputError  # noqa: E402

TEXTS = letters(6)
STEPS = 6


def classifier():
    return small("Bert", "ForSequenceClassification").train()


def fine_tune(model, optimizer, after_step=lambda step: None):
    """Dropout is on, and drawn from the generator of all."""
    torch.manual_seed(1)
    ids = torch.tensor([Letters()([text], True, 64)["input_ids"][0][:8] for text in TEXTS])
    labels = torch.arange(len(ids)) % 2
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        model(ids, labels=labels).loss.backward()
        optimizer.step()
        after_step(step)


def test_fine_tuning_is_the_same_and_records_are_those_of_the_weights():
    plain = classifier()
    fine_tune(plain, torch.optim.AdamW(plain.parameters(), lr=1e-2))

    model, seen, kept = classifier(), [], {}
    heads = watched_heads(model, Letters(), TEXTS, heads=[(1, 3), (0, 1)])
    assert [head.name for head in heads] == ["0.1", "1.3"]
    monitor = HeadMonitor(heads, every=2, budget=None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    optimizer.register_step_post_hook(monitor.hook(model))
    model.bert.embeddings.register_forward_hook(lambda module, *_: seen.append(module.training))

    def keep(step):
        assert all(module.training for module in model.modules())
        assert all(one.grad is not None for one in model.bert.encoder.parameters())
        state = [block.attention.self.state_dict() for block in model.bert.encoder.layer]
        kept[step] = [{name: one.clone().double() for name, one in own.items()} for own in state]

    fine_tune(model, optimizer, keep)
    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert seen.count(True) == STEPS and seen.count(False) == 2 * STEPS / 2  # once to see the text

    found = monitor.to_xarray()
    assert found["step"].values.tolist() == [2, 4, 6]
    assert (found["status"] == "optimal").all() and (found["margin_ratio"] <= 1 + 1e-9).all()
    for step in (2, 4, 6):
        for name, layer, head in (("0.1", 0, 1), ("1.3", 1, 3)):
            own, rows = kept[step][layer], slice(8 * head, 8 * head + 8)
            right = torch.cat([own["query.weight"], own["query.bias"][:, None]], -1)[rows]
            W = 8**-0.5 * own["key.weight"][rows].T @ right
            at_step = found.sel(step=step, head=name)
            assert float(at_step["frobenius_norm"]) == pytest.approx(float(W.norm()), rel=1e-5)
            nuclear = float(torch.linalg.svdvals(W).sum())
            assert float(at_step["nuclear_norm"]) == pytest.approx(nuclear, rel=1e-5)
    assert len(np.unique(found["frobenius_norm"])) == 6
    captured = capture_heads(model, Letters(), TEXTS)
    selected = captured.layer(1).attention[:, 3].argmax(-1)
    np.testing.assert_array_equal(found["selected"].sel(step=6, head="1.3")[:, 0], selected)


def test_all_heads_of_a_layer_in_one_norm_of_factors():
    model = small("Llama")
    monitor = HeadMonitor(watched_heads(model, Letters(), TEXTS, layers=[1]), geometry="nuclear")
    monitor.record(0, model)
    found = monitor.to_xarray().isel(step=0)
    assert found["head"].values.tolist() == ["1.0", "1.1", "1.2", "1.3"]
    assert (found["status"] == "optimal").all()


def test_too_many_constraints_are_refused_before_training():
    heads = watched_heads(classifier(), Letters(), TEXTS, heads=[(0, 1)], queries_per_document=5)
    with pytest.raises(InvalidInputError, match=r"'0.1' makes [0-9]+ constraints, and max_"):
        HeadMonitor(heads, max_constraints=50)


def test_a_head_that_is_gone_is_said_of_it_alone():
    model = small("GPT2")
    monitor = HeadMonitor(watched_heads(model, Letters(), TEXTS, heads=[(0, 1), (1, 2)]), every=1)
    hook = monitor.hook(model, first=0)
    hook()
    model.h[1].attn.num_heads, model.h[1].attn.head_dim = 2, 16
    with pytest.warns(AttractorWarning, match="'1.2', step 1: could not be read"):
        hook()
    del model.h[1]
    with pytest.warns(AttractorWarning, match="there is no layer 1"):
        hook()
    status = [[str(one.status) for one in rows] for rows in monitor.records.values()]
    gone = "could not be read"
    assert status == [["optimal", "optimal", gone], ["optimal", gone, gone]]


def test_training_that_diverges_goes_on():
    model = classifier()
    monitor = HeadMonitor(watched_heads(model, Letters(), TEXTS), every=1, budget=None)
    monitor(0, model)
    with torch.no_grad():
        model.bert.encoder.layer[0].attention.self.query.weight[0, 0] = float("nan")
    monitor(1, model)
    status = monitor.to_xarray()["status"]
    assert (status.sel(step=0) != "not finite").all()
    assert (status.sel(step=1) == "not finite").all()


@pytest.mark.parametrize(
    "family, arguments, words",
    [
        ("Bert", {"heads": [(2, 0)]}, "heads: there is no layer 2"),
        ("Bert", {"heads": [(0, 4)]}, "heads: layer 0 has no head 4"),
        ("Bert", {"heads": [3]}, "heads: 3 is no pair"),
        ("Bert", {"heads": [(0, 1)], "layers": [0]}, "heads: they stand beside layers"),
        ("Bert", {"layers": [2]}, "layers: there is no layer 2"),
        ("T5", {}, "model: head 0.0 is not bilinear"),
        ("T5", {"heads": [(1, 2)]}, "heads: head 1.2 is not bilinear"),
    ],
)
def test_what_cannot_be_watched_is_refused(family, arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        watched_heads(small(family), Letters(), TEXTS, **arguments)


def test_a_callback_of_the_trainer():
    from transformers.trainer_callback import CallbackHandler, TrainerControl, TrainerState

    seen = []
    callback = trainer_callback(lambda step, model: seen.append((step, model)))
    handler = CallbackHandler([callback], "the model", None, None, None)
    state = TrainerState(global_step=7)
    handler.on_train_begin(None, state, TrainerControl())
    handler.on_step_end(None, state, TrainerControl())
    state.is_world_process_zero = False
    handler.on_step_end(None, state, TrainerControl())
    assert seen == [(7, "the model")]
    with pytest.raises(InvalidInputError, match="call: "):
        trainer_callback(3)


def test_a_whole_run_of_the_trainer(tmp_path):
    pytest.importorskip("accelerate")
    data = [{"input_ids": torch.randint(3, 50, (8,)), "labels": i % 2} for i in range(12)]

    def run(watch):
        transformers.set_seed(0)
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path), max_steps=STEPS, per_device_train_batch_size=4,
            report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
        )  # fmt: skip
        trainer = transformers.Trainer(classifier(), arguments, train_dataset=data)
        monitor = None
        if watch:
            heads = watched_heads(trainer.model, Letters(), TEXTS, heads=[(1, 3), (0, 1)])
            monitor = HeadMonitor(heads, every=2, budget=None)
            trainer.add_callback(trainer_callback(monitor))
        trainer.train()
        return trainer.model, monitor

    (plain, _), (watched, monitor) = run(False), run(True)
    for one, other in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(one, other)
    found = monitor.to_xarray()
    assert found["step"].values.tolist() == [2, 4, 6] and (found["status"] == "optimal").all()
