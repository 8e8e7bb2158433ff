"""Output of the command line after interrupts, write errors and earlier runs."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

import bayesnb as bnb
from bayesnb import CategoricalNB
from bayesnb.__main__ import main
from bayesnb.cli import comparison, report
from bayesnb.cli.document import Bullets, Figure, InputError, Paragraph, Section, Table, filled, render, require_free
from tests.cli.test_compare import refused_run, run, weather
from tests.cli.test_tables import customers


def standing_in(**contents):
    """Writes these files in place of the analysis, which takes its time; an exception is raised in its turn."""

    def write(outcomes, typed, to, draft):
        for name, content in contents.items():
            if isinstance(content, BaseException):
                raise content
            (draft / name.replace("_", ".")).write_text(content)

    return write


def listing(path):
    """Every file below, and its content."""
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None for p in sorted(path.rglob("*"))}


FULL = OSError(errno.ENOSPC, "No space left on device")
ENDS = {
    "full disk": (FULL, 2, "--out {out} cannot be written: No space left on device."),
    "Ctrl-C": (KeyboardInterrupt(), 130, "interrupted."),
}


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.parametrize("before", [False, True], ids=["new folder", "folder of an earlier run"])
@pytest.mark.parametrize(("error", "expected", "message"), ENDS.values(), ids=ENDS)
def test_what_cannot_be_finished_leaves_nothing(capsys, monkeypatch, table, tmp_path, error, expected, message, before):
    out = tmp_path / "new" / "folder"
    if before:
        out.mkdir(parents=True)
        (out / "report.html").write_text("the earlier one")
    there = listing(tmp_path)
    monkeypatch.setattr(report, "write_files", standing_in(report_html="half of it", posterior_nc=error))
    flags = ["--csv", table, "--target", "play", "--out", out, "--overwrite"]
    code, _, err = run(capsys, "compare", *flags)
    assert (code, err) == (expected, f"bayesnb: {'error: ' * (expected == 2)}{message.format(out=out)}\n")
    assert listing(tmp_path) == there


def raising(*_):
    raise KeyboardInterrupt


@pytest.fixture
def heeded():
    """A process in the background of a shell ignores Ctrl-C from its beginning."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded")
def test_ctrl_c_while_it_computes(capsys, monkeypatch, table, tmp_path):
    monkeypatch.setattr(comparison, "run", raising)
    out = tmp_path / "new"
    code, _, err = run(capsys, "compare", "--csv", table, "--target", "play", "--out", out)
    assert (code, err) == (130, "bayesnb: interrupted.\n")
    assert not out.exists()


@pytest.mark.slow("starts processes that import JAX")
@pytest.mark.parametrize("flags", [["compare"], ["compare", "--help"], ["--version"], []])
@pytest.mark.parametrize("kind", ["closed pipe", "full"])
def test_an_output_that_takes_nothing(capsys, monkeypatch, table, tmp_path, kind, flags):
    if kind == "full" and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full, which this system does not have")
    flags = [*flags, "--csv", table, "--target", "play", "--out", tmp_path / "new"] if flags == ["compare"] else flags
    if kind == "full":
        output = open("/dev/full", "w")  # noqa: SIM115
        expected = (1, "bayesnb: error: cannot write to standard output: No space left on device.\n")
    else:
        reader, writer = os.pipe()
        os.close(reader)
        output = os.fdopen(writer, "w")
        expected = (141, "")
    with output:
        monkeypatch.setattr(sys, "stdout", output)
        code = main([str(flag) for flag in flags])
        monkeypatch.undo()
    # Closing it has not failed either: what could not be written is forgotten.
    assert (code, capsys.readouterr().err) == expected
    assert not (tmp_path / "new").exists()


@pytest.mark.slow("runs the command several times")
def test_files_of_an_earlier_run_are_named_before_they_are_replaced(capsys, monkeypatch, table, tmp_path):
    out = tmp_path / "out"
    flags = ["compare", "--csv", table, "--target", "play", "--out", out]
    first = {"weather-comparison_csv": "1", "weather-posterior_nc": "1", "report_html": "1"}
    monkeypatch.setattr(report, "write_files", standing_in(**first))
    assert run(capsys, *flags)[0] == 0
    (out / "notes.txt").write_text("mine")
    there = listing(out)
    monkeypatch.setattr(comparison, "run", lambda *_: pytest.fail("it computes although it cannot write"))
    err = refused_run(capsys, "already has report.html, weather-posterior.nc, weather-comparison.csv", *flags)
    assert "--overwrite" in err
    assert listing(out) == there
    monkeypatch.undo()
    monkeypatch.setattr(report, "write_files", standing_in(**{"weather-comparison_csv": "2", "report_html": "2"}))
    code, printed, _ = run(capsys, *flags, "--overwrite")
    assert code == 0
    assert f"wrote {out / 'report.html'}\n" in printed
    # The second run had no posterior: that of the first is not to be taken for its own.
    assert listing(out) == {"notes.txt": b"mine", "report.html": b"2", "weather-comparison.csv": b"2"}


def test_formulas_are_quoted_in_tables():
    formulas = ["=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1"]
    formulas += ["-inf", "-nan", "+Infinity", "-1_000", "-１", "\n-1", "-", "-.", "+e5", "--1"]
    texts = ["a=b", "'x", "", "é", "-0.5", "-3.2", "+2", "-1e5", "+.5", "-7.", "-1E-3"]
    level = pd.Series([*formulas, *texts, -3, -3.2, -np.inf, None], dtype=object)
    frame = pd.DataFrame({"level": level, "mean": -np.arange(float(len(level)))})
    shown = report.quote_formulas(frame)
    assert shown["level"].tolist()[: len(formulas)] == [f"'{text}" for text in formulas]
    pd.testing.assert_frame_equal(shown[len(formulas) :], frame[len(formulas) :])
    names = pd.DataFrame([[1, 2.0]], columns=["=1+1", "-3.2"])
    assert list(report.quote_formulas(names).columns) == ["'=1+1", "-3.2"]


def draws_of(path):
    """Shape of the class probabilities in a NetCDF file, as h5py reads it: chains, draws, classes."""
    with h5py.File(path) as file:
        return file["posterior"]["class_prob"].shape


@pytest.mark.slow("draws thousands of parameters")
def test_draws_are_few_where_parameters_are_many(tmp_path, monkeypatch):
    path, nb = tmp_path / "posterior.nc", CategoricalNB().fit([["a"], ["b"], ["a"]], [0, 1, 1])
    assert report.write_posterior(nb, 6, path) is None
    assert draws_of(path) == (4, 500, 2)
    monkeypatch.setattr(report, "_DRAWN_NUMBERS", 2 * 6 * 4 * 30)
    assert report.write_posterior(nb, 6, path).startswith("posterior.nc has 120 draws of each of 6 parameters")
    assert draws_of(path) == (4, 30, 2)
    path.unlink()
    assert "posterior.nc is not written" in report.write_posterior(nb, 20_001, path)
    assert not path.exists()


@pytest.mark.slow("draws four million numbers")
def test_the_file_of_a_posterior_of_many_parameters_is_small(tmp_path):
    """Two near-unique columns of 2,400 rows would make a file of 300 MB."""
    rng, n, path = np.random.default_rng(0), 2_400, tmp_path / "near-posterior.nc"
    X = pd.DataFrame({"id": [f"u{i}" for i in range(n)], "mail": [f"m{i}@x" for i in rng.permutation(n)]})
    nb = CategoricalNB().fit(X, rng.choice(["no", "yes"], n))
    n_parameters = 2 * 2 * n + 2
    note = report.write_posterior(nb, n_parameters, path)
    assert path.stat().st_size < 40e6
    chains, draws, _ = draws_of(path)
    assert chains * draws >= 100
    assert re.search(
        rf"^near-posterior.nc has {chains * draws} draws of each of 9,602 parameters, in place of 2,000", note
    )


@pytest.mark.slow("a second view of what quick tests see")
def test_a_report_says_that_draws_are_few(capsys, monkeypatch, table, tmp_path):
    monkeypatch.setattr(report, "_DRAWN_NUMBERS", 2**14)
    flags = ["--weights", "none", "--out", tmp_path / "out", "--format", "text"]
    code, printed, _ = run(capsys, "compare", "--csv", table, "--target", "play", *flags)
    draws = draws_of(tmp_path / "out" / "weather-posterior.nc")[1]
    assert code == 0
    for text in (printed, (tmp_path / "out" / "report.txt").read_text()):
        assert f"weather-posterior.nc has {4 * draws} draws of each of" in " ".join(text.split())


def test_names_are_text_on_the_page():
    section = Section("a", (Paragraph("<script>\x1b&\u202e"), Table(("<b>",), (("&",),)), Bullets(("<i>",))))
    page = render(Section("<h>", sections=(section,)), "html")
    assert '<p class="text">&lt;script&gt;\\x1b&amp;\\u202e</p>' in page
    assert not re.search("<b>|<i>|<h>|&[^lag#]|[\x1b\u202e]", page)


def test_a_document_as_json():
    table = Table(("estimate", "brier"), (("mle\u202e", "0.30"),))
    section = Section(
        "Scores", (Paragraph("Lower is better.", "note"), table, Figure("a.png", "A", b"", 3)), role="box"
    )
    text = render(Section("Report", sections=(section,)), "json")
    assert text.isascii()  # no character of a name is obeyed by a terminal
    (plain,) = json.loads(text)["sections"]
    assert plain["blocks"] == [
        {"type": "paragraph", "text": "Lower is better.", "role": "note"},
        {"type": "table", "header": ["estimate", "brier"], "rows": [["mle\u202e", "0.30"]]},
        {"type": "figure", "file": "a.png", "title": "A", "width": 3},
    ]
    assert {name: plain[name] for name in ("type", "title", "role")} == {
        "type": "section",
        "title": "Scores",
        "role": "box",
    }


def test_a_report_as_json_is_all_that_is_printed(capsys, table):
    code, printed, _ = run(
        capsys, "compare", "--csv", table, "--target", "play", "--weights", "none", "--format", "json"
    )
    assert code == 0
    weather, guide = json.loads(printed)["sections"]
    assert (weather["title"][:8], guide["title"]) == ("weather:", "How to read this report")
    (scores,) = (block for s in weather["sections"] if s["title"].startswith("Scores") for block in s["blocks"])
    assert scores["header"][:2] == ["estimate", "brier"]


# -- as processes: each takes seconds, of imports and kernels ------------------------------------


def command(*flags):
    return [sys.executable, "-m", "bayesnb", "compare", *map(str, flags)]


@pytest.mark.slow("starts processes that import JAX")
@pytest.mark.usefixtures("heeded")
def test_a_real_interrupt(tmp_path):
    data = weather(20_000).drop(columns="id")
    for i in range(40):
        data[f"x{i}"] = np.random.default_rng(i).normal(size=len(data))
    data.to_csv(tmp_path / "large.csv", index=False)
    out = tmp_path / "new"
    started = subprocess.Popen(
        command("--csv", tmp_path / "large.csv", "--target", "play", "--out", out),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert "large: play by MixedNB" in started.stdout.readline() + started.stdout.readline()
    time.sleep(0.5)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=120)
    assert (started.returncode, err) == (130, "bayesnb: interrupted.\n")
    assert {p.name for p in tmp_path.iterdir()} == {"large.csv"}


@pytest.mark.slow("starts processes that import JAX")
def test_a_terminated_process_leaves_no_temporary_file(tmp_path):
    data = customers(n=60_000)
    data.to_csv(tmp_path / "t.csv", index=False)
    features = ["income, EUR", "visits", "member"]
    bnb.save(bnb.MixedNB(numbers="gaussian").fit(data[features], data["label"]), tmp_path / "m")
    command = ["score", "--csv", "t.csv", "--model", "m", "--out", "o.csv", "--interval", "0.9"]
    before = sorted(file.name for file in tmp_path.iterdir())
    started = subprocess.Popen([sys.executable, "-m", "bayesnb", *command], cwd=tmp_path, stderr=subprocess.PIPE)
    while started.poll() is None and len(list(tmp_path.iterdir())) == len(before):
        time.sleep(0.01)
    started.send_signal(signal.SIGTERM)
    assert started.wait() == 128 + signal.SIGTERM
    assert sorted(file.name for file in tmp_path.iterdir()) == before


@pytest.mark.usefixtures("heeded")
def test_an_interrupt_during_garbage_collection_is_not_lost():
    """Python drops an exception that is raised in a callback of the garbage collection."""
    code = """
import gc, signal, time
from bayesnb._util.terminal import keep_interrupts

def _xla_gc_callback(*_):  # the name of JAX's
    signal.raise_signal(signal.SIGINT)
    gc.callbacks.remove(_xla_gc_callback)

try:
    with keep_interrupts():
        gc.callbacks.append(_xla_gc_callback)
        gc.collect()
        time.sleep(60)
except KeyboardInterrupt:
    print("raised", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    assert subprocess.check_output([sys.executable, "-c", code], encoding="utf-8") == "raised True\n"


@pytest.mark.usefixtures("heeded")
def test_an_interrupt_during_imports_ends_the_process():
    """JAX's modules swallow KeyboardInterrupt, or raise ImportError in its place."""
    send = "import os, signal; from bayesnb._util.terminal import exit_on_interrupt; "
    send += "send = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
    code = f"{send}with exit_on_interrupt():\n  try:\n    send()\n  except KeyboardInterrupt:\n    pass"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (ended.returncode, ended.stderr) == (130, "bayesnb: interrupted.\n")
    code = f"{send}with exit_on_interrupt():\n  pass\ntry:\n  send()\nexcept KeyboardInterrupt:\n  print('raised')"
    assert subprocess.check_output([sys.executable, "-c", code], encoding="utf-8") == "raised\n"


def test_a_folder_or_a_dangling_link_is_not_replaced(tmp_path):
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"already has report\.html"):
        require_free(tmp_path / "out", ["report.html"], overwrite=True)
    with pytest.raises(InputError, match="File exists"), filled(tmp_path / "link", ["report.html"]):
        pass
