"""Files of `BagOfWords`: round trips, and refusal of damaged and forged files."""

import hashlib
import json
import os
import re
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.persistence import PATTERNS
from bayesnb.text import BagOfWords
from tests.raises import refused
from tests.test_text import DOCUMENTS, same


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
        ({"words": "cash"}, "'words' is of the wrong type"),
        ({"version": 99}, "has version 99; this bayesnb reads version 1"),
        ({"format": "other"}, "was not written by bayesnb.text.BagOfWords.save"),
    ):
        path.write_text(json.dumps({**content, **change}))
        refused(message, BagOfWords.load, path)
    path.write_text(json.dumps({k: v for k, v in content.items() if k != "words"}))
    refused("'words' is missing", BagOfWords.load, path)
    for other in ("[1, 2]", "3"):
        path.write_text(other)
        refused("was not written by bayesnb.text.BagOfWords.save", BagOfWords.load, path)
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
        ({"options": {"token_pattern": "(a+)+!"}}, r"token_pattern='\(a\+\)\+!', a pattern that may run endlessly"),
        ({"options": {"token_pattern": ["a"]}}, "token_pattern="),
        ({"options": {"dtype": "f8," * 10**5}}, "dtype="),
        ({"options": {"ngram_range": [1, 10**9]}}, "ngram_range="),
        ({"options": {"stop_words": [i * (2**61 - 1) for i in range(10)]}}, "stop_words="),
        ({"options": {"analyzer": "lines"}}, "analyzer="),
        ({"options": {"unknown": 1}}, "unknown="),
        ({"options": {"more": 1}}, r"options: \['more'\] are missing or unknown"),
        ({"words": [i * (2**61 - 1) for i in range(30_000)]}, "vocabulary: 0 is not a word"),
        ({"words": ["a", "a", "<UNK>"]}, "has a word twice"),
        ({"words": ["a", "b"]}, "it must be the reserved word '<UNK>'"),
        ({"words": []}, "is empty"),
        ({"too_frequent": [{}]}, "is not a word"),
        ({"unknown_count": -1}, "unknown_count_=-1"),
        ({"words": [[]] * 2**19}, "lists and objects in"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_forged_files_of_words(change, message, tmp_path):
    """Each file has a valid checksum."""
    path = tmp_path / "words.json"
    BagOfWords().fit(DOCUMENTS).save(path)
    path.write_text(forged(json.loads(path.read_text()), dict(change)))
    refused(message, BagOfWords.load, path, error=bnb.CorruptModelError)


def test_a_pattern_is_read_where_it_is_passed_too(tmp_path):
    path, pattern = tmp_path / "words.json", r"[a-z]+(?:-[a-z]+)*"
    bag = BagOfWords(token_pattern=pattern).fit(DOCUMENTS)
    bag.save(path)
    refused("call BagOfWords.load", BagOfWords.load, path, error=bnb.CorruptModelError)
    refused(r"the argument is '\\\\w\+'", BagOfWords.load, path, token_pattern=r"\w+", error=bnb.CorruptModelError)
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
        refused("not a regular file", BagOfWords.load, path, error=bnb.CorruptModelError)
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
