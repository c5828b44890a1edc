"""Hard spaces, histories and values: a few hundred examples; `make fuzz` runs the same properties on many more."""

import pytest
from fuzz.properties import PROPERTIES
from hypothesis import HealthCheck, given, settings


@pytest.mark.parametrize("name", PROPERTIES)
def test_it_holds_whatever_comes(name):
    chosen = PROPERTIES[name]

    # The same examples every time: a test that fails now and then helps nobody, and `make fuzz` looks for new ones.
    @settings(max_examples=chosen.few, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(**chosen.examples)
    def check(**example):
        chosen.check(**example)

    check()
