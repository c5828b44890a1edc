"""Evaluations in a real Dask cluster of worker processes, one of which is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest
from studies import call, lines_of, until, write_study

from sumbo import minimize, replay

distributed = pytest.importorskip("distributed", reason="Dask is not installed (pip install 'sumbo[dask]')")

pytestmark = [
    pytest.mark.filterwarnings("default:::distributed"),  # what Dask says of itself is not ours to answer for
    pytest.mark.filterwarnings("default:::dask"),
]


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as made:
        yield made


def slow_bowl(x):
    time.sleep(0.15)
    if x[0] > 0.9:
        raise ValueError("too far right")
    return float(((x - 0.3) ** 2).sum())


def test_a_run_outlives_a_killed_dask_worker(cluster):
    killed = []

    def kill_one(opt, trial):
        if not killed:
            pids = client.run(os.getpid)
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    with distributed.Client(cluster) as client, client.get_executor() as executor:
        result = minimize(
            slow_bowl, [(0, 1)] * 3, 16, seed=0, executor=executor, workers=2, callback=kill_one, progress=False
        )
        until(lambda: len(client.run(os.getpid)) == 2, 60)  # Dask starts another
    assert killed
    assert len(result.trials) == 16
    for trial in result.trials:
        assert trial.reason == ("ValueError: too far right" if trial.x[0] > 0.9 else None)
    assert replay(result.optimizer).exact


def test_a_study_in_a_dask_cluster(cluster, tmp_path):
    (tmp_path / "dasked.py").write_text("import os\ndef f(p):\n    return p['a'] + p['n'] + 0.0 * os.getpid()\n")
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    path = write_study(tmp_path, f'objective = "dasked:f"\nbudget = 12\nexecutor = "{address}"')
    answer = call("run", path)
    assert answer["counts"]["done"] == 12
    assert all(t["value"] == t["params"]["a"] + t["params"]["n"] for t in call("export", path)["trials"])
    assert call("replay", path)["exact"]


# Dask tries for as long to come back to a scheduler as it was given to reach it.
IMPATIENT = """
import sys
import sumbo.study.run
from sumbo.cli import main

sumbo.study.run._REACH = 5.0
sys.exit(main(sys.argv[1:]))
"""


def test_a_cluster_that_goes_away_ends_the_run_with_what_to_do(tmp_path):
    log = tmp_path / "log"
    text = (
        f"import time\ndef f(p):\n    time.sleep(0.1)\n    open({str(log)!r}, 'a').write('x\\n')\n    return p['a']\n"
    )
    (tmp_path / "slow.py").write_text(text)
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    path = write_study(tmp_path, f'objective = "slow:f"\nbudget = 200\nexecutor = "{address}"')
    run = subprocess.Popen([sys.executable, "-c", IMPATIENT, "run", str(path)], stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: len(lines_of(log)) >= 3, 60)
        cluster.close()
        errors = run.communicate(timeout=90)[1]
    finally:
        run.kill()
    assert run.returncode == 1
    assert f"executor {address} takes no more work" in errors
    assert "start it and run again" in errors
    assert "Traceback" not in errors
    assert call("show", path)["counts"]["done"] >= 2


def test_a_cluster_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr("sumbo.study.run._REACH", 1.0)
    from sumbo.errors import StudyFileError
    from sumbo.study.files.toml import load
    from sumbo.study.run import evaluator_of

    study = load(write_study(tmp_path, 'objective = "m:f"\nexecutor = "dask://127.0.0.1:1"'))
    with pytest.raises(StudyFileError, match=r"no Dask scheduler answers at dask://127.0.0.1:1 .*start it"):
        evaluator_of(study, study.objective, None)


def test_a_cluster_without_workers(tmp_path):
    from sumbo.errors import StudyFileError
    from sumbo.study.files.toml import load
    from sumbo.study.run import evaluator_of

    with distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as empty:
        address = empty.scheduler_address.replace("tcp://", "dask://")
        study = load(write_study(tmp_path, f'objective = "m:f"\nexecutor = "{address}"'))
        with pytest.raises(StudyFileError, match="has no workers yet; say workers = N"):
            evaluator_of(study, study.objective, None)
