"""One BLAS thread inside, what it was outside."""

import re
import threading

import pytest
import scipy.linalg  # noqa: F401 - loads its OpenBLAS before threads are counted
from threadpoolctl import threadpool_info, threadpool_limits

from sumbo.gp.threads import on_one_thread, one_thread


def counts():
    """Of NumPy's and SciPy's; other tests may have loaded packages that bring one more."""
    ours = [e for e in threadpool_info() if e["internal_api"] == "openblas" and re.search("numpy|scipy", e["filepath"])]
    return [entry["num_threads"] for entry in ours]


@pytest.fixture(autouse=True)
def two():
    with threadpool_limits(2):
        if set(counts()) != {2}:
            pytest.skip("no OpenBLAS with more than one thread here")
        yield


def test_one_inside_and_as_before_outside():
    with one_thread():
        assert set(counts()) == {1}
        with one_thread():
            assert set(counts()) == {1}
        assert set(counts()) == {1}
    assert set(counts()) == {2}


def test_as_before_after_an_error():
    @on_one_thread
    def fails():
        raise KeyError("x")

    with pytest.raises(KeyError):
        fails()
    assert set(counts()) == {2}


def test_overlapping_uses_from_several_threads():
    inside, leave = threading.Barrier(3), threading.Event()

    def work():
        with one_thread():
            inside.wait(10)
            leave.wait(10)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    inside.wait(10)
    with one_thread():
        pass
    assert set(counts()) == {1}  # the others are still inside
    leave.set()
    for worker in workers:
        worker.join()
    assert set(counts()) == {2}
