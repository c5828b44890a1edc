"""The guide to structure: its code runs, and prints what it says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "structure.md"
NUMBER = re.compile(r"\d+\.\d+")
UNLIKELY = re.compile(r"\n(?:.*\s0\.0\d|\.\.\. and \d+ more)(?=\n|$)")


def test_the_code_of_the_guide_prints_what_the_guide_shows():
    names: dict = {}
    printed, shown = [], []
    for kind, block in re.findall(r"```(python|text)\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL):
        if kind == "text":
            shown.append(block.strip())
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block, str(GUIDE), "exec"), names)
        if out.getvalue():
            printed.append(out.getvalue().strip())
    assert len(shown) == len(printed) >= 4
    for expected, got in zip(shown, printed, strict=True):
        # The last digits may depend on the machine, and with them which of the unlikely pairs are shown.
        got, expected = UNLIKELY.sub("", got), UNLIKELY.sub("", expected)
        assert NUMBER.sub("#", got) == NUMBER.sub("#", expected)
        numbers = [[float(n) for n in NUMBER.findall(text)] for text in (got, expected)]
        assert numbers[0] == pytest.approx(numbers[1], abs=0.05)
