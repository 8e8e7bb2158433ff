"""Forged files whose numbers or names are extreme: loading raises a short message, or predictions are finite."""

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import bayesnb as bnb
from benchmarks.forged_files import of_type, parts, places, signed
from tests.persistence.models import LABELS, LEVELS, MODELS, NUMBERS, fitted
from tests.raises import refused

GREATEST, TINY = np.finfo(float).max, np.finfo(float).tiny
NUMBERS_OF_HOSTILE_FILES = [
    *(GREATEST, 1e308, 1e300, 1e200, 1e160, 1e154, 1e153, 1e100, 1e75),
    *(-1e308, -1e200, -1e100, -1.0, 0.0, 5e-324, 1e-310, TINY, 1e-200, 1e-155, 1e-100, np.nan, np.inf, -np.inf),
]
CLEAR, RED = "\x1b[2J", "\x1b[31m"
TEXTS = {
    "long": "x" * 100_000,
    "controls": f"{CLEAR}{RED}a\r\n\0\x07b",
    "direction": "\u202egpj.exe",
    "surrogate": "\ud800",
    "accents": "é" * 300,
    "quotes": "a'b\"c",
}
LONGEST = 1_200
# A rate at the mode of its posterior is 0 if there are almost no durations: such rows are impossible in each class.
QUICK = ["Gaussian", "Poisson", "mixed", "categorical"]
EVERY = [*QUICK, *sorted(set(MODELS) - {*QUICK, "improper", "exponential"})]


def saved(name: str, path) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """Rows to predict, and the tree and the arrays of the file of a model."""
    nb, X = fitted(name)
    bnb.save(nb, path)
    return X, *parts(path.read_bytes())


def load(content: bytes, path) -> Any:
    """The model of a forged file, or None if it is refused, for which the message must be short and printable."""
    path.write_bytes(content)
    try:
        return bnb.load(path)
    except bnb.CorruptModelError as error:
        message = str(error).removeprefix(str(path))
        assert len(message) < LONGEST, message[:300]
        assert message.isprintable(), ascii(message[:300])
        return None


def predictions(nb: Any, X: Any) -> np.ndarray:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return nb.predict_proba(X)


@pytest.mark.slow("thousands of forged files", but=QUICK[:2])
@pytest.mark.parametrize("name", EVERY)
def test_numbers(name, tmp_path):
    """Every array, as a whole and in one entry, with each of these numbers."""
    path, rng, loaded = tmp_path / "model", np.random.default_rng(0), 0
    X, tree, arrays = saved(name, path)
    for key, array in arrays.items():
        if array.dtype.kind != "f" or not array.size:
            continue
        for place in (..., np.unravel_index(rng.integers(array.size), array.shape)):
            for number in NUMBERS_OF_HOSTILE_FILES:
                changed = array.copy()
                changed[place] = number
                nb = load(signed(tree, arrays | {key: changed}), path)
                if nb is not None:
                    loaded += 1
                    assert np.isfinite(predictions(nb, X)).all(), f"array {key}, {place}: {number}"
    assert loaded > 0


@pytest.mark.slow("thousands of forged files", but=QUICK[:1])
@pytest.mark.parametrize("name", EVERY)
def test_texts(name, tmp_path):
    """Every name and every text of the tree, replaced by each of these texts."""
    path = tmp_path / "model"
    X, tree, arrays = saved(name, path)
    every = [i for i, (container, key) in enumerate(places(tree)) if isinstance(container[key], str)]
    for i in every[:: max(1, len(every) // 40)]:
        for text in TEXTS.values():
            for rename in (False, True):
                changed = copy.deepcopy(tree)
                container, key = places(changed)[i]
                if rename and isinstance(container, dict):
                    container[text] = container.pop(key)
                else:
                    container[key] = text
                nb = load(signed(changed, arrays), path)
                if nb is not None:
                    assert len(nb.classes_ if hasattr(nb, "classes_") else X)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("place", ["type", "kind", "parameter", "attribute", "field", "version", "time zone", "class"])
def test_where_messages_quote_the_file(place, text, tmp_path):
    path = tmp_path / "model"
    bnb.save(bnb.CategoricalNB().fit(LEVELS, LABELS), path)
    tree, arrays = parts(path.read_bytes())
    match place:
        case "type":
            tree["type"] = text
        case "kind":
            tree["parameters"]["alpha"] = of_type(text, value=1)
        case "parameter":
            tree["parameters"][text] = 1
        case "attribute":
            tree["fitted"][text] = 1
        case "field":
            tree["fitted"]["encoding_"][text] = 1
        case "version":
            tree = {"type": [text], "fitted": text}
        case "time zone":
            tree["parameters"]["missing_values"] = of_type("Timestamp", value=1, unit="ns", zone=text)
        case "class":
            tree["parameters"]["alpha"] = of_type("class", value=text)
    assert load(signed(tree, arrays), path) is None


@pytest.mark.parametrize("X", [[[1e154], [1e154], [0.0], [1.0]], [[1e154], [1e154], [-1e154], [-1e154]]])
def test_fit_refuses_what_load_refuses(X):
    """The squares of all rows overflow, but those of each class about its mean do not."""
    refused("too large", bnb.GaussianNB().fit, X, [0, 0, 1, 1])


def test_durations_are_bounded_and_right_up_to_the_bound():
    X = np.abs(NUMBERS) + 0.5
    refused("too large", bnb.ExponentialNB().fit, X * 1e307, LABELS)
    refused("too small", bnb.ExponentialNB().fit, X * 1e-310, LABELS)
    for scale in (1e73, 1e-73):
        expected = bnb.ExponentialNB().fit(X, LABELS).predict_proba(X)
        found = bnb.ExponentialNB().fit(X * scale, LABELS).predict_proba(X * scale)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
