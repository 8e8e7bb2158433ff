"""Documents to counts of words, with a reserved word for those that are not in the dictionary."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import require_integer
from bayesnb._util.warnings import warn
from bayesnb.persistence.words import read_words, write_words

_INTEGER = (int, np.integer)
_TOKENISING = (
    "strip_accents",
    "lowercase",
    "preprocessor",
    "tokenizer",
    "stop_words",
    "token_pattern",
    "ngram_range",
    "analyzer",
    "binary",
    "dtype",
)


class BagOfWords(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """scikit-learn's `CountVectorizer` with a trained word for the unknown.

    `fit` makes the dictionary, and nothing adds to it later. A word outside it counts as the reserved word `<UNK>`, in
    training as in `transform`: so a rare word of the training documents teaches what a rare word says of the class,
    and a new one is read accordingly.

    Parameters
    ----------
    unknown : str or None, default "<UNK>"
        Name of the reserved word, the last column. None drops words outside the dictionary: `CountVectorizer`.
    binary : bool, default False
        Presence in place of counts; the reserved word is present where any word outside the dictionary is.
    min_df : int or float, default 2
        Words in fewer documents (of a float: than this share) are outside the dictionary.
    max_df : int or float, default 1.0
        Words in more documents are dropped, as stop words are; they do not count as unknown.
    max_features : int, optional
        Only so many of the most frequent words; the others are outside the dictionary.
    vocabulary : list, set or dict {word: column}, optional
        The dictionary, given. `fit` then learns how often the reserved word occurs, and `min_df`, `max_df` and
        `max_features` are not used.
    strip_accents, lowercase, preprocessor, tokenizer, stop_words, token_pattern, ngram_range, analyzer, dtype
        As for `CountVectorizer`. Of n-grams, each that is not in the dictionary is an unknown word.

    Attributes
    ----------
    vocabulary_ : dict {word: column}
        With the reserved word.
    too_frequent_ : frozenset
        Words dropped for `max_df`.
    unknown_count_ : int
        Times that the reserved word occurred in the documents of `fit`; with `binary` in how many documents.

    Notes
    -----
    **Why trained.** A reserved word that never occurred in training (`min_df=1`, every word in the dictionary) has the
    prior's count in each class and nothing else. Under `MultinomialNB` with concentration α its probability is
    α/(n_c + α V), n_c words in class c: each unknown word multiplies the odds of the class with *fewer words in
    training* by (n_1 + α V)/(n_0 + α V), for no reason but that this class was seen less. On the SMS Spam
    Collection that is (62,965 + 8,714)/(17,487 + 8,714) = 2.7 a word in favour of spam. `transform` warns of it. Under
    `min_df=2` the words that occur in one document only train the reserved word, and its probability is estimated as
    any other's; see `examples/spam_filter.py`.

    A document that is empty, or in which no word is in the dictionary and `unknown` is None, is a row of zeros.

    Examples
    --------
    >>> from bayesnb.text import BagOfWords
    >>> words = BagOfWords().fit(["win cash now", "cash now", "see you"])
    >>> words.get_feature_names_out().tolist()
    ['cash', 'now', '<UNK>']
    >>> words.transform(["cash for you"]).toarray()
    array([[1, 0, 2]])
    >>> BagOfWords().fit_transform(["win cash now", "cash now"]).toarray().tolist()  # of the same texts
    [[1, 1, 1], [1, 1, 0]]
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     words.save(file.name)
    ...     BagOfWords.load(file.name).transform(["cash for you"]).toarray()
    array([[1, 0, 2]])
    """

    def __init__(
        self,
        *,
        unknown: str | None = "<UNK>",
        binary: bool = False,
        min_df: float = 2,
        max_df: float = 1.0,
        max_features: int | None = None,
        vocabulary: Any = None,
        strip_accents: Any = None,
        lowercase: bool = True,
        preprocessor: Callable | None = None,
        tokenizer: Callable | None = None,
        stop_words: Any = None,
        token_pattern: str | None = r"(?u)\b\w\w+\b",
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: Any = "word",
        dtype: Any = np.int64,
    ) -> None:
        self.unknown = unknown
        self.binary = binary
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.vocabulary = vocabulary
        self.strip_accents = strip_accents
        self.lowercase = lowercase
        self.preprocessor = preprocessor
        self.tokenizer = tokenizer
        self.stop_words = stop_words
        self.token_pattern = token_pattern
        self.ngram_range = ngram_range
        self.analyzer = analyzer
        self.dtype = dtype

    def fit(self, raw_documents: Iterable[str], y: Any = None) -> Self:
        """Make the dictionary, in one pass over any iterable of documents.

        Raises
        ------
        TypeError
            If a document is not a string, naming its position.
        ValueError
            If no word is left for the dictionary; if `raw_documents` is a string or a table.
        """
        self.fit_transform(raw_documents)
        return self

    def fit_transform(self, raw_documents: Iterable[str], y: Any = None) -> sp.csr_array:
        """As `fit`, and return the documents as `transform` would, in the same pass."""
        if self.unknown is not None and not isinstance(self.unknown, str):
            raise ValueError(f"unknown={self.unknown!r} must be the name of the reserved word, or None for none.")
        if self.vocabulary is None:
            vocabulary, too_frequent, X = self._learn(raw_documents)
        else:
            vocabulary, too_frequent = self._with_unknown(_as_vocabulary(self.vocabulary)), frozenset[Hashable]()
            X = self._count(raw_documents, vocabulary, too_frequent)
        self.vocabulary_ = vocabulary
        self.too_frequent_ = too_frequent
        self.unknown_count_ = 0 if self.unknown is None else int(X[:, [-1]].sum())
        return X

    def transform(self, raw_documents: Iterable[str]) -> sp.csr_array:
        """Count the words of each document.

        Returns
        -------
        (N, V) csr_array

        Warns
        -----
        UserWarning
            If words are unknown and no document of `fit` had an unknown one: see Notes of the class.
        """
        check_is_fitted(self)
        X = self._count(raw_documents, self.vocabulary_, self.too_frequent_)
        if self.unknown is not None and self.unknown_count_ == 0 and (found := int(X[:, [-1]].sum())):
            warn(
                f"{found} word{'s are' if found > 1 else ' is'} not in the dictionary, and {self.unknown!r} never "
                "occurred in training: a classifier knows nothing of it but the prior, and each such word favours the "
                "class with fewer words in training. Fit with min_df=2, so that rare words train it, or drop unknown "
                "words with unknown=None."
            )
        return X

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """(V,) words, in the order of the columns; the reserved word last."""
        check_is_fitted(self)
        return np.array(sorted(self.vocabulary_, key=self.vocabulary_.__getitem__), dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write options and dictionary as one JSON file; what was there is replaced once all is written.

        Raises
        ------
        ValueError
            If an option, such as a function, or a word that is no string cannot be written. Nothing is written.
        OSError
            If the file cannot be written; the old one is as it was.
        """
        check_is_fitted(self)
        options = {**self.get_params(deep=False), "vocabulary": None if self.vocabulary is None else "given"}
        words = {
            "options": {name: _writable(name, value) for name, value in options.items()},
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
        token_pattern : str, optional
            The `token_pattern` that was saved. Needed unless that was the default or another common one (`\w+`, `\S+`
            and the like, with `\b` or without), as a file may not choose a pattern that takes minutes on a short text.

        Raises
        ------
        CorruptModelError
            If the file is damaged, is no regular file or none of `save`; if its `token_pattern` is another one.
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

    def _learn(self, raw_documents: Iterable[str]) -> tuple[dict[Hashable, int], frozenset[Hashable], sp.csr_array]:
        """Dictionary, words that are too frequent for it, and the documents under it."""
        for name in ("min_df", "max_df"):
            _check_frequency(name, getattr(self, name))
        limit = self.max_features
        if limit is not None:
            require_integer("max_features", limit)
        every = self._vectorizer()
        X = sp.csr_array(every.fit_transform(self._checked(raw_documents)))
        words = every.get_feature_names_out()
        frequency = np.bincount(X.indices, minlength=len(words))
        least, most = (v if isinstance(v, _INTEGER) else v * X.shape[0] for v in (self.min_df, self.max_df))
        if most < least:
            raise ValueError(f"max_df={self.max_df!r} is fewer documents than min_df={self.min_df!r}.")
        keep = (frequency >= least) & (frequency <= most)
        if limit is not None and keep.sum() > limit:
            count = X.sum(axis=0)
            keep[np.flatnonzero(keep)[np.argsort(-count[keep])[limit:]]] = False
        reserved = words == self.unknown
        too_frequent, keep = (frequency > most) & ~reserved, keep & ~reserved
        if not keep.any():
            raise ValueError(
                f"No word is left for the dictionary: of {len(words)} words in {X.shape[0]} documents none is in at "
                f"least min_df={self.min_df!r} and at most max_df={self.max_df!r} of them. Change these."
            )
        vocabulary = self._with_unknown({word: j for j, word in enumerate(words[keep])})
        selected = X[:, keep]
        if self.unknown is not None:
            outside = X[:, ~keep & ~too_frequent].sum(axis=1)
            if self.binary:
                outside = np.minimum(outside, 1)
            selected = sp.hstack([selected, sp.csr_array(outside[:, None].astype(X.dtype))], format="csr")
        return vocabulary, frozenset(words[too_frequent]), selected

    def _count(
        self, raw_documents: Iterable[str], vocabulary: dict[Hashable, int], too_frequent: frozenset[Hashable]
    ) -> sp.csr_array:
        analyze, unknown = self._vectorizer().build_analyzer(), self.unknown

        def with_unknown(document: str) -> list[Hashable]:
            words = (word for word in analyze(document) if word not in too_frequent)
            return [word if word in vocabulary else unknown for word in words]

        counter = CountVectorizer(
            analyzer=analyze if unknown is None else with_unknown,
            vocabulary=vocabulary,
            binary=self.binary,
            dtype=self.dtype,
        )
        return sp.csr_array(counter.transform(self._checked(raw_documents)))

    def _vectorizer(self) -> CountVectorizer:
        """That counts every word."""
        return CountVectorizer(**{name: getattr(self, name) for name in _TOKENISING})

    def _with_unknown(self, vocabulary: dict[Hashable, int]) -> dict[Hashable, int]:
        if self.unknown is None:
            return vocabulary
        if self.unknown in vocabulary:
            raise ValueError(f"vocabulary has the reserved word {self.unknown!r}; leave it out, or rename `unknown`.")
        return {**vocabulary, self.unknown: len(vocabulary)}

    def _checked(self, raw_documents: Iterable[str]) -> Iterator[str]:
        """The documents one by one; a user's own functions may take other things than strings."""
        if isinstance(raw_documents, str | bytes):
            raise ValueError("raw_documents is one string; pass a list of documents, [text] for a single one.")
        if (
            isinstance(raw_documents, Mapping)
            or hasattr(raw_documents, "columns")
            or getattr(raw_documents, "ndim", 1) > 1
        ):
            raise ValueError(
                f"raw_documents is a {type(raw_documents).__name__}; pass an iterable of documents, such as one column."
            )
        own = any(callable(f) for f in (self.preprocessor, self.tokenizer, self.analyzer))
        return _strings(raw_documents, own)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _strings(documents: Iterable[Any], anything: bool) -> Iterator[Any]:
    for i, document in enumerate(documents):
        if not anything and not isinstance(document, str):
            raise TypeError(f"raw_documents[{i}] is {document!r}, a {type(document).__name__}; it must be a string.")
        yield document


def _check_frequency(name: str, value: Any) -> None:
    number = isinstance(value, (*_INTEGER, float, np.floating)) and not isinstance(value, bool)
    if not number or not (value >= 1 if isinstance(value, _INTEGER) else 0 <= value <= 1):
        raise ValueError(
            f"{name}={value!r} must be a number of documents, an integer of at least 1, or a share of them, a float in "
            "[0, 1]."
        )


def _as_vocabulary(words: Any) -> dict[Hashable, int]:
    """Words to columns; of a set in sorted order, as `CountVectorizer` takes it."""
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise ValueError(f"vocabulary={words!r} must be a list or set of words, or a dict {{word: column}}.")
    if isinstance(words, Mapping):
        columns = {word: int(column) for word, column in words.items()}
        if sorted(columns.values()) != list(range(len(columns))):
            raise ValueError(f"vocabulary: the columns of its {len(columns)} words must be 0, …, {len(columns) - 1}.")
    else:
        listed = sorted(words) if isinstance(words, set | frozenset) else list(words)
        columns = {word: j for j, word in enumerate(listed)}
        if len(columns) < len(listed):
            twice = next(word for j, word in enumerate(listed) if columns[word] != j)
            raise ValueError(f"vocabulary has the word {twice!r} twice.")
    if not columns:
        raise ValueError("vocabulary is empty.")
    return columns


def _writable(name: str, value: Any) -> Any:
    """The value as JSON has it."""
    if name == "dtype":
        return np.dtype(value).name
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple) and all(isinstance(v, str | int) for v in value):
        return list(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(
        f"{name}: {value!r} cannot be written to a file. Functions and objects would need pickle; save what they make "
        "of the documents, or leave them out."
    )


__all__ = ["BagOfWords"]
