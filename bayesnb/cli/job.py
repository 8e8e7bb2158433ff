"""The main job: fit naive Bayes, score its estimates on held-out rows, read its posterior."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb import datasets
from bayesnb.cli.tables import KINDS, Dataset, InputError
from bayesnb.cli.text import enumerate_names
from bayesnb.estimators import BernoulliNB, CategoricalNB, GaussianNB, MixedNB, MultinomialNB, PoissonNB
from bayesnb.evaluation import compare_folds
from bayesnb.uncertainty import CLASS, ImproperPosteriorError, parameter_table

if TYPE_CHECKING:
    import pandas as pd

_FOLDS = 5
_FEW_ROWS = 200
_DIRICHLET = ("categorical", "bernoulli", "multinomial")


@dataclass(frozen=True)
class Settings:
    """What the flags say; `test_size` None lets the number of rows decide how rows are held out."""

    test_size: float | None = None
    seed: int = 0
    alpha: float = 1.0
    class_alpha: float = 1.0
    prob: float = 0.9
    mixed: bool = False


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out for one data set.

    Parameters
    ----------
    nb : fitted classifier
        Of all rows.
    comparison : DataFrame
        One row an estimate, see `bayesnb.evaluation.compare_estimates`.
    parameters : DataFrame or None
        See `bayesnb.uncertainty.parameter_table`; None where the posterior is improper.
    uncertain : DataFrame or None
        The most uncertain of them.
    folds : list of (train, test)
        Indices of rows: those that were fitted, and those held out.
    held_out : str
        How rows were held out.
    notes : list of str
    """

    data: Dataset
    nb: Any
    comparison: pd.DataFrame
    parameters: pd.DataFrame | None
    uncertain: pd.DataFrame | None
    folds: Sequence[tuple[np.ndarray, np.ndarray]]
    held_out: str
    notes: Sequence[str]


def embedded() -> list[Dataset]:
    """The data sets of a run without a file."""
    from sklearn.datasets import load_breast_cancer

    cancer, melon = load_breast_cancer(as_frame=True), datasets.load_watermelon()
    melon_kinds = {name: "gaussian" if melon.data[name].dtype == float else "categorical" for name in melon.data}
    return [
        Dataset(
            "breast_cancer",
            cancer.data,
            cancer.target_names[cancer.target],
            dict.fromkeys(cancer.data, "gaussian"),
            about="scikit-learn's copy of the Wisconsin diagnostic data",
        ),
        Dataset(
            "watermelon",
            melon.data,
            melon.target.to_numpy(),
            melon_kinds,
            about="Zhou Zhihua, Machine Learning (2016), table 4.3",
        ),
    ]


def run(data: Dataset, settings: Settings) -> Outcome:
    """Compare the estimates on held-out rows and tabulate the parameters.

    Raises
    ------
    InputError
        If the classifier cannot use the data.
    """
    folds, held_out = split(data.y, settings)
    try:
        nb = classifier(data, settings)
        comparison = compare_folds(nb, data.X, data.y, folds, _priors(data, settings), progress=data.name)
        nb.fit(data.X, data.y)
    except (ValueError, TypeError) as error:
        raise InputError(f"{data.name}: {' '.join(str(error).split())}") from None
    notes = [*_together(data.notes), *_rare_classes(data.y)]
    parameters = uncertain = None
    try:
        parameters = parameter_table(nb, settings.prob)
        uncertain = most_uncertain(parameters, data)
    except ImproperPosteriorError as error:
        notes.append(f"No parameter table. {error}")
    return Outcome(data, nb, comparison, parameters, uncertain, folds, held_out, notes)


def classifier(data: Dataset, settings: Settings) -> Any:
    """The classifier for the kinds of columns: of one kind its own, else `MixedNB`."""
    columns = {kind: [name for name, k in data.kinds.items() if k == kind] for kind in KINDS}
    used = [kind for kind in KINDS if columns[kind]]
    levels = {name: data.X[name].dropna().unique().tolist() for name in columns["categorical"]}
    common: dict[str, Any] = {"class_alpha": settings.class_alpha}
    if len(used) == 1 and used[0] in ("gaussian", "poisson") and not settings.mixed:
        return {"gaussian": GaussianNB, "poisson": PoissonNB}[used[0]](**common)
    common |= {"alpha": settings.alpha}
    if len(used) == 1 and used[0] in ("bernoulli", "multinomial") and not settings.mixed:
        return {"bernoulli": BernoulliNB, "multinomial": MultinomialNB}[used[0]](**common)
    common |= {"categories": levels or "auto"}
    if used == ["categorical"] and not settings.mixed:
        return CategoricalNB(**common)
    common |= columns
    return MixedNB(**common)


def split(y: np.ndarray, settings: Settings) -> tuple[list[tuple[np.ndarray, np.ndarray]], str]:
    """Stratified (train, test) indices, and how to say what was done.

    Few rows are cross-validated; of many a share is held out once. A class keeps at least one row to learn
    from, so the only row of a class is never held out.
    """
    rng = np.random.default_rng(settings.seed)
    groups = [rng.permutation(np.flatnonzero(y == c)) for c in dict.fromkeys(y.tolist())]
    if settings.test_size is None and len(y) < _FEW_ROWS:
        order = np.concatenate([g for g in groups if len(g) > 1] or [np.zeros(0, np.intp)])
        parts = [order[i::_FOLDS] for i in range(min(_FOLDS, len(order)))]
        said = f"stratified {len(parts)}-fold cross-validation, each row scored once by a fit without it"
    else:
        share = 0.3 if settings.test_size is None else settings.test_size
        parts = [np.concatenate([g[: min(round(share * len(g)), len(g) - 1)] for g in groups])]
        said = f"{len(parts[0]):,} rows held out, stratified; fitted to the other {len(y) - len(parts[0]):,}"
    if not sum(map(len, parts)):
        raise InputError("No row can be held out: every class needs two rows or more, or a larger --test-size.")
    return [(np.setdiff1d(np.arange(len(y)), test), np.sort(test)) for test in parts], said


def most_uncertain(parameters: pd.DataFrame, data: Dataset, n: int = 8) -> pd.DataFrame:
    """Rows of a parameter table with the largest posterior sd.

    That of a probability as it is, that of a mean in units of the feature's sd over all rows, that of a
    rate in units of the root of the feature's mean. Variances are not ranked. At most one row a class and
    feature, since the levels of a feature share their uncertainty; of the class probabilities one.
    """
    spread = {name: data.X[name].std(ddof=0) for name, kind in data.kinds.items() if kind == "gaussian"}
    spread |= {name: data.X[name].mean() ** 0.5 for name, kind in data.kinds.items() if kind == "poisson"}
    kind = parameters["feature"].map(data.kinds).where(parameters["feature"] != CLASS)
    ranked = parameters[(kind != "gaussian") | (parameters["level"] != "sigma2")]
    unit = ranked["feature"].map(spread).where(ranked["feature"] != CLASS).fillna(1.0)
    relative = (ranked["sd"] / unit.replace(0.0, 1.0)).astype(float)
    of = np.where(ranked["feature"] == CLASS, "", ranked["class"].astype(str))
    ranked = ranked.assign(relative=relative, of=of).sort_values("relative", ascending=False, kind="stable")
    return ranked.drop_duplicates(["of", "feature"]).head(n).drop(columns=["of", "relative"])


def check_folder(folder: Path) -> None:
    """Make the folder for the tables, before anything is computed.

    Raises
    ------
    InputError
        If it cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"--out {folder}: {error.strerror or error}.") from None


def _priors(data: Dataset, settings: Settings) -> Mapping[str, float]:
    """Laplace's and Jeffreys's concentrations, where there is one to choose."""
    if not any(kind in _DIRICHLET for kind in data.kinds.values()):
        return {}
    return {f"alpha={a:g}": a for a in (1.0, 0.5) if a != settings.alpha}


def _together(notes: Mapping[str, str]) -> list[str]:
    """A line for each note, with the columns that it is about."""
    about: dict[str, list[str]] = {}
    for column, note in notes.items():
        about.setdefault(note, []).append(column)
    return [f"{enumerate_names(columns, 8)}: {note}" for note, columns in about.items()]


def _rare_classes(y: np.ndarray) -> list[str]:
    labels, counts = np.unique(y, return_counts=True)
    return [f"class {label} has one row, which is never held out" for label in labels[counts == 1].tolist()]
