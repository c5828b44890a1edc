"""Saved states, for tests that edit them."""


def latest_state(data):
    """What the method left at the last suggestion that changed it."""
    return next(trial["method_state"] for trial in reversed(data["trials"]) if trial["method_state"] is not None)


def forgotten(data):
    """The same, but for what the method has learned."""
    return data | {"trials": [trial | {"method_state": None} for trial in data["trials"]]}
