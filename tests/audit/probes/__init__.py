"""The battery: small, quick audits of the product, of every kind that the auditor knows.

A probe plays one instance and says whether it found a broken promise. On the product none may find one; each planted
bug (`audit.bugs`) must be found by at least one. Pairs of neighbours are made from raw events by the product's own
door, not from its own idea of sensitivity: what one event, one item or one user can change is what the adversary does.
"""

from audit.probes import (
    accuracy,
    applications,
    below_threshold,
    closed_forms,
    dynamic,
    exact_laws,
    fresh_labels,
    games,
    hands,
    label_noise,
    one_shot,
    partitions,
    sketches,
    statements,
    switches,
    system,
    value_quantiles,
    values,
)
from audit.probes.probing import PROBES, Detection, Family, Probe

__all__ = [
    "PROBES",
    "Detection",
    "Family",
    "Probe",
    "accuracy",
    "applications",
    "below_threshold",
    "closed_forms",
    "dynamic",
    "exact_laws",
    "fresh_labels",
    "games",
    "hands",
    "label_noise",
    "one_shot",
    "partitions",
    "sketches",
    "statements",
    "switches",
    "system",
    "value_quantiles",
    "values",
]
