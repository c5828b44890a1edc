"""Tables by hand: what was typed stays, and what goes out comes back as it was, whatever a parameter is called."""

import csv
import io
import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from studies import write_study
from tables import NASTY, NO_SHRINK, TYPED_FLOAT, accepted, answer, kinds, says, write_space

VALUE = "value to minimize"


def cells_of(path, separator=",", encoding="utf-8"):
    return list(csv.reader(io.StringIO(path.read_bytes().decode(encoding)), delimiter=separator))


@pytest.fixture
def study(tmp_path):
    return write_study(tmp_path)


@pytest.fixture
def batch(tmp_path):
    return tmp_path / "batch.csv"


# --- a table that is there ----------------------------------------------------------------------------------


def test_a_table_that_is_there_is_not_written_over(study, batch):
    answer("ask", study, "-n", 2, "--csv", batch)
    typed = batch.read_text().replace("\n", "0.5\n").replace("minimize0.5", "minimize")
    batch.write_text(typed)
    for arguments in (["-n", 2], ["--open"]):
        error = answer("ask", study, *arguments, "--csv", batch, code=1)["error"]
        for word in (str(batch), "--append", "--force"):
            assert word in error
    assert batch.read_text() == typed
    assert answer("show", study)["counts"]["open"] == 2, "trials were handed out all the same"
    assert answer("tell", study, batch)["told"] == [0, 1]


def test_a_refused_table_begins_no_study(study, batch):
    batch.write_text("my notes\n")
    assert "--append" in answer("ask", study, "--csv", batch, code=1)["error"]
    assert "column" in answer("ask", study, "--csv", batch, "--append", code=1)["error"]
    assert sorted(path.name for path in study.parent.iterdir()) == ["batch.csv", "study.toml"]


def test_a_table_is_written_over_where_that_is_said(study, batch):
    batch.write_text("my notes\n")
    answer("ask", study, "--csv", batch, "--force")
    assert [row[0] for row in cells_of(batch)] == ["trial", "0"]


@pytest.mark.parametrize("option", [[], ["--append"], ["--force"]])
def test_an_empty_file_or_none_is_a_new_table(option, study, batch, tmp_path):
    batch.write_bytes(b"")
    for path in (batch, tmp_path / "new.csv"):
        answer("ask", study, "--csv", path, *option)
        assert cells_of(path)[0] == ["trial", "a", "n", "c", VALUE]


@pytest.mark.parametrize(
    ("separator", "encoding", "comma"),
    [(",", "utf-8", False), (";", "cp1252", True), ("\t", "utf-16", True), (";", "utf-8-sig", False)],
)
def test_rows_are_added_to_a_table_as_a_spreadsheet_left_it(separator, encoding, comma, study, batch):
    answer("ask", study, "-n", 2, "--csv", batch)
    header, *rows = cells_of(batch)
    rows = [[cell.replace(".", ",") if comma and i == 1 else cell for i, cell in enumerate(row)] for row in rows]
    rows[0][-1], header = "0,5" if comma else "0.5", [*header, "notes"]
    rows[0].append("schön")
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\r\n").writerows(reversed_columns([header, *rows]))
    typed = out.getvalue().removesuffix("\r\n").encode(encoding)  # some editors leave no end of the last line
    batch.write_bytes(typed)
    asked = answer("ask", study, "-n", 2, "--csv", batch, "--append")["trials"]
    assert batch.read_bytes().startswith(typed), "what was typed has changed"
    table = reversed_columns(cells_of(batch, separator, encoding))
    assert [row[0] for row in table] == ["trial", "0", "1", "2", "3"]
    assert all(("," in row[1]) == comma for row in table[1:])
    for row in table[2:]:
        row[header.index(VALUE)] = "1"
    out = io.StringIO()
    csv.writer(out, delimiter=separator).writerows(table)
    batch.write_bytes(out.getvalue().encode(encoding))
    assert answer("tell", study, batch)["told"] == [0, 1, 2, 3]
    assert [t["params"] for t in answer("export", study)["trials"]][2:] == [t["params"] for t in asked]


def reversed_columns(rows):
    width = max(map(len, rows))
    return [[*row, *[""] * (width - len(row))][::-1] for row in rows]


def test_open_experiments_that_a_table_lacks_are_added(study, batch):
    answer("ask", study, "-n", 3)
    answer("ask", study, "-n", 1, "--csv", batch)
    answer("ask", study, "--open", "--csv", batch, "--append")
    answer("ask", study, "--open", "--csv", batch, "--append")
    assert [row[0] for row in cells_of(batch)] == ["trial", "3", "0", "1", "2"]


COLUMNS = {
    "no trial": (lambda cells: [row[1:] for row in cells], "'trial'"),
    "no parameter": (lambda cells: [[*row[:1], *row[2:]] for row in cells], "'a'"),
    "no value": (lambda cells: [row[:-1] for row in cells], VALUE),
    "another encoding": (lambda cells: [[*cells[0], "schön"], *cells[1:]], "UTF-8"),
}


@pytest.mark.parametrize(("change", "word"), COLUMNS.values(), ids=COLUMNS)
def test_no_rows_are_added_where_they_do_not_fit(change, word, tmp_path, batch):
    space = '[space.a]\ntype = "float"\nlow = 0\nhigh = 1\n[space.c]\ntype = "categorical"\nchoices = ["ł"]\n'
    study = write_study(tmp_path, space=space)
    answer("ask", study, "--csv", batch)
    out = io.StringIO()
    csv.writer(out).writerows(change(cells_of(batch)))
    typed = out.getvalue().replace("ł", "l").encode("cp1252")
    batch.write_bytes(typed)
    error = answer("ask", study, "--csv", batch, "--append", code=1)["error"]
    assert str(batch) in error
    assert word in error
    assert batch.read_bytes() == typed
    assert answer("show", study)["counts"]["open"] == 1


def test_a_table_is_written_whole_or_not_at_all(study, batch, tmp_path):
    answer("ask", study, "--csv", batch)
    batch.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(batch)
    with batch.open("rb") as before:  # what a crash would leave is what was there, since that file is not touched
        old = before.read()
        answer("ask", study, "--csv", link, "--append")
        before.seek(0)
        assert before.read() == old
    assert link.is_symlink()
    assert batch.stat().st_mode & 0o777 == 0o640
    assert len(cells_of(batch)) == 3
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that nobody can write to")
@pytest.mark.parametrize("command", [["ask", "--csv"], ["export", "--out"]], ids=" ".join)
def test_a_folder_that_cannot_be_written_hands_out_nothing(command, study):
    error = answer(command[0], study, command[1], "/proc/batch.csv", code=1)["error"]
    assert "/proc/batch.csv: cannot be written" in error
    assert not study.with_suffix(".db").exists()


@pytest.mark.parametrize("option", ["--append", "--force"])
def test_what_becomes_of_a_table_needs_a_table(option, study):
    assert "--csv" in answer("ask", study, option, code=1)["error"]
    assert not study.with_suffix(".db").exists()


# --- any space ----------------------------------------------------------------------------------------------

TEXTS = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
NUMBERS = st.sampled_from((0, 1, -1, 1.5, -0.5, 1e-05, 1e22, 10**25, 0.1, 2**53 + 1))
CHOICES = st.lists(TEXTS | NUMBERS | st.booleans(), min_size=1, max_size=5)
TYPED = st.fixed_dictionaries(
    {"type": st.just("categorical"), "choices": CHOICES},
) | st.sampled_from(
    (
        {"type": "float", "low": -1e-3, "high": 1e3},
        {"type": "float", "low": 1e-12, "high": 1e6, "log": True},
        {"type": "int", "low": -5, "high": 5},
        {"type": "int", "low": 1, "high": 10**12},
    )
)
SPACES = st.dictionaries(TEXTS, TYPED, min_size=25, max_size=25)
KNOWN = {
    "a;b;c;d": {"type": "categorical", "choices": ["a;b", "c,d"]},
    "x;trial;value": {"type": "categorical", "choices": ["a\rb", "c\0"]},
    "=1+1": {"type": "categorical", "choices": ["", "=1", "'b"]},
    "PK": TYPED_FLOAT,
    "pk": TYPED_FLOAT,
    "mixed": {"type": "categorical", "choices": ["a", 3, True, 1.5, "2"]},
}


def left_by_a_spreadsheet(text, trials, values, comma):
    """The table with results, and each row once more as one's own; numbers and booleans as spreadsheets write them."""
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header[0] == "trial"
    for row, trial, value in zip(rows, trials, values, strict=True):
        for i, param in enumerate(trial["params"].values(), 1):
            if isinstance(param, bool):
                row[i] = row[i].upper()
            elif isinstance(param, float):
                row[i] = row[i].replace(".", ",").replace("e", "E") if comma else row[i]
        row[-1] = value
    return [header, *rows, *(["", *row[1:-1], f"1{row[-1]}"] for row in rows)]


def comes_back(folder, space, separator, encoding):
    """Ask for a table, fill it in as a spreadsheet does, tell it, and compare."""
    study, batch = write_space(folder, space), folder / "batch.csv"
    trials = answer("ask", study, "-n", 3, "--csv", batch)["trials"]
    table = left_by_a_spreadsheet(batch.read_text("utf-8"), trials, ("1", "2", "3"), separator != ",")
    if encoding == "utf-16":  # columns may be in any order
        table = [row[::-1] for row in table]
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\r\n").writerows(table)
    batch.write_bytes(out.getvalue().encode(encoding))
    code, _, err = says("tell", study, batch)
    assert code == 0, err
    found = answer("export", study)["trials"]
    assert [(trial["trial"], trial["value"]) for trial in found] == list(enumerate([1, 2, 3, 11, 12, 13]))
    for asked, told, own in zip(trials, found[:3], found[3:], strict=True):
        assert kinds(asked["params"]) == kinds(told["params"]) == kinds(own["params"])


# Opening a database takes longer than all else, so there are few studies, with many parameters.
@settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=NO_SHRINK)
@given(space=SPACES, separator=st.sampled_from(",;\t"), encoding=st.sampled_from(("utf-8", "utf-8-sig", "utf-16")))
def test_what_goes_out_comes_back(space, separator, encoding):
    with tempfile.TemporaryDirectory() as folder:
        comes_back(Path(folder), accepted(Path(folder), space) or {"a": TYPED_FLOAT}, separator, encoding)


@pytest.mark.parametrize(("separator", "encoding"), [(",", "utf-8"), (";", "utf-8-sig")])
def test_odd_names_and_choices_come_back(separator, encoding, tmp_path):
    comes_back(tmp_path, KNOWN, separator, encoding)


APART = {
    "a text and a number": (["1", 1], "'1' and 1"),
    "a text and a boolean": (["true", True], "'true' and True"),
    "capitals, as spreadsheets write them": (["TRUE", True], "'TRUE' and True"),
    "a decimal comma": (["1,5", 1.5], "'1,5' and 1.5"),
    "blanks": (["b", "a", " a"], "'a' and ' a'"),
    "ends of lines": (["a\nb", "a\rb"], r"'a\nb' and 'a\rb'"),
    "marks": (["=a", "'=a"], '"\'=a"'),
}


@pytest.mark.parametrize(("choices", "words"), APART.values(), ids=APART)
def test_choices_that_no_table_can_tell_apart_are_refused(choices, words, tmp_path):
    study = write_space(tmp_path, {"kind": {"type": "categorical", "choices": choices}})
    for command in (["ask"], ["run", "--budget", 3], ["best"]):
        error = answer(command[0], study, *command[1:], code=1)["error"]
        assert "space.kind.choices: expected choices that a table of results can tell apart" in error
        assert words in error
    assert not study.with_suffix(".db").exists()


def test_names_that_no_table_can_tell_apart_are_refused(tmp_path):
    study = write_space(tmp_path, {"a b": TYPED_FLOAT, "a  b": TYPED_FLOAT})
    assert "'a b' and 'a  b'" in answer("ask", study, code=1)["error"]


def test_texts_that_look_like_other_things_are_choices(tmp_path, batch):
    """Versions, answers and letters in both cases are common, and can be told apart."""
    choices = ["3.1", "3.10", "a", "A", "yes", "no", 7, True, "a b"]
    study = write_space(tmp_path, {"kind": {"type": "categorical", "choices": choices}})
    texts = ["3.1", "3.10", "a", "A", "YES", " no ", "7.0", "TRUE", "a  b"]
    batch.write_text("kind,value\n" + "".join(f"{text},{i}\n" for i, text in enumerate(texts)))
    answer("tell", study, batch)
    assert [trial["params"]["kind"] for trial in answer("export", study)["trials"]] == choices
