"""Report of a comparison as a document: a short one that is printed, and a full one with all analyses for a file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bayesnb._util.kinds import KINDS
from bayesnb.cli.analyses import DPI, Analysis, summarize_weights
from bayesnb.cli.comparison import Outcome, most_uncertain
from bayesnb.cli.conclusion import STRONG, conclude
from bayesnb.cli.document import Block, Bullets, Code, Figure, Paragraph, Section, Table, fill_template
from bayesnb.cli.formatting import format_parameters, format_scores
from bayesnb.cli.labelled_data import NUMBERS, Dataset
from bayesnb.cli.output_folder import file_stem
from bayesnb.cli.terminal import enumerate_names
from bayesnb.evaluation import WEIGHTED
from bayesnb.version import __version__

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
        sections.append(Section("Weights of the features", (Paragraph(summarize_weights(outcome.weighted.nb)),)))
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
