"""Columns of weight matrices within a ball, without looking at them at every step."""

from __future__ import annotations

import math

from ptncn.updates.deferred import Synapses


class MaxNorm:
    """Keeps the norm of each outgoing weight vector, a row of the stored (from, to) matrix, within `radius`.

    No row's norm can have grown by more than the steps since the last look add up to. While the largest norm
    seen then plus that sum stays within the radius, there is nothing to project and no need to look: the result
    is that of a projection at every step.
    """

    def __init__(self, radius: float) -> None:
        self.radius = radius
        self.bound = math.inf  # no row is longer than this
        self.version = -1  # of the weights that the bound speaks of

    def project(self, synapses: Synapses, growth: float) -> None:
        """Project the weights, after a step that lengthened no row by more than `growth`."""
        self.bound += growth
        if self.bound < self.radius * 0.999:  # a margin for the rounding of the sum and of the norms
            return
        weight, norms = synapses.write(), synapses.row_norms()
        if weight.device.type != "cpu":  # asking for the largest would wait for the device
            weight.mul_(self.radius / norms.clamp_min(self.radius))
            return
        self.bound = norms.max().item()
        if self.bound > self.radius:
            weight.mul_(self.radius / norms.clamp_min(self.radius))
            self.bound = self.radius

    def forget(self) -> None:
        """Someone else wrote into the weights: the bound means nothing any more."""
        self.bound = math.inf
