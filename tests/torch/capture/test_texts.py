"""Texts as a model is shown them, and what of them is content."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from attractor.heads.capture.texts import arrays_shown, texts_shown  # noqa: E402
from attractor.support.errors import InvalidInputError  # noqa: E402 - after the skip


class Words:
    """A tokenizer of words of one letter; what is no letter is unknown."""

    pad_token_id, unk_token_id, bos_token_id = None, 0, 1
    all_special_ids = (0, 1)

    def __call__(self, texts, truncation, max_length):
        ids = [[1, *(ord(one) - 95 if one.islower() else 0 for one in text)] for text in texts]
        return {"input_ids": [own[:max_length] for own in ids]}

    def convert_ids_to_tokens(self, number):
        return ["<unk>", "<s>"][number] if number < 2 else chr(95 + number)


class OneForAll(Words):
    """The token of unknown words begins and ends texts, too, as in GPT-2."""

    unk_token_id = bos_token_id = 1
    all_special_ids = (1,)


SETTINGS = {"length": 9, "documents": None, "queries_per_document": 1, "seed": 0}


def test_padding_is_on_the_right_and_no_content_without_a_token_for_it():
    shown = texts_shown(["abcdef", "ab0cdefghijk", "abcd"], Words(), **SETTINGS)
    assert shown.arrays["attention_mask"].sum(1).tolist() == [7, 9, 5] == shown.lengths.tolist()
    assert shown.tokens.token[2].tolist() == ["<s>", *"abcd", *[""] * 4]
    assert shown.tokens.special[2].tolist() == [True] + [False] * 4 + [True] * 4
    assert shown.tokens.padding[2].tolist() == [False] * 5 + [True] * 4
    batch = shown.batch([0, 2], torch.device("cpu"), torch.float32)
    assert batch["input_ids"].shape == (2, 7)


@pytest.mark.parametrize("tokenizer, content", [(Words(), True), (OneForAll(), False)])
def test_unknown_words_are_content_unless_their_token_has_another_task(tokenizer, content):
    number = tokenizer.unk_token_id

    class Given(type(tokenizer)):
        def __call__(self, texts, truncation, max_length):
            return {"input_ids": [[1, number, 3, 4, 5, 6 + n] for n, _ in enumerate(texts)]}

    shown = texts_shown(["a", "b"], Given(), **SETTINGS)
    assert shown.tokens.special[0].tolist() == [True, not content, False, False, False, False]


def test_texts_of_mostly_unknown_words_are_refused():
    assert len(texts_shown(["00abc", "00abd"], Words(), **SETTINGS)) == 2
    with pytest.raises(InvalidInputError, match="tokenizer: the tokenizer does not know 6 of 11"):
        texts_shown(["000abc", "000ab"], Words(), **SETTINGS)


def test_short_and_equal_texts_are_left_out_and_the_others_keep_their_numbers():
    texts = ["abcd", "ab", "abcd", "bcde", "cdef"]
    shown = texts_shown(texts, Words(), **SETTINGS)
    assert shown.document.tolist() == [0, 3, 4]
    first = texts_shown(texts, Words(), **SETTINGS | {"documents": 2})
    assert first.document.tolist() == [0, 3] and first.digest != shown.digest


def test_queries_of_a_document_are_spread_over_its_texts():
    texts = [(7, "abcd"), (7, "bcde"), (7, "cdef"), (9, "defg")]
    shown = texts_shown(texts, Words(), **SETTINGS | {"queries_per_document": 5})
    assert shown.document.tolist() == [7, 7, 7, 9]
    assert sorted(shown.queries[:3].tolist()) == [1, 2, 2] and shown.queries[3] == 5
    one = texts_shown(texts, Words(), **SETTINGS)
    assert one.document.tolist() == [7, 9] and one.queries.tolist() == [1, 1]


def test_a_tokenizer_that_makes_nothing():
    class Empty(Words):
        def __call__(self, texts, truncation, max_length):
            return {"input_ids": [[] for _ in texts]}

    with pytest.raises(InvalidInputError, match="tokenizer: it makes no tokens"):
        texts_shown(["abcdef", "bcdefg"], Empty(), **SETTINGS)


def test_arrays_with_tokens_and_their_mask():
    ids = np.array([[1, 3, 4, 5, 6], [1, 3, 4, 5, 0], [1, 3, 4, 5, 6]])
    given = {"input_ids": ids, "attention_mask": ids != 0, "pixels": np.zeros((3, 2))}
    shown = arrays_shown(given, Words(), documents=None, queries_per_document=1)
    assert shown.document.tolist() == [0, 1] and shown.tokens.token[1, 4] == ""
    assert shown.tokens.special.tolist() == [[True, *[False] * 4], [True, *[False] * 3, True]]
    late = shown.decoder
    assert late.token[0].tolist() == ["", "<s>", "b", "c", "d"] and late.special[0, 0]
    with pytest.raises(InvalidInputError, match=r"inputs: tokens of the shape \(2, 5\), masked by"):
        wrong = given | {"attention_mask": np.ones((3, 4))}
        arrays_shown(wrong, None, documents=None, queries_per_document=1)
