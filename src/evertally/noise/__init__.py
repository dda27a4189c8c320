"""Noise: the secret key, addressed random bits, exact integer draws and real variates. Nothing here ever sees data."""

from evertally.noise.key import Key, NoiseKey, Recording, ZeroNoise, encode_path, simulation
from evertally.noise.keystream import FORMAT_VERSION, Keystream
from evertally.noise.laws import DiscreteGaussian, DiscreteLaplace, Law
from evertally.noise.sampler import round_up
from evertally.noise.source import ItemSource, KeyedSource, Source, VariateSource, item_addresses
from evertally.noise.variates import VariateKind, Variates

__all__ = [
    "FORMAT_VERSION",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ItemSource",
    "Key",
    "KeyedSource",
    "Keystream",
    "Law",
    "NoiseKey",
    "Recording",
    "Source",
    "VariateKind",
    "VariateSource",
    "Variates",
    "ZeroNoise",
    "encode_path",
    "item_addresses",
    "round_up",
    "simulation",
]
