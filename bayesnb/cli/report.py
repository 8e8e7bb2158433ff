"""What came out, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bayesnb.cli import readable, weights
from bayesnb.cli.analysis import Section
from bayesnb.cli.conclusion import STRONG, Conclusion, conclude
from bayesnb.cli.findings import Findings
from bayesnb.cli.holdout import Settings
from bayesnb.cli.job import Outcome
from bayesnb.cli.tables import KINDS, NUMBERS, Dataset
from bayesnb.cli.text import WIDTH, enumerate_names, fill, grid
from bayesnb.estimators.defaults import ALPHA, CLASS_ALPHA

_ROOM = 40  # columns of text for the names in a parameter
_LONG = 300

GUIDE = (
    "Estimates: mle is maximum likelihood, map the mode of the posterior density, mean the posterior mean plugged "
    "in; predictive integrates the parameters out, as do rows named alpha=, under that prior. weighted is "
    "predictive with weights of features, as these depend on each other. Estimates that agree are one row.",
    "Scores are means over rows that the fit did not see. brier leads: 0 is best, equal probabilities of C "
    "classes give 1 - 1/C. log loss (nats) is inf where a true class got probability zero: an impossible row; "
    "clipped takes probabilities below 1e-15 for 1e-15. Undefined rows have no probabilities: brier, clipped and ece "
    "count 1/C for each class. Such rows are counted where there are some. ece: gap between stated confidence and "
    "observed accuracy.",
    "Log evidence: log probability of all rows and labels, parameters integrated out. It compares priors on the same "
    "rows. Priors of numbers were set by these rows, those of gaussian columns by the labels too: it is the evidence "
    "given that prior.",
    "sd and interval say what the rows leave unknown about a parameter if naive Bayes holds. They shrink as rows "
    "come, also where the model is wrong, and are not the probability that a prediction is right: accuracy and "
    "ece on held-out rows speak of that.",
)


def conclusion(outcome: Outcome, settings: Settings, sections: Sequence[Section] = ()) -> Conclusion:
    """What came out, in sentences; what to try next knows more where the sections of the page were made."""
    data, fits = outcome.data, outcome.fits
    tables = {section.name: section.table for section in sections if section.table is not None}
    sensitivity, pairs, n = tables.get("sensitivity"), tables.get("pairs"), len(data.kinds)
    moved = None if sensitivity is None else (int(sensitivity["label_changes"].sum()), len(sensitivity))
    strong = None if pairs is None else (int((pairs["log_bayes_factor"] > STRONG).sum()), n * (n - 1) // 2)
    return conclude(
        Findings(
            outcome.comparison,
            sum(len(fold.y) for fold in fits.folds),
            len(fits.folds),
            outcome.base,
            _expression(outcome, settings),
            data.kinds,
            settings.weights != "none",
            outcome.density_open and settings.numbers == "gaussian",
            moved,
            strong,
            strong is not None and pairs is not None and strong[0] == len(pairs) < strong[1],
            outcome.weighting,
            data.target,
            tuple(data.left_out),
        )
    )


def _expression(outcome: Outcome, settings: Settings) -> str:
    """The classifier in Python; the columns of a `MixedNB` where they are few, else as it guesses them."""
    nb, kinds = outcome.fits.nb, outcome.data.kinds
    name, known = type(nb).__name__, nb.get_params(deep=False)
    given: dict[str, Any] = {}
    if name == "MixedNB":
        given |= {
            kind: [column for column, k in kinds.items() if k == kind] for kind in KINDS if kind in kinds.values()
        }
        if sum(map(len, map(repr, given.values()))) > _LONG:
            given = {"numbers": settings.numbers if "binned" in kinds.values() else "gaussian"}
    given |= {"alpha": settings.alpha} if settings.alpha != ALPHA and "alpha" in known else {}
    given |= {"class_alpha": settings.class_alpha} if settings.class_alpha != CLASS_ALPHA else {}
    return f"bayesnb.{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"


def describe(outcome: Outcome, settings: Settings) -> str:
    """All that is printed for one data set."""
    data, prob, come_to = outcome.data, settings.prob, conclusion(outcome, settings)
    parts = [
        f"{'─' * WIDTH}\n{fill(f'{data.name}: {summary(outcome)}', rest='  ')}\n",
        _columns(data),
        fill(f"Scores ({outcome.fits.said}); log evidence of all {data.n_rows:,} rows:"),
        grid(readable.scores(outcome.comparison)),
        "",
        fill(f"Conclusion: {come_to.verdict} {come_to.confidence[0]}"),
        "",
    ]
    if outcome.weighted is not None:
        parts += [fill(weights.sentence(outcome.weighted.nb)), ""]
    if outcome.uncertain is not None:
        parts += [
            fill(f"The most uncertain parameters, fitted to all {data.n_rows:,} rows ({_unit(data)}):"),
            grid(readable.parameters(outcome.uncertain, data.kinds, prob, _ROOM)),
            "",
        ]
    parts += [fill(f"note: {note}", rest="      ") for note in outcome.notes]
    return "\n".join(parts).rstrip() + "\n"


def guide() -> str:
    """What the numbers do and do not mean."""
    return "\n".join(["How to read this", *(fill(text, "  ") for text in GUIDE)])


def summary(outcome: Outcome) -> str:
    """What was fitted to what."""
    data = outcome.data
    counts = sorted(sorted(data.class_count.items()), key=lambda item: -item[1])
    # Quoted where one could not tell where a label ends.
    classes = [f"{f'“{label}”' if ' ' in str(label) else label} {n:,}" for label, n in counts]
    features = f"{len(data.kinds)} feature{'s' * (len(data.kinds) != 1)}"
    return (
        f"{data.target} by {type(outcome.fits.nb).__name__} on {data.n_rows:,} rows, {features}, "
        f"{len(classes)} classes ({enumerate_names(classes, 6)}); {data.about}"
    )


def columns(data: Dataset) -> Iterator[tuple[str, str]]:
    """Kinds of columns, each with the names of its own; then the columns left out, and why."""
    for kind in KINDS:
        names = [_with_numbers(name, data) for name, k in data.kinds.items() if k == kind]
        if names:
            yield kind, enumerate_names(names, 40)
    for name, why in data.left_out.items():
        yield "left out", f"{name}: {why}"


def _columns(data: Dataset) -> str:
    how = ", as guessed; --categorical, --gaussian, … and --drop override" if data.guessed else ""
    lines = [fill(names, f"  {kind:<12} ", " " * 15) for kind, names in columns(data)]
    return "\n".join([f"Columns{how}:", *lines]) + "\n"


def _with_numbers(name: str, data: Dataset) -> str:
    """The name of a column, with its numbers of levels and of missing cells."""
    levels = [f"{len(data.levels[name])} levels"] if data.kinds[name] == "categorical" else []
    missing = [f"{data.missing[name]:,} missing"] if name in data.missing else []
    return f"{name} ({', '.join([*levels, *missing])})" if levels or missing else name


def _unit(data: Dataset) -> str:
    """Say by what the parameters were ranked."""
    kinds = set(data.kinds.values())
    units = ["by the sd of a probability"]  # classes have some, whatever the columns are
    for kind in (kind for kind in KINDS if kind in kinds and kind in NUMBERS and NUMBERS[kind].location):
        family = NUMBERS[kind]
        name = family.words.parameters.get(family.location, family.location)
        units.append(f"by the sd of a {name} in units of {family.words.spread}")
    return ", ".join(units) + "; variances not ranked" * ("gaussian" in kinds)
