"""The paper's section III in plain float64 loops over rows and layers, written from the paper.

Vectors are columns and matrices (to, from), as in the paper; updates are dense; the norms of all columns are checked
after every step. Nothing is imported from the package.
"""

import math

import numpy as np

PHI = {
    "tanh": np.tanh,
    "sign": np.sign,
    "identity": lambda a: a,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "relu": lambda a: np.maximum(a, 0),
    "relu6": lambda a: np.clip(a, 0, 6),
    "leaky_relu": lambda a: np.where(a > 0, a, 0.01 * a),
}
OUT = {
    "gaussian": lambda v: v,
    "bernoulli": lambda v: 1 / (1 + np.exp(-v)),
    "categorical": lambda v: np.exp(v - v.max()) / np.exp(v - v.max()).sum(),
}
PAPER = {
    "phi": "tanh", "phi_o": "tanh", "beta": 0.15, "gamma": 0.01, "lam": 0.001, "lam_sign": 1, "beta_all": False,
    "K": 1, "pre": "y", "w_error": "e", "e_rule": "temporal", "e_sign": 1, "e_factor": 1.0, "xi": 0.0,
    "first": False, "rescale": "unit", "radius": 1.0, "mean": None, "opt": "sgd", "lr": 0.035, "mu": 0.95,
    "max_norm": 30.0, "decay": 0.0, "lr_at": lambda t: 1.0, "kappa": None, "rho": 0.99, "reach": None, "c_mean": False,
    "beta2": 0.999,
}  # fmt: skip


class Transcription:
    def __init__(self, weights, sizes, output, **options):
        self.w = {name: np.array(value, dtype=np.float64) for name, value in weights.items()}
        self.n = sizes
        self.L = len(sizes) - 1
        self.output = output
        self.o = {**PAPER, **options}
        self.moments = {}
        self.t = 0
        self.squares = [[] for _ in sizes]  # mean square of E e at each learning step so far, by layer
        self.observed = []  # all observations so far, for their mean

    def begin(self, rows):
        self.y = [[np.zeros(n) for n in self.n] for _ in range(rows)]  # y[row][layer]; layer 0 is x
        self.z_old = [[np.zeros(n) for n in self.n] for _ in range(rows)]
        self.e_z_old = [[np.zeros(n) for n in self.n] for _ in range(rows)]
        self.seen = [False] * rows

    def guess(self, y):
        """Equations 3 to 8 for one row."""
        a, z, z_o = [None], [None], []
        for k in range(1, self.L + 1):
            drive = self.w[f"M{k}"] @ y[k - 1] + self.w[f"V{k}"] @ y[k]
            if k < self.L:
                drive = drive + self.w[f"U{k}"] @ y[k + 1]
            a.append(drive + self.w.get(f"b{k}", 0))
            z.append(PHI[self.o["phi"]](a[k]))
        for k in range(1, self.L + 1):
            z_o.append(self.expect(k, z[k]))
        return a, z, z_o

    def expect(self, k, z):
        v = self.w[f"W{k}"] @ z + self.w.get(f"c{k}", 0)
        return OUT[self.output](v) if k == 1 else PHI[self.o["phi_o"]](v)

    def correct(self, x, a, z, z_o):
        """Equations 11 to 14, repeated K times."""
        o = self.o
        target = [x, *z[1:]]
        e = [z_o[k] - target[k] for k in range(self.L)]
        first, a, s = e, list(a), list(z)
        for repeat in range(o["K"]):
            if repeat:
                target = [x, *s[1:]]
                e = [self.expect(k + 1, s[k + 1]) - target[k] for k in range(self.L)]
            a_new = list(a)
            for k in range(1, self.L + 1):
                bottom_up = o["beta"] * (self.w[f"E{k}"] @ e[k - 1])
                rest = o["lam_sign"] * o["lam"] * np.sign(s[k])
                if k < self.L:
                    rest = rest - o["gamma"] * e[k]
                a_new[k] = a[k] - (bottom_up + (o["beta"] if o["beta_all"] else 1) * rest)
            a = a_new
            s = [None] + [PHI[o["phi"]](a[k]) for k in range(1, self.L + 1)]
        return first, s

    def step(self, xs, mask=None, learn=True):
        o, rows = self.o, range(len(xs))
        mask = [True] * len(xs) if mask is None else list(mask)
        gradient = {name: np.zeros_like(value) for name, value in self.w.items()}
        hebb = {name: np.zeros_like(value) for name, value in self.w.items()}
        learns = False
        scale = 1 / len(xs) if o["mean"] == "before" else 1.0
        guesses = [self.guess(self.y[r]) for r in rows]
        predictions = [z_o[0] for a, z, z_o in guesses]
        usual = self.usual_feedback(xs, guesses, mask, learn) if o["kappa"] or o["reach"] else None
        for r in rows:
            a, z, z_o = guesses[r]
            if not mask[r]:
                continue
            x = np.asarray(xs[r], dtype=np.float64)
            e, y = self.correct(x, a, z, z_o)
            e_z = [None] + [z[k] - y[k] for k in range(1, self.L + 1)]
            if usual is not None:
                e_z = [None] + [self.small(k, a[k], e[k - 1], usual[k]) for k in range(1, self.L + 1)]
            if learn and (self.seen[r] or o["first"]):
                learns = True
                full_z = [x, *z[1:]]
                for k in range(1, self.L + 1):
                    w_error = e[k - 1] if k == 1 or o["w_error"] == "e" else e_z[k - 1]
                    old = self.y[r] if o["pre"] == "y" else self.z_old[r]
                    outer = {f"W{k}": (w_error, z[k]), f"M{k}": (e_z[k], old[k - 1]), f"V{k}": (e_z[k], old[k])}
                    hebbs = {f"W{k}": (full_z[k - 1], z[k]), f"M{k}": (z[k], old[k - 1]), f"V{k}": (z[k], old[k])}
                    if k < self.L:
                        outer[f"U{k}"] = (e_z[k], old[k + 1])
                        hebbs[f"U{k}"] = (z[k], old[k + 1])
                    if o["e_rule"] == "temporal":
                        outer[f"E{k}"] = (o["e_sign"] * (e_z[k] - self.e_z_old[r][k]), e[k - 1])
                    if o["e_rule"] == "transpose":
                        outer[f"E{k}"] = (z[k], w_error)
                    for name, (post, pre) in outer.items():
                        gradient[name] += scale * np.outer(post, pre)
                    for name, (post, pre) in hebbs.items():
                        hebb[name] += np.outer(post, pre)
                    if f"b{k}" in self.w:
                        gradient[f"b{k}"] += scale * e_z[k]
                        gradient[f"c{k}"] += scale * w_error
            self.y[r] = [x, *y[1:]]
            self.z_old[r] = [x, *z[1:]]
            self.e_z_old[r] = [None, *e_z[1:]]
            self.seen[r] = True
        if learns:
            for name in self.w:
                if name[0] != "E" or o["e_rule"] != "fixed":
                    self.descend(name, gradient[name], hebb[name], len(xs))
            self.t += 1
        if o["c_mean"] and learn:
            before = self.mean_logits()
            self.observed += [np.asarray(xs[r]) for r in rows if mask[r]]
            self.w["c1"] = self.w["c1"] + self.mean_logits() - before
        return np.array(predictions)

    def usual_feedback(self, xs, guesses, mask, learn):
        """For each layer, the root of the moving mean square of E e over the rows learnt from, including this step."""
        o, roots = self.o, [None]
        teach = [r for r in range(len(xs)) if mask[r] and (self.seen[r] or o["first"])]
        for k in range(1, self.L + 1):
            sent = [self.w[f"E{k}"] @ self.correct(xs[r], *guesses[r])[0][k - 1] for r in teach]
            if teach and learn:
                self.squares[k].append(np.mean(np.square(sent)))
            weights = [o["rho"] ** age for age in reversed(range(len(self.squares[k])))]
            roots.append(np.sqrt(np.dot(weights, self.squares[k]) / np.sum(weights)) if weights else 1.0)
        return roots

    def small(self, k, a, e_below, root):
        phi, kappa = PHI[self.o["phi"]], self.o["kappa"]
        if self.o["reach"]:
            kappa = self.o["reach"] * np.sqrt(np.mean(a**2))
        return (phi(a) - phi(a - kappa * (self.w[f"E{k}"] @ e_below) / root)) / kappa

    def mean_logits(self):
        guess = OUT[self.output](np.zeros(self.n[0]))
        mean = (np.sum([guess, *self.observed], axis=0)) / (1 + len(self.observed))
        if self.output == "gaussian":
            return mean
        return np.log(mean / (1 - mean)) if self.output == "bernoulli" else np.log(mean)

    def descend(self, name, g, hebb, rows):
        o = self.o
        if o["xi"] and name[0] in "WMVU" and np.linalg.norm(hebb) > 0:
            g = g - o["xi"] * hebb / np.linalg.norm(hebb)
        norm = np.linalg.norm(g)
        if o["rescale"] == "unit" and norm > 0:
            g = g * o["radius"] / norm
        if o["rescale"] == "clip" and norm > o["radius"]:
            g = g * o["radius"] / norm
        if o["mean"] == "after":
            g = g / rows
        lr = o["lr"] * o["lr_at"](self.t) * (o["e_factor"] if name[0] == "E" else 1)
        w = self.w[name]
        if name[0].isupper():
            w = w - lr * o["decay"] * w
        w = w - self.direction(name, g) * lr
        if o["max_norm"] and name[0].isupper():
            for j in range(w.shape[1]):
                length = np.linalg.norm(w[:, j])
                if length > o["max_norm"]:
                    w[:, j] *= o["max_norm"] / length
        self.w[name] = w

    def direction(self, name, g):
        opt, t = self.o["opt"], self.t + 1
        m = self.moments.setdefault(name, [np.zeros_like(g), np.zeros_like(g)])
        if opt == "sgd":
            return g
        if opt in ("momentum", "nesterov"):
            m[0] = self.o["mu"] * m[0] + g
            return m[0] if opt == "momentum" else g + self.o["mu"] * m[0]
        if opt == "rmsprop":
            m[1] = 0.99 * m[1] + 0.01 * g * g
            return g / (np.sqrt(m[1]) + 1e-8)
        m[0] = 0.9 * m[0] + 0.1 * g
        beta2 = self.o["beta2"]
        m[1] = beta2 * m[1] + (1 - beta2) * g * g
        return m[0] / (1 - 0.9**t) / (np.sqrt(m[1] / (1 - beta2**t)) + 1e-8)


def cosine_to(final, steps):
    return lambda t: final + (1 - final) * 0.5 * (1 + math.cos(math.pi * min(t / steps, 1)))


def root_to(final, steps):
    return lambda t: max(1 / math.sqrt(1 + t / steps), final)
