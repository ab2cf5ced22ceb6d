"""Small trainings on scikit-learn's handwritten digits, recorded for the PastNet tab."""

LOTTERY = "lottery"  # several runs, in a directory of its own
NAMES = (
    "dense",
    "freeze_steps",
    "prune_channels_s0",
    "prune_channels_s1",
    "leak_weight_decay",
    LOTTERY,
)
FIRST = NAMES[:-1]  # what is trained unless other runs are named: those of one network
