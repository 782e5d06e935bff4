"""What is a word: exactly scikit-learn's tokens, in any language and from any bytes."""

import itertools
import re
import sys
import unicodedata
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from deciban import Text, kernels
from deciban.families.text.tokens import MAX_CASED, MAX_COMPOSED, Tokens, build_folding, fold_text, view_texts
from deciban.kernels.text_arrays import CharacterRules, LabeledTexts, Texts, WordIndex, WordSpans
from deciban.statistics.vocabulary import Vocabulary
from deciban.statistics.words import count_by_class
from tests import example_count
from tests.support.corpora import STOP, TEXTS, vectorizer

OPTIONS = [
    {"analyzer": analyzer, "ngram_range": ngrams, "lowercase": lowercase, "strip_accents": accents}
    for analyzer in ("word", "char", "char_wb")
    for ngrams in ((1, 1), (1, 2), (2, 4), (3, 3))
    for lowercase in (True, False)
    for accents in (False, True)
]


def same(options: dict[str, Any], texts: Any) -> None:
    analyze, tokens = vectorizer(options).build_analyzer(), Text(**options).tokens
    for text in texts:
        expected = Counter(analyze(text.replace("\0", " ")))
        assert Counter(tokens.words(text)) == expected, (options, text)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_words_are_those_of_scikit_learn_in_any_language(options: dict[str, Any]) -> None:
    same(options, (*TEXTS, " ".join(TEXTS), "".join(TEXTS)))


@pytest.mark.parametrize("ngrams", [(1, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("lowercase", [True, False])
def test_stop_words_are_left_out_before_words_are_put_together(ngrams: tuple[int, int], lowercase: bool) -> None:
    same({"ngram_range": ngrams, "lowercase": lowercase, "stop_words": STOP}, (*TEXTS, " ".join(TEXTS)))


@pytest.mark.parametrize("min_word_length", [1, 3, 7])
def test_words_have_at_least_so_many_characters(min_word_length: int) -> None:
    same({"min_word_length": min_word_length}, TEXTS)
    same({"min_word_length": min_word_length, "strip_accents": True, "ngram_range": (1, 2)}, TEXTS)


@pytest.mark.parametrize(
    "options", [{"lowercase": a, "strip_accents": b} for a in (True, False) for b in (True, False)]
)
@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
def test_every_character_of_unicode_between_letters(analyzer: str, options: dict[str, Any]) -> None:
    points = [c for c in range(1, sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    plain = {c for c in points if unicodedata.category(chr(c)) in ("Co", "Cn")}  # of these, which are all alike, a few
    points = [c for c in points if c not in plain or c % 97 == 0][:: 1 if analyzer == "word" else 3]
    cut = 50_000 if analyzer == "word" else 8_000
    for first in range(0, len(points), cut):
        some = points[first : first + cut]
        text = ";".join(f"xy{chr(c)}z" for c in some) + " ".join(map(chr, some[:2000]))
        same({**options, "analyzer": analyzer}, [text])


def test_where_letters_have_no_capital_form_and_no_accents() -> None:
    for point in range(MAX_CASED, sys.maxunicode + 1):
        assert chr(point).lower() == chr(point)
        assert point < MAX_COMPOSED or fold_text(chr(point), False, True) == chr(point)


SPECIAL = "aAzZ09__  \t\nÀéßẞİıſΣσςΑ\u0301\u0307\u0345\u00ad\u200d'.:’·-Åǅﬁﷺ한각가①½²١१中日ｶﾞＡ👍\u3000\x1c\x85\0"
UNICODE = st.one_of(
    st.text(), st.text(st.sampled_from(SPECIAL)), st.text(st.sampled_from("aΣ.'\u0301 _B\u00ad"), max_size=80)
)


@settings(max_examples=example_count(400))
@given(
    UNICODE,
    st.sampled_from(["word", "char", "char_wb"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 4),
    st.integers(0, 2),
    st.integers(1, 3),
)
@example("A" * 63 + "Σ", "word", True, False, 1, 0, 2)
def test_words_are_those_of_scikit_learn(
    text: str, analyzer: str, lowercase: bool, accents: bool, least: int, more: int, min_word_length: int
) -> None:  # fmt: skip
    options = {"analyzer": analyzer, "lowercase": lowercase, "strip_accents": accents}
    options["ngram_range"] = (least, least + more)
    same(options | ({"min_word_length": min_word_length} if analyzer == "word" else {}), [text])


def learned(tokens: Tokens, texts: pa.Array) -> tuple[Vocabulary, np.ndarray, np.ndarray]:
    numbers, bounds, vocabulary = tokens.learn(texts)
    return vocabulary, numbers, bounds


LABELED = st.lists(st.tuples(st.one_of(st.none(), UNICODE, st.text("aΣσ é", max_size=9)), st.integers(0, 3)))


@settings(max_examples=example_count(200))
@given(LABELED, st.sampled_from([{}, {"lowercase": False}, {"min_word_length": 1}, {"ngram_range": (1, 2)}]))
def test_words_are_counted_class_by_class(rows: list[tuple[str | None, int]], options: dict[str, Any]) -> None:
    """Of texts in any order of their classes, some of them in Greek, and of no texts."""
    tokens, texts = Text(**options).tokens, pa.array([text for text, _ in rows], pa.string())
    labels = np.array([label for _, label in rows], dtype=np.int32)
    order = np.argsort(labels, kind="stable")
    words, numbers, bounds = learned(tokens, texts)
    texts_in_order = LabeledTexts(order, labels, np.full(labels.size, 0.5))
    found = count_by_class(numbers, bounds, None, texts_in_order, len(words), 4)
    expected: Counter[tuple[str, int]] = Counter()
    for text, label in rows:
        expected.update((word, label) for word in (tokens.words(text) if text else []))
    classes = np.repeat(np.arange(4), np.diff(found.indptr))
    cells = zip(found.indices, classes, found.data, strict=True)
    assert {(words[number], label): 2.0 * count for number, label, count in cells} == expected
    assert sorted(words.array.to_pylist()) == sorted({word for word, _ in expected})


@settings(max_examples=example_count(100))
@given(st.lists(st.one_of(st.none(), UNICODE), min_size=1, max_size=12), st.sampled_from(OPTIONS), st.integers(0, 3))
def test_texts_do_not_flow_into_each_other(texts: list[str | None], options: dict[str, Any], cut: int) -> None:
    """Also in a slice of an array, in which texts have others before and behind them."""
    analyze, tokens = vectorizer(options).build_analyzer(), Text(**options).tokens
    for kind in (pa.string(), pa.large_string()):
        array = pa.array(texts, kind)[cut:]
        vocabulary, numbers, bounds = learned(tokens, array)
        found = [Counter(vocabulary[n] for n in numbers[a:b]) for a, b in itertools.pairwise(bounds)]
        assert found == [
            Counter(analyze((text or "").replace("\0", " "))) if text else Counter() for text in texts[cut:]
        ]


@pytest.mark.parametrize(
    "length", [1, 2, 6, 7, 8, 9, 14, 15, 16, 17, 23, 24, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000]
)
def test_words_of_any_length_at_any_place(length: int) -> None:
    """Letters are looked for 64 at a time; keys are of 8 bytes; words from 16 bytes on are hashed."""
    for before in (0, 1, 7, 8, 55, 56, 57, 62, 63, 64, 65, 127, 128):
        for letter in "aé日𐐨":
            word = (letter * length)[: max(1, length // len(letter.encode()))]
            texts = [" " * before + word, "-" * before + word + "-", "b " * (before // 2) + word + " cc " + word]
            same({"min_word_length": 1}, texts)


def test_words_that_differ_in_one_byte_only() -> None:
    """Wherever it is, and whatever is the same before and behind it."""
    for size in (1, 7, 8, 9, 15, 16, 17, 24, 40):
        words = {"a" * k + "b" + "a" * (size - k - 1) for k in range(size)} | {"a" * size, "a" * (size + 1)}
        found = Text(min_word_length=1).tokens.words(" ".join([*words, *words]))
        assert Counter(found) == Counter([*words, *words])


def test_many_texts_are_cut_in_pieces_without_a_seam() -> None:
    texts = [f"word{k} {'long' * (k % 50)} über{k % 7}" for k in range(8000)] + ["x" * 300_000 + " yy", "", "zz"]
    expected = vectorizer({}).fit(texts)
    tokens = Text().tokens
    vocabulary, numbers, bounds = learned(tokens, pa.array(texts))
    assert bounds.size == len(texts) + 1
    assert sorted(vocabulary.array.to_pylist()) == sorted(expected.vocabulary_)
    assert numbers.size == expected.transform(texts).sum()


def test_a_character_that_becomes_several_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """U+FDFA becomes four words: there is room for all of them wherever it comes."""
    for name in ("_decode", "_decode_long", "_put_next", "put_character"):
        monkeypatch.setattr(kernels.tokenize, name, getattr(kernels.tokenize, name).py_func)
    folded, pool = build_folding(True, True, True)
    for groups in range(50, 75):
        data = np.frombuffer(("a " * groups + "\ufdfa \ufdfa").encode(), dtype=np.uint8)
        texts = Texts(data, np.array([0, data.size]), np.ones(1, dtype=np.bool_))
        bounds, state = np.zeros(2, dtype=np.int64), np.zeros(4, dtype=np.int64)
        room = [np.zeros(data.size + 64, dtype=kind) for kind in (np.uint8, np.int64, np.int64, np.int64)]
        # as Python, which checks that arrays are not left
        while not kernels.tokenize.find_characters.py_func(  # type: ignore[attr-defined]
            texts, CharacterRules(folded, pool, True), WordSpans(*room[:3]), room[3], bounds, state
        ):
            room = [np.concatenate([array, np.zeros(16, dtype=array.dtype)]) for array in room]
        assert bounds[1] == groups + 8
    monkeypatch.undo()
    same({"analyzer": "char_wb", "strip_accents": True}, ["a " * n + "\ufdfa \ufdfa b" for n in range(50, 75)])
    same({"strip_accents": True, "min_word_length": 1}, ["\ufdfa" * 500, "½" * 500, "ﷺ " * 500])


@pytest.mark.parametrize(
    "options", [{}, {"ngram_range": (1, 2)}, {"analyzer": "char_wb", "ngram_range": (2, 3)}], ids=str
)
def test_words_do_not_depend_on_how_much_room_there_is_at_first(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels stop where room is short, also within a text, and go on when there is more."""
    some = [f"word{k} {'long' * (k % 9)} über{k % 7} \ufdfa" for k in range(300)]
    texts = pa.array([*some, "x" * 700, None, "zz " * 900])
    tokens = Text(strip_accents=True, **options).tokens
    expected = learned(tokens, texts)
    small = WordIndex(np.zeros((16, 4), dtype=np.uint64), np.empty(16, dtype=np.uint8), np.zeros(1, dtype=np.int64), 0)
    monkeypatch.setattr(WordIndex, "empty", classmethod(lambda cls, size: small))
    tiny = [np.zeros(8, dtype=kind) for kind in (np.uint8, np.int64, np.int64)]
    monkeypatch.setattr(
        "deciban.families.text.tokens.allocate_spans", lambda size, words: WordSpans(*(array.copy() for array in tiny))
    )
    found = learned(tokens, texts)
    assert found[0].array.equals(expected[0].array)
    for one, other in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_many_short_words_in_one_text_need_no_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a group of characters: room for groups ran out again and again, and the room for characters grew too."""
    grown: list[int] = []
    monkeypatch.setattr(
        "deciban.families.text.tokens.enlarge", lambda array: grown.append(array.size) or array.repeat(2)
    )
    numbers, _, _ = Text(analyzer="char_wb", ngram_range=(2, 2)).tokens.learn(pa.array(["a b " * 20_000]))
    assert numbers.size == 80_000
    assert not grown


def raw(*texts: bytes, spare: int = 0, kind: Any = None) -> pa.Array:
    """An Arrow array of strings from any bytes, which end where the buffer ends."""
    kind = kind or pa.string()
    starts = np.cumsum([0, *map(len, texts)]).astype(np.int32 if kind == pa.string() else np.int64)
    return pa.Array.from_buffers(kind, len(texts), [None, pa.py_buffer(starts), pa.py_buffer(b"".join(texts))])


INVALID = (
    b"\xff\xfe abc", b"caf\xc3", b"caf\xe2\x82", b"caf\xf0\x9f\x98", b"\xc3", b"\xe2", b"\xf0", b"\xf0\x9f",
    b"\x80\x80 ab", b"\xed\xa0\x80 cd",
    b"\xf4\x90\x80\x80 ef", b"\xc0\x80 gh", b"\xe0\x80\x80 ij", b"\xf8\x88\x80\x80\x80 kl",
    b"ab\xc3(cd", b"\xf7\xbf\xbf\xbf", b"ab " * 30 + b"\xce", b"\xce\xa3\xce", b"\xce\xa3 ab \xff",
)  # fmt: skip


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("options", [*OPTIONS[:4], *OPTIONS[16:20], *OPTIONS[32:36]], ids=str)
def test_bytes_that_are_no_text_are_no_harm(options: dict[str, Any], kind: pa.DataType) -> None:
    """Nothing is read beyond the end, and what comes out is valid."""
    tokens = Text(**options).tokens
    for texts in (*((one,) for one in INVALID), INVALID, tuple(reversed(INVALID))):
        vocabulary, _, bounds = learned(tokens, raw(*texts, kind=kind))
        assert bounds.size == len(texts) + 1
        bytes(vocabulary.text).decode()


@settings(max_examples=example_count(100))
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5), st.sampled_from(OPTIONS))
def test_any_bytes(texts: list[bytes], options: dict[str, Any]) -> None:
    tokens = Text(**options).tokens
    vocabulary, numbers, bounds = learned(tokens, raw(*texts))
    bytes(vocabulary.text).decode()
    assert bounds[-1] == numbers.size
    assert not any("\0" in word for word in vocabulary.array.to_pylist())


def test_decoding_stays_inside_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as Python: a sequence that is cut off reads nothing of the next text, nor beyond the buffer."""
    monkeypatch.setattr(kernels.tokenize, "_decode_long", kernels.tokenize._decode_long.py_func)
    folded, pool = build_folding(True, False, False)
    for one in INVALID:
        for after in (b"", b"\x80\x80\x80zz"):
            data, end = np.frombuffer(one + after, dtype=np.uint8), len(one)
            for i in range(end):
                if data[i] >= 128:
                    point, step = kernels.tokenize._decode.py_func(data, i, end)
                    assert i + step <= end
                    assert 0 <= point < 0x110000
    assert folded.size == 0x110000
    assert pool.size


def test_what_arrow_has_before_and_behind() -> None:
    """Offsets, missing texts whose bytes are there, arrays without buffers."""
    array = pa.array(["no", "aa bb", None, "cc", "no"])[1:4]
    assert learned(Tokens(), array)[0].array.to_pylist() == ["aa", "bb", "cc"]
    hidden = raw(b"aa bb", b"cc dd", b"ee")
    mask = pa.py_buffer(bytes([0b101]))
    masked = pa.Array.from_buffers(pa.string(), 3, [mask, *hidden.buffers()[1:]])
    assert learned(Tokens(), masked)[0].array.to_pylist() == ["aa", "bb", "ee"]
    for empty in (pa.array([], pa.string()), pa.nulls(3, pa.string()), pa.nulls(0, pa.large_string()), array[:0]):
        assert len(learned(Tokens(), empty)[0]) == 0
        assert view_texts(empty).offsets.size == len(empty) + 1


def test_a_tokenizer_of_ones_own() -> None:
    def tokenizer(text: str) -> list[str]:
        return re.findall(r"\S+|\s", text)

    for options in ({}, {"ngram_range": (1, 2)}, {"lowercase": False, "stop_words": STOP, "strip_accents": True}):
        family = Text(tokenizer=tokenizer, **options)  # type: ignore[arg-type]
        options = dict(options, strip_accents="unicode" if "strip_accents" in options else None)
        options["stop_words"] = list(options.get("stop_words", ())) or None
        analyze = CountVectorizer(tokenizer=tokenizer, token_pattern=None, **options).build_analyzer()
        for text in TEXTS:
            with pytest.warns(UserWarning, match="runs in Python"):
                found = family.tokens.words(text)
            assert Counter(found) == Counter(analyze(text))
