"""Compiled functions where the machine code cannot be stored."""

import numba
import numpy as np
import pytest

from sumbo import _loops


def double(x):
    return 2.0 * x


def test_without_a_folder_for_machine_code_it_compiles_all_the_same(monkeypatch):
    njit = numba.njit

    def no_folder(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*arguments, **options)

    monkeypatch.setattr(_loops.numba, "njit", no_folder)
    with pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR to a folder that can be written to"):
        compiled_double = _loops.loops(double)
    assert compiled_double(1.5) == 3.0


@pytest.mark.parametrize("value", [0.0, -1.5, 3.25e-300, float("inf")])
def test_bits_go_there_and_back(value):
    @_loops.exact
    def there_and_back(x):
        return np.int64(np.float64(x).view(np.int64)).view(np.float64)

    assert there_and_back(value) == value
