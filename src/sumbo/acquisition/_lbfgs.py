"""The compiled part of `optimize.ascend`, where the symbols are explained."""

import numpy as np

from sumbo._compiled import loops


@loops
def quasi_newton(x, g, steps, bends, kept):
    """The two-loop recursion of L-BFGS for each row, on its free coordinates; steepest ascent where that fails."""
    memory, S, D = steps.shape
    directions = np.empty((S, D))
    free = np.empty(D)  # 1 where a coordinate may move, 0 where it pushes against a face of the cube
    q = np.empty(D)
    a, rho = np.empty(memory), np.empty(memory)
    for row in range(S):
        steepest = 0.0
        for i in range(D):
            blocked = (x[row, i] <= 0.0 and g[row, i] < 0.0) or (x[row, i] >= 1.0 and g[row, i] > 0.0)
            free[i] = 0.0 if blocked else 1.0
            q[i] = free[i] * g[row, i]
            steepest = max(steepest, abs(q[i]))
        count = min(memory, kept[row])
        scale = 0.1 / max(steepest, 1e-300)  # a tenth of the cube's edge, as long as no curvature is known
        for k in range(count):  # newest first
            slot = (kept[row] - 1 - k) % memory
            s, b = steps[slot, row], bends[slot, row]
            sb, sq, bb = 0.0, 0.0, 0.0
            for i in range(D):
                sb += free[i] * s[i] * b[i]
                sq += s[i] * q[i]
                bb += free[i] * b[i] * b[i]
            rho[k] = 1.0 / sb if sb > 1e-14 else 0.0
            a[k] = rho[k] * sq
            for i in range(D):
                q[i] -= a[k] * free[i] * b[i]
            if k == 0 and rho[k] > 0.0 and bb > 0.0:
                scale = sb / bb
        for i in range(D):
            q[i] *= scale
        for k in range(count - 1, -1, -1):  # oldest first
            slot = (kept[row] - 1 - k) % memory
            s, b = steps[slot, row], bends[slot, row]
            bq = 0.0
            for i in range(D):
                bq += free[i] * b[i] * q[i]
            for i in range(D):
                q[i] += free[i] * s[i] * (a[k] - rho[k] * bq)
        uphill = 0.0
        for i in range(D):
            uphill += q[i] * free[i] * g[row, i]
        usable = uphill > 0.0 and uphill < np.inf
        for i in range(D):
            steep = 0.1 * free[i] * g[row, i] / max(steepest, 1e-300)
            directions[row, i] = free[i] * q[i] if usable else steep
    return directions
