"""One thing wrong with a certificate: each function changes a file so that it proves nothing.

Why no valid certificate is left is said where that is not plain. All count on generic problems,
where no multiplier, row or norm can stand in for another.
"""

import numpy as np

PARTS = ("left", "right", "bounds", "equality", "multipliers")


def heaviest(file):
    """The constraint that pushes most: it holds W where it is."""
    return int(np.argmax(np.abs(np.multiply(file["multipliers"], file["bounds"]))))


def scale_W(file, factor):
    file["W"] = (factor * np.array(file["W"])).tolist()
    if "W" in file["factors"]:
        file["factors"]["W"][1] = (factor * np.array(file["factors"]["W"][1])).tolist()


def scale_multiplier(file, factor):
    file["multipliers"][heaviest(file)] *= factor


def scale_bound(file, factor):
    file["bounds"][heaviest(file)] *= factor


def scale_row(file, side, factor):
    file[side][heaviest(file)] = [factor * x for x in file[side][heaviest(file)]]


# Against M: sum_j x_j (a_j^T W b_j) falls, so that some margin falls by as large a fraction.
def change_entry_of_W(file):
    weights = np.array(file["multipliers"])[:, None] * np.array(file["left"])
    M = weights.T @ np.array(file["right"])
    i, j = np.unravel_index(np.abs(M).argmax(), M.shape)
    file["W"][i][j] -= 1e-3 * np.abs(file["W"]).max() * np.sign(M[i, j])


def lengthen_W(file):  # its norm is not the smallest any more
    scale_W(file, 1.001)


def shorten_W(file):  # every tight margin falls short
    scale_W(file, 0.999)


def turn_W_around(file):
    scale_W(file, -1.0)


def drop_row_of_W(file):
    file["W"].pop()


def double_multiplier(file):
    scale_multiplier(file, 2.0)


def flip_multiplier(file):
    scale_multiplier(file, -1.0)


def zero_multiplier(file):
    scale_multiplier(file, 0.0)


def reverse_multipliers(file):
    file["multipliers"].reverse()


def raise_bound(file):  # W is short of it
    scale_bound(file, 1.001)


def ease_bound(file):  # the multipliers prove less then
    scale_bound(file, 0.999)


def drop_bound(file):
    file["bounds"].pop()


def flip_row(file):
    scale_row(file, "left", -1.0)


def shrink_row(file):  # its margin falls short
    scale_row(file, "right", 0.999)


def swap_rows(file):
    j, left = heaviest(file), file["left"]
    left[j], left[j - 1] = left[j - 1], left[j]


def drop_constraint(file):
    j = heaviest(file)
    for name in PARTS:
        file[name].pop(j)


def add_opposite_constraint(file):  # nothing meets both
    j = heaviest(file)
    for name in PARTS:
        file[name].append(file[name][j])
    file["left"][-1] = [-x for x in file["left"][j]]
    file["multipliers"][-1] = 0.0


def demand_equality(file):  # of the inequality with the most room
    margins = np.einsum("md,de,me->m", file["left"], file["W"], file["right"])
    file["equality"][int(np.argmax(margins - file["bounds"]))] = True


def change_exponent(file):
    file["norm"]["p"] = 4.0


def change_exponent_slightly(file):
    p = file["norm"]["p"]
    file["norm"]["p"] = 50.0 if p == "inf" else p + 0.02


def change_family(file):  # not of p = 2, where both families are one norm
    family, p = {"entrywise": "schatten", "schatten": "entrywise"}, file["norm"]["p"]
    file["norm"] = {"family": family[file["norm"]["family"]], "p": 3.0 if p == 2.0 else p}
    weights = np.array(file["multipliers"])[:, None] * np.array(file["left"])
    for name, X in (("M", weights.T @ np.array(file["right"])), ("W", file["W"])):
        U, s, V = np.linalg.svd(X, full_matrices=False)
        file["factors"][name] = [U.T.tolist(), s.tolist(), V.tolist()]


def claim_no_gap(file):  # roots are rounded up, and optima of generic data are no floats
    file["claim"]["gap"] = 0.0


def claim_a_gap_of_one(file):  # says nothing
    file["claim"]["gap"] = 1.0


def claim_contradiction(file):
    file["claim"] = {"kind": "infeasible"}


def claim_contradiction_in_integers(file):
    file["claim"] = {"kind": "infeasible"}
    file["multipliers"] = [hex(round(1e9 * x)) for x in file["multipliers"]]


def claim_larger_norm(file):  # M has a dual norm of one
    norm = float(np.dot(file["bounds"], file["multipliers"]))
    file["claim"] = {"kind": "lower bound", "norm_at_least": 1.001 * norm}


ANY = [
    change_entry_of_W, lengthen_W, shorten_W, turn_W_around, drop_row_of_W, double_multiplier,
    flip_multiplier, zero_multiplier, reverse_multipliers, raise_bound, ease_bound, drop_bound,
    flip_row, shrink_row, swap_rows, drop_constraint, add_opposite_constraint, demand_equality,
    change_exponent, change_exponent_slightly, change_family, claim_no_gap, claim_a_gap_of_one,
    claim_contradiction, claim_contradiction_in_integers, claim_larger_norm,
]  # fmt: skip


def understate_singular_values(file):
    # Of W and M both: of a matrix of rank one the remainder makes up for it to the last digit.
    for factors in file["factors"].values():
        factors[1] = [0.9 * x for x in factors[1]]


def swap_singular_vectors(file):
    for U, _, _ in file["factors"].values():
        U[0], U[1] = U[1], U[0]


def trade_lengths(file):  # of U and s: their product stays what it was
    for factors in file["factors"].values():
        factors[0] = (2 * np.array(factors[0])).tolist()
        factors[1] = (np.array(factors[1]) / 2).tolist()


def drop_singular_value(file):
    for U, s, V in file["factors"].values():
        for part in (U, s, V):
            part.pop(0)


def drop_factors(file):
    file["factors"] = {}


FACTORED = [
    understate_singular_values, swap_singular_vectors, trade_lengths, drop_singular_value,
    drop_factors,
]  # fmt: skip
