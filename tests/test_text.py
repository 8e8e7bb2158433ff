"""BagOfWords against CountVectorizer, and against counting by hand."""

import re
from collections import Counter
from contextlib import nullcontext
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

import bayesnb as bnb
from bayesnb.text import BagOfWords
from tests.raises import refused

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
    """Words of two or more word characters, as CountVectorizer's default pattern defines them."""
    return re.findall(r"\b\w\w+\b", document.lower())


def transform(bag: BagOfWords, documents: list[str]):
    """Transform documents; unknown words warn if the reserved word is untrained."""
    with pytest.warns(UserWarning, match="never occurred in training") if not bag.unknown_count_ else nullcontext():
        return bag.transform(documents)


def same(a, b) -> bool:
    """Whether sparse arrays are equal in values, types and layout, up to the order of entries in a row."""
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


# -- scikit-learn ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("documents", "options", "error", "message"),
    [
        ("one text", {}, ValueError, "raw_documents is one string; pass a list"),
        ({"a": "b"}, {}, ValueError, "raw_documents is a dict"),
        (["fine", "too", 3.5], {}, TypeError, r"raw_documents\[2\] is 3.5, a float"),
        (["a", "?"], {}, ValueError, "empty vocabulary"),
        (DOCUMENTS, {"min_df": 3, "max_df": 2}, ValueError, "max_df=2 is fewer documents than min_df=3"),
        (DOCUMENTS, {"min_df": 0}, ValueError, "'min_df' parameter of BagOfWords must be"),
        (DOCUMENTS, {"max_df": 1.5}, ValueError, "'max_df' parameter of BagOfWords must be"),
        (DOCUMENTS, {"max_features": 0}, ValueError, "'max_features' parameter of BagOfWords must be"),
        (DOCUMENTS, {"unknown": 0}, ValueError, "unknown=0 must be a string"),
        (DOCUMENTS, {"vocabulary": []}, ValueError, "empty vocabulary passed to fit"),
        (DOCUMENTS, {"vocabulary": ["a", "b", "a"]}, ValueError, "Duplicate term in vocabulary: 'a'"),
        (DOCUMENTS, {"vocabulary": {"a": 0, "b": 2}}, ValueError, "Vocabulary of size 2 doesn't contain index 1"),
        (DOCUMENTS, {"vocabulary": ["a", "<UNK>"]}, ValueError, "vocabulary has the reserved word '<UNK>'"),
    ],
)
def test_errors_name_what_is_wrong_and_change_nothing(documents, options, error, message):
    bag = BagOfWords().fit(DOCUMENTS)
    before = dict(bag.vocabulary_)
    bag.set_params(**options)
    refused(message, bag.fit, documents, error=error)
    assert bag.vocabulary_ == before


def test_a_given_dictionary_is_fitted_by_fit_alone():
    """`CountVectorizer` needs no `fit` where its dictionary is given; here `fit` trains the reserved word."""
    bag = BagOfWords(vocabulary=["cash"])
    for call in (bag.get_feature_names_out, partial(bag.transform, LATER), partial(bag.save, "words.json")):
        with pytest.raises(NotFittedError):
            call()


@pytest.mark.parametrize("options", [{}, {"stop_words": ["you"], "max_df": 0.4}, {"ngram_range": (1, 2)}])
def test_the_analyzer_lists_what_is_counted(options):
    bag = BagOfWords(**options)
    words = CountVectorizer(**{k: v for k, v in options.items() if k != "max_df"}).build_analyzer()
    assert [bag.build_analyzer()(d) for d in DOCUMENTS] == [words(d) for d in DOCUMENTS]
    bag.fit(DOCUMENTS)
    analyze, names = bag.build_analyzer(), bag.get_feature_names_out().tolist()
    for document, row in zip(LATER, transform(bag, LATER).toarray(), strict=True):
        expected = [w if w in names else "<UNK>" for w in words(document) if w not in bag.too_frequent_]
        assert analyze(document) == expected
        np.testing.assert_array_equal(row, [expected.count(name) for name in names])
    inverse = bag.inverse_transform(sp.csr_matrix(transform(bag, LATER)))  # scikit-learn 1.6 reads no csr_array
    assert [set(row) for row in inverse] == [set(analyze(d)) for d in LATER]
    again = LATER * 2
    assert same(bag.fit_transform(again), BagOfWords(**options).fit_transform(again)), "a second fit starts anew"


def test_own_functions_may_take_other_things_than_strings():
    rows = [["a", "b"], ["a"], ["a", "c"]]
    bag = BagOfWords(analyzer=list)
    assert bag.fit_transform(rows).toarray().tolist() == [[1, 1], [1, 0], [1, 1]]


# -- missing documents, and texts without spaces ------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"binary": True}, {"vocabulary": ["cash", "you"]}, {"unknown": None}, {"min_df": 0.3}]
)
@pytest.mark.parametrize(
    "form", [list, iter, lambda d: pd.Series(d, dtype=object), lambda d: pd.Series(d, dtype="string"), pl.Series]
)
def test_a_missing_document_has_no_words(form, options):
    """`CountVectorizer` counts nothing in an empty text, which stands for the missing one."""
    for missing in (None, float("nan"), pd.NA) if form in (list, iter) else (None,):
        documents = [missing, *DOCUMENTS[:3], missing, missing, *DOCUMENTS[3:], missing]
        empty = ["" if document is missing else document for document in documents]
        bag, expected = BagOfWords(**options), BagOfWords(**options)
        assert same(bag.fit_transform(form(documents)), expected.fit_transform(empty))
        assert bag.vocabulary_ == expected.vocabulary_
        assert "nan" not in bag.vocabulary_
        later = [missing, "cash nan cash", missing]
        np.testing.assert_array_equal(bag.transform(form(later)).toarray()[[0, 2]], 0)
        np.testing.assert_array_equal(bag.transform([missing]).toarray(), 0)


def test_a_function_of_the_user_gets_no_missing_document():
    bag = BagOfWords(analyzer=lambda row: row["words"])
    X = bag.fit_transform([{"words": ["a"]}, None, {"words": ["a"]}])
    assert X.toarray().tolist() == [[1, 0], [0, 0], [1, 0]]
    refused("empty vocabulary", BagOfWords().fit, [None, float("nan")])


CLAUSES = [
    "今天天气很好，适合出去玩",
    "恭喜您中奖了，请点击领取奖金",
    "明天一起吃饭吗",
    "请点击领取奖金",
    "今天一起吃饭吗",
]
SEGMENTED = [
    "今天 天气 很 好 适合 出去 玩",
    "恭喜 您 中奖 了 请 点击 领取 奖金",
    "明天 一起 吃饭 吗",
    "请 点击 领取 奖金",
]
ADVICE = r'analyzer="char", ngram_range=\(1, 2\), or pass tokenizer=.*jieba\.lcut'


def test_texts_without_spaces_need_another_analyzer():
    refused(rf"'今天天气很好' is one of these words.*{ADVICE}", BagOfWords().fit, CLAUSES[:3])
    refused("Change min_df or max_df", BagOfWords().fit, ["one", "two", "三"])
    with pytest.warns(UserWarning, match=rf"clauses are counted as words, such as '今天一起吃饭吗'.*{ADVICE}") as shown:
        BagOfWords().fit(CLAUSES)
    assert shown[0].filename == __file__
    with pytest.warns(UserWarning, match="clauses are counted as words"):
        BagOfWords(min_df=1, ngram_range=(1, 2)).fit(CLAUSES)


@pytest.mark.filterwarnings("error")
def test_segmented_texts_and_counts_of_characters_do_not_warn():
    """Characters and pairs of characters, counted by hand."""
    assert "奖金" in BagOfWords().fit(SEGMENTED).vocabulary_
    BagOfWords(ngram_range=(1, 3)).fit(SEGMENTED)
    BagOfWords(min_df=1).fit([*["a whole English text, with many words"] * 3, "和一个没有空格的中文句子"])
    BagOfWords(tokenizer=lambda text: re.findall("..?", text), token_pattern=None).fit(CLAUSES)
    bag = BagOfWords(analyzer="char", ngram_range=(1, 2), min_df=1)
    X = bag.fit_transform(CLAUSES)
    for document, row in zip(CLAUSES, X.toarray(), strict=True):
        counts = Counter([*document, *(a + b for a, b in pairwise(document))])
        assert {name: n for name, n in zip(bag.get_feature_names_out(), row, strict=True) if n} == counts


@pytest.mark.parametrize(
    ("options", "advice"),
    [({"min_df": 1}, "min_df=2"), ({"min_df": 2}, "min_df=3"), ({"vocabulary": ["aa"]}, "other words")],
)
def test_an_untrained_reserved_word_has_advice_that_is_not_set_already(options, advice):
    bag = BagOfWords(**options).fit(["aa", "aa"])
    with pytest.warns(UserWarning, match=f"1 word is not in the dictionary.*Fit this dictionary .*{advice}"):
        bag.transform(["bb"])


# -- tables for others ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [list, np.array, pd.Series])
def test_texts_whose_words_are_not_counted(form):
    texts, model = form(["the cat sat", "a dog"]), bnb.MultinomialNB()
    for method in (partial(model.fit, y=[0, 1]), bnb.MultinomialNB().fit([[1, 2], [2, 1]], [0, 1]).predict_proba):
        refused("MultinomialNB takes a table, a row of features for each sample.*Count the words", method, texts)
    assert not hasattr(model, "classes_")
