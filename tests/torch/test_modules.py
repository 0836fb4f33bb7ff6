"""Heads of attention modules, held against the attention that the modules compute themselves."""

import gc
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from attractor.heads import HeadMonitor, WatchedHead  # noqa: E402
from attractor.support.errors import InvalidInputError  # noqa: E402 - after the skip
from attractor.tokens import Tokens  # noqa: E402

HEADS, WIDTH, LENGTH = 2, 8, 6
SEVERAL = {
    "plain": {},
    "no biases": {"bias": False},
    "learned token": {"add_bias_kv": True},
    "zero token": {"add_zero_attn": True},
    "both tokens": {"add_bias_kv": True, "add_zero_attn": True, "bias": False},
    "three matrices": {"kdim": 5, "vdim": 7, "add_bias_kv": True},
}


def multihead(dtype=torch.float64, **settings):
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(WIDTH, HEADS, dtype=dtype, **settings)
    for weight in module.parameters():
        torch.nn.init.normal_(weight)  # of biases too, which begin at zero
    return module


def attention(head, state):
    """The attention of a watched head, from its matrix and tokens alone; its rows."""
    read = head.reading(state)
    tokens = Tokens(
        **dict(zip(("keys", "queries", "mask", "rows"), head.tokens(read), strict=False))
    )
    weights = softmax(tokens.scores(head.read_matrix(read, tokens)))
    there = np.ones(weights.shape[:2], bool) if tokens.weights is None else tokens.weights > 0
    return weights, there


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("settings", SEVERAL.values(), ids=SEVERAL)
def test_attention_is_that_of_the_module(settings, batch_first):
    module = multihead(batch_first=batch_first, **settings)
    query = torch.randn(3, LENGTH, WIDTH, dtype=torch.float64)
    key = value = query
    if "kdim" in settings:
        key, value = (torch.randn(3, 4, d, dtype=torch.float64) for d in (5, 7))
    padding = torch.zeros(3, key.shape[1], dtype=torch.bool)
    padding[1, -2:] = True
    given = (query, key, value)
    if not batch_first:
        swapped = {id(one): one.transpose(0, 1) for one in given}
        given = tuple(swapped[id(one)] for one in given)  # the query stays the key
    causal = None
    if "kdim" not in settings:  # minus infinity above the diagonal, and on padding
        causal = torch.nn.Transformer.generate_square_subsequent_mask(LENGTH).double()
        padding = torch.zeros(padding.shape).double().masked_fill(padding, -torch.inf)

    def run(module):
        return module(
            *given, attn_mask=causal, key_padding_mask=padding, average_attn_weights=False
        )

    _, expected = run(module)
    for number in range(HEADS):
        found, there = attention(WatchedHead.from_module("head", module, number, run), module)
        assert there.all() == ("kdim" in settings)  # padding is in other sequences than queries
        assert there.sum() == 3 * LENGTH - (0 if "kdim" in settings else 2)
        own = expected[:, number].detach().numpy()
        np.testing.assert_allclose(found[there], own[there], atol=1e-12)


def test_a_head_without_its_biases_is_another():
    module = multihead()
    x = torch.randn(LENGTH, WIDTH, dtype=torch.float64)  # without an axis of sequences
    _, own = module(x, x, x, average_attn_weights=False)
    found, _ = attention(WatchedHead.from_module("h", module, 1, lambda m: m(x, x, x)), module)
    np.testing.assert_allclose(found[0], own[1].detach().numpy(), atol=1e-12)
    Q, K, _ = module.in_proj_weight.detach().reshape(3, HEADS, -1, WIDTH)
    without = softmax((x @ Q[1].T @ K[1] @ x.T / 2).numpy())
    assert np.abs(without - own[1].detach().numpy()).max() > 0.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_narrow_weights_and_states_are_taken_exactly(dtype):
    module, wide = multihead(dtype), multihead()
    wide.load_state_dict({name: one.double() for name, one in module.state_dict().items()})
    x = torch.randn(LENGTH, 1, WIDTH).to(dtype)

    def run(module):
        given = x.to(module.in_proj_weight.dtype)
        return module(given, given, given)

    found, expected = (
        attention(WatchedHead.from_module("h", one, 0, run), one)[0] for one in (module, wide)
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_tokens_are_made_of_tensors_of_a_graph(dtype):
    x = torch.randn(3, LENGTH, WIDTH, requires_grad=True)
    keys = (2 * x).to(dtype)
    there = torch.arange(LENGTH) < torch.tensor([[6], [4], [5]])
    tokens = Tokens(keys, keys, mask=there, rows=there)
    assert torch.equal(torch.from_numpy(tokens.keys.copy()), keys.detach().double())
    assert ((tokens.weights > 0) == there.numpy()).all()


def encoder():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=True)


def test_heads_of_an_encoder_share_a_pass_and_training_is_the_same():
    x, padding = torch.randn(4, LENGTH, WIDTH), torch.zeros(4, LENGTH, dtype=torch.bool)
    padding[2:, -2:] = True
    calls = []

    def run(model):
        calls.append(model.training)
        return model(x, src_key_padding_mask=padding)

    def train(model, hooks):
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for make in hooks:
            optimizer.register_step_post_hook(make(model))
        for _ in range(6):
            optimizer.zero_grad()
            model(x).square().mean().backward()  # with dropout
            optimizer.step()
        return model

    monitors, words = [], [list("abcdef")] * 4
    rows = (torch.arange(LENGTH) % 2).tile(4, 1)

    def watch(model):
        heads = [
            WatchedHead.from_module(f"{i}.{h}", layer, h, run, rows=rows, words=words)
            for i, layer in enumerate(model.layers)
            for h in range(HEADS)
        ]
        monitors.append(HeadMonitor(heads, every=3, budget=None))
        return monitors[0].hook(model)

    plain, watched = train(encoder(), []), train(encoder(), [watch])
    for one, other in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(one, other)
    assert calls == [False] * 3 and watched.training  # once before training
    assert torch.backends.mha.get_fastpath_enabled()
    found = monitors[0].to_xarray()
    assert found["head"].values.tolist() == ["0.0", "0.1", "1.0", "1.1"]
    assert (found["status"] == "optimal").all() and (found["margin_ratio"] <= 1 + 1e-9).all()
    there = np.tile(np.arange(6) % 2 == 1, (4, 1)) & ~padding.numpy()
    assert (np.isfinite(found["selected_probability"].values) == there).all()
    assert re.search(r'"[a-f]" ', str(monitors[0]))


def test_what_diverged_is_recorded_and_passes_are_forgotten():
    from attractor.heads.monitor.modules import _passes

    module, x = multihead(torch.float32), torch.randn(LENGTH, 1, WIDTH)
    gc.collect()  # what tests before left
    before = len(_passes)
    monitor = HeadMonitor(WatchedHead.from_module("h", module, 0, lambda m: m(x, x, x)))
    with torch.no_grad():
        module.in_proj_weight[0, 0] = torch.inf
    monitor.record(0, module)
    assert monitor.records["h"][0].status == "not finite"
    assert len(_passes) == before + 1
    del monitor
    gc.collect()
    assert len(_passes) == before


def added_numbers(module, x):
    return lambda m: m(x, x, x, attn_mask=torch.ones(LENGTH, LENGTH))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"head": -1}, "head: -1 is not a count"),
        ({"head": HEADS}, "head: the module has 2 heads, and no 2"),
        ({"module": 3}, "module: it is of type int"),
        ({"module": torch.nn.Linear(2, 2)}, "run: it called Linear 0 times"),
        ({"run": 3}, "run: "),
        ({"run": lambda module: None}, "run: it called MultiheadAttention 0 times"),
        ({"rows": [0.5]}, "rows: the data type is float64"),
        ({"rows": [[True]]}, r"rows: the shape is \(1, 1\). Give \(1, 6\)"),
        ({"rows": np.zeros((1, LENGTH), bool)}, "rows: all queries are padding"),
        ({"run": added_numbers}, "attn_mask: it adds numbers to scores"),
    ],
)
def test_what_cannot_be_read_is_refused(change, words):
    module, x = multihead(torch.float32), torch.randn(LENGTH, 1, WIDTH)
    given = {"module": module, "head": 0, "run": lambda m: m(x, x, x), "rows": None} | change
    if given["run"] is added_numbers:
        given["run"] = added_numbers(module, x)
    with pytest.raises(InvalidInputError, match=words):
        HeadMonitor(WatchedHead.from_module("h", **given)).check(module)


def test_a_head_that_the_module_does_not_have_is_named_before_training():
    module = torch.nn.MultiheadAttention(8, 4)
    with pytest.raises(InvalidInputError, match="head: the module has 4 heads, and no 4"):
        WatchedHead.from_module("0.4", module, 4, lambda model: model)
