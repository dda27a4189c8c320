"""Events to bounded integer rows: the door, and the lifetime cap of users. Draws no noise."""

from evertally.encode.caps import Cap, UserTick
from evertally.encode.door import AmountDoor, CategoryDoor
from evertally.encode.items import ItemDoor, ItemTotals
from evertally.encode.labels import own_column, require_column
from evertally.encode.separated import SeparatedCap
from evertally.encode.users import UserCap
from evertally.encode.values import ValueDoor

__all__ = [
    "AmountDoor",
    "Cap",
    "CategoryDoor",
    "ItemDoor",
    "ItemTotals",
    "SeparatedCap",
    "UserCap",
    "UserTick",
    "ValueDoor",
    "own_column",
    "require_column",
]
