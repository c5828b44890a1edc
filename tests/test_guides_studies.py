"""The guides about studies: what they tell a reader to do works."""

import csv
import re
from pathlib import Path

import pytest
from studies import call

GUIDES = Path(__file__).parents[1] / "docs" / "guides"


@pytest.fixture
def write(tmp_path):
    """Writes the first block of a language in a guide to a file."""

    def _write(guide, language, name):
        text = (GUIDES / guide).read_text(encoding="utf-8")
        block = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL).group(1)
        path = tmp_path / name
        path.write_text(block, encoding="utf-8")
        return path

    return _write


def test_five_minutes(write):
    write("five-minutes.md", "python", "wing.py")
    answer = call("run", write("five-minutes.md", "toml", "wing.toml"))
    assert answer["counts"]["done"] == 30
    assert answer["value"] < 1.0


def test_parameters_of_all_shapes(tmp_path):
    text = (GUIDES / "five-minutes.md").read_text(encoding="utf-8")
    path = tmp_path / "wing.toml"
    path.write_text('goal = "minimize"\n' + re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[1], encoding="utf-8")
    (trial,) = call("ask", path, "--context", "wind=12", "--fix", "angle=3")["trials"]
    assert (trial["params"]["angle"], trial["context"]) == (3.0, {"wind": 12.0})
    assert call("tell", path, "--trial", 0, "0.31", "--constraint", "stress=240", "--std", "0.05")["told"] == [0]
    assert call("best", path)["value"] == 0.31
    assert call("best", path, "--denoised", "--context", "wind=12")["params"]["wind"] == 12.0


def test_by_hand(write, tmp_path):
    study, batch = write("by-hand.md", "toml", "glue.toml"), tmp_path / "batch.csv"
    call("ask", study, "-n", 4, "--csv", batch)
    rows = list(csv.reader(batch.read_text().splitlines()))
    assert rows[0][-1] == "value to maximize"
    for row, value in zip(rows[1:], ("1.5", "", "failed: the glue came off", "0.5"), strict=True):
        row[-1] = value
    rows.append(["", "61", "3", "epoxy", "0.7"])
    with batch.open("w") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    told = call("tell", study, batch)
    assert (told["told"], told["added"]) == ([0, 2, 3], [4])
    assert call("best", study)["value"] == 1.5
    assert call("tell", study, "--trial", 1, "0.31")["told"] == [1]


def test_any_program(write):
    sim = write("any-program.md", "sh", "sim")
    sim.chmod(0o755)
    answer = call("run", write("any-program.md", "toml", "sim.toml"))
    assert answer["value"] == answer["params"]["angle"]
    assert answer["counts"]["done"] == 20


def test_links_between_guides_lead_somewhere():
    for guide in GUIDES.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", guide.read_text(encoding="utf-8")):
            assert (guide.parent / target).exists(), (guide.name, target)
