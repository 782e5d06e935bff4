"""Texts that several tests are about."""

from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.feature_extraction.text import CountVectorizer

from deciban import BayesClassifier, Text
from deciban.statistics import Words

MAILS = ["win money now", "cheap money", "lunch at noon", "see you at lunch"] * 5


MAIL_LABELS = ["spam", "spam", "ham", "ham"] * 5


def words_of(clf: BayesClassifier, column: int = 0) -> tuple[list[str], np.ndarray]:
    """The vocabulary of a column and its counts, word by class."""
    statistic = next(s for s in clf.counts_.statistics if isinstance(s, Words)).sorted_words
    return statistic.vocabularies[column].array.to_pylist(), statistic.tables[column]


def vocabulary(clf: BayesClassifier) -> list[str]:
    return words_of(clf)[0]


def many_words(rng: np.random.Generator, texts: int = 400, words: int = 3000) -> tuple[list[str], np.ndarray]:
    """Texts with a few words that are frequent, and very many that are not."""
    labels = rng.integers(0, 3, texts)
    found = [
        " ".join([f"often{label}", "common", *(f"w{k}" for k in np.minimum(rng.zipf(1.3, 30), words))])
        for label in labels
    ]
    return found, labels


def groups_of(clf: BayesClassifier) -> np.ndarray:
    """What was counted in each bucket, words of the vocabulary included, bucket by class."""
    statistic = clf.counts_.statistics[0]
    total = np.zeros((statistic.buckets, len(clf.classes_)))
    np.add.at(total, statistic.vocabularies[0].buckets(statistic.buckets), statistic.tables[0])
    return total


INVALID = pa.Array.from_buffers(
    pa.string(), 4, [None, pa.py_buffer(np.array([0, 20, 44, 44, 47], dtype=np.int32)),
                     pa.py_buffer(b"win \xff money now caf\xc3lunch \xed\xa0\x80 at noon now \xe2\x82\xf0\x9f\x98")],
)  # fmt: skip


def mixed(rows: int = 90) -> tuple[dict[str, list[Any]], np.ndarray]:
    """Texts, numbers and categories, each with missing cells."""
    rng = np.random.default_rng(21)
    texts, labels = many_words(rng, rows, 40)
    table = {
        "text": [None if k % 17 == 0 else text for k, text in enumerate(texts)],
        "n": [None if k % 11 == 0 else x for k, x in enumerate(rng.normal(labels, 1.0).tolist())],
        "c": [None if k % 13 == 0 else "abc"[x] for k, x in enumerate((labels + rng.integers(0, 2, rows)) % 3)],
    }
    return table, labels


TABLE, LABELS = mixed()


FAMILIES = [
    Text(), Text("bernoulli"), Text("complement"), Text("lift", linear=0.2), Text(term_counts="log", normalize=True),
    Text(max_features=16), Text(min_count=3.0), Text(analyzer="char_wb", ngram_range=(2, 2)), Text(ngram_range=(1, 2)),
]  # fmt: skip


def rows_of(table: dict[str, list[Any]], rows: slice) -> dict[str, list[Any]]:
    return {name: cells[rows] for name, cells in table.items()}


TEXTS = (
    "Die Straße ist heiß; DIE STRASSE, DIE STRAẞE! Über Größe_und_Maß, Donaudampfschifffahrts\u00adgesellschaft",
    "L'été où Chloé mangeait des œufs ; ÇA ALORS, garçon\u00a0! coöperate naïve",
    "Ο ΟΔΟΣ ΣΟΦΟΣ Σ ΣΣ ΑΣ ΑΣ.Α ΑΣ'Α ΣΑΣ-ΣΑΣ ΌΣΟΣ͂ Σ\u0301Σ ΟΔΌΣ\u00ad ΟΣ1 1Σ _Σ ΑΣ_ ς σ Σίσυφος ΣΊΣΥΦΟΣ",
    "İSTANBUL'da IĞDIR ılık i\u0307 İi Iı ışık DİYARBAKIR",
    "Съешь же ещё этих мягких французских БУЛОК, да выпей чаю Ёлка",
    "نص حكيم له سر قاطع وذو شأن عظيم ١٢٣ مُحَمَّد ﷺ ﷽ ﻻ",
    "דג סקרן שט בים מאוכזב שָׁלוֹם",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के १२३ क्षत्रिय",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า ๑๒๓",
    "我能吞下玻璃而不伤身体。 一 二三 㐀𠀀𪚥",
    "いろはにほへと ちりぬるを ｶﾞｷﾞ カタカナ ㍿ ㌔ｍ 々ー",
    "키스의 고유조건은 한글 ㄱㄴ ᄀᆞᆨ 각",
    "👩‍👩‍👧‍👦 family 👍🏽ok a\u200db a\u200cb ✈️ 1️⃣ \U0001f1e9\U0001f1ea",
    "e\u0301te\u0301 E\u0301 a\u0308\u0323 n\u0303o q\u0307\u0323 caf\u0065\u0301 zalgo h\u0310\u0311\u0312i",
    "x² m³ ½ ⅷ ① ⓐ ⅓cup ٣٤ ೫೬ 𝟘𝟙 𝐁𝐨𝐥𝐝 𝔉𝔯 ª º 1e5 3.14 1_000",
    "snake_case __init__ _ __ a_ _b a__b",
    "ﬁne ﬂow oﬃce ﬅ ŉ ǰ ΐ ẖ ﬓ",
    "ǆ ǅ Ǆ ǈ Ǉ ǋ Ǌ ǲ Ǳungla Ǆaba",
    "ＦＵＬＬＷＩＤＴＨ ｆｕｌｌ １２３ ＿ａ　ｂ",
    "Ꭰꭰ ᏸᏹ Ა ა 𐐀𐐨 𞤀𞤢 ẞß ſ K Å ϴ Ω ΑΙ ᾼ ᾳ Ϊ́",
    " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2000\u2003\u2028\u2029\u202f\u205f\u3000\u200b\ufeff a",
    "  b \t c\n\n\nd e\u3000\u3000f ",
    "",
    " ",
    "a",
    "ab",
    "the THE The a an of Of",
)  # fmt: skip


STOP = ("the", "of", "ist", "и", "του", "été", "snake_case", "donaudampfschifffahrts", "und", "größe_und_maß")


def vectorizer(options: dict[str, Any]) -> CountVectorizer:
    """scikit-learn's, of the same options."""
    options = dict(options)
    options["strip_accents"] = "unicode" if options.get("strip_accents") else None
    options["stop_words"] = list(options.get("stop_words", ())) or None
    min_word_length = options.pop("min_word_length", 2)
    if options.get("analyzer", "word") == "word":
        options["token_pattern"] = rf"(?u)\b\w{{{min_word_length},}}\b"
    return CountVectorizer(**options)
