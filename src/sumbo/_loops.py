"""Numba in one place: the compiled loops behind `gp` and `structure`, where the symbols are explained, and `optimize`.

They are compiled on first use, and the machine code is kept on disk. Numba takes a third of a second to import, so this
is imported by the first call that does arithmetic: drawing a figure or looking at a stored study needs none. Arguments
are flat arrays, never checked.
"""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np


def _compiled(function: Callable[..., Any], fastmath: set[str]) -> Any:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # Numba found no folder it may write to, neither beside this file nor in the user's cache.
        warnings.warn(
            "sumbo cannot store its compiled kernels, so every new process compiles them again (some seconds); "
            "set NUMBA_CACHE_DIR to a folder that can be written to",
            stacklevel=2,
        )
        return numba.njit(**options)(function)


# Functions made of loops over arrays: sums may be reordered and multiply-adds fused, so that they vectorise; NaN and
# infinity keep their meaning. And scalar functions whose operations must not be reordered.
loops = partial(_compiled, fastmath={"reassoc", "contract", "nsz"})
exact = partial(_compiled, fastmath={"contract"})


_LOG2E = 1.4426950408889634
_LN2_HIGH = 0.693147180369123816490  # its last 21 bits are zero: products with the exponent are exact
_LN2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, kept in the low bits of the mantissa


@exact
def exp_negative(x: float) -> float:
    """exp(x) for x <= 0, relative error under 1e-15, as straight-line code that vectorises.

    x = k ln 2 + r with |r| <= ln(2)/2; a polynomial of degree 10 in r, by interpolation at Chebyshev's nodes (error
    3e-16 over that range), times 2^k made from the exponent bits. Below -708 the result stays as it is there.
    """
    x = max(x, -708.0)
    rounded = x * _LOG2E + _ROUND
    k = rounded - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 2.762635725527078e-07
    p = p * r + 2.7640180812804505e-06
    p = p * r + 2.480150434696448e-05
    p = p * r + 0.00019841170270400204
    p = p * r + 0.0013888888932488625
    p = p * r + 0.008333333385667814
    p = p * r + 0.04166666666657314
    p = p * r + 0.16666666666554406
    p = p * r + 0.5000000000000006
    p = p * r + 1.0000000000000067
    p = p * r + 1.0
    bits = np.float64(rounded).view(np.int64)
    return p * np.int64((bits + 1023) << 52).view(np.float64)


@loops
def squared_distances(XT, x, nominal, dims, inv_l2, n, r2):
    """r2[q] = sum_i (x_i - X_qi)^2 / l_i^2 over one group, for the first n points."""
    f = 0
    # Two dimensions in one pass, for as long as both are numbers: half the traffic on r2.
    while f + 1 < dims.shape[0] and not nominal[dims[f]] and not nominal[dims[f + 1]]:
        a_row, b_row = XT[dims[f]], XT[dims[f + 1]]
        a_value, b_value = x[dims[f]], x[dims[f + 1]]
        a_weight, b_weight = inv_l2[f], inv_l2[f + 1]
        for q in range(n):
            a, b = a_row[q] - a_value, b_row[q] - b_value
            r2[q] = (r2[q] if f > 0 else 0.0) + (a_weight * a * a + b_weight * b * b)
        f += 2
    if f == 0:
        for q in range(n):
            r2[q] = 0.0
    while f < dims.shape[0]:
        row = XT[dims[f]]
        value = x[dims[f]]
        weight = inv_l2[f]
        if nominal[dims[f]]:
            for q in range(n):
                r2[q] += weight if row[q] != value else 0.0
        else:
            for q in range(n):
                difference = row[q] - value
                r2[q] += weight * difference * difference
        f += 1


@loops
def add_phi(r2, n, scale, family, out):
    """out[q] += scale * phi(r2[q])."""
    for q in range(n):
        if family == 0:
            out[q] += scale * exp_negative(-0.5 * r2[q])
        elif family == 1:
            a = math.sqrt(3.0 * r2[q])
            out[q] += scale * (1.0 + a) * exp_negative(-a)
        else:
            a = math.sqrt(5.0 * r2[q])
            out[q] += scale * (1.0 + a + a * a / 3.0) * exp_negative(-a)


@loops
def _add_phi_alone(row, value, inv_l2, n, scale, family, out):
    """out[q] += scale * phi of a group of one number: no distance to store, no root to take."""
    root = math.sqrt((3.0 if family == 1 else 5.0) * inv_l2)
    for q in range(n):
        difference = row[q] - value
        a = root * abs(difference)
        if family == 0:
            out[q] += scale * exp_negative(-0.5 * inv_l2 * difference * difference)
        elif family == 1:
            out[q] += scale * (1.0 + a) * exp_negative(-a)
        else:
            out[q] += scale * (1.0 + a + a * a / 3.0) * exp_negative(-a)


@loops
def _add_group(XT, x, nominal, dims, inv_l2, n, scale, family, r2, out):
    """out[q] += scale * phi(r2[q]) of one group, for the first n points."""
    if dims.shape[0] == 1 and not nominal[dims[0]]:
        _add_phi_alone(XT[dims[0]], x[dims[0]], inv_l2[0], n, scale, family, out)
    else:
        squared_distances(XT, x, nominal, dims, inv_l2, n, r2)
        add_phi(r2, n, scale, family, out)


@loops
def _weigh_phi_and_slope(r2, n, family, weights, v, w):
    """v[q] = weights[q] phi(r2[q]) and w[q] = weights[q] dphi/dr2(r2[q]); no slope is infinite at zero.

    Sums are taken elsewhere, in loops that only read. A loop that sums and stores runs vectorised or not depending on
    where its arrays lie in memory, and then its sum would depend on that too.
    """
    for q in range(n):
        if family == 0:
            v[q] = weights[q] * exp_negative(-0.5 * r2[q])
            w[q] = -0.5 * v[q]
        elif family == 1:
            a = math.sqrt(3.0 * r2[q])
            e = weights[q] * exp_negative(-a)
            v[q] = (1.0 + a) * e
            w[q] = -1.5 * e
        else:
            a = math.sqrt(5.0 * r2[q])
            e = weights[q] * exp_negative(-a)
            v[q] = (1.0 + a + a * a / 3.0) * e
            w[q] = -(5.0 / 6.0) * (1.0 + a) * e


@loops
def cross(ZT, XT, dims, offsets, inv_l2, s2, nominal, family, lower, first, end, K):
    """Rows first to end - 1 of K (1, m, n) for the sum, or (M, m, n) for every group; of the lower half if so asked."""
    layers, M = K.shape[0], s2.shape[0]
    r2 = np.empty(XT.shape[1])
    z = np.empty(XT.shape[0])
    for p in range(first, end):
        z[:] = ZT[:, p]
        n = p + 1 if lower else XT.shape[1]
        for layer in range(layers):
            row = K[layer, p]
            for j in range(layer, M if layers == 1 else layer + 1):
                a, b = offsets[j], offsets[j + 1]
                _add_group(XT, z, nominal, dims[a:b], inv_l2[a:b], n, s2[j], family, r2, row)


@loops
def group_means(ZT, XT, dims, offsets, inv_l2, s2, nominal, family, alpha):
    m, n = ZT.shape[1], XT.shape[1]
    means = np.empty((s2.shape[0], m))
    r2, k = np.empty(n), np.empty(n)
    z = np.empty(XT.shape[0])
    for p in range(m):
        z[:] = ZT[:, p]
        for j in range(s2.shape[0]):
            a, b = offsets[j], offsets[j + 1]
            k[:] = 0.0
            _add_group(XT, z, nominal, dims[a:b], inv_l2[a:b], n, s2[j], family, r2, k)
            total = 0.0
            for q in range(n):
                total += alpha[q] * k[q]
            means[j, p] = total
    return means


@loops
def _add_slopes_by_l(XT, x, nominal, dims, inv_l2, scale, n, w, by_l):
    """by_l_i += scale sum_q w[q] d r2_q / d log l_i over one group, where d r2 / d log l = -2 (x - x')^2 / l^2."""
    f = 0
    while f + 1 < dims.shape[0] and not nominal[dims[f]] and not nominal[dims[f + 1]]:
        a_row, b_row = XT[dims[f]], XT[dims[f + 1]]
        a_value, b_value = x[dims[f]], x[dims[f + 1]]
        a_total, b_total = 0.0, 0.0
        for q in range(n):
            a, b = a_row[q] - a_value, b_row[q] - b_value
            a_total += w[q] * a * a
            b_total += w[q] * b * b
        by_l[f] -= 2.0 * scale * inv_l2[f] * a_total
        by_l[f + 1] -= 2.0 * scale * inv_l2[f + 1] * b_total
        f += 2
    while f < dims.shape[0]:
        row = XT[dims[f]]
        value = x[dims[f]]
        total = 0.0
        if nominal[dims[f]]:
            for q in range(n):
                total += w[q] if row[q] != value else 0.0
        else:
            for q in range(n):
                difference = row[q] - value
                total += w[q] * difference * difference
        by_l[f] -= 2.0 * scale * inv_l2[f] * total
        f += 1


@loops
def _slopes_of_row(alpha, K_inv_p, p, W):
    """Row p of (alpha alpha^T - K^-1) / 2; what is below the diagonal stands for two, which cancels the 1/2."""
    for q in range(p):
        W[q] = alpha[p] * alpha[q] - K_inv_p[q]
    W[p] = 0.5 * (alpha[p] * alpha[p] - K_inv_p[p])


@loops
def evidence_traces(XT, dims, offsets, inv_l2, s2, nominal, family, alpha, K_inv):
    n = XT.shape[1]
    by_l = np.zeros(dims.shape[0])
    by_s2 = np.zeros(s2.shape[0])
    r2, v, w, W = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    x = np.empty(XT.shape[0])
    for p in range(n):
        x[:] = XT[:, p]
        _slopes_of_row(alpha, K_inv[p], p, W)
        for j in range(s2.shape[0]):
            a, b = offsets[j], offsets[j + 1]
            squared_distances(XT, x, nominal, dims[a:b], inv_l2[a:b], p + 1, r2)
            _weigh_phi_and_slope(r2, p + 1, family, W, v, w)
            total = 0.0
            for q in range(p + 1):
                total += v[q]
            by_s2[j] += s2[j] * total
            if b - a == 1 and not nominal[dims[a]]:
                total = 0.0
                for q in range(p):
                    total += w[q] * r2[q]
                by_l[a] -= 2.0 * s2[j] * total
            else:
                _add_slopes_by_l(XT, x, nominal, dims[a:b], inv_l2[a:b], s2[j], p, w, by_l[a:b])
    return by_l, by_s2


@loops
def _add_slopes(XT, z, nominal, dims, inv_l2, scale, w, out):
    """out_i += scale sum_q w[q] d r2_q / dz_i over one group."""
    for f in range(dims.shape[0]):
        i = dims[f]
        if nominal[i]:
            continue
        row = XT[i]
        value = z[i]
        total = 0.0
        for q in range(w.shape[0]):
            total += w[q] * (value - row[q])
        out[i] += 2.0 * scale * inv_l2[f] * total


@loops
def cross_gradient(ZT, XT, dims, offsets, inv_l2, s2, nominal, family, A, first, end, G):
    """Rows first to end - 1, for weights A (1, m, n) of the sum, or (M, m, n) of every group."""
    n = XT.shape[1]
    r2, v, w = np.empty(n), np.empty(n), np.empty(n)
    z = np.empty(XT.shape[0])
    for p in range(first, end):
        z[:] = ZT[:, p]
        for j in range(s2.shape[0]):
            a, b = offsets[j], offsets[j + 1]
            squared_distances(XT, z, nominal, dims[a:b], inv_l2[a:b], n, r2)
            _weigh_phi_and_slope(r2, n, family, A[min(j, A.shape[0] - 1), p], v, w)
            _add_slopes(XT, z, nominal, dims[a:b], inv_l2[a:b], s2[j], w, G[p])


@loops
def forward(L, n, b):
    """L^-1 b."""
    z = np.empty(n)
    for i in range(n):
        row = L[i]
        total = 0.0
        for k in range(i):
            total += row[k] * z[k]
        z[i] = (b[i] - total) / row[i]
    return z


@loops
def backward(L, n, b):
    """L^-T b."""
    x = b.copy()
    for i in range(n - 1, -1, -1):
        row = L[i]
        x[i] /= row[i]
        for k in range(i):
            x[k] -= row[k] * x[i]
    return x


@loops
def packed_kernel(XT, nominal, dims, inv_l2, s2, family):
    """k of one group, the rows of the lower half one after the other."""
    n = XT.shape[1]
    k = np.zeros(n * (n + 1) // 2)
    r2 = np.empty(n)
    x = np.empty(XT.shape[0])
    for p in range(n):
        start = p * (p + 1) // 2
        x[:] = XT[:, p]
        squared_distances(XT, x, nominal, dims, inv_l2, p + 1, r2)
        add_phi(r2, p + 1, s2, family, k[start : start + p + 1])
    return k


@loops
def unpacked(k, n):
    """The matrix, lower half."""
    K = np.zeros((n, n))
    for p in range(n):
        start = p * (p + 1) // 2
        for q in range(p + 1):
            K[p, q] = k[start + q]
    return K


@loops
def packed_slopes(alpha, K_inv):
    """w of the evidence."""
    n = alpha.shape[0]
    w = np.empty(n * (n + 1) // 2)
    for p in range(n):
        start = p * (p + 1) // 2
        _slopes_of_row(alpha, K_inv[p], p, w[start : start + p + 1])
    return w


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
