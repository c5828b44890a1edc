"""`sumbo replay`: the suggestions of a stored study, made again."""

from sumbo.errors import StoreError
from sumbo.integrations.optuna.replaying import replay
from sumbo.replaying import Replay
from sumbo.studies.method import sampler_of
from sumbo.studies.store import Store, distributions_of


def replayed(store: Store) -> Replay:
    """Make every suggestion again that has a record.

    Raises:
        StoreError: there is none; the message says why.
    """
    sampler = sampler_of(store.study, store.seed)
    found = replay(store.as_optuna(sampler), sampler, distributions_of(store.study.space))
    if not found.suggestions:
        raise StoreError(
            f"study {store.study.name!r} has no suggestion that can be made again: its {found.others} trials were told "
            "by hand, asked for by version 0.1.0, which kept no record of what a suggestion depended on, or asked for "
            "with another space, method or settings than the file has now; put these back"
        )
    return found


def in_words(found: Replay) -> str:
    """The outcome for a person."""
    text = f"{found.agreed} of {found.suggestions} suggestions come out the same, bit for bit\n"
    if found.others:
        text += f"{found.others} trials have no such record and were left out\n"
    if found.first is None:
        return text
    recorded, again = found.first.recorded, found.first.recomputed
    text += f"the first that differs is trial {found.first.number}:\n"
    for name, value in recorded.items():
        if again.get(name) != value:
            text += f"  {name}: {value!r} on record, {again.get(name, 'nothing')!r} now\n"
    return text + (
        "Values corrected since, another version of sumbo, NumPy or SciPy, another seed in the file, or another kind\n"
        "of processor explain it.\n"
    )
