"""Report: analyses of a table with their figures and files."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from bayesnb import plots
from bayesnb._util.kinds import KINDS
from bayesnb._util.warnings import warn
from bayesnb.analysis.dependence import check_independence
from bayesnb.analysis.predictive import prior_predictive, prior_sensitivity
from bayesnb.cli.comparison import STRONG, Outcome, conclude, decimals, describe_held_out, most_uncertain
from bayesnb.cli.document import (
    SUFFIXES,
    Block,
    Bullets,
    Code,
    Figure,
    Format,
    Paragraph,
    Section,
    Table,
    enumerate_names,
    file_stem,
    fill_template,
    render,
)
from bayesnb.cli.labelled_data import NUMBERS, Dataset, Fits
from bayesnb.cli.tables import quote_formula
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.evaluation import DIFFERENCES, WEIGHTED, reliability
from bayesnb.uncertainty import CLASS, dependence_ratio
from bayesnb.uncertainty.arviz import to_arviz
from bayesnb.version import __version__
from bayesnb.weights.terms import Weighed, weight_table

# == Tables for readers: the digits that matter, and parameters under names such as P(sky=sun | yes)


def format_columns(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Format the columns `names` of a frame as strings, under headings for readers.

    Probabilities and weights have three decimals, scores and entropies four, log evidences and log Bayes factors one,
    counts none; other cells are written by `str`. NaN is "-".
    """
    columns = {name: [_FORMATS.get(name, str)(cell) for cell in frame[name]] for name in names}
    return pd.DataFrame(columns).rename(columns=lambda name: _HEADINGS.get(name, name.replace("_", " ")))


def format_scores(comparison: pd.DataFrame) -> pd.DataFrame:
    """Format scores as strings, one row an estimate; counts that are all zero and absent evidences are dropped."""
    frame = comparison.reset_index()
    idle = {name for name in ("impossible_rows", "undefined_rows") if not frame[name].any()}
    idle |= {"log_evidence"} if frame["log_evidence"].isna().all() else set()
    return format_columns(frame, [name for name in _SCORES if name not in idle])


def format_differences(comparison: pd.DataFrame) -> pd.DataFrame:
    """Format paired differences from the first estimate as strings "mean ± se", one row an estimate."""
    columns = {}
    for score, heading in zip(DIFFERENCES, ("brier difference", "clipped difference"), strict=True):
        _, *pairs = comparison[[f"{score}_difference", f"{score}_difference_se"]].to_numpy()
        texts = (f"{mean:+.{decimals(se)}f} ± {number(f',.{decimals(se)}f')(se)}" for mean, se in pairs)
        columns[heading] = ["-", *texts]
    return pd.DataFrame(columns)


def format_parameters(table: pd.DataFrame, kinds: Mapping[str, str], prob: float) -> pd.DataFrame:
    """Rows of a parameter table as strings, each with the decimals that show two digits of its standard deviation.

    Parameters
    ----------
    table : DataFrame
        Rows of `bayesnb.uncertainty.parameter_table`.
    kinds : dict
        Kind of each feature.
    prob : float
        Probability of the intervals.
    """
    rows = []
    for row in table.to_dict("records"):
        write = number(f",.{decimals(row['sd'])}f")
        mle, mean, sd, lower, upper = (write(row[name]) for name in ("mle", "mean", "sd", "lower", "upper"))
        rows.append([_parameter_name(row, kinds), f"{row['count']:,.6g}", mle, mean, sd, f"[{lower}, {upper}]"])
    return pd.DataFrame(rows, columns=["parameter", "cells", "MLE", "mean", "sd", f"{100 * prob:g}% interval"])


def number(form: str) -> Callable[[float], str]:
    """Return a function that formats a number by the format `form`, and NaN as "-"."""
    return lambda value: "-" if math.isnan(value) else format(value, form)


def probability(value: float) -> str:
    """Format a probability with three decimals; values that would round to 0 or 1 become "<0.001" or ">0.999"."""
    return "<0.001" if value < 0.0005 else ">0.999" if value > 0.9995 else number(".3f")(value)


def p_value(smallest: float) -> Callable[[float], str]:
    """Return a function that formats p-values with three decimals; those at `smallest` become a bound "≤…"."""
    return lambda p: f"≤{smallest:.3f}" if p <= smallest * (1 + 1e-9) else number(".3f")(p)


def _parameter_name(row: Mapping[Hashable, Any], kinds: Mapping[str, str]) -> str:
    """Name a parameter for readers, such as P(sky=sun | yes), from its row of the parameter table."""
    feature, level, label = row["feature"], row["level"], row["class"]
    kind = kinds.get(feature)
    if feature == CLASS:
        return f"P({label})"
    if kind == "binned":
        return f"P({feature} in {level} | {label})"
    if kind in NUMBERS:
        return f"{NUMBERS[kind].words.parameters.get(level, level)}({feature} | {label})"
    return f"P({feature} | {label})" if kind == "multinomial" else f"P({feature}={level} | {label})"


_SCORES = ["estimate", "brier", "log_loss", "log_loss_clipped", "accuracy", "ece"]
_SCORES += ["impossible_rows", "undefined_rows", "log_evidence"]

_HEADINGS = {"log_loss_clipped": "clipped", "impossible_rows": "impossible", "undefined_rows": "undefined"}
_HEADINGS |= {"row": "row (from 0)", "truth": "true class", "probability": "P(prediction)", "total": "entropy"}
_HEADINGS |= {"term": "feature", "feature_1": "feature", "feature_2": "and feature", "p_top": "p_top"}
_HEADINGS |= {"log_bayes_factor": "log Bayes factor"}
_FORMATS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys((*_SCORES[1:6], "total", "aleatoric", "epistemic"), number(".4f")),
    **dict.fromkeys(("impossible_rows", "undefined_rows", "rows"), number(",d")),
    **dict.fromkeys(("log_evidence", "log_bayes_factor"), number(",.1f")),
    **dict.fromkeys(("weight", "mutual_information"), number(".3f")),
    **dict.fromkeys(("probability", "lower", "upper", "p_top"), probability),
    "label_changes": lambda changes: "yes" if changes else "no",
}


# == Analyses of a fitted data set for the report: explanation, table and figure of each ===========

DPI = 150
_PREDICTION = ("row", "truth", "prediction", "probability", "lower", "upper")
_ROWS_SHOWN = 12
_ROWS_DRAWN = 300
_RATIO_DRAWS = 400
_MANY_PAIRS = 2000
_PAIRS_LISTED = 200  # if there are more than _MANY_PAIRS
_MOST_PAIRS = 2_000_000  # More pairs take minutes.
_REPLICATES = 200  # behind a p-value
_STRENGTHS = (0.1, 10)
_SMALLEST = 0.001  # as probabilities are shown with three decimals
_explain = partial(fill_template, "explanations.txt")


@dataclass(frozen=True, eq=False)
class Analysis:
    """Result of one analysis.

    Parameters
    ----------
    explanation : str
        What the numbers mean, or why there are none.
    name : str
        Stem of the files.
    table : DataFrame or None
        Numbers as they are written to a file.
    shown : DataFrame or None
        Strings that the report shows of `table`.
    figure : matplotlib Figure or None
    """

    explanation: str
    name: str = ""
    table: pd.DataFrame | None = None
    shown: pd.DataFrame | None = None
    figure: Any = None

    @cached_property
    def png(self) -> bytes:
        """Figure as the bytes of a PNG image, drawn at the first use."""
        buffer = BytesIO()
        self.figure.savefig(buffer, format="png", dpi=DPI, bbox_inches="tight", facecolor="white")
        return buffer.getvalue()


def analyse(outcome: Outcome) -> dict[str, Analysis]:
    """Return the analyses of the report by title; one that the library refuses has the reason as its explanation."""
    intervals = f"{100 * outcome.settings.prob:g}% intervals"
    makers = {
        f"Scores ({outcome.fits.description})": _comparison,
        "Stated confidence and observed accuracy": _reliability,
        "Weights of the features": _weights,
        "Class probabilities before any data": _prior,
        f"Parameters that depend most on the prior, {intervals}": _parameters,
        "Sensitivity to the strength of the prior": _sensitivity,
        f"Most uncertain rows, {intervals}": _rows,
        "Dependence of features given the class": _pairs,
    }
    analyses = {}
    for title, make in makers.items():
        if make is not _weights or outcome.weighted is not None:
            # An analysis that the library refuses, as of an improper posterior, must not cost the other ones.
            try:
                analyses[title] = make(outcome)
            except (ValueError, NotImplementedError) as error:
                analyses[title] = Analysis(f"Not available. {error}")
    return analyses


def _comparison(outcome: Outcome) -> Analysis:
    """Return the table of held-out scores of each estimate, with differences from maximum likelihood."""
    scores = outcome.findings.comparison
    shown = format_scores(scores).join(format_differences(scores))
    return Analysis(_explain("comparison", outcome=outcome), "comparison", scores.reset_index(), shown)


def _reliability(outcome: Outcome) -> Analysis:
    """Return the reliability diagram of held-out rows, for the predictive estimate and for weights if there are any."""
    bins = _reliability_bins(outcome.fits)
    weighted = outcome.weighted and {"predictive": bins, "weighted": _reliability_bins(outcome.weighted)}
    figure = plots.reliability(weighted or bins)
    return Analysis(_explain("reliability", outcome=outcome), "reliability", figure=plots.detach(figure))


def _reliability_bins(fits: Fits[Any]) -> pd.DataFrame:
    """Tabulate stated confidence and observed accuracy of the held-out rows of all folds, bin by bin."""
    parts = [(fold.nb.predict_log_proba(fold.X), fold.y, fold.nb.predict(fold.X)) for fold in fits.folds]
    log_proba, truth, predicted = map(np.concatenate, zip(*parts, strict=True))
    return reliability(log_proba, truth, fits.nb.classes_, predicted=predicted)


def summarize_weights(nb: Weighed) -> str:
    """Write sentences on the fitted weights, and on the log loss to expect with and without them."""
    table, typical_count = weight_table(nb).sort_values("weight", kind="stable"), np.exp(nb.weights_.log_length)
    return _explain("weights_summary", fitted=nb.weights_, table=table, typical_count=typical_count)


def _weights(outcome: Outcome) -> Analysis:
    """Return the table and the figure of the weights of terms; a single temperature has an explanation only."""
    assert outcome.weighted is not None
    nb, half = outcome.weighted.nb, _ROWS_SHOWN // 2
    table = weight_table(nb, outcome.settings.prob)
    table = table.sort_values("weight", ascending=False, kind="stable", ignore_index=True)
    text = _explain("weights", nb=nb, summary=summarize_weights(cast(Weighed, nb)), table=table, most=_ROWS_SHOWN)
    if len(table) == 1:  # the temperature
        return Analysis(text, "weights")
    ends = table.drop(index=table.index[half:-half]) if len(table) > _ROWS_SHOWN else table
    shown = format_columns(ends, ["term", "weight"])
    return Analysis(text, "weights", table, shown, plots.detach(plots.weights(table)))


def _prior(outcome: Outcome) -> Analysis:
    """Return the figure of class probabilities that are drawn from the prior alone."""
    values, kinds = prior_predictive(outcome.fits.nb), set(outcome.data.kinds.values())
    facts = {"mean": probability(values.mean()), "kinds": kinds, "numbers": NUMBERS.keys() & kinds}
    figure = plots.detach(plots.prior_predictive(values))
    return Analysis(_explain("prior", values=values, **facts), "prior", figure=figure)


def _parameters(outcome: Outcome) -> Analysis:
    """Return the table of parameters, and the 12 with the largest |mean - MLE|/sd of at least 1 to show, with a figure.

    Class probabilities and bins are not ranked. There is no figure if no parameter can be ranked.
    """
    table, kinds, prob = outcome.parameters, outcome.data.kinds, outcome.settings.prob
    if table is None:
        return Analysis("Not available: there is no parameter table, for the reason given above.")
    # Neither class probabilities nor bins are ranked: densities of bins are averages, and those smooth.
    ranked = table[[kinds.get(feature, "binned") != "binned" for feature in table["feature"]]]
    moved = ((ranked["mean"] - ranked["mle"]) / ranked["sd"]).replace([np.inf, -np.inf], np.nan).dropna()
    large = moved[moved.abs() >= 1].sort_values(key=lambda sd: -sd.abs(), kind="stable")
    top = large[:_ROWS_SHOWN]
    text = _explain("parameters", outcome=outcome, n_ranked=len(moved), n_moved=len(large), n_shown=len(top))
    if moved.empty:
        return Analysis(text, "parameters", table)
    shown = format_parameters(table.loc[top.index], kinds, prob)
    shown["moved (sd)"] = [f"{sd:+.2f}" for sd in top]
    figure = plots.detach(plots.shrinkage(outcome.fits.nb, prob=prob))
    return Analysis(text, "parameters", table, None if shown.empty else shown, figure)


def _sensitivity(outcome: Outcome) -> Analysis:
    """Return the table of held-out rows under 0.1 to 10 times the prior's strength, widest ranges of P first.

    Rows to show are those whose label changes, or whose range of P is wider than 0.001 and than its posterior interval.
    """
    table = describe_held_out(outcome.fits, lambda fold: prior_sensitivity(fold.nb, fold.X, _STRENGTHS))
    width, interval = (t["upper"] - t["lower"] for t in (table, outcome.predictions))
    order = (-width).sort_values(kind="stable").index
    moved = (table["label_changes"] | (width > interval.clip(_SMALLEST))).loc[order]
    table = table.loc[order]
    large = table[moved].sort_values("label_changes", ascending=False, kind="stable")
    top, kinds = large[:_ROWS_SHOWN], set(outcome.data.kinds.values())
    facts = {"n_moved": len(large), "n_shown": len(top), "prob": f"{100 * outcome.settings.prob:g}%"}
    facts |= {"concentrations": kinds - NUMBERS.keys(), "numbers": kinds & NUMBERS.keys(), "strengths": _STRENGTHS}
    shown = None if top.empty else format_columns(top, [*_PREDICTION, "label_changes"])
    return Analysis(_explain("sensitivity", outcome=outcome, table=table, **facts), "sensitivity", table, shown)


def _rows(outcome: Outcome) -> Analysis:
    """Return the table of held-out predictions with intervals and entropies, the most uncertain rows first."""
    table, first = outcome.predictions.sort_values("epistemic", ascending=False, kind="stable"), outcome.fits.folds[0]
    drawn = slice(None, None, -(-len(first.y) // _ROWS_DRAWN))
    figure = plots.prediction_intervals(first.nb, first.X[drawn], first.y[drawn], prob=outcome.settings.prob)
    shown = format_columns(table[:_ROWS_SHOWN], [*_PREDICTION, "total", "aleatoric", "epistemic", "p_top"])
    text = _explain("rows", outcome=outcome, table=table, shown=shown, n_drawn=len(first.y[drawn]))
    return Analysis(text, "rows", table, shown, plots.detach(figure))


def _pairs(outcome: Outcome) -> Analysis:
    """Return the table of pairs of features with log Bayes factors of dependence given the class, and a figure.

    Of more than 2,000 pairs the table has the 200 with the largest factors. Raises ValueError for more than 2 million.
    """
    fits, rows, n = outcome.fits, outcome.data.rows, len(outcome.data.kinds)
    n_pairs = n * (n - 1) // 2
    if n_pairs > _MOST_PAIRS:
        some = "bayesnb.check_independence(nb, X, y, features=[...]) compares some of them"
        raise ValueError(f"{n:,} features make {n_pairs:,} pairs, which would take too long. In Python, {some}.")
    top = _PAIRS_LISTED if n_pairs > _MANY_PAIRS else None
    table = check_independence(fits.nb, rows.X, rows.y, top=top, draws=_REPLICATES)
    ratio = None
    if len(rows.y) == outcome.data.n_rows:  # Otherwise some rows that were counted are not in memory.
        drawn = rows.X[:: -(-len(rows.y) // _ROWS_DRAWN)]
        ratio = np.nanmedian(dependence_ratio(fits.nb, drawn, rows=(rows.X, rows.y), draws=_RATIO_DRAWS))
    facts = {"n_pairs": n_pairs, "threshold": STRONG, "replicates": _REPLICATES, "ratio": ratio}
    text = _explain("pairs", outcome=outcome, table=table, **facts)
    names = ["feature_1", "feature_2", "rows", "log_bayes_factor", "mutual_information"]
    shown = format_columns(table[:_ROWS_SHOWN], names)
    shown["p"] = table["p_value"][:_ROWS_SHOWN].map(p_value(1 / (_REPLICATES + 1)))
    return Analysis(text, "pairs", table, shown, plots.detach(plots.independence(table)))


# == Report of a comparison as a document: a short one that is printed, and a full one with all analyses for a file

_RANKING = "ranked by the sd of a probability"
_OF_NUMBERS = ", or of a mean or rate in units of its feature; variances are not ranked"


def overview(outcome: Outcome) -> Section:
    """Return the short report of one data set: columns, scores, verdict, weights, most uncertain parameters."""
    data, conclusion = outcome.data, conclude(outcome.findings)
    n_rows = f"{data.n_rows:,} rows"
    guessed = " (guessed; change them with --categorical, --gaussian, … and --drop)" * data.guessed
    scores = Table.from_frame(format_scores(outcome.findings.comparison))
    sections = [
        _decision(outcome),
        Section(f"Columns{guessed}", (_columns(data),)),
        Section(f"Scores ({outcome.fits.description}); log evidence of all {n_rows}", (scores,)),
        Section("Conclusion", (Paragraph(f"{conclusion.verdict} {conclusion.confidence[0]}"),)),
    ]
    if outcome.weighted is not None:
        sections.append(
            Section("Weights of the features", (Paragraph(summarize_weights(cast(Weighed, outcome.weighted.nb))),))
        )
    if outcome.parameters is not None:
        uncertain = most_uncertain(outcome.parameters, outcome.fits.nb, data.kinds)
        table = Table.from_frame(format_parameters(uncertain, data.kinds, outcome.settings.prob))
        has_locations = any(kind in NUMBERS and NUMBERS[kind].location for kind in data.kinds.values())
        title = f"Most uncertain parameters, fitted to all {n_rows} ({_RANKING}{_OF_NUMBERS * has_locations})"
        sections.append(Section(title, (table,)))
    return Section(f"{data.name}: {_summarize(outcome)}", _notes(outcome), tuple(sections))


def chapter(outcome: Outcome, analyses: Mapping[str, Analysis]) -> Section:
    """Return the section of one data set in the full report: conclusion, next steps, columns, analyses.

    The conclusion rests on scores, and on sensitivity to the prior and pairs of features if these were analysed.
    """
    data, findings, n = outcome.data, outcome.findings, len(outcome.data.kinds)
    tables = {analysis.name: analysis.table for analysis in analyses.values()}
    if (sensitivity := tables.get("sensitivity")) is not None:
        findings = replace(findings, moved=(int(sensitivity["label_changes"].sum()), len(sensitivity)))
    if (pairs := tables.get("pairs")) is not None:
        strong = int((pairs["log_bayes_factor"] > STRONG).sum())
        findings = replace(findings, dependent=(strong, n * (n - 1) // 2))
    conclusion = conclude(findings)
    next_steps: list[Block] = [block for step in conclusion.steps for block in (Paragraph(step.why), Code(step.code))]
    next_steps.append(Paragraph(conclusion.about if next_steps else "These results do not suggest another model."))
    verdict, confidence = Paragraph(conclusion.verdict, "verdict"), Paragraph(" ".join(conclusion.confidence))
    sections = [
        replace(_decision(outcome), role="box"),
        Section("Conclusion", (verdict, confidence, Bullets(conclusion.details)), role="box"),
        Section("What to try next", tuple(next_steps), role="box"),
        Section("Columns", (_columns(data),), role="fold"),
        *(Section(title, tuple(_analysis_blocks(data.name, title, analysis))) for title, analysis in analyses.items()),
    ]
    return Section(data.name, (Paragraph(f"{_summarize(outcome)}."), *_notes(outcome)), tuple(sections))


def full_report(chapters: Sequence[Section], seed: int, typed: Sequence[str]) -> Section:
    """Return the document with the chapters of all data sets; `typed` are the arguments of the command."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")  # seconds, for reports that can be reproduced
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
    run = Paragraph(f"bayesnb {__version__}, run on {now.date()} (UTC), seed {seed}:", "run")
    return enclose(chapters, (run, Code(shlex.join(["python", "-m", "bayesnb", *typed]))))


def enclose(sections: Sequence[Section], blocks: tuple[Block, ...] = ()) -> Section:
    """Return the document that has the report's title, these blocks, these sections, and the guide."""
    title = "Naive Bayes: maximum likelihood and the Bayesian estimates"
    return Section(title, blocks, (*sections, guide()))


def guide() -> Section:
    """Return the section on how to read estimates, scores, log evidence and intervals."""
    topics = ("estimates", "scores", "log_evidence", "intervals")
    return Section("How to read this report", tuple(Paragraph(fill_template("explanations.txt", t)) for t in topics))


def _summarize(outcome: Outcome) -> str:
    """Describe one data set in a sentence: target, classifier, numbers of rows, features and classes, and origin."""
    data = outcome.data
    counts = sorted(sorted(data.class_count.items()), key=lambda item: -item[1])
    # Labels with blanks are quoted, or one could not tell where they end.
    classes = [f"{f'“{label}”' if ' ' in str(label) else label}: {n:,}" for label, n in counts]
    features = f"{len(data.kinds)} feature{'s' * (len(data.kinds) != 1)}"
    size = f"{data.n_rows:,} rows, {features}, {len(classes)} classes ({enumerate_names(classes, 6)})"
    return f"{data.target} by {type(outcome.fits.nb).__name__} on {size}; {data.about}"


def _decision(outcome: Outcome) -> Section:
    """Return the section on the rates of the classes, and on how many rows of a class are found."""
    return outcome.held_out.section(WEIGHTED if outcome.weighted is not None else outcome.findings.predictive)


def _analysis_blocks(data_set: str, title: str, analysis: Analysis) -> Iterator[Block]:
    """Yield the blocks of one analysis: its explanation, and its figure and table if there are any."""
    yield Paragraph(analysis.explanation, "explanation")
    if analysis.figure is not None:
        width = round(int.from_bytes(analysis.png[16:20]) * 96 / DPI)
        yield Figure(f"{file_stem(data_set, analysis.name)}.png", title, analysis.png, width)
    if analysis.shown is not None:
        yield Table.from_frame(analysis.shown)


def _notes(outcome: Outcome) -> tuple[Paragraph, ...]:
    """Return the notes of one data set as paragraphs."""
    return tuple(Paragraph(note, "note") for note in outcome.notes)


def _columns(data: Dataset) -> Bullets:
    """Return a line for each kind with its columns, levels and missing cells, then one for each column left out."""
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name, kind in data.kinds.items():
        remarks = [f"{len(data.levels[name])} levels"] if kind == "categorical" else []
        remarks += [f"{data.missing[name]:,} missing"] if name in data.missing else []
        names[kind].append(f"{name} ({', '.join(remarks)})" if remarks else name)
    lines = [f"{kind}: {enumerate_names(columns, 40)}" for kind, columns in names.items() if columns]
    return Bullets((*lines, *(f"left out: {name}, {reason}" for name, reason in data.left_out.items())))


# == Files of `--out`: tables, figures, the posterior and the report ===============================

_CHAINS, _DRAWS = 4, 500
_MORE = "For more draws, fit the classifier in Python, and call bayesnb.to_arviz(nb, draws=...)."
_HEADERS = 2**20
_PARAMETERS = 20_000
_DRAWN_NUMBERS = 2**22
"""Greatest number of drawn parameters in a file, of the prior and of the posterior: 34 MB."""


def write_files(outcomes: Sequence[Outcome], typed: Sequence[str], to: Format, folder: Path) -> None:
    """Write tables, figures, posteriors and the report into a folder; `typed` are the arguments of the command.

    Notes of the report, which are also issued as warnings, say where draws of a posterior are few or not written.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    chapters = []
    for outcome in outcomes:
        analyses = analyse(outcome)
        for analysis in analyses.values():
            path = folder / file_stem(outcome.data.name, analysis.name)
            if analysis.table is not None:
                quote_formulas(analysis.table).to_csv(f"{path}.csv", index=False)
            if analysis.figure is not None:
                Path(f"{path}.png").write_bytes(analysis.png)
        if outcome.parameters is not None:
            path = folder / f"{file_stem(outcome.data.name, 'posterior')}.nc"
            if note := write_posterior(outcome.fits.nb, len(outcome.parameters), path):
                warn(note)
                outcome = replace(outcome, notes=[*outcome.notes, note])
        chapters.append(chapter(outcome, analyses))
    report = render(full_report(chapters, outcomes[0].settings.seed, typed), to)
    (folder / f"report{SUFFIXES[to]}").write_text(f"{report}\n", encoding="utf-8")


def write_posterior(nb: NaiveBayesClassifier, n_parameters: int, path: Path) -> str | None:
    """Write draws of the parameters to a NetCDF file; return a note if draws are fewer than 2,000, or not written.

    Prior and posterior together have at most 2^22 drawn numbers, which take 34 MB. A model of more than 20,000
    parameters would have fewer than 100 draws, and is not written.
    """
    if n_parameters > _PARAMETERS:
        return f"Draws of {n_parameters:,} parameters are too large for a file: {path.name} is not written. {_MORE}"
    draws = min(_DRAWS, _DRAWN_NUMBERS // (2 * _CHAINS * n_parameters))
    posterior: Any = to_arviz(nb, draws=draws, chains=_CHAINS)
    # HDF5 does not survive a full disk: what it could not write it tries again when Python ends, and crashes.
    path.write_bytes(bytes(_HEADERS + int(1.05 * sum(group.nbytes for group in posterior.values()))))
    posterior.to_netcdf(str(path))
    if draws == _DRAWS:
        return None
    many = f"{_CHAINS * draws:,} draws of each of {n_parameters:,} parameters, in place of {_CHAINS * _DRAWS:,}"
    return f"{path.name} has {many}, to stay below 40 MB. {_MORE}"


def quote_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before each name and text that a spreadsheet would compute; numbers stay as they are."""
    return table.map(quote_formula).rename(columns=quote_formula)
