"""Ray Tune: sumbo's methods as a search algorithm.

    from ray import tune
    from sumbo.integrations.ray import SumboSearch

    tuner = tune.Tuner(
        train,
        param_space={"lr": tune.loguniform(1e-5, 1e-1), "layers": tune.randint(1, 9)},
        tune_config=tune.TuneConfig(metric="loss", mode="min", search_alg=SumboSearch(seed=0), num_samples=200),
    )

Ray decides how many trials run at a time; those that run are in the model like everywhere else.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

try:
    from ray.tune.search import Searcher
    from ray.tune.search import sample as domains
    from ray.tune.search.variant_generator import parse_spec_vars
    from ray.tune.utils.util import unflatten_dict
except ImportError as error:
    from sumbo.errors import MissingPackageError

    raise MissingPackageError(
        f"sumbo.integrations.ray needs Ray Tune ({error}); install it with: pip install 'sumbo[ray]'"
    ) from None

from sumbo.errors import SettingError, SpaceError, StateError, TellError
from sumbo.methods import Method
from sumbo.regret import Direction
from sumbo.space import Categorical, Float, Int, Parameter, Space
from sumbo.study.optimizer import Optimizer

_DIRECTIONS: dict[str, Direction] = {"min": "minimize", "max": "maximize"}  # by mode


class SumboSearch(Searcher):  # type: ignore[misc]  # Ray has no types
    """Suggests configurations by a model that is a sum of functions of few parameters each.

    Args:
        space: parameters of `tune`, as in Tuner's `param_space`, or a `sumbo.Space` or dict of sumbo's parameters. By
            default Tuner's `param_space`.
        metric: what of a trial's last result is the value; by default TuneConfig's.
        mode: "min" or "max"; by default TuneConfig's.
        method: a name such as "auto" or "add-gp-ucb", or a method object with settings.
        seed: an integer for suggestions that can be repeated.

    Trials that end with an error, or without a finite value, count as failed: the search learns to avoid them.

    Raises:
        SettingError, SpaceError: an argument makes no sense, or a parameter is of a kind that sumbo does not search.
    """

    def __init__(
        self,
        space: Mapping[str, Any] | Space | None = None,
        *,
        metric: str | None = None,
        mode: str | None = None,
        method: str | Method = "auto",
        seed: int | None = None,
    ) -> None:
        if mode is not None and mode not in _DIRECTIONS:
            raise SettingError(f"mode must be 'min' or 'max'; got {mode!r}")
        super().__init__(metric=metric, mode=mode)
        self._metric: str | None = metric
        self._mode: str | None = mode
        self._method, self._seed = method, seed
        self._choices: dict[str, list[Any]] = {}  # of categories, which the optimizer knows by index
        self._space: Space | None = None
        self._optimizer: Optimizer | None = None
        self._running: dict[str, int] = {}  # Ray's trial ids
        if space is not None:
            self._take(space)

    def _take(self, space: Mapping[str, Any] | Space) -> None:
        if isinstance(space, Space) or all(isinstance(p, Parameter) for p in space.values()):
            self._space = Space.coerce(space)
        else:
            self._space, self._choices = translated(space)

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer behind it: trials, model, groups.

        Raises:
            SettingError: there is nothing to search as yet.
        """
        if self._optimizer is None:
            if self._space is None or self._mode is None or self._metric is None:
                raise SettingError(
                    "SumboSearch needs a space, a metric and a mode: give them here, or as Tuner's param_space and "
                    "TuneConfig's metric and mode"
                )
            self._optimizer = Optimizer(self._space, self._method, _DIRECTIONS[self._mode], self._seed)
        return self._optimizer

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """What Tuner knows; False if it contradicts what was given before."""
        if self._space is not None and parse_spec_vars(config)[1]:
            return False
        if self._space is None:
            self._take(config)
        self._metric, self._mode = metric or self._metric, mode or self._mode
        return True

    def suggest(self, trial_id: str) -> dict[str, Any]:
        """The next configuration."""
        trial = self.optimizer.ask()
        self._running[trial_id] = trial.number
        params = {name: self._choices[name][v] if name in self._choices else v for name, v in trial.params.items()}
        return unflatten_dict(params)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Learn from a trial that has ended."""
        number = self._running.pop(trial_id, None)
        if number is None:
            return
        if error or not result:
            self.optimizer.tell(number, failed=True, reason="the trial ended with an error")
            return
        try:
            self.optimizer.tell(number, result.get(self._metric or ""))
        except TellError as problem:  # no such metric, or not a number
            self.optimizer.tell(number, failed=True, reason=f"{self._metric}: {problem}")

    def save(self, checkpoint_path: str) -> None:
        """Write everything to a file."""
        kept = {"metric": self._metric, "mode": self._mode, "running": self._running}
        text = json.dumps({**kept, "optimizer": self.optimizer.to_dict()})
        Path(checkpoint_path).write_text(text, encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Go on from a file that `save` wrote, in a search of the same space.

        Raises:
            StateError: it is not such a file, or of another space.
        """
        try:
            data = json.loads(Path(checkpoint_path).read_text(encoding="utf-8"))
            optimizer = Optimizer.from_dict(data["optimizer"])
            running = {str(key): int(number) for key, number in data["running"].items()}
            metric, mode = data["metric"], data["mode"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(f"{checkpoint_path}: expected a file of SumboSearch.save; got: {error}") from None
        if self._space is not None and optimizer.space != self._space:
            raise StateError(f"{checkpoint_path}: it is of another space than this search's; restore it with its own")
        self._space, self._optimizer, self._running = optimizer.space, optimizer, running
        self._metric, self._mode = metric, mode


def translated(space: Mapping[str, Any]) -> tuple[Space, dict[str, list[Any]]]:
    """Tune's parameters as a sumbo space, nested names joined by "/", and the choices of categories."""
    _, found, grids = parse_spec_vars(dict(space))
    if grids:
        raise SpaceError(f"grid_search at {'/'.join(grids[0][0])}: sumbo chooses by itself; use tune.choice instead")
    if not found:
        raise SpaceError("there is nothing to search: param_space has no tune.uniform, tune.choice and so on")
    parameters: dict[str, Parameter] = {}
    choices: dict[str, list[Any]] = {}
    for path, domain in found:
        name, sampler = "/".join(path), domain.get_sampler()
        log = isinstance(sampler, domains.LogUniform)
        is_range = log or isinstance(sampler, domains.Uniform)
        if isinstance(domain, domains.Categorical):
            choices[name] = list(domain.categories)
            parameters[name] = Categorical(list(range(len(domain.categories))))
        elif is_range and isinstance(domain, domains.Integer):
            parameters[name] = Int(domain.lower, domain.upper - 1, log=log)  # Tune's upper end is not included
        elif is_range and isinstance(domain, domains.Float):
            parameters[name] = Float(domain.lower, domain.upper, log=log)
        else:
            raise SpaceError(
                f"{name}: sumbo searches tune.uniform, loguniform, randint, lograndint and choice; got {domain!r} with "
                f"{type(sampler).__name__}. Use one of these, and round in the objective"
            )
    return Space(parameters), choices
