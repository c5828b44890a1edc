"""Thresholds of the face detector: the fast evaluator against OpenCV's own, and pictures of one's own."""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import cv2
import numpy as np
import pytest

import sumbo
from sumbo.errors import MissingPackageError, SettingError
from sumbo.problems import faces as make_faces
from sumbo.problems.faces import Cascade, _half, _installed, accepted, windows

OPENCV = Path(cv2.data.haarcascades, "haarcascade_frontalface_alt.xml")


@pytest.fixture(scope="module")
def cascade():
    return Cascade.read(OPENCV)


@pytest.fixture(scope="module")
def train():
    return make_faces(0)


@pytest.fixture(scope="module")
def pictures():
    """A few faces and other pictures, as windows of the cascade's size."""
    yes, no = _installed(cv2, "train", np.random.default_rng(0))
    some = [*yes[:200:10], *no[::12]]
    return np.concatenate([windows(cv2, picture, 20)[::3] for picture in some])


def with_thresholds(thresholds, path):
    """OpenCV's file with other thresholds."""
    tree = ElementTree.parse(OPENCV)
    for stage, value in zip(tree.getroot().findall("cascade/stages/_"), thresholds, strict=True):
        stage.find("stageThreshold").text = repr(float(value))
    tree.write(path, xml_declaration=True)
    return cv2.CascadeClassifier(str(path))


@pytest.mark.parametrize("seed", range(4))
def test_windows_pass_that_pass_in_opencv(seed, cascade, pictures, tmp_path):
    width = 0.05 * seed  # 0: OpenCV's own
    rng = np.random.default_rng(seed)
    thresholds = cascade.thresholds * (1.0 - width * rng.random(len(cascade.thresholds)))
    detector = with_thresholds(thresholds, tmp_path / "cascade.xml")
    expected = [len(detector.detectMultiScale(P, 1.1, 0, 0, (20, 20), (20, 20))) > 0 for P in pictures]
    assert 10 < sum(expected) < len(pictures) - 10
    np.testing.assert_array_equal(accepted(cascade.stage_sums(pictures), thresholds[None])[0], expected)


def test_windows_left_out_early_change_nothing(train, cascade):
    yes, no = _installed(cv2, "train", np.random.default_rng(0))
    lows, highs = (np.array([getattr(p, end) for p in train.space.parameters]) for end in ("low", "high"))
    X = np.vstack([cascade.thresholds, lows, *np.random.default_rng(1).uniform(lows, highs, (3, len(lows)))])
    passed = [accepted(cascade.stage_sums(windows(cv2, P, 20)), X).any(axis=1) for P in (*yes, *no)]
    right = np.array(passed) == (np.arange(len(passed)) < len(yes))[:, None]
    np.testing.assert_allclose(train.values(X), right.mean(axis=0))


def test_opencv_is_good_and_not_the_best(train):
    held_out = make_faces(0, part="held-out")
    assert train.dim == 22
    for problem in (train, held_out):
        assert 0.92 < problem(problem.optimiser) < 0.99
    assert train(train.optimiser) != held_out(train.optimiser)
    found = sumbo.maximize(train, train.space, 30, seed=0, progress=False)
    assert found.value > train(train.optimiser)


def test_the_halves_share_nothing():
    items = list(range(41))
    parts = [_half(items, part, np.random.default_rng(3)) for part in ("train", "held-out")]
    assert sorted(parts[0] + parts[1]) == items
    assert parts[0] != _half(items, "train", np.random.default_rng(4))


def test_pictures_of_ones_own(tmp_path, train):
    yes, no = _installed(cv2, "held-out", np.random.default_rng(0))
    for name, some in (("yes", yes[:6]), ("no", no[-6:])):
        (tmp_path / name).mkdir()
        for i, picture in enumerate(some):
            cv2.imwrite(str(tmp_path / name / f"{i}.png"), picture)
    (tmp_path / "yes" / "notes.txt").write_text("not a picture")
    own = make_faces(0, faces=tmp_path / "yes", nonfaces=tmp_path / "no", cascade=OPENCV)
    assert len(own.evaluate.keywords["is_face"]) == 6  # half of twelve
    assert own(own.optimiser) >= 0.5
    assert own.space.names == train.space.names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"faces": "somewhere"}, "go together"),
        ({"faces": "nowhere", "nonfaces": "nowhere"}, "expected a folder"),
        ({"cascade": "nowhere.xml"}, "cannot be read"),
        ({"part": "test"}, 'must be "train" or "held-out"'),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_what_cannot_be_used_is_said(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match=message):
        make_faces(**options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<opencv_storage></opencv_storage>", "no <cascade>"),
        ("<a><cascade><width>20</width><height>24</height></cascade></a>", "no square"),
        ("<a><cascade><width>20</width></cascade></a>", "no <height>"),
        ("nothing of the kind", "cannot be read"),
    ],
)
def test_files_that_hold_no_such_cascade(text, message, tmp_path):
    path = tmp_path / "cascade.xml"
    path.write_text(text)
    with pytest.raises(SettingError, match=message):
        Cascade.read(path)


def test_trees_are_refused(tmp_path):
    with pytest.raises(SettingError, match="a stump has 4"):
        Cascade.read(Path(cv2.data.haarcascades, "haarcascade_frontalface_alt2.xml"))


def test_a_broken_picture_is_named(tmp_path):
    for name in ("yes", "no"):
        (tmp_path / name).mkdir()
        for i in range(2):
            cv2.imwrite(str(tmp_path / name / f"{i}.png"), np.zeros((30, 30), np.uint8))
    broken = tmp_path / "no" / "0.png"
    broken.write_bytes(broken.read_bytes()[:40])
    with pytest.raises(SettingError, match=r"0\.png: expected a picture"):
        make_faces(0, faces=tmp_path / "yes", nonfaces=tmp_path / "no")


def test_without_opencv_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'sumbo\[faces\]'"):
        sumbo.problems.get("faces")
