"""Five small trainings on scikit-learn's handwritten digits, recorded for the PastNet tab."""

NAMES = ("dense", "freeze_steps", "prune_channels_s0", "prune_channels_s1", "leak_weight_decay")
