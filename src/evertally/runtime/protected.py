"""What one protected unit of a stream is, in words: an event, an item or node with all that names it, or a user."""

from __future__ import annotations

from evertally.runtime.spec import QuerySpec, StreamSpec


def hidden(spec: StreamSpec) -> str:
    """What nobody can tell, for whoever reads the promise."""
    replaced = spec.neighbours == "replace"
    if spec.unit == "user-period":
        person = f"any one person (a name in the column {spec.user_column!r})"
        return f"{'what' if replaced else 'whether'} {person} did {'' if replaced else 'anything '}in {_block(spec)}"
    if spec.unit == "user":
        person = f"any one person (a name in the column {spec.user_column!r})"
        if replaced:
            return f"what {person} did"
        return f"whether {person} {'has events in the data' if _others(spec) else 'is in the data at all'}"
    if spec.items is not None:
        item = f"any one {spec.items.one} ({spec.items.words})"
        if spec.items.one == "node":
            return f"whether {item} was ever there, and what it was joined to"
        if replaced:
            return f"what {item} was, and when it came and went"
        return f"whether {item} was ever there, what it was, and when it came and went"
    return {
        "add_remove": "whether any one event happened, and what it said",
        "replace": "what any one event said, though not that it happened",
        "independent": "what one event said in each of the counted columns",
    }[spec.neighbours]


def not_hidden(spec: StreamSpec) -> str:
    """Where the promise ends."""
    if spec.unit == "user-period":
        return (
            "A person who is active in many such blocks is protected less than one who is active in one of them; facts "
            "about large groups are not hidden."
        )
    if spec.unit == "user":
        return (
            f"{_counted(spec)}; facts about larger groups are not "
            "hidden, they are what the statistics are for." + "".join(f" {sentence}" for sentence in _others(spec))
        )
    unit = spec.protects
    return f"A person with many {unit}s is protected less than one {unit} is; facts about large groups are not hidden."


def neighbours_meaning(spec: StreamSpec) -> str:
    """Which two streams must look alike."""
    replaced = spec.neighbours == "replace"
    if spec.unit == "user-period":
        block = f"all events of one user in {_block(spec)}"
        return f"{block} are replaced" if replaced else f"{block} are there or not; other events stay in their ticks"
    if spec.unit == "user":
        capped = all(not query.user_rule for query in spec.queries)
        cap = f" (at most {spec.max_events_per_user} are counted)" if capped else ""
        if replaced:
            return f"the events of one user{cap} are replaced by those of another"
        return f"all events of one user{cap} are there or not; other events stay in their ticks"
    if spec.items is not None:
        item = f"one {spec.items.one} ({spec.items.words}), {spec.items.whole},"
        return f"{item} is replaced by another one" if replaced else f"{item} is there or not; all else stays"
    return {
        "add_remove": "one event is there or not; all others stay in their ticks",
        "replace": "one event has any other content; its tick stays",
        "independent": "in each column, one event of a tick of its own has another value",
    }[spec.neighbours]


def unit_of(spec: StreamSpec, query: QuerySpec) -> str:
    """What one protected unit is to one query."""
    if spec.unit != "event" and query.user_rule:
        whose = "one user" if spec.unit == "user" else f"one user in {_block(spec)}"
        return f"{whose}: {query.user_rule}"
    if spec.unit == "user":
        return f"one user: the first {spec.max_events_per_user} events that bear a name"
    if query.items is not None:
        return f"one {query.items.one}: {query.items.whole}"
    return query.record.event


def declared_facts(spec: StreamSpec) -> list[str]:
    """What privacy rests on besides the program: clauses that were declared, each with the query it is about."""
    found = []
    for query in spec.queries:
        rests_on = query.record.rests_on
        facts = [] if rests_on is None else rests_on(query.parameters)
        found += [f"of the query {query.name!r}, {fact}" for fact in facts]
    return found


def counted_of_users(spec: StreamSpec) -> list[str]:
    """What is counted of a user, query by query where they differ."""
    rules = {query.name: query.user_rule for query in spec.queries}
    cap = f"at most {spec.max_events_per_user} events"
    if not any(rules.values()):
        return [cap]
    return [f"{name}: {rule or cap}" for name, rule in rules.items()]


def _counted(spec: StreamSpec) -> str:
    counted = counted_of_users(spec)
    if len(counted) == 1 and ": " not in counted[0]:
        return f"Of each person {counted[0]} are counted"
    return f"Of each person this is counted: {'; '.join(counted)}"


def _block(spec: StreamSpec) -> str:
    return f"any one block of {spec.period} ticks (the first is ticks 1 to {spec.period})"


def _others(spec: StreamSpec) -> list[str]:
    """Sentences about people whom events name, and who are not protected."""
    return list(dict.fromkeys(query.record.names_others for query in spec.queries if query.record.names_others))
