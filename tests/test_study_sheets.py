"""Tables as people and spreadsheets leave them."""

import pytest
from studies import write_study

from sumbo.errors import SheetError, TellError
from sumbo.executors import EvaluationResult
from sumbo.methods import Deadline
from sumbo.study.files.sheets import read_sheet, tell_one, tell_sheet, with_rows, write_sheet
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


SHAPED = """
constraints = ["stress <= 250", "mass >= 12"]
context = ["wind"]
[space.temp]
type = "float"
low = 20.0
high = 80.0
step = 0.1
[space.part]
type = "float"
low = 0.0
high = 1.0
step = 0.3333333333
[space.foil]
type = "categorical"
choices = ["naca0012", "naca2412"]
[space.flap]
type = "float"
low = 0.0
high = 1.0
when = {foil = "naca2412"}
[space.mesh]
type = "ordinal"
choices = ["coarse", "fine", "extra fine"]
[space.wind]
type = "float"
low = 0.0
high = 30.0
"""
SHAPED_HEAD = "trial,temp,part,foil,flap,mesh,wind,value to minimize,stress,mass"
PLAIN = ",20.3,0.666667,naca0012,,Extra fine,12,0.5,240,13"
FLAP = ",20.3,0,naca2412,0.25,coarse,12,0.5,240,13"


@pytest.fixture
def wing(tmp_path):
    return load(write_study(tmp_path, space=SHAPED))


def test_shapes_go_out_and_come_back(wing):
    store = StoredStudy.open(wing, create=True)
    foils = ("naca0012", "naca2412")
    asked = [store.hand_out({"wind": 12.5}, {"foil": foil}) for foil in foils]
    text = write_sheet(wing, [(trial.number, trial.params) for trial in asked])
    lines = text.splitlines()
    assert lines[0] == SHAPED_HEAD
    cells = [line.split(",") for line in lines[1:]]
    assert [(row[3], row[4] == "", row[6]) for row in cells] == [(foils[0], True, "12.5"), (foils[1], False, "12.5")]
    assert all(len(row[1].partition(".")[2]) == 1 for row in cells)  # a step of 0.1 has one digit
    filled = "\n".join([lines[0], *(line.removesuffix(",,") + "0.5,251,13" for line in lines[1:]), PLAIN, FLAP])
    found = sheet(wing, filled)
    assert [row.params for row in found.rows[:2]] == [trial.params for trial in asked]
    result = EvaluationResult(0.5, constraints={"stress": 251.0, "mass": 13.0})
    assert [row.result for row in found.rows[:2]] == [result, result]
    assert found.rows[2].params == {
        "temp": 20.3,
        "part": 0.6666666666,
        "foil": "naca0012",
        "mesh": "extra fine",
        "wind": 12.0,
    }
    tell_sheet(store, found, "batch.csv", replace=False)
    store = StoredStudy.open(wing, create=True)
    assert [store.ledger.feasible(record) for record in store.records] == [False, False, True, True]
    again = tell_sheet(store, found, "batch.csv", replace=False)
    assert (again.known, again.told, again.added) == (4, [], [])
    with pytest.raises(SheetError, match=r"as the value 0.5 with stress = 251.0, mass = 13.0, now 0.5 with stress = 2"):
        told(wing, store, filled.replace("251", "249"))
    assert told(wing, store, filled.replace("251", "249"), replace=True).replaced == [0, 1]
    assert store.best().number == 0


def test_noise_has_a_column_that_may_be_left_out(wing):
    store = StoredStudy.open(wing, create=True)
    for std, given in (("0.1", 0.1), ("", None), ("0", 0.0)):
        (row,) = sheet(wing, f"{SHAPED_HEAD},Std\n{FLAP},{std}\n").rows
        assert row.result.std == given
    told(wing, store, f"{SHAPED_HEAD},std\n{FLAP},0.1\n")
    text = f"{SHAPED_HEAD}\n0{FLAP}\n"
    assert told(wing, store, text).known == 1  # the same, without its noise
    with pytest.raises(SheetError, match=r"std = 0\.1, now .*std = 0\.2; .*--replace"):
        told(wing, store, f"{SHAPED_HEAD},std\n0{FLAP},0.2\n")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (FLAP.replace("240", ""), ["line 2: 'stress' is empty"]),
        (FLAP.replace("240", "240 MPa"), ["line 2, column 'stress'", "leave the unit out"]),
        (FLAP.replace("240", "inf"), ["line 2, column 'stress'", "failed"]),
        (FLAP.replace("0.25", ""), ["line 2: 'flap' is empty"]),
        (FLAP.replace("naca2412", "naca0012"), ["line 2", "'flap' does not exist where foil is 'naca0012'"]),
        (FLAP.replace("naca2412", ""), ["line 2: 'foil' is empty"]),
        (FLAP.replace("20.3", "20.36"), ["line 2, column 'temp'", "steps of 0.1", "the nearest is 20.4"]),
        (FLAP.replace("coarse", "corse"), ["line 2, column 'mesh'", "did you mean 'coarse'"]),
        (FLAP.replace(",12,", ",,"), ["line 2: 'wind' is empty"]),
        (FLAP + ",-1", ["line 2: std must be a number from 0 up"]),
        (FLAP + ",small", ["line 2, column 'std'", "expected a number"]),
        ("0" + FLAP.replace("naca2412", "naca0012"), ["line 2: trial 0 was to have"]),
    ],
)
def test_mistakes_in_shapes_are_said_with_line_and_column(row, words, wing):
    store = StoredStudy.open(wing, create=True)
    store.ledger.observe(
        {"temp": 20.3, "part": 0.0, "foil": "naca0012", "mesh": "coarse", "wind": 12.0},
        EvaluationResult(0.5, constraints={"stress": 1.0, "mass": 13.0}),
    )
    with pytest.raises(SheetError) as caught:
        told(wing, store, f"{SHAPED_HEAD},std\n{row}\n")
    for word in words:
        assert word in str(caught.value)
    assert len(store.records) == 1


def test_a_table_without_a_constraint_can_tell_failures_only(wing):
    store = StoredStudy.open(wing, create=True)
    store.hand_out({"wind": 1.0})
    with pytest.raises(SheetError, match="line 2: 'stress' is empty"):
        told(wing, store, "trial,value\n0,1.5\n")
    with pytest.raises(SheetError, match="rows cannot be appended, it has no column 'temp'"):
        with_rows(wing, wing.path.parent / "batch.csv", [])
    assert told(wing, store, "trial,value\n0,failed\n").told == [0]


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
