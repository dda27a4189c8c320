"""Noise: the secret key, addressed random bits, exact integer draws and real variates. Nothing here ever sees data."""

from evertally.noise.key import Key, NoiseKey, Recording, ZeroNoise, check_key, own_key, simulation
from evertally.noise.laws import DiscreteGaussian, DiscreteLaplace, Law
from evertally.noise.sampler import round_up
from evertally.noise.slices import SliceSource
from evertally.noise.source import ItemSource, Source, VariateSource, item_addresses
from evertally.noise.variates import VariateKind, Variates
from evertally.noise.worker_key import WorkerKey

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ItemSource",
    "Key",
    "Law",
    "NoiseKey",
    "Recording",
    "SliceSource",
    "Source",
    "VariateKind",
    "VariateSource",
    "Variates",
    "WorkerKey",
    "ZeroNoise",
    "check_key",
    "item_addresses",
    "own_key",
    "round_up",
    "simulation",
]
