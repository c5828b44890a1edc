"""The benchmark of many workers: its virtual clock, and its page."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def parallel():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("parallel")
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_a_virtual_run_is_the_same_every_time_and_quicker_with_more_workers(parallel):
    one, four, again = (parallel.run(parallel.Task("virtual", "additive-10-3-3", w, 0, 16)) for w in (1, 4, 4))
    assert four["simple_regret"] == again["simple_regret"]
    assert four["virtual_time"] == again["virtual_time"]
    assert 8 < one["virtual_time"] < 24
    assert one["virtual_time"] / 6 < four["virtual_time"] < one["virtual_time"] / 2


def test_the_page_keeps_what_people_wrote(parallel, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{parallel.BEGIN}\nold\n{parallel.END}\nafter\n")
    line = {"clock": "real", "problem": "p", "workers": 8, "seed": 0, "budget": 300, "version": "0"}
    line |= {"utilisation": 0.934, "seconds": 150.0, "load": [1.0, 2.0], "cores": 2}
    parallel.write_page({parallel.task_of(line): line}, page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "93.4%" in text
    assert "old" not in text
