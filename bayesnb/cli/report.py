"""Report of a comparison as a document: a short one that is printed, and a full one with all analyses for a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from bayesnb.cli.analyses import DPI, Analysis, summarize_weights
from bayesnb.cli.command import Command
from bayesnb.cli.comparison import Outcome
from bayesnb.cli.conclusion import STRONG, Conclusion, Findings, conclude
from bayesnb.cli.document import Block, Bullets, Code, Entries, Figure, Paragraph, Section, Table, fill_template
from bayesnb.cli.fitting import Settings
from bayesnb.cli.formatting import format_parameters, format_scores
from bayesnb.cli.labelled_data import NUMBERS, Dataset
from bayesnb.cli.terminal import enumerate_names
from bayesnb.estimators.defaults import ALPHA, CLASS_ALPHA
from bayesnb.estimators.mixed import KINDS
from bayesnb.version import __version__

_LONG = 300


def overview(outcome: Outcome, settings: Settings) -> Section:
    """Summary, columns, scores, verdict, weights and most uncertain parameters of one data set."""
    data, conclusion = outcome.data, _conclude(outcome, settings, {})
    n_rows = f"{data.n_rows:,} rows"
    guessed = ", as guessed; --categorical, --gaussian, … and --drop override" * data.guessed
    verdict = Paragraph(f"{conclusion.verdict} {conclusion.confidence[0]}")
    sections = [
        Section(f"Columns{guessed}", (Entries(tuple(_describe_columns(data))),)),
        Section(
            f"Scores ({outcome.fits.description}); log evidence of all {n_rows}",
            (Table.from_frame(format_scores(outcome.comparison)),),
        ),
        Section("Conclusion", (verdict,)),
    ]
    if outcome.weighted is not None:
        summary = Paragraph(summarize_weights(outcome.weighted.nb))
        sections.append(Section("How much the evidence of each feature counts", (summary,)))
    if outcome.uncertain is not None:
        table = Table.from_frame(format_parameters(outcome.uncertain, data.kinds, settings.prob))
        title = f"The most uncertain parameters, fitted to all {n_rows} ({_ranking(data)})"
        sections.append(Section(title, (table,)))
    return Section(f"{data.name}: {summarize(outcome)}", tuple(_notes(outcome)), tuple(sections))


def full_report(
    outcomes: Sequence[Outcome],
    analyses: Sequence[Mapping[str, Analysis]],
    settings: Settings,
    command: Command,
) -> Section:
    """Document with conclusions and all analyses of each data set, and how to read them."""
    chapters = map(partial(_chapter, settings=settings, command=command), outcomes, analyses)
    run = Paragraph(f"bayesnb {__version__}, run on {command.day} (UTC), seed {settings.seed}:", "run")
    return enclose([*chapters, guide()], (run, Code(command.typed)))


def enclose(sections: Sequence[Section], blocks: tuple[Block, ...] = ()) -> Section:
    """Document with these sections."""
    return Section("Naive Bayes: maximum likelihood beside the Bayesian estimates", blocks, tuple(sections))


def guide() -> Section:
    """Section on how to read the numbers."""
    topics = ("estimates", "scores", "log_evidence", "intervals")
    return Section("How to read this", tuple(Paragraph(fill_template("explanations.txt", topic)) for topic in topics))


def summarize(outcome: Outcome) -> str:
    """Target, classifier, numbers of rows, features and classes, and origin of the rows."""
    data = outcome.data
    counts = sorted(sorted(data.class_count.items()), key=lambda item: -item[1])
    # Labels with blanks are quoted, or one could not tell where they end.
    classes = [f"{f'“{label}”' if ' ' in str(label) else label} {n:,}" for label, n in counts]
    features = f"{len(data.kinds)} feature{'s' * (len(data.kinds) != 1)}"
    return (
        f"{data.target} by {type(outcome.fits.nb).__name__} on {data.n_rows:,} rows, {features}, "
        f"{len(classes)} classes ({enumerate_names(classes, 6)}); {data.about}"
    )


def file_stem(data_set: str, analysis: str) -> str:
    """Name of the files of an analysis, without the suffix."""
    stem = re.sub(r"[^\w.-]+", "_", data_set) or "table"
    return f"{stem}-{analysis}"


def _chapter(outcome: Outcome, analyses: Mapping[str, Analysis], settings: Settings, command: Command) -> Section:
    data, conclusion = outcome.data, _conclude(outcome, settings, analyses)
    next_steps: list[Block] = []
    for step in conclusion.steps:
        next_steps += Paragraph(step.why), Code(step.code or command.again(step.flags))
    if not next_steps:
        next_steps.append(Paragraph("These numbers ask for no other model."))
    if any(step.code for step in conclusion.steps):
        next_steps.append(Paragraph(conclusion.about))
    verdict = Paragraph(conclusion.verdict, "verdict")
    confidence = Paragraph(" ".join(conclusion.confidence))
    sections = [
        Section("Conclusion", (verdict, confidence, Bullets(conclusion.details)), role="box"),
        Section("What to try next", tuple(next_steps), role="box"),
        Section("Columns", (Entries(tuple(_describe_columns(data))),), role="fold"),
        *(Section(title, tuple(_blocks(data.name, title, analysis))) for title, analysis in analyses.items()),
    ]
    return Section(data.name, (Paragraph(f"{summarize(outcome)}."), *_notes(outcome)), tuple(sections))


def _blocks(data_set: str, title: str, analysis: Analysis) -> Iterator[Block]:
    yield Paragraph(analysis.explanation, "explanation")
    if analysis.figure is not None:
        width = round(int.from_bytes(analysis.png[16:20]) * 96 / DPI)
        yield Figure(f"{file_stem(data_set, analysis.name)}.png", title, analysis.png, width)
    if analysis.shown is not None:
        yield Table.from_frame(analysis.shown)


def _notes(outcome: Outcome) -> Iterator[Paragraph]:
    return (Paragraph(note, "note") for note in outcome.notes)


def _conclude(outcome: Outcome, settings: Settings, analyses: Mapping[str, Analysis]) -> Conclusion:
    """Conclusion from the scores, and from the analyses of the prior's strength and of pairs if they were made."""
    data, fits = outcome.data, outcome.fits
    tables = {analysis.name: analysis.table for analysis in analyses.values()}
    sensitivity, pairs, n = tables.get("sensitivity"), tables.get("pairs"), len(data.kinds)
    n_pairs = n * (n - 1) // 2
    strong = None if pairs is None else int((pairs["log_bayes_factor"] > STRONG).sum())
    return conclude(
        Findings(
            outcome.comparison,
            sum(len(fold.y) for fold in fits.folds),
            len(fits.folds),
            outcome.base,
            _expression(outcome, settings),
            data.kinds,
            weights=settings.weights != "none",
            density_open=outcome.density_open and settings.numbers == "gaussian",
            moved=None if sensitivity is None else (int(sensitivity["label_changes"].sum()), len(sensitivity)),
            dependent=None if strong is None else (strong, n_pairs),
            more=pairs is not None and strong == len(pairs) < n_pairs,
            weighting=outcome.weighting,
            target=data.target,
            left_out=tuple(data.left_out),
        )
    )


def _expression(outcome: Outcome, settings: Settings) -> str:
    """The classifier in Python; a `MixedNB` lists its columns unless the list is long."""
    nb, kinds = outcome.fits.nb, outcome.data.kinds
    name, known = type(nb).__name__, nb.get_params(deep=False)
    arguments: dict[str, Any] = {}
    if name == "MixedNB":
        arguments = {kind: [column for column, k in kinds.items() if k == kind] for kind in KINDS}
        arguments = {kind: columns for kind, columns in arguments.items() if columns}
        if sum(map(len, map(repr, arguments.values()))) > _LONG:
            arguments = {"numbers": settings.numbers if "binned" in kinds.values() else "gaussian"}
    arguments |= {"alpha": settings.alpha} if settings.alpha != ALPHA and "alpha" in known else {}
    arguments |= {"class_alpha": settings.class_alpha} if settings.class_alpha != CLASS_ALPHA else {}
    return f"bayesnb.{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _describe_columns(data: Dataset) -> Iterator[tuple[str, str]]:
    """Kinds, each with its columns and their numbers of levels and missing cells; then columns left out."""
    for kind in KINDS:
        names = []
        for name in (name for name, k in data.kinds.items() if k == kind):
            remarks = [f"{len(data.levels[name])} levels"] if kind == "categorical" else []
            remarks += [f"{data.missing[name]:,} missing"] if name in data.missing else []
            names.append(f"{name} ({', '.join(remarks)})" if remarks else name)
        if names:
            yield kind, enumerate_names(names, 40)
    for name, reason in data.left_out.items():
        yield "left out", f"{name}: {reason}"


def _ranking(data: Dataset) -> str:
    """Quantities by which the parameters are ranked."""
    kinds = set(data.kinds.values())
    units = ["by the sd of a probability"]  # Classes have probabilities, whatever the columns are.
    for kind, family in NUMBERS.items():
        if kind in kinds and family.location:
            name = family.words.parameters.get(family.location, family.location)
            units.append(f"by the sd of a {name} in units of {family.words.spread}")
    return ", ".join(units) + "; variances not ranked" * ("gaussian" in kinds)
