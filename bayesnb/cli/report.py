"""What came out, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from bayesnb.cli import readable, weights
from bayesnb.cli.job import Outcome
from bayesnb.cli.tables import KINDS, NUMBERS, Dataset
from bayesnb.cli.text import WIDTH, enumerate_names, fill, grid

GUIDE = (
    "Estimates: mle is maximum likelihood, map the mode of the posterior density, mean the posterior mean plugged "
    "in; predictive integrates the parameters out, as do rows named alpha=, under that prior. weighted is "
    "predictive with weights of features, as these depend on each other. Estimates that agree are one row.",
    "Scores are means over rows that the fit did not see. brier leads: 0 is best, equal probabilities of C "
    "classes give 1 - 1/C. log loss (nats) is inf where a true class got probability zero: an impossible row; "
    "clipped takes such probabilities for 1e-15. Undefined rows have no probabilities: brier, clipped and ece "
    "count 1/C for each class. ece: gap between stated confidence and observed accuracy.",
    "Log evidence: log probability of all rows, parameters integrated out. It compares priors on the same rows; "
    "priors of numbers take their scale from these rows, so it is evidence given that prior.",
    "sd and interval say what the rows leave unknown about a parameter if naive Bayes holds. They shrink as rows "
    "come, also where the model is wrong, and are not the probability that a prediction is right: accuracy and "
    "ece on held-out rows speak of that.",
)


def describe(outcome: Outcome, prob: float) -> str:
    """All that is printed for one data set."""
    data = outcome.data
    parts = [
        f"{'─' * WIDTH}\n{fill(f'{data.name}: {summary(outcome)}', rest='  ')}\n",
        _columns(data),
        fill(f"Scores ({outcome.fits.said}); log evidence of all {data.n_rows:,} rows:"),
        grid(readable.scores(outcome.comparison)),
        "",
    ]
    if outcome.weighted is not None:
        parts += [fill(weights.sentence(outcome.weighted.nb)), ""]
    if outcome.uncertain is not None:
        parts += [
            fill(f"The most uncertain parameters, fitted to all {data.n_rows:,} rows ({_unit(data)}):"),
            grid(readable.parameters(outcome.uncertain, data, prob)),
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
    classes = [f"{label} {n:,}" for label, n in counts]
    features = f"{len(data.kinds)} feature{'s' * (len(data.kinds) != 1)}"
    return (
        f"{type(outcome.fits.nb).__name__} on {data.n_rows:,} rows, {features}, {len(classes)} classes "
        f"({enumerate_names(classes, 6)}); {data.about}"
    )


def columns(data: Dataset) -> Iterator[tuple[str, str]]:
    """Kinds of columns, each with the names of its own; then the columns left out, and why."""
    for kind in KINDS:
        names = [_with_levels(name, data) for name, k in data.kinds.items() if k == kind]
        if names:
            yield kind, enumerate_names(names, 40)
    for name, why in data.left_out.items():
        yield "left out", f"{name}: {why}"


def _columns(data: Dataset) -> str:
    how = ", as guessed; --categorical, --gaussian, … and --drop override" if data.guessed else ""
    lines = [fill(names, f"  {kind:<12} ", " " * 15) for kind, names in columns(data)]
    return "\n".join([f"Columns{how}:", *lines]) + "\n"


def _with_levels(name: str, data: Dataset) -> str:
    return f"{name} ({len(data.levels[name])})" if data.kinds[name] == "categorical" else name


def _unit(data: Dataset) -> str:
    """By what they were ranked."""
    kinds = set(data.kinds.values())
    located = {kind for kind, family in NUMBERS.items() if family.location}
    units = ["by the sd of a probability"] if kinds - located else []
    for kind in (kind for kind in KINDS if kind in kinds & located):
        family = NUMBERS[kind]
        name = family.words.parameters.get(family.location, family.location)
        units.append(f"by the sd of a {name} in units of {family.words.spread}")
    return ", ".join(units) + "; variances not ranked" * ("gaussian" in kinds)
