"""Studies in their database: asked, told, resumed, recovered, corrected; and files that changed meanwhile."""

import contextlib
import dataclasses
import json
import os
import random
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from studies import write_study

from sumbo.errors import StoreError, TellError
from sumbo.executors import EvaluationResult
from sumbo.methods import Deadline
from sumbo.study import storage
from sumbo.study.files.sheets import tell_one
from sumbo.study.files.toml import load
from sumbo.study.storage import _started, is_gone, this_process
from sumbo.study.stored import StoredStudy

OWN = {"a": 1.0, "n": 2, "c": "plain"}


def opened(folder, text="", **options):
    return StoredStudy.open(load(write_study(folder, text, **options)), create=True)


def again(study, *, create=True):
    return StoredStudy.open(study.file, create=create)


def ask(study, limit=None):
    """The next trial of a run: one that waits, or a new one."""
    study.ledger.refresh()
    claimed = study.ledger.claim(limit)
    return claimed or study.optimizer._ask(Deadline(), lease=study.ledger.lease, limit=limit)


def tell(study, record, value):
    return study.ledger.tell(record.number, EvaluationResult(value), record.lease)


def state(study, number):
    study.ledger.refresh()
    return study.records[number].state


def counts(study):
    study.ledger.refresh()
    return {name: n for name, n in dataclasses.asdict(study.counts()).items() if n}


def dead_holder():
    """A process that has ended."""
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        pass
    return this_process() | {"pid": process.pid, "started": "1"}


def held_by(study, holder, *, silent=0.0):
    """Another process's copy of the study, as far as the database can tell."""
    other = again(study)
    row = {"study_id": other.ledger.study_id, "holder": json.dumps(holder)}
    with other.ledger.engine.begin() as connection:
        beat = storage.clock(other.ledger.engine) - silent
        made = connection.execute(sa.insert(storage.leases).values(**row, beat=beat).returning(storage.leases.c.id))
        other.ledger._lease = made.scalar_one()
    return other


# --- asking and telling ---


def test_what_is_told_is_there_in_another_process(tmp_path):
    study = opened(tmp_path)
    first, second = ask(study), study.hand_out()
    assert tell(study, first, 0.1 + 0.2)
    study.ledger.tell(second.number, EvaluationResult(reason="exit code 3", detail="mesh is bad"))
    number = study.ledger.observe(OWN, EvaluationResult(0.5)).number
    other = again(study, create=False)
    records = other.records
    assert [record.number for record in records] == [0, 1, number]
    assert (records[0].value, records[0].params) == (0.1 + 0.2, first.params)
    assert (records[1].state, records[1].reason, records[1].detail) == ("failed", "exit code 3", "mesh is bad")
    assert records[2].params == OWN
    assert other.best().number == 0
    assert counts(other) == {"done": 2, "failed": 1}


@pytest.mark.parametrize("method", ['"random"', '"auto"'])
def test_asking_and_telling_take_six_statements_at_most(method, tmp_path):
    # Processes that share a study wait for each other's: every one more is felt by all.
    study, said = opened(tmp_path, method=method), []
    other = again(study)
    sa.event.listen(study.ledger.engine, "before_cursor_execute", lambda *arguments: said.append(arguments[2]))
    for round_ in range(10):
        tell(other, ask(other), 1.0)
        if round_ > 2:  # by then the lease is there, and code is loaded
            said.clear()
        record = study.optimizer._ask(Deadline(), lease=study.ledger.lease, limit=100)
        tell(other, ask(other), 2.0)
        tell(study, record, 3.0)
        if round_ > 2:
            assert len(said) <= 6, "\n".join(said)


def test_a_result_is_recorded_whole_or_not_at_all(tmp_path):
    study = opened(tmp_path)
    record = ask(study)

    class Killed(Exception):
        pass

    def kill(connection, cursor, statement, *rest):
        if statement.startswith("UPDATE sumbo_trials"):
            raise Killed

    sa.event.listen(study.ledger.engine, "before_cursor_execute", kill)
    with pytest.raises(Killed):
        tell(study, record, 1.0)
    sa.event.remove(study.ledger.engine, "before_cursor_execute", kill)
    assert state(again(study), 0) == state(study, 0) == "running"
    assert tell(study, record, 1.0)
    assert not tell(study, record, 2.0)
    assert (state(study, 0), study.records[0].value) == ("done", 1.0)


def test_the_best_of_equals_is_the_first_and_goals_differ(tmp_path):
    for goal, best in (("minimize", 1), ("maximize", 0)):
        study = opened(tmp_path, f'name = "{goal}"', goal=goal)
        assert study.best() is None
        for value in (2.0, 1.0, 1.0):
            study.ledger.observe(OWN, EvaluationResult(value))
        assert study.best().number == best


def test_an_ask_that_is_interrupted_leaves_nothing(tmp_path):
    study = opened(tmp_path)

    def kill(connection, cursor, statement, *rest):
        if statement.startswith("INSERT INTO sumbo_trials"):
            raise KeyboardInterrupt

    sa.event.listen(study.ledger.engine, "before_cursor_execute", kill)
    with pytest.raises(KeyboardInterrupt):
        ask(study)
    sa.event.remove(study.ledger.engine, "before_cursor_execute", kill)
    assert again(study).records == []
    record = ask(study)
    assert (record.number, set(record.params)) == (0, {"a", "n", "c"})


@pytest.mark.parametrize("method", ['"auto"', '"rembo"'])
def test_a_resumed_study_goes_on_as_it_would_have(method, tmp_path):
    (tmp_path / "x").mkdir()
    whole, pieces = opened(tmp_path, method=method), opened(tmp_path / "x", method=method)
    for i in range(14):
        if i in (5, 11):
            pieces = again(pieces)
        a, b = ask(whole), ask(pieces)
        assert (a.number, a.params) == (b.number, b.params)
        for study, record in ((whole, a), (pieces, b)):
            tell(study, record, record.params["a"] ** 2 + record.params["n"])


def test_a_study_that_others_wrote_to_goes_on_with_all_of_it(tmp_path):
    study, other = opened(tmp_path, method='"auto"'), opened(tmp_path, method='"auto"')
    for i in range(12):
        mine, theirs = ask(study), ask(other)
        assert mine.text != theirs.text
        tell(other, theirs, float(i))
        tell(study, mine, float(-i))
    ask(study)
    ask(other)
    study.ledger.refresh()
    assert [r.text for r in study.records] == [r.text for r in other.records]
    h, g = (s.ledger.history(s.optimizer._signature) for s in (study, other))
    assert h["X"].tobytes() == g["X"].tobytes()
    assert h["y"].tobytes() == g["y"].tobytes()
    assert again(study).replay().exact


def test_without_a_seed_one_is_drawn_and_kept(tmp_path):
    path = write_study(tmp_path)
    path.write_text(path.read_text().replace("seed = 1", ""))
    first = StoredStudy.open(load(path), create=True)
    assert StoredStudy.open(load(path), create=True).seed == first.seed
    path.write_text("seed = 7\n" + path.read_text())
    assert StoredStudy.open(load(path), create=True).seed == 7


def test_two_runs_never_spend_more_than_the_budget(tmp_path):
    file = opened(tmp_path).file
    with ThreadPoolExecutor(4) as threads:  # four copies, as four processes have

        def work(_):
            study, taken = StoredStudy.open(file, create=True), 0
            while (record := ask(study, 20)) is not None:
                assert tell(study, record, 1.0)
                taken += 1
            return taken

        taken = list(threads.map(work, range(4)))
    study = StoredStudy.open(file, create=False)
    assert sum(taken) == study.counts().finished == 20
    assert [record.number for record in study.records] == list(range(20))  # nor leave one behind
    assert len({record.text for record in study.records}) == 20


def test_waiting_trials_stay_within_a_smaller_budget(tmp_path):
    study = opened(tmp_path)
    for record in [ask(study) for _ in range(6)]:
        study.ledger.release(record.number)
    study.hand_out()  # in somebody's hands: the budget does not pay for it
    copies = [again(study) for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda other: ask(other, 4), copies))
    assert sum(record is not None for record in found) == 4
    assert counts(study) == {"running": 4, "waiting": 2, "open": 1}


# --- cancelling and correcting ---


def test_a_cancelled_trial_is_neither_a_value_nor_a_failure_and_its_point_is_free(tmp_path):
    study = opened(tmp_path)
    record = study.hand_out()
    assert study.ledger.cancel(record.number)
    assert not study.ledger.cancel(record.number)
    assert counts(again(study)) == {"cancelled": 1}
    assert study.ledger.history("")["pending"].shape == (0, 3)
    assert record.unit.tobytes() not in study.ledger.taken
    assert ask(study, 1).number == 1  # the budget pays for it no more


def test_a_value_can_be_corrected_and_the_old_one_stays_on_record(tmp_path):
    study = opened(tmp_path, method='"auto"')
    for i in range(12):
        tell(study, ask(study), float(i))
    study.ledger.correct(0, EvaluationResult(-5.0))
    assert study.best().value == again(study).best().value == -5.0
    ask(study)
    study.ledger.correct(0, EvaluationResult(reason="wrong sample"))
    assert state(study, 0) == "failed"
    study.ledger.correct(0, EvaluationResult(0.4))
    other = again(study)
    assert other.records[0].value == 0.4
    assert [(value, reason) for _, value, reason, *_ in other.records[0].earlier] == [
        (0.0, None),
        (-5.0, None),
        (None, "wrong sample"),
    ]
    assert other.ledger.history("")["y"][0] == 0.4
    assert other.replay().exact  # each suggestion from the values as they were told then


def seen_in(ledger, signature):
    history = ledger.history(signature)
    arrays = [history[name].tobytes() for name in ("X", "y", "pending")]
    return arrays, history["candidate_metadata"], history["pending_metadata"], history["number"], ledger.sequence


@pytest.mark.parametrize("seed", range(3))
def test_however_a_study_is_read_it_is_the_same(seed, tmp_path):
    # As it was written, as another copy followed it, opened at once, and as of its last event.
    rng, study = random.Random(seed), opened(tmp_path, method='"rembo"')
    follower, results = again(study), [EvaluationResult(2.5), EvaluationResult(reason="no"), EvaluationResult(-1.0)]
    for _ in range(60):
        live, ended = study.ledger.live, [r.number for r in study.records if r.state in ("done", "failed")]
        event = rng.choice(["ask", "ask", "open", "tell", "tell", "observe", "cancel", "correct", "release", "read"])
        result = rng.choice(results)
        if event == "ask":
            ask(study)
        elif event == "open":
            study.hand_out()
        elif event == "observe":
            study.ledger.observe(OWN | {"a": rng.random()}, result)
        elif event == "tell" and live:
            record = rng.choice(live)
            assert study.ledger.tell(record.number, result, record.lease)
        elif event == "cancel" and live:
            assert study.ledger.cancel(rng.choice(live).number)
        elif event == "correct" and ended:
            study.ledger.correct(rng.choice(ended), result)
        elif event == "release" and (mine := [r for r in live if r.state == "running"]):
            study.ledger.release(rng.choice(mine).number)
        elif event == "read":
            follower.ledger.refresh()
    follower.ledger.refresh()
    ledgers = [study.ledger, follower.ledger, again(study).ledger]
    signature = study.optimizer._signature
    now = seen_in(study.ledger, signature)
    assert any(note is not None for note in now[1])
    for ledger in ledgers:
        assert seen_in(ledger, signature) == now
        assert seen_in(ledger.as_of(ledger.sequence), signature) == now
        assert ledger.history("other")["candidate_metadata"] == [None] * len(now[1])
        assert ledger.counted == sum(record.state not in ("open", "cancelled") for record in ledger.records)
        assert ledger.taken == study.ledger.taken


# --- processes that end ---


def test_a_trial_of_a_dead_process_is_run_again_with_number_and_parameters(tmp_path):
    study = opened(tmp_path)
    lost = ask(held_by(study, dead_holder()))
    mine = ask(study)
    assert study.ledger.maintain() == [lost.number]
    assert [state(study, record.number) for record in (lost, mine)] == ["waiting", "running"]
    assert study.ledger.maintain() == []
    found = ask(study)
    assert (found.number, found.params, found.lease) == (lost.number, lost.params, study.ledger.lease)
    assert "failed" not in counts(study)


def test_a_trial_that_ends_every_process_fails_at_last(tmp_path):
    study = opened(tmp_path)
    for _ in range(10):
        assert "failed" not in counts(study)
        ask(held_by(study, dead_holder()))
        assert study.ledger.maintain() == [0]
    assert state(study, 0) == "failed"
    assert "process died 10 times" in study.records[0].reason


def test_trials_by_hand_wait_for_ever(tmp_path):
    study = opened(tmp_path)
    held_by(study, dead_holder(), silent=1e6).hand_out()
    assert study.ledger.maintain() == []
    assert counts(study) == {"open": 1}


def test_processes_elsewhere_are_judged_by_their_silence(tmp_path):
    study = opened(tmp_path)
    elsewhere = dead_holder() | {"place": "another machine"}
    ask(held_by(study, elsewhere, silent=200.0))
    silent = ask(held_by(study, elsewhere | {"pid": 1}, silent=301.0))
    assert study.ledger.maintain() == [silent.number]


def test_a_sign_of_life_counts(tmp_path):
    study = opened(tmp_path)
    other = held_by(study, dead_holder() | {"place": "another machine"}, silent=301.0)
    ask(other)
    other.ledger.maintain()
    assert study.ledger.maintain() == []


def test_of_two_who_find_a_lost_trial_one_takes_it(tmp_path):
    study = opened(tmp_path)
    for _ in range(3):
        other = held_by(study, dead_holder())
        lost = ask(other)
        copies = [again(study) for _ in range(6)]
        with ThreadPoolExecutor(6) as threads:
            released = list(threads.map(lambda copy: copy.ledger.maintain(), copies))
            claimed = list(threads.map(lambda copy: copy.ledger.claim(None), copies))
        assert [found for found in released if found] == [[lost.number]]
        (taken,) = [record for record in claimed if record is not None]
        # Whoever was slow must not take it from its new holder.
        assert not other.ledger._give_back(lost.number, lost.lease, lost=1)
        study.ledger.refresh()
        assert study.ledger.tell(lost.number, EvaluationResult(1.0), taken.lease)


def test_a_value_that_comes_late_does_not_overwrite(tmp_path):
    study = opened(tmp_path)
    late = held_by(study, dead_holder() | {"place": "another machine"}, silent=301.0)
    lost = ask(late)
    study.ledger.maintain()
    taken = ask(study)
    assert taken.number == lost.number
    assert not tell(late, lost, 0.25)
    assert tell(study, taken, 0.5)
    assert study.records[0].value == 0.5


def test_holders(tmp_path):
    mine = this_process()
    assert not is_gone(mine)
    assert is_gone(mine | {"started": "12"})  # its number belongs to another now
    assert not is_gone(mine | {"place": "elsewhere", "pid": 2**22 - 1})
    assert is_gone(dead_holder())
    study = opened(tmp_path)
    with pytest.raises(TellError, match=f"is being evaluated by process {os.getpid()} on "):
        tell_one(study, ask(study).number, EvaluationResult(1.0), replace=False)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_process_that_ended_and_was_not_collected_is_gone():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        holder = this_process() | {"pid": process.pid, "started": _started(process.pid)}
        assert not is_gone(holder)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is there still
        os.kill(process.pid, 0)
        assert is_gone(holder)


# --- files that changed ---


def changed(folder, old, new):
    path = folder / "study.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return load(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('goal = "minimize"', 'goal = "maximize"', ["goal", "is to minimize"]),
        ("[space.a]", "[space.aa]", ["'a'", "'aa'", "renamed"]),
        ("[space.a]", '[space.new]\ntype = "int"\nlow = 1\nhigh = 2\n[space.a]', ["'new'", "lack"]),
        ('type = "int"', 'type = "float"', ["space.n", "'float'", "'int'"]),
        ("low = 1\n", "low = 1\nlog = true\n", ["space.n", "log = true"]),
        ('"plain", ', "", ["space.c", "choices"]),
    ],
)
def test_what_does_not_fit_is_said_with_the_remedy(old, new, words, tmp_path):
    opened(tmp_path).hand_out()
    file = changed(tmp_path, old, new)
    for create in (True, False):
        with pytest.raises(StoreError) as caught:
            StoredStudy.open(file, create=create)
        for word in (*words, "another name", "sumbo export"):
            assert word in str(caught.value)


@pytest.mark.parametrize("method", ['"random"', '"auto"'])
def test_what_fits_goes_on(method, tmp_path):
    study = opened(tmp_path, method=method)
    for value in range(12):
        record = ask(study)
        tell(study, record, 0.01 * value - record.params["a"])
    study = StoredStudy.open(changed(tmp_path, "high = 2.0", "high = 4.0"), create=True)
    assert "a now goes from 0.0 to 4.0" in study.notes[0]
    assert max(ask(study).params["a"] for _ in range(8)) > 2.0
    narrower = StoredStudy.open(changed(tmp_path, "high = 4.0", "high = 0.5"), create=True)
    assert "no longer guide the search" in narrower.notes[0]
    assert all(ask(narrower).params["a"] <= 0.5 for _ in range(4))
    inside = [r for r in narrower.records if r.params["a"] <= 0.5 and r.state == "done"]
    assert len(narrower.ledger.history("")["y"]) == len(inside)
    assert again(narrower).notes == []


SHAPED = """
[space.angle]
type = "float"
low = 0.0
high = 15.0
[space.foil]
type = "categorical"
choices = ["naca0012", "naca2412"]
[space.flap]
type = "float"
low = 0.0
high = 1.0
when = {foil = "naca2412"}
[space.wind]
type = "float"
low = 0.0
high = 30.0
"""
KEYS = 'context = ["wind"]\nconstraints = ["stress <= 250"]\nknown = ["angle + wind <= 40"]'


def shaped(folder):
    """A study that has been told five trials."""
    study = opened(folder, KEYS, space=SHAPED, method='"auto"')
    for i in range(5):
        record = study.hand_out({"wind": 10.0 + i}, {"foil": "naca2412"})
        study.ledger.tell(record.number, EvaluationResult(float(i), constraints={"stress": 253.0 - i}, std=0.1))
    return study


def test_contexts_constraints_and_noise_are_there_in_another_process(tmp_path):
    study = shaped(tmp_path)
    study.ledger.correct(4, EvaluationResult(4.5, constraints={"stress": 240.0}))
    other = again(study)
    assert other.notes == []
    for record, read in zip(study.records, other.records, strict=True):
        for name in ("text", "constraints", "std", "fixed", "value", "earlier"):
            assert getattr(record, name) == getattr(read, name)
    assert other.records[2].fixed == {"foil": "naca2412", "wind": 12.0}
    assert (other.records[4].std, other.records[4].earlier[0][1:]) == (None, (4.0, None, {"stress": 249.0}, 0.1))
    assert other.best().number == 3  # those before break their constraint
    history = other.ledger.history(other.optimizer._signature)
    assert history["constraints"][:, 0].tolist() == [3.0, 2.0, 1.0, 0.0, -10.0]
    assert history["std"].tolist() == [0.1, 0.1, 0.1, 0.1, 0.0]
    asked = [s.hand_out({"wind": 3.0}).params for s in (again(study), StoredStudy.open(study.file, create=True))]
    assert asked[0] != asked[1]
    assert again(study).replay().exact


@pytest.mark.parametrize(
    ("old", "new", "notes"),
    [
        ("high = 15.0", "high = 15.0\nstep = 0.5", ["angle now goes from 0.0 to 15.0 in steps of 0.5"]),
        ('["wind"]', '["wind", "angle"]', ["context is now ['wind', 'angle'] (before: ['wind'])"]),
        ('context = ["wind"]', "", ["context is now [] (before: ['wind'])"]),
        ("<= 40", "<= 42", ["known is now ['angle + wind <= 42']"]),
        ('["stress <= 250"]', '["stress <= 251"]', ["constraints is now ['stress <= 251']"]),
        ('["stress <= 250"]', '["stress <= 250", "mass"]', ["constraints is now", "do not say ['mass']"]),
        ('constraints = ["stress <= 250"]', "", ["constraints is now [] (before: ['stress <= 250'])"]),
        ('{foil = "naca2412"}', '{foil = ["naca2412"]}', []),
    ],
)
def test_shapes_that_change_go_on_with_a_note(old, new, notes, tmp_path):
    shaped(tmp_path)
    study = StoredStudy.open(changed(tmp_path, old, new), create=True)
    assert len(study.notes) == len(notes)
    for note, words in zip(study.notes, notes, strict=True):
        assert words in note
    assert again(study).notes == []
    best = {'["stress <= 251"]': 2, '["stress <= 250", "mass"]': None, "": 0 if "stress" in old else 3}
    found = study.best()
    assert (found and found.number) == best.get(new, 3)
    guiding = [record for record in study.records if record.unit is not None]
    assert len(study.ledger.history("")["y"]) == len(guiding) == (0 if "step" in new else 5)
    study.hand_out(dict.fromkeys(study.file.space.context, 5.0))


def test_a_condition_that_changed_is_refused(tmp_path):
    shaped(tmp_path)
    for new in ('{foil = "naca0012"}', "{}"):
        file = changed(tmp_path, '{foil = "naca2412"}', new)
        with pytest.raises(
            StoreError, match=r"space\.flap exists .*, and existed when foil is 'naca2412'.*another name"
        ):
            StoredStudy.open(file, create=True)
        changed(tmp_path, f"when = {new}", 'when = {foil = "naca2412"}')


# --- places that are not as they should be ---


def test_a_study_that_was_not_begun(tmp_path):
    file = load(write_study(tmp_path))
    with pytest.raises(StoreError, match="no such study yet"):
        StoredStudy.open(file, create=False)
    assert list(tmp_path.iterdir()) == [tmp_path / "study.toml"]
    opened(tmp_path)
    with pytest.raises(StoreError, match="has no trials yet"):
        StoredStudy.open(dataclasses.replace(file, name="other"), create=False)


def test_folders_and_files_that_are_not_databases(tmp_path):
    file = load(write_study(tmp_path, 'storage = "sqlite:///missing/x.db"'))
    with pytest.raises(StoreError, match="expected a folder"):
        StoredStudy.open(file, create=True)
    (tmp_path / "x.db").write_text("this is not a database, whatever its name says. " * 20)
    file = load(write_study(tmp_path, 'storage = "sqlite:///x.db"'))
    with pytest.raises(StoreError, match="not a database"):
        StoredStudy.open(file, create=True)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE sumbo_studies SET space = '{\"params\": [3]}'", "cannot be read"),
        ("UPDATE sumbo_studies SET space = 'x'", "cannot be read"),
        (
            "UPDATE sumbo_studies SET space = replace(space, '{\"params', '{\"outcomes\": [3], \"params')",
            "cannot be read",
        ),
        ('UPDATE sumbo_trials SET constraints = \'{"stress": "high"}\'', "trial 0"),
        ("UPDATE sumbo_trials SET std = -1", "trial 0"),
        ("UPDATE sumbo_studies SET version = 1", "the sumbo that began it"),
        ("UPDATE sumbo_trials SET state = 'lost'", "trial 0"),
        ("UPDATE sumbo_trials SET value = 'x'", "trial 0"),
        ("UPDATE sumbo_trials SET value = NULL", "trial 0"),
        ("UPDATE sumbo_trials SET told = NULL", "cannot be read|trial 0"),
        ("UPDATE sumbo_trials SET params = '{', unit = NULL", "cannot be read"),
        ("UPDATE sumbo_trials SET number = 7", "cannot be read|trial"),
        ("DROP TABLE sumbo_trials", "no trials|no such table|cannot be read"),
    ],
)
def test_damage_is_named_before_anything_is_added(statement, words, tmp_path):
    study = opened(tmp_path)
    tell(study, ask(study), 1.0)
    with contextlib.closing(sqlite3.connect(tmp_path / "study.db")) as connection:
        connection.execute(statement)
        connection.commit()
    if statement.startswith("DROP"):
        assert again(study).records == []  # made anew: nothing is left to contradict
        return
    with pytest.raises(StoreError, match=words):
        again(study)


def test_an_order_of_asking_that_was_edited_is_refused(tmp_path):
    study = opened(tmp_path)
    for value in (1.0, 2.0):
        tell(study, ask(study), value)
    with study.ledger.engine.begin() as connection:
        connection.execute(sa.text("UPDATE sumbo_trials SET asked = 9 - asked, changed = changed + 9"))
    with pytest.raises(StoreError, match=r"trial 1: it was asked for before trial 0\); restore a backup"):
        again(study)
    with pytest.raises(ValueError, match="trial 0: its place in the order of asking has changed"):
        study.ledger.refresh()
    assert [record.asked for record in study.ledger.as_of(4).records] == [1, 3]  # as it was read
