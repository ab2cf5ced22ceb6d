"""From measures to event files: when a record is due, what it holds, and how it is written.

No framework is imported here. One brings a `Source` of `Weight`s (`source.py`, `weight.py`).

The way of a record, on the thread that trains: `recording` asks `schedule` whether one is due and
can be paid, `sink` gives it a number, `mask_tracker` says which masks changed, the source compares
its weights with their past copies, and `sink` takes the record into its queue. On the thread that
writes: `sink` takes it out, `batch` quantises, thins and packs it into blocks, with `changes` of
masks and violations; `messages` frames them, `segments` writes the files of a `lineage`.
`overhead_timer` times all of it, and `failures` counts what went wrong, as nothing here raises into
training.
"""
