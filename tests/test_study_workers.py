"""A study's objective in worker processes: answers, exceptions, hangs, deaths."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import closing

import pytest
from studies import is_running, kill, lines_of, until, write_program

from sumbo.executors.objectives import Function, Job, Program
from sumbo.study.run import processes

MODULE = """
import os, sys, time

def f(params):
    x = params["x"]
    if x == "pid":
        return os.getpid()
    if x == "hang":
        time.sleep(1000)
    if x == "die":
        os.kill(os.getpid(), 9)
    if x == "exit":
        sys.exit("enough")
    if x == "raise":
        raise ValueError("no mesh")
    if x == "mutate":
        params.clear()
        return 5
    if x == "print":
        print("noise")
        return 6
    return x
"""


def function(folder, name="f"):
    (folder / "model.py").write_text(MODULE)
    return Function("model", name, str(folder))


def results(workers, jobs):
    """Run the jobs one after the other; their results."""
    return [workers.submit(Job("study", i, {"x": x})).result(120) for i, x in enumerate(jobs)]


def test_every_way_to_answer_and_to_fail(tmp_path, capfd):
    jobs = [1, 2.5, "pid", "raise", "exit", "mutate", "print", float("nan"), "text", "pid"]
    with closing(processes(function(tmp_path), 1, None)) as workers:
        found = results(workers, jobs)
    assert [o.value for o in found[:2]] == [1.0, 2.5]
    assert found[2].value == found[9].value != os.getpid()  # one process, that outlives failures
    assert (found[3].value, found[3].reason) == (None, "ValueError: no mesh")
    assert "model.py" in found[3].detail
    assert found[4].reason == "SystemExit: enough"
    assert (found[5].value, found[6].value) == (5.0, 6.0)
    assert found[7].reason == "value was nan"
    assert "must return a single real number; got str 'text'" in found[8].reason
    out, err = capfd.readouterr()
    assert (out, "noise" in err) == ("", True)  # standard output is for sumbo's answer


def test_a_dead_worker_and_a_hanging_one_are_replaced_alone(tmp_path):
    with closing(processes(function(tmp_path), 2, 5.0)) as workers:
        began = time.monotonic()
        hanging = workers.submit(Job("study", 0, {"x": "hang"}))
        died, after = (workers.submit(Job("study", i, {"x": x})) for i, x in ((1, "die"), (2, 7)))
        assert died.result(60).reason == "the worker process died (signal 9, SIGKILL)"
        assert after.result(60).value == 7.0
        assert not hanging.done()
        assert hanging.result(60).reason == "took longer than timeout = 5 seconds"
        assert 4.5 < time.monotonic() - began < 40
        assert results(workers, [8, 9])[1].value == 9.0


@pytest.mark.parametrize("name", ["nothing", "os.nothing"])
def test_functions_that_are_not_there_are_reasons(name, tmp_path):
    with closing(processes(function(tmp_path, name), 1, None)) as workers:
        assert "AttributeError" in results(workers, [1])[0].reason


def test_programs_in_workers(tmp_path):
    write_program(tmp_path, 'echo "$1"')
    program = Program(("./sim", "{x}"), "arguments", "last-line", str(tmp_path), 60.0)
    with closing(processes(program, 1, 60.0)) as workers:
        assert [o.value for o in results(workers, [1, 2.5])] == [1.0, 2.5]


DRIVER = """
import os, time
from contextlib import closing
from sumbo.study.run import processes
from sumbo.executors.objectives import Job, Program

program = Program(("./sim",), "stdin", "last-line", FOLDER, None)
with closing(processes(program, 1, None)) as workers:
    future = workers.submit(Job("study", 0, {}))
    while LEAVE:
        if os.path.exists("pids") and len(open("pids").readlines()) == 2:
            raise SystemExit
        time.sleep(0.02)
    future.result()
"""


@pytest.mark.parametrize("end", ["leave", "kill"])
def test_nothing_outlives_the_process_that_started_it(end, tmp_path):
    write_program(tmp_path, "echo $$ >> pids; echo $PPID >> pids; sleep 100")
    driver = tmp_path / "driver.py"
    driver.write_text(
        textwrap.dedent(DRIVER).replace("FOLDER", repr(str(tmp_path))).replace("LEAVE", str(end == "leave"))
    )
    with subprocess.Popen([sys.executable, driver], cwd=tmp_path) as process:
        until(lambda: len(lines_of(tmp_path / "pids")) == 2)
        if end == "kill":
            kill(process.pid)
        assert process.wait(30) == (-signal.SIGKILL if end == "kill" else 0)
    for pid in map(int, lines_of(tmp_path / "pids")):
        until(lambda pid=pid: not is_running(pid), 60)
