"""Studies in their database: asked, told, resumed, recovered, corrected; and files that changed meanwhile."""

import dataclasses
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import optuna
import pytest
from optuna.trial import TrialState
from sqlalchemy.event import listen
from studies import write_study

from sumbo.errors import StoreError
from sumbo.studies import owners, tables
from sumbo.studies import store as stores
from sumbo.studies.file import load
from sumbo.studies.objectives import Outcome
from sumbo.studies.store import REASON, Store, shown


def opened(folder, text="", **options):
    return Store.open(load(write_study(folder, text, **options)), create=True)


def dead_owner(by=owners.RUN):
    """The record of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        pass
    return owners.me(by) | {"pid": process.pid, "started": "1"}


def orphan(store, owner):
    """A running trial whose owner is somebody else."""
    asked = store.ask(owners.RUN)
    assert tables.release(store._rdb, asked.trial_id, owners.me(owners.RUN), {})
    assert tables.claim(store._rdb, asked.trial_id, owner)
    return asked


def state(store, number):
    return store.trials()[number].state


# --- asking and telling ---


def test_what_is_told_is_there_in_another_process(tmp_path):
    store = opened(tmp_path)
    first, second = store.ask(owners.RUN), store.ask(owners.HAND)
    store.tell(first.number, first.params, Outcome(0.1 + 0.2))
    store.tell(second.number, second.params, Outcome(reason="exit code 3", detail="mesh is bad"))
    number = store.observe({"a": 1.0, "n": 2, "c": "plain"}, Outcome(0.5))
    again = Store.open(store.study, create=False)
    trials = again.trials()
    assert [t.number for t in trials] == [0, 1, number]
    assert (trials[0].value, trials[0].params) == (0.1 + 0.2, first.params)
    assert trials[1].state == TrialState.FAIL
    assert trials[1].user_attrs[REASON] == "exit code 3"
    assert trials[2].params == {"a": 1.0, "n": 2, "c": "plain"}
    assert again.best().number == 0
    assert dataclasses.astuple(again.counts()) == (2, 1, 0, 0, 0)


def test_asking_and_telling_take_few_statements_however_many_trials_run(tmp_path):
    # Processes that share a study wait for each other's: every one more is felt by all.
    store, said = opened(tmp_path), []
    listen(store._rdb.engine, "before_cursor_execute", lambda *arguments: said.append(arguments[2]))
    for running in (1, 30):
        while len(store.trials()) < running:
            store.ask(owners.RUN)
        said.clear()
        asked = store.ask(owners.RUN, 100)
        store.tell(asked.number, asked.params, Outcome(1.0))
        assert len(said) <= 26, "\n".join(said)


def test_a_result_is_recorded_whole_or_not_at_all(tmp_path, monkeypatch):
    store = opened(tmp_path)
    asked = store.ask(owners.RUN)

    def killed(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tables, "_set_attribute", killed)
        with pytest.raises(KeyboardInterrupt):
            store.tell(asked.number, asked.params, Outcome(reason="exit code 3"))
    assert state(store, 0) == TrialState.RUNNING
    store.tell(asked.number, asked.params, Outcome(reason="exit code 3"))
    assert (state(store, 0), store.trials()[0].user_attrs[REASON]) == (TrialState.FAIL, "exit code 3")


def test_the_best_of_equals_is_the_first_and_goals_differ(tmp_path):
    for goal, best in (("minimize", 1), ("maximize", 0)):
        store = opened(tmp_path, f'name = "{goal}"', goal=goal)
        assert store.best() is None
        for value in (2.0, 1.0, 1.0):
            store.observe({"a": 1.0, "n": 2, "c": "plain"}, Outcome(value))
        assert store.best().number == best


def test_a_trial_has_all_of_its_parameters_or_none(tmp_path, monkeypatch):
    store = opened(tmp_path)
    store.prepare()

    def killed(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store._sampler, "sample_independent", killed)
        patch.setattr(store._sampler, "sample_relative", killed)
        with pytest.raises(KeyboardInterrupt):
            store.ask(owners.RUN)
    assert (state(store, 0), store.trials()[0].params) == (TrialState.WAITING, {})
    asked = store.ask(owners.RUN)  # the same trial, sampled at last
    assert asked.number == 0
    assert set(asked.params) == {"a", "n", "c"}


def test_a_resumed_study_goes_on_as_it_would_have(tmp_path):
    (tmp_path / "x").mkdir()
    whole, pieces = opened(tmp_path, method='"auto"'), opened(tmp_path / "x", method='"auto"')
    for i in range(14):
        if i == 11:
            pieces = Store.open(pieces.study, create=True)
        a, b = whole.ask(owners.RUN), pieces.ask(owners.RUN)
        assert (a.number, a.params) == (b.number, b.params)
        for store, asked in ((whole, a), (pieces, b)):
            store.tell(asked.number, asked.params, Outcome(asked.params["a"] ** 2 + asked.params["n"]))


def test_without_a_seed_one_is_drawn_and_kept(tmp_path):
    path = write_study(tmp_path)
    path.write_text(path.read_text().replace("seed = 1", ""))
    first = Store.open(load(path), create=True)
    assert Store.open(load(path), create=True).seed == first.seed
    path.write_text("seed = 7\n" + path.read_text())
    assert Store.open(load(path), create=True).seed == 7


def test_enqueued_trials_of_optuna_users_come_first(tmp_path):
    store = opened(tmp_path)
    study = optuna.load_study(study_name="study", storage=store.study.storage)
    study.enqueue_trial({"n": 7})
    asked = store.ask(owners.RUN)
    assert (asked.number, asked.params["n"]) == (0, 7)
    assert 0.0 <= asked.params["a"] <= 2.0
    store.tell(asked.number, asked.params, Outcome(1.0))
    assert study.best_value == 1.0


def test_two_runs_never_spend_more_than_the_budget(tmp_path):
    study = opened(tmp_path).study
    with ThreadPoolExecutor(4) as threads:  # four stores, as four processes have

        def work(_):
            store, taken = Store.open(study, create=True), 0
            while (asked := store.ask(owners.RUN, 20)) is not None:
                store.tell(asked.number, asked.params, Outcome(1.0))
                taken += 1
            return taken

        taken = list(threads.map(work, range(4)))
    store = Store.open(study, create=False)
    assert sum(taken) == store.counts().finished == 20
    assert [trial.number for trial in store.trials()] == list(range(20))  # nor leave one behind


def test_waiting_trials_stay_within_a_smaller_budget(tmp_path):
    store = opened(tmp_path)
    for asked in [store.ask(owners.RUN) for _ in range(6)]:
        store.release(asked)
    store.ask(owners.HAND)  # in somebody's hands: the budget does not pay for it
    with ThreadPoolExecutor(6) as threads:
        stores_ = [Store.open(store.study, create=True) for _ in range(6)]
        found = list(threads.map(lambda other: other.ask(owners.RUN, 4), stores_))
    assert sum(asked is not None for asked in found) == 4
    assert (store.counts().running, store.counts().waiting, store.counts().open) == (4, 2, 1)


def test_numbers_stay_unique_beside_scripts_of_optuna(tmp_path):
    store = opened(tmp_path)
    study = optuna.load_study(study_name="study", storage=store.study.storage)
    with ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(store.ask, owners.HAND) for _ in range(10)]
        jobs += [threads.submit(study.add_trial, optuna.trial.create_trial(value=1.0)) for _ in range(10)]
        for job in jobs:
            job.result()
    assert [trial.number for trial in store.trials()] == list(range(20))


# --- corrections ---


def test_a_value_can_be_corrected_and_the_old_one_stays_on_record(tmp_path):
    store = opened(tmp_path)
    asked = store.ask(owners.HAND)
    store.tell(asked.number, asked.params, Outcome(0.031))
    store.replace(store.trials()[0], Outcome(0.31))
    assert store.best().value == Store.open(store.study, create=False).best().value == 0.31
    store.replace(store.trials()[0], Outcome(reason="wrong sample"))
    assert (store.best(), state(store, 0)) == (None, TrialState.FAIL)
    store.replace(store.trials()[0], Outcome(0.4))
    trial = store.trials()[0]
    assert (trial.value, trial.user_attrs[stores.OLD_VALUES]) == (0.4, [0.031, 0.31, "wrong sample"])
    assert optuna.load_study(study_name="study", storage=store.study.storage).best_value == 0.4


# --- processes that end ---


def test_a_trial_of_a_dead_process_is_run_again_with_number_and_parameters(tmp_path):
    store = opened(tmp_path)
    lost = orphan(store, dead_owner())
    mine = store.ask(owners.RUN)
    assert store.recover() == [lost.number]
    assert [state(store, n) for n in (lost.number, mine.number)] == [TrialState.WAITING, TrialState.RUNNING]
    assert store.recover() == []
    assert store.ask(owners.RUN) == lost
    assert store.counts().failed == 0


def test_a_trial_that_ends_every_process_fails_at_last(tmp_path):
    store = opened(tmp_path)
    for _ in range(10):
        assert store.counts().finished == 0
        orphan(store, dead_owner())
        assert store.recover() == [0]
    assert state(store, 0) == TrialState.FAIL
    assert "process died 10 times" in store.trials()[0].user_attrs[REASON]


def test_trials_by_hand_wait_for_ever(tmp_path, monkeypatch):
    store = opened(tmp_path)
    orphan(store, dead_owner(owners.HAND))
    monkeypatch.setattr(stores, "_GRACE", -1.0)
    assert store.recover() == []
    assert (store.counts().open, store.counts().running) == (1, 0)


def test_processes_elsewhere_are_judged_by_their_silence(tmp_path, monkeypatch):
    store = opened(tmp_path)
    elsewhere = dead_owner() | {"place": "another machine"}
    beating = orphan(store, elsewhere)
    silent = orphan(store, elsewhere | {"pid": 1})
    store.beat([beating.trial_id])
    assert store.recover() == []
    monkeypatch.setattr(tables, "silent_for", lambda rdb: {beating.trial_id: 10.0, silent.trial_id: 301.0})
    assert store.recover() == [silent.trial_id - beating.trial_id]


def test_the_heartbeat_of_the_last_owner_does_not_count_against_the_next(tmp_path):
    store = opened(tmp_path)
    lost = orphan(store, dead_owner())
    store.beat([lost.trial_id])
    store.recover()
    assert tables.silent_for(store._rdb) == {}
    store.ask(owners.RUN)
    assert 0.0 <= tables.silent_for(store._rdb)[lost.trial_id] < 60.0


def test_of_two_who_find_a_lost_trial_one_takes_it(tmp_path):
    store = opened(tmp_path)
    owner = dead_owner()
    for _ in range(5):
        lost = orphan(store, owner)
        with ThreadPoolExecutor(8) as threads:
            tries = [threads.submit(tables.release, store._rdb, lost.trial_id, owner, {}) for _ in range(8)]
            released = [future.result() for future in tries]
            others = [owner | {"pid": i} for i in range(8)]
            claimed = [f.result() for f in [threads.submit(tables.claim, store._rdb, lost.trial_id, o) for o in others]]
        assert released.count(True) == claimed.count(True) == 1
        # Whoever was slow must not take it from its new owner.
        assert not tables.release(store._rdb, lost.trial_id, owner, {})
        store.tell(lost.number, lost.params, Outcome(1.0))


def test_a_value_that_comes_late_is_kept(tmp_path):
    store = opened(tmp_path)
    asked = store.ask(owners.RUN)
    assert tables.release(store._rdb, asked.trial_id, owners.me(owners.RUN), {})  # as if we had seemed dead
    store.tell(asked.number, asked.params, Outcome(0.25))
    again = store.ask(owners.RUN)
    store.tell(again.number, again.params, Outcome(0.5))
    assert sorted(t.value for t in store.trials()) == [0.25, 0.5]
    assert all(t.params == asked.params for t in store.trials())


def test_owners():
    mine = owners.me(owners.RUN)
    assert not owners.is_gone(mine)
    assert owners.is_gone(mine | {"started": "12"})  # its number belongs to another now
    assert not owners.is_gone(mine | {"place": "elsewhere", "pid": 2**22 - 1})
    assert owners.is_gone(dead_owner())
    assert str(os.getpid()) in owners.described(mine)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_process_that_ended_and_was_not_collected_is_gone():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        owner = owners.me(owners.RUN) | {"pid": process.pid, "started": owners._started(process.pid)}
        assert not owners.is_gone(owner)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is there still
        os.kill(process.pid, 0)
        assert owners.is_gone(owner)


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
    opened(tmp_path).ask(owners.HAND)
    study = changed(tmp_path, old, new)
    for create in (True, False):
        with pytest.raises(StoreError) as caught:
            Store.open(study, create=create)
        for word in (*words, "another name", "sumbo export"):
            assert word in str(caught.value)


@pytest.mark.parametrize("method", ['"random"', '"auto"'])
def test_what_fits_goes_on(method, tmp_path):
    store = opened(tmp_path, method=method)
    for value in range(12):
        asked = store.ask(owners.RUN)
        store.tell(asked.number, asked.params, Outcome(0.01 * value - asked.params["a"]))
    wider = changed(tmp_path, "high = 2.0", "high = 4.0")
    store = Store.open(wider, create=True)
    assert "a now goes from 0.0 to 4.0" in store.notes[0]
    asked = [store.ask(owners.RUN).params["a"] for _ in range(8)]
    assert max(asked) > 2.0
    narrower = Store.open(changed(tmp_path, "high = 4.0", "high = 0.5"), create=True)
    assert "no longer guide the search" in narrower.notes[0]
    assert all(narrower.ask(owners.RUN).params["a"] <= 0.5 for _ in range(4))
    assert Store.open(narrower.study, create=True).notes == []


# --- places that are not as they should be ---


def test_a_study_that_was_not_begun(tmp_path):
    study = load(write_study(tmp_path))
    with pytest.raises(StoreError, match="no such study yet"):
        Store.open(study, create=False)
    assert list(tmp_path.iterdir()) == [tmp_path / "study.toml"]
    opened(tmp_path)
    with pytest.raises(StoreError, match="has no trials yet"):
        Store.open(dataclasses.replace(study, name="other"), create=False)


def test_folders_and_files_that_are_not_databases(tmp_path):
    study = load(write_study(tmp_path, 'storage = "sqlite:///missing/x.db"'))
    with pytest.raises(StoreError, match="expected a folder"):
        Store.open(study, create=True)
    (tmp_path / "x.db").write_text("this is not a database, whatever its name says. " * 20)
    study = load(write_study(tmp_path, 'storage = "sqlite:///x.db"'))
    with pytest.raises(StoreError, match="not a database"):
        Store.open(study, create=True)


def test_passwords_are_never_shown(tmp_path):
    url = "postgresql://me:hunter2@127.0.0.1:1/db"
    assert shown(url) == "postgresql://me:***@127.0.0.1:1/db"
    with pytest.raises(StoreError) as caught:
        Store.open(load(write_study(tmp_path, f'storage = "{url}"')), create=True)
    assert "hunter2" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
    assert (
        shown("postgresql://me:hunter2@@x:2@host/db?password=hunter2&a=b")
        == "postgresql://me:***@host/db?password=***&a=b"
    )
    for bad in ("postgresql://me:hunter2@host:port/db", "postgresql://me:@hunter2@[::1/db"):
        with pytest.raises(StoreError) as caught:
            Store.open(load(write_study(tmp_path, f'storage = "{bad}"')), create=True)
        assert "hunter2" not in str(caught.value)


def test_the_space_of_a_damaged_study(tmp_path):
    store = opened(tmp_path)
    study = optuna.load_study(study_name="study", storage=store.study.storage)
    study.set_user_attr("sumbo:study", {"space": {"params": [3]}})
    with pytest.raises(StoreError, match="cannot be read"):
        Store.open(store.study, create=True)
