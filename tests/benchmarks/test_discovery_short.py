"""The comparison over unknown items, in short: the ranking of streaming-selection 7.4, and real destinations."""

import numpy as np

from benchmarks import discovery


def test_zipf_ranks_as_the_specification_says():
    rows = {row.mechanism: row for row in discovery.zipf(trials=4, short=True)}
    tree, blocks = rows["UnkBase, paper"], rows["MetaAlgo, UnkGauss"]
    assert blocks.error > 2 * tree.error, "blocks lose counts"
    assert rows["UnkBase, sum"].named >= tree.named, "the lower threshold names no fewer items"
    assert 1 <= tree.named <= 8


def test_flights_are_found_and_only_real_destinations_are_named():
    days = discovery.departures()
    assert len(days) == 365
    curves = discovery.flights(days[:60])
    for curve in curves:
        assert curve.named[-1] > 20
        assert np.mean(curve.missed) < 5
        assert curve.error < 60
