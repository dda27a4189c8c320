"""What JSON values mean that are written simply, for whole columns: loops, compiled where they are long.

Value i is data[offsets[i] : offsets[i + 1]], valid JSON as it was written; an empty one is missing. Each loop says of
every value that is not simple that it does not know it, and that value is read by the functions that read single cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertally.encode.name_kernels import Bytes, IntArray

KNOWN, MISSING, UNKNOWN = 0, 1, 2
TEXT, NUMBER, FOREIGN = 3, 4, 5

_MOST_DIGITS = 18  # of a whole number that fits 64 bits whatever its digits are
_EXACT = 2**53  # whole numbers up to here are floats
_MOST_PLACES = 22  # powers of ten up to here are floats, so one division rounds once
_SHORT = 300  # digits; whole numbers of more than 400 are no labels
POWERS = 10.0 ** np.arange(_MOST_PLACES + 1)


def read_amounts(
    data: Bytes, offsets: IntArray, powers: NDArray[np.float64], out: NDArray[np.float64], how: Bytes
) -> None:
    """Whole numbers, and numbers with a point, also as texts."""
    for i in range(how.size):
        at, stop = offsets[i], offsets[i + 1]
        how[i] = MISSING if at == stop else UNKNOWN
        if at == stop:
            out[i] = np.nan
            continue
        if data[at] == 34:
            at, stop = at + 1, stop - 1
        negative = at < stop and data[at] == 45
        if negative:
            at += 1
        mantissa, digits, places, simple = np.int64(0), 0, -1, at < stop
        while at < stop:
            byte = data[at]
            if 48 <= byte <= 57 and digits < _MOST_DIGITS:  # one more might not fit, which numpy would say aloud
                mantissa = mantissa * 10 + (np.int64(byte) - 48)
                digits += 1
                if places >= 0:
                    places += 1
            elif byte == 46 and places < 0 and digits > 0:
                places = 0
            else:
                simple = False
            if not simple:
                break
            at += 1
        if not simple or places == 0 or digits == 0 or (negative and mantissa == 0):  # as a text -0 is another float
            continue
        if places < 0:
            out[i] = np.float64(mantissa)
        elif mantissa <= _EXACT:
            out[i] = np.float64(mantissa) / powers[places]
        else:
            continue
        if negative:
            out[i] = -out[i]
        how[i] = KNOWN


def read_integers(data: Bytes, offsets: IntArray, out: IntArray, how: Bytes) -> None:
    """Whole numbers, also as texts."""
    for i in range(how.size):
        first, stop = offsets[i], offsets[i + 1]
        out[i] = 0
        if first == stop:
            how[i] = MISSING
            continue
        quote = 1 if data[first] == 34 else 0
        sign = 1 if stop - first > 2 * quote and data[first + quote] == 45 else 0
        value, simple = np.int64(0), 0 < stop - first - 2 * quote - sign <= _MOST_DIGITS
        if simple:
            for j in range(first + quote + sign, stop - quote):
                simple = simple and 48 <= data[j] <= 57
                if simple:  # what is no digit might make it too large, which numpy would say aloud
                    value = value * 10 + (np.int64(data[j]) - 48)
        how[i] = KNOWN if simple else UNKNOWN
        if simple:
            out[i] = -value if sign == 1 else value


def read_moments(data: Bytes, offsets: IntArray, out: IntArray, how: Bytes) -> None:
    """Texts such as 2013-01-31T09:30:00.25Z, T or a blank in the middle, with fraction and zone or without, on any day
    but 29 February. In microseconds since 1970."""
    for i in range(how.size):
        at, stop = offsets[i], offsets[i + 1]
        how[i] = MISSING if at == stop else UNKNOWN
        out[i] = 0
        if stop - at < 21 or data[at] != 34:
            continue
        at, stop = at + 1, stop - 1
        offset = 0
        if data[stop - 1] == 90:
            stop -= 1
        elif stop - at >= 25 and (data[stop - 6] == 43 or data[stop - 6] == 45) and data[stop - 3] == 58:
            tens, ones = int(data[stop - 5]) - 48, int(data[stop - 4]) - 48
            sixths, rest = int(data[stop - 2]) - 48, int(data[stop - 1]) - 48
            if 0 <= tens <= 9 and 0 <= ones <= 9 and 0 <= sixths <= 5 and 0 <= rest <= 9 and tens * 10 + ones <= 23:
                offset = (tens * 10 + ones) * 60 + sixths * 10 + rest
                offset = -offset if data[stop - 6] == 45 else offset
                stop -= 6
        simple = data[at + 4] == 45 and data[at + 7] == 45 and data[at + 13] == 58 and data[at + 16] == 58
        simple = simple and (data[at + 10] == 84 or data[at + 10] == 32) and stop - at >= 19
        year, month, day, hour, minute, second, fraction = 0, 0, 0, 0, 0, 0, 0
        for j in range(19):
            digit = int(data[at + j]) - 48
            if j == 4 or j == 7 or j == 10 or j == 13 or j == 16:
                continue
            simple = simple and 0 <= digit <= 9
            if j < 4:
                year = year * 10 + digit
            elif j < 7:
                month = month * 10 + digit
            elif j < 10:
                day = day * 10 + digit
            elif j < 13:
                hour = hour * 10 + digit
            elif j < 16:
                minute = minute * 10 + digit
            else:
                second = second * 10 + digit
        places = stop - at - 20
        if stop - at > 19:
            simple = simple and data[at + 19] == 46 and 1 <= places <= 6
            for j in range(at + 20, min(stop, at + 26)):
                digit = int(data[j]) - 48
                simple = simple and 0 <= digit <= 9
                fraction = fraction * 10 + digit
            for _ in range(places, 6):
                fraction *= 10
        long = (month + month // 8) % 2  # months of 31 days
        simple = simple and year >= 1000 and 1 <= month <= 12
        simple = simple and 1 <= day <= (28 if month == 2 else 30 + long)
        if not (simple and hour <= 23 and minute <= 59 and second <= 59):
            continue
        # Years from March on: the day that some of them have more is then their last one.
        y = year - 1 if month <= 2 else year
        m = month + 9 if month <= 2 else month - 3
        days = 365 * y + y // 4 - y // 100 + y // 400 + (153 * m + 2) // 5 + day - 1 - 719468
        out[i] = (((days * 24 + hour) * 60 + minute - offset) * 60 + second) * 1000000 + fraction
        how[i] = KNOWN


def read_lists(data: Bytes, offsets: IntArray, starts: IntArray, stops: IntArray, lengths: IntArray) -> int:
    """Where the texts of lists lie that hold nothing but texts without escapes; -1 is the length of a missing value.
    How many texts there are, or -1 where some value is anything else."""
    found = 0
    for i in range(lengths.size):
        at, stop = offsets[i] + 1, offsets[i + 1] - 1  # within the brackets
        lengths[i] = -1
        if offsets[i] == offsets[i + 1]:
            continue
        if data[at - 1] != 91:
            return -1
        lengths[i] = 0
        while at < stop:
            byte = data[at]
            at += 1
            if byte == 32 or byte == 44 or byte == 9 or byte == 10 or byte == 13:  # what lies between two texts
                continue
            if byte != 34:
                return -1
            starts[found] = at
            while data[at] != 34:
                if data[at] == 92:
                    return -1
                at += 1
            stops[found] = at
            at, found, lengths[i] = at + 1, found + 1, lengths[i] + 1
    return found


def read_names(data: Bytes, offsets: IntArray, starts: IntArray, lengths: IntArray, how: Bytes) -> None:
    """Where the label lies that a value is: texts without escapes, and whole numbers. How: TEXT, FOREIGN (not ASCII,
    so that its spelling is to be looked at), NUMBER, MISSING or UNKNOWN."""
    for i in range(how.size):
        at, stop = offsets[i], offsets[i + 1]
        starts[i], lengths[i] = at, stop - at
        if at == stop:
            how[i] = MISSING
        elif data[at] == 34:
            starts[i], lengths[i] = at + 1, stop - at - 2
            foreign, escaped = False, False
            for j in range(at + 1, stop - 1):
                foreign |= data[j] >= 128
                escaped |= data[j] == 92
            how[i] = UNKNOWN if escaped else FOREIGN if foreign else TEXT
        else:
            simple = stop - at < _SHORT
            for j in range(at + (data[at] == 45), stop):
                simple &= 48 <= data[j] <= 57
            negative_zero = stop - at == 2 and data[at] == 45 and data[at + 1] == 48
            how[i] = NUMBER if simple and not negative_zero else UNKNOWN
