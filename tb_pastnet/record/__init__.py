"""From measurements to event files: when a record is due, what it holds, and how it is written.

No framework is imported here. Each framework's room has a `Source` of `Weight`s (`source.py`,
`weight.py`).

The path of a record on the training thread: `recording` asks `schedule` whether one is due and
within the budget, `sink` numbers it, `mask_tracker` finds which masks changed, the source compares
its weights with their past copies, and `sink` queues the record. On the writer thread: `sink` takes
it out, `batch` quantises, thins and packs it into blocks, with `changes` of masks and violations;
`messages` frames them, `segments` writes the files of a `lineage`. `overhead_timer` times all of
it, and `failures` counts what went wrong, because nothing here raises into training.
"""
