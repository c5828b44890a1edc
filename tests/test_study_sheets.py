"""Tables as people and spreadsheets leave them."""

import pytest
from studies import write_study

from sumbo.errors import SheetError, TellError
from sumbo.executors import EvaluationResult
from sumbo.methods import Deadline
from sumbo.study.files.sheets import read_sheet, tell_one, tell_sheet, write_sheet
from sumbo.study.files.toml import load
from sumbo.study.stored import StoredStudy

SPACE = """
[space.temp]
type = "float"
low = 20.0
high = 90.0
[space.drops]
type = "int"
low = 1
high = 9
[space.glue]
type = "categorical"
choices = ["epoxy", "Hide glue", "Uhu ä"]
[space.size]
type = "categorical"
choices = [1, 2.5]
"""
HEAD = "trial,temp,drops,glue,size,value to maximize"


@pytest.fixture
def study(tmp_path):
    return load(write_study(tmp_path, space=SPACE, goal="maximize"))


@pytest.fixture
def store(study):
    return StoredStudy.open(study, create=True)


def running(store):
    """A trial that this process evaluates."""
    return store.optimizer._ask(Deadline(), lease=store.ledger.lease)


def sheet(study, text, encoding="utf-8", **options):
    path = study.path.parent / "batch.csv"
    path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
    return read_sheet(study, path, **options)


def told(study, store, text, *, replace=False, **options):
    return tell_sheet(store, sheet(study, text, **options), "batch.csv", replace=replace)


def test_a_batch_goes_out_and_comes_back(study, store):
    asked = [store.hand_out() for _ in range(3)]
    text = write_sheet(study, [(trial.number, trial.params) for trial in asked])
    assert text.splitlines()[0] == HEAD
    lines = text.splitlines()
    lines[1] += "0.5"
    lines[3] += "failed: the glue came off"
    found = sheet(study, "\n".join(lines))
    assert [(row.number, row.params, row.result) for row in found.rows] == [
        (0, asked[0].params, EvaluationResult(0.5)),
        (2, asked[2].params, EvaluationResult(reason="the glue came off")),
    ]
    assert (found.empty, found.ignored) == (1, [])
    tell_sheet(store, found, "batch.csv", replace=False)
    assert (store.counts().done, store.counts().failed, store.counts().open) == (1, 1, 1)


ROW = {"trial": "", "temp": "50.5", "drops": "3", "glue": "epoxy", "size": "1", "value to maximize": "0.5"}
PARAMS = {"temp": 50.5, "drops": 3, "glue": "epoxy", "size": 1}


def table(separator=",", end="\n", **changes):
    row = ROW | changes
    return separator.join(row) + end + separator.join(row.values()) + end


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (table(), "utf-8"),
        (table(), "utf-8-sig"),  # a byte order mark
        (table(end="\r\n"), "utf-16"),
        (table("\t"), "utf-8"),
        (table(";"), "utf-8"),
        (table(";", temp="50,5", **{"value to maximize": "0,5"}), "cp1252"),  # decimal commas
        (table(temp=" 50.5 ", drops="3.0", glue="EPOXY", size="1.0"), "utf-8"),
        (table() + ",,,,,\n\n", "utf-8"),
        (table(notes="warm day", **{"": ""}), "utf-8"),  # columns that mean nothing
        (table().replace("value to maximize", "Value"), "utf-8"),
        (table().replace("value to maximize", "maximize"), "utf-8"),
        (table().replace("temp", "Temp "), "utf-8"),
        ("\n".join(",".join(reversed(line.split(","))) for line in table().splitlines()), "utf-8"),
    ],
    ids=range(13),
)
def test_what_spreadsheets_do_to_a_table(text, encoding, study):
    (row,) = sheet(study, text, encoding).rows
    assert (row.number, row.params, row.result) == (None, PARAMS, EvaluationResult(0.5))


def test_names_that_older_spreadsheets_write(study):
    (row,) = sheet(study, table(glue="Uhu ä"), "cp1252").rows
    assert row.params["glue"] == "Uhu ä"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (table(temp="1,5"), ["expected"]),  # an unquoted comma makes another column
        (table(temp='"50,5"'), ["line 2", "'temp'", "'50.5' with a point"]),
        (table(temp="50 C"), ["line 2", "'temp'", "'50 C'", "leave the unit out"]),
        (table(temp="50%"), ["leave the unit out"]),
        (table(temp="fifty"), ["expected a number, got 'fifty'"]),
        (table(temp="323.15"), ["from 20.0 to 90.0", "'323.15'", "other units"]),
        (table(temp=""), ["'temp' is empty", "one's own"]),
        (table(temp="nan"), ["'temp'"]),
        (table(drops="3.5"), ["'drops'", "whole number"]),
        (table(drops="5_0"), ["'drops'"]),
        (table(glue="epxy"), ["'glue'", "did you mean 'epoxy'"]),
        (table(glue="tape"), ["'glue'", "'epoxy', 'Hide glue'"]),
        (table(size="3"), ["'size'", "[1, 2.5]"]),
        (table(trial="first"), ["trial number", "'first'"]),
        (table(trial="-1"), ["trial number"]),
        (table(**{"value to maximize": "0.5 N"}), ["'value to maximize'", "leave the unit out"]),
        (table(**{"value to maximize": "nan"}), ["write the word failed"]),
        (table(**{"value to maximize": "inf"}), ["write the word failed"]),
        (table(**{"value to maximize": "1e999"}), ["write the word failed"]),
        (table().replace("value to maximize", "value to maximise"), ["'value to maximize'", "'value to maximise'"]),
        (table().replace("value to maximize", "strength"), ["'value to maximize'", "'strength'"]),
        (table().replace("trial,temp", "x,tmp"), ["column 'temp'", "is it 'tmp'"]),
        (table().replace("glue", "temp"), ["two columns", "'temp'"]),
        (table(trial="0") + table(trial="0").splitlines()[1], ["trial 0", "more than one row"]),
        ("", ["empty file"]),
        ("\n\n", ["empty file"]),
        (table(glue='"epoxy'), ["expected CSV"]),
        (b"PK\x03\x04workbook", ["workbook", "save it as CSV"]),
    ],
)
def test_mistakes_are_said_with_line_and_column(text, words, study):
    with pytest.raises(SheetError) as caught:
        sheet(study, text)
    for word in words:
        assert word in str(caught.value)


def test_all_mistakes_at_once_and_nothing_recorded(study, store):
    good = table().splitlines()[1]
    text = "\n".join([HEAD, good, good.replace("50.5", "999"), good.replace("epoxy", "epxy"), "77" + good])
    with pytest.raises(SheetError, match=r"(?s)nothing was recorded.*line 3.*line 4"):
        told(study, store, text)
    with pytest.raises(SheetError, match="there is no trial 77"):
        told(study, store, "\n".join([HEAD, good, "77" + good]))
    assert store.records == []
    with pytest.raises(SheetError, match=r"and 15 more"):
        sheet(study, HEAD + ("\n" + good.replace("50.5", "x")) * 25)


def test_files_that_cannot_be_read(study, tmp_path):
    for path in (tmp_path / "nothing.csv", tmp_path):
        with pytest.raises(SheetError, match="cannot be read"):
            read_sheet(study, path)


def test_rows_told_again(study, store):
    asked = store.hand_out()
    text = write_sheet(study, [(asked.number, asked.params)]).rstrip()
    own = table().splitlines()[1]
    assert told(study, store, f"{text}0.5\n{own}\n{own}\n").added == [1, 2]  # measured twice, with the same result
    again = told(study, store, f"{text}0.5\n{own}\n{own}\n")
    assert (again.told, again.added, again.known) == ([], [], 3)
    assert told(study, store, f"{text}0.5\n{own}\n{own}\n{own}\n").added == [3]
    with pytest.raises(SheetError, match=r"trial 0 was told before as the value 0\.5, now 0\.7; .*--replace"):
        told(study, store, f"{text}0.7\n")
    assert told(study, store, f"{text}0.7\n", replace=True).replaced == [0]
    assert store.records[0].value == 0.7


def test_parameters_that_are_not_those_asked_for(study, store):
    asked = store.hand_out()
    rounded = asked.params | {"temp": round(asked.params["temp"], 5)}
    other = asked.params | {"temp": 20.0 if asked.params["temp"] > 50 else 90.0}
    with pytest.raises(SheetError, match="was to have temp"):
        told(study, store, write_sheet(study, [(0, other)]).rstrip() + "0.5")
    told(study, store, write_sheet(study, [(0, rounded)]).rstrip() + "0.5")
    assert store.records[0].params == asked.params  # digits that the spreadsheet dropped do not matter


def test_trial_and_value_are_enough(study, store):
    store.hand_out()
    assert told(study, store, "Trial;Value\n0;1,5\n").told == [0]
    assert store.best().value == 1.5


def test_all_rows_as_ones_own(study, store):
    found = told(study, store, table(trial="12"), own=True)
    assert found.added == [0]


def test_trials_that_are_not_to_be_told_by_hand(study, store):
    running(store)
    with pytest.raises(TellError, match="is being evaluated by process"):
        tell_one(store, 0, EvaluationResult(1.0), replace=False)
    store.ledger.release(running(store).number)
    with pytest.raises(TellError, match="has not been handed out"):
        tell_one(store, 1, EvaluationResult(1.0), replace=False)
    with pytest.raises(TellError, match="the study has trials 0 to 1"):
        tell_one(store, 2, EvaluationResult(1.0), replace=False)


def test_a_bound_whose_last_digits_were_dropped_is_that_bound(study):
    assert sheet(study, table(temp="90.00000000001")).rows[0].params["temp"] == 90.0
    with pytest.raises(SheetError, match=r"from 20\.0 to 90\.0"):
        sheet(study, table(temp="90.1"))
