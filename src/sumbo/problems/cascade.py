"""A cascade of boosted stumps (Viola and Jones), evaluated on whole windows with NumPy.

What a stage sums up does not depend on its threshold: it is computed once for each picture, and any vector of
thresholds is then judged by comparisons alone.

| symbol | shape       | meaning                                                              |
|--------|-------------|----------------------------------------------------------------------|
| P      | (n, w, w)   | grey pictures of the cascade's window                                |
| W      | (k, w w)    | rectangles of the k stumps as weights of pixels                      |
| S      | (n, stages) | sum of each stage; a picture of too little contrast has -inf         |
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sumbo.errors import SettingError
from sumbo.regret import FloatArray

_SLACK = 1e-5  # OpenCV passes a stage that misses its threshold by less
_LEAST_CONTRAST = 10.0  # and refuses windows whose inner pixels have a smaller standard deviation


@dataclass(frozen=True, eq=False)
class Cascade:
    """Stages of stumps on rectangles of pixels.

    Attributes:
        size: Width and height of the window.
        thresholds: What each stage's sum must reach, as the file has it; shape (stages,).
        weights, cuts, leaves: Of every stump, its pixels' weights (k, size * size), where it splits (k,), and what it
            gives below and above (k, 2).
        stage_of: The stage of every stump, (k,).
    """

    size: int
    thresholds: FloatArray
    weights: FloatArray = field(repr=False)
    cuts: FloatArray = field(repr=False)
    leaves: FloatArray = field(repr=False)
    stage_of: NDArray[np.int64] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> Cascade:
        """The cascade of a file in OpenCV's present format.

        Raises:
            SettingError: The file cannot be read, or holds something else: trees that are no stumps, features that
                are no upright rectangles, a window that is no square.
        """
        try:
            root = ElementTree.parse(path).getroot().find("cascade")
        except (OSError, ElementTree.ParseError) as error:
            raise SettingError(f"{path}: expected a cascade file of OpenCV; it cannot be read: {error}") from None
        try:
            if root is None:
                raise ValueError("there is no <cascade> in it")
            return cls._parsed(root)
        except (ValueError, IndexError, AttributeError) as error:
            raise SettingError(
                f"{path}: expected a cascade of stumps on upright rectangles in a square window, such as "
                f"haarcascade_frontalface_alt.xml; {error}"
            ) from None

    @classmethod
    def _parsed(cls, root: ElementTree.Element) -> Cascade:
        size = int(_text(root, "width"))
        if size != int(_text(root, "height")):
            raise ValueError("the window is no square")
        rectangles = [_rectangles(feature, size) for feature in root.findall("features/_")]
        thresholds, features, cuts, leaves, stage_of = [], [], [], [], []
        for s, stage in enumerate(root.findall("stages/_")):
            thresholds.append(float(_text(stage, "stageThreshold")))
            for stump in stage.findall("weakClassifiers/_"):
                _, _, feature, cut = _numbers(stump, "internalNodes", 4)
                features.append(int(feature))
                cuts.append(cut)
                leaves.append(_numbers(stump, "leafValues", 2))
                stage_of.append(s)
        return cls(
            size,
            np.array(thresholds),
            np.array([rectangles[i] for i in features]),
            np.array(cuts),
            np.array(leaves),
            np.array(stage_of, dtype=np.int64),
        )

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.thresholds)

    def stage_sums(self, P: NDArray[np.uint8], least: FloatArray | None = None) -> FloatArray:
        """What every stage sums up on every picture, (n, stages); -inf where there is too little contrast.

        Args:
            P: Pictures of the window's size, (n, size, size).
            least: Thresholds below which none will be asked for. From the stage on where a picture misses these, its
                sums are -inf: it costs no more work, and most pictures fail early.
        """
        pixels = P.astype(np.float64)
        inner = pixels[:, 1:-1, 1:-1].reshape(len(P), -1)
        area = float(inner.shape[1])
        # OpenCV's norm: area times the standard deviation of the inner pixels.
        norm = np.sqrt(np.maximum(area * np.square(inner).sum(axis=1) - np.square(inner.sum(axis=1)), 0.0))
        sums = np.full((len(P), self.stages), -np.inf)
        alive = np.flatnonzero(norm > _LEAST_CONTRAST * area)
        scaled = pixels[alive].reshape(len(alive), self.size**2) / norm[alive, None]
        for s in range(self.stages):
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
