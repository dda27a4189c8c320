"""Noise: the secret key, addressed random bits, and exact integer draws. Nothing here ever sees data."""

from evertally.noise.key import Key, NoiseKey, Recording, ZeroNoise, encode_path, simulation
from evertally.noise.keystream import FORMAT_VERSION, Keystream
from evertally.noise.laws import DiscreteGaussian, DiscreteLaplace, Law
from evertally.noise.sampler import round_up
from evertally.noise.source import KeyedSource, Source

__all__ = [
    "FORMAT_VERSION",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Key",
    "KeyedSource",
    "Keystream",
    "Law",
    "NoiseKey",
    "Recording",
    "Source",
    "ZeroNoise",
    "encode_path",
    "round_up",
    "simulation",
]
