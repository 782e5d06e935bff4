"""Texts against scikit-learn's vectorizers and naive Bayes: vocabulary, counts, probabilities, rows left out."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB

from deciban import BayesClassifier, Multinomial, Text, UsageError
from deciban.statistics import Words
from tests.support.corpora import STOP, TEXTS, vectorizer

LANGUAGES = """the red Red GRÜN grün ΟΔΟΣ οδος Σίσυφος İzmir ılık слово СЛОВО שלום नमस्ते ไทย 日本語 中文字 한국어 👍🏽
e\u0301te\u0301 été snake_case ﬁne fine Straße STRASSE ǅaba １２３ 123 ١٢٣ of a x² and
donaudampfschifffahrtsgesellschaft"""
WORDS = np.array(LANGUAGES.split())


def corpus(seed: int = 0, texts: int = 150) -> tuple[list[str], np.ndarray]:
    """Texts of several languages in three classes that prefer different words, some empty."""
    rng = np.random.default_rng(seed)
    labels = np.arange(texts) % 3
    share = rng.dirichlet(np.full(WORDS.size, 0.4), 3)
    found = [" ".join(rng.choice(WORDS, rng.integers(0, 12), p=share[label])) for label in labels]
    return [*found, *TEXTS], np.concatenate([labels, rng.integers(0, 3, len(TEXTS))])


X, Y = corpus()
NEW, _ = corpus(1)

OPTIONS: list[dict[str, Any]] = [
    {},
    {"lowercase": False},
    {"strip_accents": True},
    {"stop_words": STOP},
    {"ngram_range": (1, 2), "stop_words": STOP},
    {"ngram_range": (2, 3), "lowercase": False, "strip_accents": True},
    {"analyzer": "char", "ngram_range": (1, 3)},
    {"analyzer": "char_wb", "ngram_range": (2, 4), "strip_accents": True},
    {"min_word_length": 1},
    {"min_word_length": 4},
]
PEERS = {"multinomial": MultinomialNB, "complement": ComplementNB, "bernoulli": BernoulliNB}


def statistic_of(clf: BayesClassifier) -> Words:
    return next(s for s in clf.counts_.statistics if isinstance(s, Words))


@pytest.mark.parametrize("kind", PEERS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_counts_and_probabilities_are_those_of_scikit_learn(kind: Any, options: dict[str, Any]) -> None:
    found = vectorizer(options).set_params(binary=kind == "bernoulli").fit(X)
    counted = found.transform(X)
    weights = np.random.default_rng(3).integers(0, 4, len(X)) / 2.0
    for alpha in (1.0, 0.01):
        for weight in (None, weights):
            peer = PEERS[kind](alpha=alpha).fit(counted, Y, sample_weight=weight)
            prior = "uniform" if kind == "complement" else "empirical"  # scikit-learn's complement has none
            clf = BayesClassifier(Text(kind, alpha=alpha, **options), tune=None, prior=prior).fit(X, Y, weight)
            if weight is None:
                statistic = statistic_of(clf)
                words = statistic.vocabularies[0].array.to_pylist()
                assert sorted(words) == found.get_feature_names_out().tolist()
                order = [found.vocabulary_[word] for word in words]
                assert_array_equal(statistic.tables[0].T, peer.feature_count_[:, order])
                assert_array_equal(statistic.text_weight[:, 0], peer.class_count_)
            else:  # a word that only texts of weight 0 have is a word for scikit-learn
                used = np.asarray(counted[weight > 0].sum(axis=0)).ravel() > 0
                peer = PEERS[kind](alpha=alpha).fit(counted[:, used], Y, sample_weight=weight)
            for texts in (X, NEW):
                seen = found.transform(texts) if weight is None else found.transform(texts)[:, used]
                assert_allclose(clf.predict_log_proba(texts), peer.predict_log_proba(seen), rtol=1e-9, atol=1e-9)
                assert_array_equal(clf.predict(texts), peer.predict(seen))


@pytest.mark.parametrize("kind", PEERS)
def test_min_count_is_a_vocabulary_of_frequent_words(kind: Any) -> None:
    """Of "bernoulli" it is scikit-learn's min_df; of the others the words are chosen by hand."""
    counted = CountVectorizer(binary=kind == "bernoulli").fit(X)
    total = np.asarray(counted.transform(X).sum(axis=0)).ravel()
    kept = counted.get_feature_names_out()[total >= 3]
    seen = CountVectorizer(vocabulary=kept, binary=kind == "bernoulli")
    peer = PEERS[kind]().fit(seen.transform(X), Y)
    prior = "uniform" if kind == "complement" else "empirical"
    clf = BayesClassifier(Text(kind, min_count=3), tune=None, prior=prior).fit(X, Y)
    assert_allclose(clf.predict_log_proba(NEW), peer.predict_log_proba(seen.transform(NEW)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", PEERS)
@pytest.mark.parametrize(
    "options", [{}, {"ngram_range": (1, 2)}, {"analyzer": "char_wb", "ngram_range": (1, 2)}], ids=str
)
def test_rows_left_out_are_those_of_fits_without_them(kind: Any, options: dict[str, Any]) -> None:
    """Each text scored by scikit-learn's pipeline that was fitted to all others, its vocabulary too."""
    texts, labels = X[100:], Y[100:]
    clf = BayesClassifier(Text(kind, alpha=0.5, **options), tune=None, prior="uniform").fit(texts, labels)
    posterior = clf.leave_one_out().posterior
    for k in range(0, len(texts), 3):
        others, classes = [*texts[:k], *texts[k + 1 :]], np.delete(labels, k)
        found = vectorizer(options).set_params(binary=kind == "bernoulli").fit(others)
        uniform = {} if kind == "complement" else {"fit_prior": False}
        peer = PEERS[kind](alpha=0.5, **uniform).fit(found.transform(others), classes)
        assert_allclose(posterior[k], peer.predict_proba(found.transform(texts[k : k + 1]))[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("amounts", ["count", "log", "root"])
@pytest.mark.parametrize("normalize", [False, True])
def test_amounts_are_those_of_a_matrix_that_was_changed_by_hand(amounts: Any, normalize: bool) -> None:
    found = CountVectorizer().fit(X)

    def heard(texts: list[str]) -> Any:
        matrix = found.transform(texts).astype(float)
        matrix.data = {"count": matrix.data, "log": 1.0 + np.log(matrix.data), "root": np.sqrt(matrix.data)}[amounts]
        if normalize:
            length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
            matrix = matrix.multiply(1.0 / np.maximum(length, 1e-300)[:, None]).tocsr()
        return matrix

    peer = MultinomialNB().fit(heard(X), Y)
    clf = BayesClassifier(Text(term_counts=amounts, normalize=normalize), tune=None).fit(X, Y)
    assert_allclose(clf.predict_log_proba(NEW), peer.predict_log_proba(heard(NEW)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("linear", [0.0, 0.3, 1.0])
def test_lifts_by_hand(linear: float) -> None:
    """P(class | word) / P(class), one pseudo-count of a word that says nothing."""
    found = CountVectorizer().fit(X)
    counts = np.stack([np.asarray(found.transform(X)[c == Y].sum(axis=0)).ravel() for c in range(3)]).astype(float)
    share = counts.sum(axis=1, keepdims=True) / counts.sum()
    lift = (counts / share + 1.0) / (counts.sum(axis=0) + 1.0)
    joint = found.transform(NEW) @ ((1.0 - linear) * np.log(lift) + linear * (lift - 1.0)).T
    clf = BayesClassifier(Text("lift", linear=linear), tune=None, prior="uniform").fit(X, Y)
    log_total = np.log(np.exp(joint).sum(axis=1, keepdims=True))
    assert_allclose(clf.predict_log_proba(NEW), joint - log_total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli", "complement", "lift"])
def test_tempering_by_hand(kind: Any) -> None:
    """The evidence of a text of n known words counts n ** -tempering times."""
    plain = BayesClassifier(Text(kind), tune=None, prior="uniform").fit(X, Y)
    clf = BayesClassifier(Text(kind, tempering=0.5), tune=None, prior="uniform").fit(X, Y)
    known = CountVectorizer(binary=kind == "bernoulli").fit(X).transform(NEW).sum(axis=1)
    factor = np.maximum(np.asarray(known).ravel(), 1.0) ** -0.5
    tempered, whole = (np.diff(each.log_joint(NEW), axis=1) for each in (clf, plain))  # without the number of orders
    assert_allclose(tempered, factor[:, None] * whole, rtol=1e-9, atol=1e-9)


def test_a_column_among_others_says_the_same() -> None:
    """Evidence of two columns of texts is that of each alone."""
    shuffled = [X[k] for k in np.random.default_rng(5).permutation(len(X))]
    both = BayesClassifier(Text(), tune=None, prior="uniform").fit({"a": X, "b": shuffled}, Y)
    alone = [BayesClassifier(Text(), tune=None, prior="uniform").fit(texts, Y) for texts in (X, shuffled)]
    expected = alone[0].log_joint(NEW) + alone[1].log_joint(NEW[::-1]) + np.log(3.0)
    assert_allclose(both.log_joint({"a": NEW, "b": NEW[::-1]}), expected, rtol=1e-9)


def test_a_text_has_the_likelihood_of_its_counts_of_words() -> None:
    """SciPy's multinomial distribution, coefficient included, for `Text` and for `Multinomial` alike."""
    words = CountVectorizer().fit(X)
    counts, new = (words.transform(texts).toarray() for texts in (X, NEW))
    as_texts = BayesClassifier(Text(), tune=None).fit(X, Y)
    as_counts = BayesClassifier(Multinomial(), tune=None).fit(counts, Y)
    shares = np.stack([(counts[c == Y].sum(axis=0) + 1.0) for c in range(3)])
    shares /= shares.sum(axis=1, keepdims=True)
    expected = np.log(np.bincount(Y) / len(Y)) + np.stack(
        [stats.multinomial(new.sum(axis=1), share).logpmf(new) for share in shares], axis=1
    )
    assert_allclose(as_counts.log_joint(new), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(as_texts.log_joint(NEW), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(as_texts.log_density(NEW), as_counts.log_density(new), rtol=1e-9, atol=1e-9)
    left = as_texts.leave_one_out().log_joint, as_counts.leave_one_out().log_joint
    several = counts[:, (counts > 0).sum(axis=0) > 1].sum(axis=1) == counts.sum(axis=1)
    assert_allclose(left[0][several], left[1][several], rtol=1e-9, atol=1e-9)


LINEAR = [Text(), Text("bernoulli"), Text("complement"), Text("lift"), Text(term_counts="log", normalize=True)]


def by_class(joint: Any) -> Any:
    """The log-odds of each class against the one before it."""
    return np.diff(joint, axis=1)


@pytest.mark.parametrize("family", LINEAR, ids=str)
def test_the_linear_form_of_texts(family: Text) -> None:
    """w = log theta, b = log pi: exact weights of scikit-learn, and differences between classes that add up."""
    clf = BayesClassifier(family, tune=None).fit(X, Y)
    form = clf.linear_form()
    assert_allclose(by_class(form.scores(NEW)), by_class(clf.log_joint(NEW)), rtol=1e-9, atol=1e-9)
    assert_allclose(by_class(form.features(NEW) @ form.weights + form.intercept), by_class(form.scores(NEW)), atol=1e-9)
    missing = {"text": [None, NEW[0]]}
    named = BayesClassifier(family, tune=None).fit({"text": X}, Y)
    assert_allclose(by_class(named.linear_form().scores(missing)), by_class(named.log_joint(missing)), atol=1e-9)
    if family == Text():
        oracle = MultinomialNB().fit(CountVectorizer().fit_transform(X), Y)
        words = {name.removeprefix("x0: "): k for k, name in enumerate(form.names)}
        order = [words[word] for word in CountVectorizer().fit(X).get_feature_names_out()]
        assert_allclose(form.weights[order].T, oracle.feature_log_prob_, rtol=1e-9)
        assert_allclose(form.intercept, oracle.class_log_prior_, rtol=1e-9)


def test_long_texts_that_count_less_have_no_linear_form() -> None:
    with pytest.raises(UsageError, match="has no linear or quadratic form"):
        BayesClassifier(Text(tempering=0.5), tune=None).fit(X, Y).linear_form()


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli"])
def test_the_factors_of_a_text_multiply_to_its_likelihood(kind: Any) -> None:
    clf = BayesClassifier(Text(kind), tune=None).fit(X, Y)
    explained = clf.explain(NEW[:40])
    seen = 0
    for row in range(40):
        (block,) = explained.steps(row)["blocks"]
        factors = block.get("factors", [])
        seen = max(seen, len(factors))
        assert len(factors) <= 13
        if factors:
            for name, log in block["log_likelihood"].items():
                assert sum(factor["log"][name] for factor in factors) == pytest.approx(log, abs=1e-9)
            for factor in factors:
                assert f"· {factor['factor']}" in explained.calculation(row)
    assert seen > 3
