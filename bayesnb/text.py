"""Documents to counts of words, with a reserved word for those that are not in the dictionary."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import bad_argument, shown
from bayesnb._util.warnings import warn
from bayesnb.encoding import is_missing
from bayesnb.persistence import read_words, write_words

_INTEGER = (int, np.integer)
_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
"""A letter of a script without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_LONGEST_MEAN = 4.0
"""Greatest mean length of the words of a text in such letters: Chinese words of two or more letters have 2.3."""
_COUNT_CHARACTERS = (
    'Count characters and pairs of characters by analyzer="char", ngram_range=(1, 2), or pass tokenizer=, a function '
    "that returns the words of a text, such as jieba.lcut for Chinese."
)


class BagOfWords(CountVectorizer):
    r"""Count the words of documents, like scikit-learn's `CountVectorizer`, with a reserved word for unknown words.

    `CountVectorizer` finds words and counts them. `fit` makes the dictionary, which later documents do not change. A
    word outside the dictionary counts as the reserved word `<UNK>`, both in training and in `transform`: the rare words
    of the training documents determine the probability of a new word in each class.

    Parameters
    ----------
    unknown : str or None, default "<UNK>"
        Name of the reserved word, the last column. None drops words outside the dictionary, as `CountVectorizer` does.
    binary : bool, default False
        Presence in place of counts; the reserved word is present where any word outside the dictionary is.
    min_df : int or float, default 2
        Least number of documents (a float: share of the documents) in which a word of the dictionary occurs. Rarer
        words are outside the dictionary.
    max_df : int or float, default 1.0
        Greatest number of documents (a float: share of the documents) in which a word of the dictionary occurs. More
        frequent words are dropped, as stop words are, and do not count as unknown.
    max_features : int, optional
        Greatest number of words in the dictionary, besides the reserved word. The most frequent words are taken; the
        others are outside the dictionary.
    vocabulary : list, set or dict {word: column}, optional
        Words of the dictionary, where they are chosen beforehand. `fit` then learns how often the reserved word occurs,
        and `min_df`, `max_df` and `max_features` are not used.
    strip_accents : {"ascii", "unicode"} or callable, optional
        How accents are removed from characters. None keeps accents.
    lowercase : bool, default True
        Whether letters are converted to lower case before words are found.
    preprocessor : callable, optional
        Function of a document that replaces the removal of accents and the conversion to lower case.
    tokenizer : callable, optional
        Function of a preprocessed document that returns its words, in place of `token_pattern`.
    stop_words : "english" or list of str, optional
        Words that are dropped; they do not count as unknown.
    token_pattern : str, default ``r"(?u)\b\w\w+\b"``
        Regular expression of a word: two or more word characters by default.
    ngram_range : tuple (least, most), default (1, 1)
        Lengths of the n-grams that are counted. Each n-gram that is not in the dictionary is an unknown word.
    analyzer : {"word", "char", "char_wb"} or callable, default "word"
        Whether n-grams are of words, of characters, or of characters within words; or a function of a document that
        returns all that is counted.
    dtype : type, default numpy.int64
        Type of the counts.

    Attributes
    ----------
    vocabulary_ : dict {word: column}
        Words of the dictionary, and the reserved word, with their columns.
    too_frequent_ : frozenset
        Words dropped for `max_df`.
    unknown_count_ : int
        Number of occurrences of the reserved word in the documents of `fit`; with `binary`, the number of documents in
        which it occurred.

    Notes
    -----
    **Why trained.** A reserved word that never occurred in training (`min_df=1`, every word in the dictionary) has no
    counts, and in each class the probability of the prior. Under `MultinomialNB` with concentration α its probability
    is α/(n_c + α V), n_c words in class c: each unknown word multiplies the odds of the class with *fewer words in
    training* by (n_1 + α V)/(n_0 + α V), only because this class has fewer words. On the SMS Spam Collection that is
    (62,965 + 8,714)/(17,487 + 8,714) = 2.7 per unknown word in favour of spam. `transform` then warns. Under `min_df=2`
    the words that occur in one document only train the reserved word, and its probability is estimated as any other's;
    see `examples/spam_filter.py`.

    A document that is empty or missing (None, NaN, pd.NA), or in which no word is in the dictionary and `unknown` is
    None, is a row of zeros.

    **Texts without spaces.** In Chinese and Japanese texts a whole clause is one word for the default `analyzer`. Count
    characters and pairs of characters by ``analyzer="char", ngram_range=(1, 2)``, or pass a function that returns the
    words of a text, such as `jieba.lcut`, as `tokenizer` (with ``token_pattern=None``).

    Examples
    --------
    >>> from bayesnb.text import BagOfWords
    >>> words = BagOfWords().fit(["win cash now", "cash now", "see you"])
    >>> words.get_feature_names_out().tolist()
    ['cash', 'now', '<UNK>']
    >>> words.transform(["cash for you"]).toarray()
    array([[1, 0, 2]])
    >>> words.build_analyzer()("Cash for you")
    ['cash', '<UNK>', '<UNK>']
    >>> BagOfWords().fit_transform(["win cash now", "cash now"]).toarray().tolist()  # of the same texts
    [[1, 1, 1], [1, 1, 0]]
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     words.save(file.name)
    ...     BagOfWords.load(file.name).transform(["cash for you"]).toarray()
    array([[1, 0, 2]])
    >>> BagOfWords(analyzer="char", ngram_range=(1, 2)).fit(["天气很好", "天气不好"]).get_feature_names_out().tolist()
    ['天', '天气', '好', '气', '<UNK>']
    """

    def __init__(
        self,
        *,
        unknown: str | None = "<UNK>",
        binary: bool = False,
        min_df: float = 2,
        max_df: float = 1.0,
        max_features: int | None = None,
        vocabulary: object = None,
        strip_accents: object = None,
        lowercase: bool = True,
        preprocessor: Callable[..., object] | None = None,
        tokenizer: Callable[..., object] | None = None,
        stop_words: object = None,
        token_pattern: str | None = r"(?u)\b\w\w+\b",
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: object = "word",
        dtype: object = np.int64,
    ) -> None:
        super().__init__(
            binary=binary,
            min_df=min_df,
            max_df=max_df,
            max_features=max_features,
            vocabulary=vocabulary,
            strip_accents=strip_accents,
            lowercase=lowercase,
            preprocessor=preprocessor,
            tokenizer=tokenizer,
            stop_words=stop_words,
            token_pattern=token_pattern,
            ngram_range=ngram_range,
            analyzer=analyzer,
            dtype=dtype,
        )
        self.unknown = unknown

    def fit(self, raw_documents: Iterable[str], y: object = None) -> Self:
        """Make the dictionary, as `fit_transform` does, and return the counter of words."""
        self.fit_transform(raw_documents)
        return self

    def fit_transform(self, raw_documents: Iterable[str], y: object = None) -> sp.csr_array:
        """Make the dictionary, in one pass over any iterable of documents, and count the words of each document.

        Parameters
        ----------
        raw_documents : iterable of str
            Documents, or the objects that your `preprocessor`, `tokenizer` or `analyzer` takes. A missing one (None,
            NaN, pd.NA) has no words.
        y : object, optional
            Ignored.

        Returns
        -------
        (N, V) csr_array
            Counts, as `transform` returns for the same documents.

        Raises
        ------
        TypeError
            If a document is not a string, naming its position.
        ValueError
            If no word is left for the dictionary; if `raw_documents` is a string or a table.

        Warns
        -----
        UserWarning
            If most words are clauses of a text without spaces: see Notes of the class.
        """
        if self.unknown is not None and not isinstance(self.unknown, str):
            raise bad_argument("unknown", self.unknown, "a string, or None to drop words outside the dictionary")
        fitted = copy.copy(self)  # An error leaves `self` as it was.
        if self.vocabulary is None:
            X = fitted._learn(raw_documents)
        else:
            fitted._set_dictionary(_number_words(self.vocabulary), frozenset())
            X = fitted._count(raw_documents)
        fitted.unknown_count_ = 0 if self.unknown is None else int(X[:, [-1]].sum())
        self.__dict__.update(vars(fitted))
        return X

    def transform(self, raw_documents: Iterable[str]) -> sp.csr_array:
        """Count the words of each document.

        Parameters
        ----------
        raw_documents : iterable of str
            Documents; a missing one (None, NaN, pd.NA) has no words.

        Returns
        -------
        (N, V) csr_array
            Counts of the V words of the dictionary, the reserved word last.

        Warns
        -----
        UserWarning
            If words are unknown and no document of `fit` had an unknown one: see Notes of the class.
        """
        check_is_fitted(self)
        X = self._count(raw_documents)
        if self.unknown is not None and self.unknown_count_ == 0 and (count := int(X[:, [-1]].sum())):
            if self.vocabulary is not None:
                advice = "to documents that have other words, too, so that these words"
            else:
                least = self.min_df + 1 if isinstance(self.min_df, _INTEGER) and self.min_df > 1 else 2
                advice = f"with min_df={least}, so that rare words"
            warn(
                f"{count} word{'s are' if count > 1 else ' is'} not in the dictionary, and {self.unknown!r} never "
                "occurred in training: each such word favours the class with fewer words in training. Fit this "
                f"dictionary {advice} count as {self.unknown!r}, or drop unknown words by unknown=None."
            )
        return X

    def build_analyzer(self) -> Callable[[object], list[Hashable]]:
        """Return the function that lists the words of a document, with `unknown` for each word outside the dictionary.

        Before `fit`, or if `unknown` is None, the function lists all words, as that of `CountVectorizer` does.
        """
        analyze, unknown = super().build_analyzer(), self.unknown
        if unknown is None or not self.__sklearn_is_fitted__():
            return analyze
        vocabulary, too_frequent = self.vocabulary_, self.too_frequent_

        def with_unknown(document: object) -> list[Hashable]:
            words = (word for word in analyze(document) if word not in too_frequent)
            return [word if word in vocabulary else unknown for word in words]

        return with_unknown

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return (V,) words, in the order of the columns; the reserved word is the last one."""
        check_is_fitted(self)
        return super().get_feature_names_out(input_features)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write options and dictionary as one JSON file; an existing file is replaced once all content is written.

        Parameters
        ----------
        path : path
            File to write.

        Raises
        ------
        ValueError
            If an option, such as a function, or a word that is not a string cannot be written. Nothing is written.
        OSError
            If the file cannot be written; an existing file stays as it was.
        """
        check_is_fitted(self)
        options = {**self.get_params(deep=False), "vocabulary": None if self.vocabulary is None else "given"}
        words = {
            "options": {name: _to_json(name, value) for name, value in options.items()},
            "words": self.get_feature_names_out().tolist(),
            "too_frequent": sorted(self.too_frequent_, key=str),
            "unknown_count": self.unknown_count_,
        }
        write_words(path, words)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, token_pattern: str | None = None) -> Self:
        r"""Read the options and the dictionary that `save` wrote.

        Parameters
        ----------
        path : path
            File to read.
        token_pattern : str, optional
            The `token_pattern` that was saved. Needed unless that was the default or another common one (`\w+`, `\S+`
            and the like, with `\b` or without), as a file may not choose a pattern that takes minutes on a short text.

        Returns
        -------
        BagOfWords
            Fitted counter of words.

        Raises
        ------
        CorruptModelError
            If the file is damaged, is not a regular file, or was not written by `save`; if its `token_pattern` is
            neither a common one nor the one passed.
        OSError
            If there is no such file, or it cannot be read.
        """
        file = read_words(path, token_pattern)
        options, words = file["options"], file["words"]
        options["dtype"] = np.dtype(options["dtype"]).type
        options["ngram_range"] = tuple(options["ngram_range"])
        loaded = cls(**options)
        if loaded.vocabulary is not None:
            loaded.vocabulary = words if loaded.unknown is None else words[:-1]
        loaded.vocabulary_ = {word: j for j, word in enumerate(words)}
        loaded.too_frequent_ = frozenset(file["too_frequent"])
        loaded.unknown_count_ = file["unknown_count"]
        return loaded

    # -- counting --------------------------------------------------------------------------------

    def _learn(self, raw_documents: Iterable[str]) -> sp.csr_array:
        """Choose the dictionary among the words of the documents, set its attributes, and return the (N, V) counts."""
        self._validate_params()
        limit = self.max_features
        for name in ("min_df", "max_df", "max_features"):
            if isinstance(value := getattr(self, name), bool):
                raise ValueError(f"{name}={value} must be a number, not a bool.")
        options = self.get_params(deep=False)
        for name in ("unknown", "min_df", "max_df", "max_features"):
            del options[name]
        counter = CountVectorizer(**options)
        missing: list[int] = []
        X = _add_empty_rows(counter.fit_transform(self._documents(raw_documents, missing)), missing)
        words = counter.get_feature_names_out()
        frequency = np.bincount(X.indices, minlength=len(words))
        least, most = (v if isinstance(v, _INTEGER) else v * X.shape[0] for v in (self.min_df, self.max_df))
        if most < least:
            raise ValueError(
                f"max_df={self.max_df!r} is fewer documents than min_df={self.min_df!r}. Change one of the two."
            )
        keep = (frequency >= least) & (frequency <= most)
        if limit is not None and keep.sum() > limit:
            count = X.sum(axis=0)
            keep[np.flatnonzero(keep)[np.argsort(-count[keep])[limit:]]] = False
        reserved = words == self.unknown
        too_frequent, keep = (frequency > most) & ~reserved, keep & ~reserved
        if not keep.any():
            clause = self._first_clause(words, X.sum(axis=0), 0.0)
            no_spaces = f"{shown(clause)} is one of these words, as the text has no spaces. {_COUNT_CHARACTERS}"
            raise ValueError(
                f"No word is left for the dictionary: each of the {len(words)} words in {X.shape[0]} documents is in "
                f"fewer than min_df={self.min_df!r} requires, or in more than max_df={self.max_df!r} allows. "
                f"{'Change min_df or max_df.' if clause is None else no_spaces}"
            )
        if (clause := self._first_clause(words, X.sum(axis=0), _LONGEST_MEAN)) is not None:
            warn(f"Without spaces clauses are counted as words, such as {shown(clause)}. {_COUNT_CHARACTERS}")
        self._set_dictionary({word: j for j, word in enumerate(words[keep])}, frozenset(words[too_frequent]))
        selected = X[:, keep]
        if self.unknown is not None:
            outside = X[:, ~keep & ~too_frequent].sum(axis=1)
            outside = np.minimum(outside, 1) if self.binary else outside
            selected = sp.hstack([selected, sp.csr_array(outside[:, None].astype(X.dtype))], format="csr")
        return selected

    def _set_dictionary(self, vocabulary: dict[Hashable, int], too_frequent: frozenset[Hashable]) -> None:
        """Set `vocabulary_`, the reserved word as the last column, and `too_frequent_`, the words to drop."""
        if self.unknown is not None:
            if self.unknown in vocabulary:
                raise ValueError(f"vocabulary has the reserved word {self.unknown!r}; leave it out, or set unknown=.")
            vocabulary = {**vocabulary, self.unknown: len(vocabulary)}
        self.vocabulary_, self.too_frequent_ = vocabulary, too_frequent

    def _count(self, raw_documents: Iterable[str]) -> sp.csr_array:
        """Return the (N, V) counts of the words of documents under the dictionary."""
        missing: list[int] = []
        return _add_empty_rows(super().transform(self._documents(raw_documents, missing)), missing)

    def _first_clause(self, words: np.ndarray, count: np.ndarray, longest_mean: float) -> str | None:
        """Return the first word in a script without spaces, or None where the words (V,) are not clauses.

        They are if they are found by `token_pattern`, and if half of all words, which occur `count` (V,) times, are in
        such a script and have a mean length above `longest_mean`.
        """
        if self.analyzer != "word" or self.tokenizer is not None:
            return None
        chosen = np.flatnonzero([bool(_WITHOUT_SPACES.search(word)) for word in words])
        length = np.array([len(word) / (word.count(" ") + 1) for word in words[chosen]])
        if 2 * count[chosen].sum() < count.sum() or not count[chosen] @ length > longest_mean * count[chosen].sum():
            return None
        return str(words[chosen[0]])

    def _documents(self, raw_documents: Iterable[object], missing: list[int]) -> Iterator[object]:
        """Yield the documents that are present, and append the positions of the others to `missing`.

        Raises TypeError for one that is not a string, unless a function of the user takes it.
        """
        if isinstance(raw_documents, str | bytes):
            raise ValueError("raw_documents is one string; pass a list of documents, [text] for a single one.")
        if isinstance(raw_documents, Mapping) or getattr(raw_documents, "ndim", 1) > 1:
            raise ValueError(f"raw_documents is a {type(raw_documents).__name__}; pass documents, such as one column.")
        takes_anything = any(map(callable, (self.preprocessor, self.tokenizer, self.analyzer)))
        for i, document in enumerate(raw_documents):
            if not isinstance(document, str) and is_missing(document):
                missing.append(i)
                continue
            if not takes_anything and not isinstance(document, str):
                kind = type(document).__name__
                raise TypeError(f"raw_documents[{i}] is {document!r}, a {kind}; it must be a string.")
            yield document

    def __sklearn_is_fitted__(self) -> bool:
        return "too_frequent_" in vars(self)


def _add_empty_rows(X: sp.csr_matrix, rows: list[int]) -> sp.csr_array:
    """Return a sparse matrix as a csr_array with rows of zeros, which become those at the positions `rows`."""
    X = sp.csr_array(X)
    if not rows:
        return X
    positions = np.asarray(rows) - np.arange(len(rows))
    ends = np.insert(X.indptr, positions, X.indptr[positions])
    return sp.csr_array((X.data, X.indices, ends), shape=(X.shape[0] + len(rows), X.shape[1]))


def _number_words(words: object) -> dict[Hashable, int]:
    """Return the columns of the words of a user's dictionary; raise ValueError where `CountVectorizer` refuses it."""
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise bad_argument("vocabulary", words, "a list or set of words, or a dict {word: column}")
    counter = CountVectorizer(vocabulary=sorted(words) if isinstance(words, Set) else words)
    counter.get_feature_names_out()  # The dictionary is checked when the names are asked for.
    return counter.vocabulary_


def _to_json(name: str, value: Any) -> object:
    """Return an option as JSON has it: a dtype by name, a tuple as a list; raise ValueError for a function."""
    if name == "dtype":
        return np.dtype(value).name
    if callable(value):
        problem = f"{value!r} is a function, which cannot be written to a file"
        raise ValueError(f"{name}: {problem}. Save the counts that transform returns instead.")
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value


__all__ = ["BagOfWords"]
