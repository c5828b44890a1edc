"""HEBO on the other end of two pipes: run by the Python of its own environment, which needs nothing of sumbo's.

The first line in has the parameters, the seed and the budget; from then on a line out is a point, a line in its loss.
"""

import json
import random
import sys

out, sys.stdout = sys.stdout, sys.stderr  # what HEBO and its packages print is no point

import numpy as np
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO


def main() -> None:
    task = json.loads(sys.stdin.readline())
    torch.set_num_threads(1)
    random.seed(task["seed"])
    np.random.seed(task["seed"])  # noqa: NPY002
    torch.manual_seed(task["seed"])
    names = [parameter["name"] for parameter in task["parameters"]]
    optimiser = HEBO(DesignSpace().parse(task["parameters"]), scramble_seed=task["seed"])
    for _ in range(task["budget"]):
        suggested = optimiser.suggest(n_suggestions=1)
        print(json.dumps([float(suggested.iloc[0][name]) for name in names]), file=out, flush=True)
        optimiser.observe(suggested, np.array([[float(sys.stdin.readline())]]))


if __name__ == "__main__":
    main()
