"""BagOfWords against CountVectorizer, against counting by hand, and against damaged files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tracemalloc
from collections import Counter
from contextlib import nullcontext
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import bayesnb as bnb
from bayesnb.persistence.words import PATTERNS
from bayesnb.text import BagOfWords
from tests.data import sms
from tests.refusals import refused

DOCUMENTS = [
    "Win cash now, cash for you",
    "cash now",
    "See you at noon, the usual place",
    "The café at noon?",
    "",
    "You win",
]
LATER = ["win the lottery", "", "cash cash at the café", "nothing known"]


def tokens(document: str) -> list[str]:
    """What CountVectorizer's default pattern finds, by its definition: two or more word characters."""
    return re.findall(r"\b\w\w+\b", document.lower())


def transform(bag: BagOfWords, documents: list[str]):
    """Of documents with a word that is not in the dictionary: a warning, if the reserved word is untrained."""
    with pytest.warns(UserWarning, match="never occurred in training") if not bag.unknown_count_ else nullcontext():
        return bag.transform(documents)


def same(a, b) -> bool:
    """To the bit: values, types and layout, but for the order of entries in a row; the first is a sparse array."""
    a, b = a.sorted_indices(), b.sorted_indices()
    parts = [(getattr(a, n), getattr(b, n)) for n in ("data", "indices", "indptr")]
    return (
        type(a) is sp.csr_array and a.shape == b.shape and all(x.dtype == y.dtype and (x == y).all() for x, y in parts)
    )


# -- without a reserved word: CountVectorizer --------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"binary": True},
        {"min_df": 2},
        {"min_df": 0.3, "max_df": 0.5},
        {"max_features": 4},
        {"max_features": 4, "binary": True},
        {"stop_words": "english"},
        {"stop_words": ["you", "at"]},
        {"ngram_range": (1, 2), "min_df": 2},
        {"analyzer": "char_wb", "ngram_range": (2, 3)},
        {"lowercase": False, "strip_accents": "unicode", "token_pattern": r"\S+"},
        {"tokenizer": str.split, "token_pattern": None},
        {"dtype": np.float32},
        {"vocabulary": ["cash", "you", "absent"]},
        {"vocabulary": {"you": 1, "cash": 0}},
    ],
    ids=str,
)
def test_without_a_reserved_word_it_is_countvectorizer(options):
    ours, theirs = BagOfWords(unknown=None, **{"min_df": 1, **options}), CountVectorizer(**options)
    for method, documents in (("fit_transform", DOCUMENTS), ("transform", LATER)):
        found, expected = getattr(ours, method)(documents), getattr(theirs, method)(documents)
        assert same(found, expected)
        assert (found.indices == expected.indices).all()
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert ours.get_feature_names_out().dtype == theirs.get_feature_names_out().dtype
    assert ours.vocabulary_ == theirs.vocabulary_


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee", "ff"]), max_size=6), min_size=1, max_size=8),
    st.integers(1, 3),
    st.sampled_from([0.5, 0.8, 1.0, 4]),
    st.sampled_from([None, 1, 3]),
    st.booleans(),
)
def test_any_dictionary_is_countvectorizers(rows, min_df, max_df, max_features, binary):
    documents = [" ".join(row) for row in rows]
    options = {"min_df": min_df, "max_df": max_df, "max_features": max_features, "binary": binary}
    try:
        theirs = CountVectorizer(**options)
        expected = theirs.fit_transform(documents)
    except ValueError:
        with pytest.raises(ValueError, match=r"empty vocabulary|No word is left|is fewer documents"):
            BagOfWords(unknown=None, **options).fit(documents)
        return
    plain, reserved = BagOfWords(unknown=None, **options), BagOfWords(**options)
    assert same(plain.fit_transform(documents), expected)
    assert reserved.fit(documents).get_feature_names_out().tolist() == [*theirs.get_feature_names_out(), "<UNK>"]


# -- the reserved word -------------------------------------------------------------------------------


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("min_df", [1, 2, 3])
def test_counts_by_hand(binary, min_df):
    df = Counter(word for d in DOCUMENTS for word in set(tokens(d)))
    words = sorted(word for word in df if df[word] >= min_df)
    bag = BagOfWords(min_df=min_df, binary=binary)
    X = bag.fit_transform(DOCUMENTS)
    assert bag.get_feature_names_out().tolist() == [*words, "<UNK>"]
    for documents, found in ((DOCUMENTS, X), (LATER, transform(bag, LATER))):
        expected = np.zeros((len(documents), len(words) + 1), int)
        for i, document in enumerate(documents):
            for word in tokens(document):
                expected[i, words.index(word) if word in words else -1] += 1
        np.testing.assert_array_equal(found.toarray(), np.minimum(expected, 1) if binary else expected)
    assert bag.unknown_count_ == X.toarray()[:, -1].sum()


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee", "ff"]), max_size=6), min_size=1, max_size=8),
    st.integers(1, 2),
    st.sampled_from([0.5, 1.0]),
    st.sampled_from([None, 2]),
    st.booleans(),
)
def test_training_documents_are_counted_as_later_ones(rows, min_df, max_df, max_features, binary):
    documents = [" ".join(row) for row in rows]
    bag = BagOfWords(min_df=min_df, max_df=max_df, max_features=max_features, binary=binary)
    try:
        X = bag.fit_transform(iter(documents))
    except ValueError:
        return
    assert same(X, bag.transform(documents))
    dropped = [sum(w not in bag.too_frequent_ for w in row) for row in rows]
    if not binary:
        np.testing.assert_array_equal(X.toarray().sum(axis=1), dropped)


def test_too_frequent_words_are_dropped_and_not_unknown():
    bag = BagOfWords(min_df=1, max_df=0.5).fit(["the cat", "the dog", "the end", "my dog"])
    assert bag.too_frequent_ == {"the"}
    assert bag.fit_transform(["the cat", "the dog", "the end", "my dog"]).toarray()[:, -1].sum() == 0
    with pytest.warns(UserWarning, match="1 word is not in the dictionary"):
        assert bag.transform(["the the unheard"]).toarray()[0].tolist() == [0, 0, 0, 0, 1]


def test_a_given_dictionary_trains_the_reserved_word():
    bag = BagOfWords(vocabulary=["cash", "now"])
    X = bag.fit_transform(iter(DOCUMENTS))
    assert bag.get_feature_names_out().tolist() == ["cash", "now", "<UNK>"]
    assert bag.unknown_count_ == sum(word not in ("cash", "now") for d in DOCUMENTS for word in tokens(d))
    assert same(X, bag.transform(DOCUMENTS))


def test_any_iterator_once():
    by_list = BagOfWords().fit(DOCUMENTS)
    assert BagOfWords().fit(d for d in DOCUMENTS).vocabulary_ == by_list.vocabulary_
    bag = BagOfWords()
    assert same(bag.fit_transform(d for d in DOCUMENTS), by_list.transform(DOCUMENTS))
    assert same(bag.transform(pd.Series(LATER)), by_list.transform(np.array(LATER, dtype=object)))


def test_the_reserved_word_in_a_text_is_the_reserved_word():
    bag = BagOfWords(token_pattern=r"\S+", lowercase=False)
    X = bag.fit_transform(["a <UNK> b", "a <UNK> c", "a"])
    assert bag.get_feature_names_out().tolist() == ["a", "<UNK>"]
    assert X.toarray().tolist() == [[1, 2], [1, 2], [1, 0]]
    assert same(X, bag.transform(["a <UNK> b", "a <UNK> c", "a"]))


def test_an_untrained_word_favours_the_class_with_fewer_words():
    """The factor of Notes, from CountVectorizer's counts alone."""
    texts, y = sms()
    counts = CountVectorizer().fit(texts).transform(texts)
    n_spam, n_ham = counts[y == "spam"].sum(), counts[y == "ham"].sum()
    factor = (n_ham + counts.shape[1] + 1) / (n_spam + counts.shape[1] + 1)
    assert 2.6 < factor < 2.9
    bag = BagOfWords(min_df=1)
    nb = bnb.MultinomialNB(estimate="mean").fit(bag.fit_transform(texts), y)
    known, unknown = np.log(nb.predict_proba(transform(bag, ["ok", "ok qqqq"])))
    spam = list(nb.classes_).index("spam")
    assert np.exp((unknown - known)[spam] - (unknown - known)[1 - spam]) == pytest.approx(factor, rel=1e-10)
    trained = BagOfWords()
    nb = bnb.MultinomialNB(estimate="mean").fit(trained.fit_transform(texts), y)
    log_theta = nb.feature_log_prob_[:, -1]
    assert 0.8 < np.exp(log_theta[spam] - log_theta[1 - spam]) < 1.25


# -- scikit-learn ------------------------------------------------------------------------------------


def test_pipeline_clone_and_parameters():
    texts, y = sms()
    texts, y = texts[:600], y[:600]
    pipeline = make_pipeline(BagOfWords(binary=True, stop_words="english"), bnb.MultinomialNB())
    assert cross_val_score(pipeline, texts, y, cv=3, error_score="raise").min() > 0.9
    fitted = pipeline.fit(texts, y)[0]
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "vocabulary_")
    assert repr(copy) == "BagOfWords(binary=True, stop_words='english')"
    assert copy.set_params(min_df=3).min_df == 3
    with pytest.raises(NotFittedError):
        copy.transform(["text"])


@pytest.mark.parametrize(
    ("documents", "options", "error", "message"),
    [
        ("one text", {}, ValueError, "raw_documents is one string; pass a list"),
        ({"a": "b"}, {}, ValueError, "raw_documents is a dict"),
        (pd.DataFrame({"text": ["a"]}), {}, ValueError, "raw_documents is a DataFrame"),
        (np.array([["a"]]), {}, ValueError, "raw_documents is a ndarray"),
        (["fine", "too", 3.5], {}, TypeError, r"raw_documents\[2\] is 3.5, a float"),
        (["fine", None], {}, TypeError, r"raw_documents\[1\] is None"),
        (["a", "?"], {}, ValueError, "empty vocabulary"),
        (["one text", "other words"], {}, ValueError, "No word is left for the dictionary: of 4 words in 2 documents"),
        (DOCUMENTS, {"min_df": 3, "max_df": 2}, ValueError, "max_df=2 is fewer documents than min_df=3"),
        (DOCUMENTS, {"min_df": 0}, ValueError, "min_df=0 must be"),
        (DOCUMENTS, {"max_df": 1.5}, ValueError, "max_df=1.5 must be"),
        (DOCUMENTS, {"min_df": True}, ValueError, "min_df=True must be"),
        (DOCUMENTS, {"max_features": 0}, ValueError, "max_features=0 must be"),
        (DOCUMENTS, {"unknown": 0}, ValueError, "unknown=0 must be the name"),
        (DOCUMENTS, {"vocabulary": []}, ValueError, "vocabulary is empty"),
        (DOCUMENTS, {"vocabulary": "cash"}, ValueError, "vocabulary='cash' must be a list"),
        (DOCUMENTS, {"vocabulary": ["a", "b", "a"]}, ValueError, "the word 'a' twice"),
        (DOCUMENTS, {"vocabulary": {"a": 0, "b": 2}}, ValueError, "columns of its 2 words must be 0, …, 1"),
        (DOCUMENTS, {"vocabulary": ["a", "<UNK>"]}, ValueError, "vocabulary has the reserved word '<UNK>'"),
    ],
)
def test_errors_name_what_is_wrong_and_change_nothing(documents, options, error, message):
    bag = BagOfWords().fit(DOCUMENTS)
    before = dict(bag.vocabulary_)
    bag.set_params(**options)
    refused(message, bag.fit, documents, error=error)
    assert bag.vocabulary_ == before


def test_own_functions_may_take_other_things_than_strings():
    rows = [["a", "b"], ["a"], ["a", "c"]]
    bag = BagOfWords(analyzer=list)
    assert bag.fit_transform(rows).toarray().tolist() == [[1, 1], [1, 0], [1, 1]]


# -- files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unknown": None, "max_df": 0.4, "min_df": 1},
        {"unknown": "§\ud800", "binary": True, "ngram_range": (1, 2), "dtype": np.float32},
        {"stop_words": ["you"], "strip_accents": "unicode", "min_df": np.int64(1), "max_features": 5},
        {"vocabulary": ["you", "cash", "café"]},
        {"vocabulary": {"you": 1, "cash": 0}, "unknown": None},
    ],
    ids=str,
)
def test_what_was_saved_is_loaded(options, tmp_path):
    bag = BagOfWords(**options).fit([*DOCUMENTS, "词袋 模型"])
    bag.save(tmp_path / "words.json")
    loaded = BagOfWords.load(str(tmp_path / "words.json"))
    assert same(loaded.transform(DOCUMENTS[:4]), bag.transform(DOCUMENTS[:4]))
    for name in ("vocabulary_", "too_frequent_", "unknown_count_"):
        assert getattr(loaded, name) == getattr(bag, name)
    own, other = bag.get_params(), loaded.get_params()
    assert {k: v for k, v in other.items() if k != "vocabulary"} == {k: v for k, v in own.items() if k != "vocabulary"}
    assert same(clone(loaded).fit_transform(DOCUMENTS), clone(bag).fit_transform(DOCUMENTS))
    json.loads((tmp_path / "words.json").read_text())


@pytest.mark.parametrize("name", ["tokenizer", "preprocessor", "analyzer"])
@pytest.mark.filterwarnings("ignore:The parameter 'token_pattern' will not be used")
def test_functions_are_not_written(name, tmp_path):
    bag = BagOfWords(**{name: str.lower if name == "preprocessor" else str.split}).fit(DOCUMENTS)
    refused(f"{name}: <.*cannot be written to a file", bag.save, tmp_path / "words.json")
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "words.json"
    BagOfWords().fit(DOCUMENTS).save(path)
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("bayesnb._util.files.os.fsync", full)
        refused(r"is as it was before: No space left", BagOfWords(min_df=1).fit(DOCUMENTS).save, path, error=OSError)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(NotFittedError):
        BagOfWords().save(path)


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "words.json"
    BagOfWords().fit(DOCUMENTS).save(path)
    whole = path.read_text()
    for end in range(0, len(whole) - 1, 37):
        path.write_text(whole[:end])
        refused("is damaged", BagOfWords.load, path)
    content = json.loads(whole)
    for change, message in (
        ({"words": content["words"][::-1]}, "checksum"),
        ({"unknown_count": 0}, "checksum"),
        ({"options": {**content["options"], "min_df": 1}}, "checksum"),
        ({"words": "cash"}, "'words' is of another type"),
        ({"version": 99}, "has version 99; this bayesnb reads version 1"),
        ({"format": "other"}, "is not a file of bayesnb.text.BagOfWords"),
    ):
        path.write_text(json.dumps({**content, **change}))
        refused(message, BagOfWords.load, path)
    path.write_text(json.dumps({k: v for k, v in content.items() if k != "words"}))
    refused("'words' is missing", BagOfWords.load, path)
    for other in ("[1, 2]", "3"):
        path.write_text(other)
        refused("is not a file of", BagOfWords.load, path)
    path.write_bytes(b"\x80\x04\x95")
    refused("byte 0 is not ASCII", BagOfWords.load, path)
    with pytest.raises(FileNotFoundError):
        BagOfWords.load(tmp_path / "absent.json")


def forged(whole: dict, change: dict) -> str:
    """A file with other parts, or options, and the right checksum."""
    options = {**whole["options"], **change.pop("options", {})}
    content = {k: whole[k] for k in ("words", "too_frequent", "unknown_count")} | {"options": options} | change
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({"format": whole["format"], "version": 1, **content, "sha256": digest})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": {"token_pattern": "(a+)+!"}}, r"token_pattern '\(a\+\)\+!' may take any time"),
        ({"options": {"token_pattern": r"\w+!"}}, "may take any time"),
        ({"options": {"token_pattern": ["a"]}}, "token_pattern="),
        ({"options": {"dtype": "f8," * 10**5}}, "dtype="),
        ({"options": {"dtype": "object"}}, "dtype="),
        ({"options": {"ngram_range": [1, 10**9]}}, "ngram_range="),
        ({"options": {"ngram_range": [1]}}, "ngram_range="),
        ({"options": {"stop_words": [i * (2**61 - 1) for i in range(10)]}}, "stop_words="),
        ({"options": {"analyzer": "lines"}}, "analyzer="),
        ({"options": {"unknown": 1}}, "unknown="),
        ({"options": {"more": 1}}, r"options: \['more'\] are not those"),
        ({"words": [i * (2**61 - 1) for i in range(30_000)]}, "vocabulary: 0 is no word"),
        ({"words": ["a", ["b"], "<UNK>"]}, "is no word"),
        ({"words": ["a", "a", "<UNK>"]}, "has a word twice"),
        ({"words": ["a", "b"]}, "not the reserved '<UNK>'"),
        ({"words": []}, "is empty"),
        ({"too_frequent": [{}]}, "is no word"),
        ({"unknown_count": -1}, "unknown_count_=-1"),
        ({"unknown_count": True}, "of another type"),
        ({"words": [[]] * 2**19}, "parts in"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_forged_files_of_words(change, message, tmp_path):
    """Each has the right checksum. The error is that of `bnb.load`."""
    path = tmp_path / "words.json"
    BagOfWords().fit(DOCUMENTS).save(path)
    path.write_text(forged(json.loads(path.read_text()), dict(change)))
    refused(message, BagOfWords.load, path, error=bnb.CorruptModelError)


def test_a_pattern_is_read_where_it_is_passed_too(tmp_path):
    path, pattern = tmp_path / "words.json", r"[a-z]+(?:-[a-z]+)*"
    bag = BagOfWords(token_pattern=pattern).fit(DOCUMENTS)
    bag.save(path)
    refused("pass it: BagOfWords.load", BagOfWords.load, path, error=bnb.CorruptModelError)
    refused(r"and not '\\\\w\+'", BagOfWords.load, path, token_pattern=r"\w+", error=bnb.CorruptModelError)
    assert same(BagOfWords.load(path, token_pattern=pattern).transform(DOCUMENTS), bag.transform(DOCUMENTS))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_common_patterns_are_read(pattern, tmp_path):
    """As each finds its words without giving one up: what it does not find is no beginning of a word."""
    path = tmp_path / "words.json"
    BagOfWords(token_pattern=pattern).fit(DOCUMENTS).save(path)
    assert BagOfWords.load(path).token_pattern == pattern
    letters = re.sub(r"\(\?u\)|\\b", "", pattern)
    assert re.fullmatch(r"(\\\w)(\1)*\+", letters)  # one class of characters, of which there is no longest run


def test_only_regular_files_of_words(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", "/dev/null"):
        refused("no regular file", BagOfWords.load, path, error=bnb.CorruptModelError)
    refused("must be a path", BagOfWords.load, 3, error=TypeError)
    path = tmp_path / "sparse"
    for size, message in ((10**8, "is damaged"), (10**10, "at most 1,000,000,000")):
        path.write_bytes(b"")
        os.truncate(path, size)
        tracemalloc.start()
        try:
            refused(message, BagOfWords.load, path, error=bnb.CorruptModelError)
            assert tracemalloc.get_traced_memory()[1] < 10**6
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("unknown", ["<UNK>", None])
@pytest.mark.parametrize("binary", [False, True])
def test_sparse_arrays_that_scikit_learn_takes(unknown, binary):
    documents = ["the cat sat", "the dog sat down", "the cat", "a dog", "cat and dog", "down the road"]
    for bag in (BagOfWords(unknown=unknown, binary=binary), BagOfWords(unknown=unknown, vocabulary=["cat", "dog"])):
        learned = bag.fit_transform(documents)
        for X in (learned, bag.transform(documents)):
            assert type(X) is sp.csr_array
            assert X.shape == (6, len(bag.vocabulary_))
        pipeline = make_pipeline(bag, TfidfTransformer(), LogisticRegression())
        assert pipeline.fit(documents, [0, 1] * 3).predict_proba(documents).shape == (6, 2)


@pytest.mark.parametrize("form", [list, np.array, pd.Series])
def test_texts_whose_words_are_not_counted(form):
    texts, model = form(["the cat sat", "a dog"]), bnb.MultinomialNB()
    for method in (partial(model.fit, y=[0, 1]), bnb.MultinomialNB().fit([[1, 2], [2, 1]], [0, 1]).predict_proba):
        refused(
            "of texts: 'the cat sat', ...; MultinomialNB takes a row of features for each sample. Count", method, texts
        )
    assert not hasattr(model, "classes_")
