"""A progress bar on a terminal, a few plain lines in a log."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol


class Finished(Protocol):
    """A trial that has ended, whoever keeps it."""

    @property
    def value(self) -> float | None: ...
    @property
    def state(self) -> str: ...


class Progress:
    """Shows the best value, the trial and the time left, on standard error.

    Where that is gone, closed or full, nothing is shown any more: what was found is worth more than words about it.

    `done` and `failed` count trials from before, where a search goes on.
    """

    def __init__(self, budget: int, *, enabled: bool, done: int = 0, failed: int = 0) -> None:
        self._budget = budget
        self._enabled = enabled
        self._before = done
        self._done = done
        self._failed = failed
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "Progress":
        with self._as_far_as_possible():
            self._begin()
        return self

    def _begin(self) -> None:
        self._enabled = self._enabled and sys.stderr is not None
        if self._enabled and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            self._bar = RichProgress(
                TextColumn("best {task.fields[best]}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[failed]}"),
                console=Console(stderr=True),
            )
            failed = f"{self._failed} failed" if self._failed else ""
            self._task = self._bar.add_task("", total=self._budget, completed=self._done, best="-", failed=failed)
            self._bar.start()

    @contextmanager
    def _as_far_as_possible(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # anyone may have put anything in the place of standard error
            self._enabled = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            with self._as_far_as_possible():
                self._bar.stop()

    def say(self, text: str) -> None:
        """A line that stays, above the bar if there is one."""
        with self._as_far_as_possible():
            if self._enabled and self._bar is not None:
                self._bar.console.print(text, markup=False, highlight=False)
            elif self._enabled and sys.stderr is not None:
                print(f"sumbo: {text}", file=sys.stderr, flush=True)  # noqa: T201

    def update(self, best: Finished | None, trial: Finished) -> None:
        """One more trial is finished."""
        if not self._enabled:
            return
        self._done += 1
        self._failed += trial.state == "failed"
        value = "-" if best is None or best.value is None else f"{best.value:.6g}"
        failed = f"{self._failed} failed" if self._failed else ""
        if self._bar is not None:
            with self._as_far_as_possible():
                self._bar.update(self._task, completed=self._done, best=value, failed=failed)
        elif self._done in (1, self._budget) or self._done * 10 // self._budget > (self._done - 1) * 10 // self._budget:
            seconds = (time.monotonic() - self._started) / (self._done - self._before)
            left = max(seconds * (self._budget - self._done), 0.0)
            self.say(f"{self._done}/{self._budget} best {value} {left:.0f} s left {failed}".rstrip())
