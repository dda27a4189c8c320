"""Noise laws as they are drawn: what a mechanism asks its source for, against what its theorem needs.

* `tap`: a source that notes every draw of whatever kind, and says what it is told.
* `full_horizon`: linear noise at the configured horizon, at ticks that tell (`telling`), reached by `seek`; `solved`:
  the same for banks and square roots, by a shift of the draws that hides a change, tried in the program.
* `intervals`: the histograms of partitions, for as many intervals as there may be.
* `one_shot`: scales of counts and selections of one release against the charge; `static_laws`: those of static
  mechanisms over dynamic data, each against its budget.
* `thresholds`: labels that one person brought, from which noise on they appear, and how likely that is.
* `small_copies`, `sparse_vectors`: exact laws of labels over two ticks and of sparseGumb, by what `enumerated` and
  `switching` find out of a program under planted draws; `counters`: leaders among counters.
* `own_arithmetic`: what the theorems say, once more; `steps`: which of these rows a mechanism gets.
"""
