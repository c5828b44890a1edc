"""How many points to have ready for workers that are about to be free.

A suggestion takes time, now and then some seconds, when the model is learned anew. A worker that ends must not wait for
it. So points are asked for ahead, and wait in front of the workers. Each does without what the evaluations that run
will tell, so there are no more of them than the speed of both sides asks for, and none where they would bring next to
nothing: beside an evaluation of a minute half a second of waiting is no matter, and where suggestions take longer than
all workers together need to use them up, workers wait in any case. A worker alone gets each point when all others are
told: such a run is the same on every machine.
"""

import math
from collections import deque

_LATEST = 30  # suggestions and evaluations that count
_WORTHWHILE = 1.02  # times as many evaluations in the same time, at least, for points to be asked ahead


class Prefetcher:
    """Watches how long suggestions and evaluations take."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._suggestions: deque[float] = deque(maxlen=_LATEST)
        self._evaluations: deque[float] = deque(maxlen=_LATEST)

    def suggested(self, seconds: float) -> None:
        """A suggestion took so long."""
        self._suggestions.append(seconds)

    def evaluated(self, seconds: float) -> None:
        """An evaluation took so long."""
        self._evaluations.append(seconds)

    @property
    def wanted(self) -> int:
        """As many points as workers end during the slowest of the latest suggestions; never more than workers."""
        if self._workers == 1 or not self._suggestions or not self._evaluations:
            return 0
        suggestion = sum(self._suggestions) / len(self._suggestions)
        evaluation = max(sum(self._evaluations) / len(self._evaluations), 1e-6)
        # Seconds from one evaluation's end to the next one's: one driver suggests, all workers evaluate.
        waiting = max(suggestion, (evaluation + suggestion) / self._workers)
        ready = max(suggestion, evaluation / self._workers)
        if waiting <= _WORTHWHILE * ready:
            return 0
        return min(self._workers, math.ceil(max(self._suggestions) * self._workers / evaluation))
