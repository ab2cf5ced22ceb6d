"""What a room doesn't do, and why: docs/reference/what_works_where.md is made of it."""

from __future__ import annotations

from itertools import product

TF1 = "TF1 graphs"
FIT = ("Keras callback", "Keras on JAX", "Keras on PyTorch")
OTHER_BACKENDS = FIT[1:]
TRAINERS = ("Lightning", "Hugging Face")

ONE_RATE = "its Recorder takes one learning rate"
COUNTED = "the callback counts the steps of `fit`"
TRAINER_COUNTS = "the trainer counts the steps, and says where training begins"
BY_FIT = "`fit` makes one update in a step, by the compiled optimizer"
NO_MASKS = "masks of single weights of Keras need TensorFlow; `layer.trainable` is watched"
MASKS_HAVE_VALUES = "masks have the values that they put back; fingerprints are for `trainable`"
PASSED = "each call passes the weights: `close` has none"
RESTARTS = "its Recorder begins by `restart(step)`, when the variables have values"
ENFORCED = (
    "held_bits_stay_and_free_weights_train_as_without_masks "
    "frozen_and_pruned_weights_are_recorded_without_a_violation a_command_holds_the_values_of_its_step "
    "weights_that_grow_again_train_from_zero "
    "values_that_are_set_are_held_and_pruned_ones_stay_zero the_smallest_weights_are_pruned "
    "masks_that_are_only_declared_write_nothing "
    "a_snapshot_is_gone_back_to_with_the_masks_of_now"
)


def _each(behaviours: str, rooms: tuple[str, ...], reason: str) -> dict[tuple[str, str], str]:
    return dict.fromkeys(product(behaviours.split(), rooms), reason)


EXCEPTIONS: dict[tuple[str, str], str] = {
    **_each(
        "a_weight_has_the_rate_of_its_group",
        ("NumPy", "a source of one's own", "JAX", TF1),
        ONE_RATE,
    ),
    **_each(
        "a_weight_has_the_rate_of_its_group the_latest_of_several_updates_counts "
        "without_a_rate_none_is_recorded decay_that_moves_a_held_weight_is_its_cause",
        FIT,
        BY_FIT,
    ),
    **_each(
        "after_a_restart_new_records_replace_those_from_there_on "
        "steps_that_go_back_begin_a_lineage_without_a_past a_loop_from_zero_records_its_first_step "
        "the_past_of_a_late_beginning_is_unknown a_step_that_no_log_can_hold_is_counted "
        "a_long_training_is_accounted_for_in_every_lineage",
        FIT,
        COUNTED,
    ),
    **_each(
        "a_mask_of_elements_is_in_the_log a_mask_of_channels_freezes_them "
        "a_mask_that_changes_is_stored_at_its_record "
        "pruned_weights_are_in_the_log a_declaration_of_one_mask_leaves_the_other "
        "a_held_weight_that_moves_is_a_violation a_pruned_weight_that_is_not_zero_is_a_violation "
        "masks_of_two_runs_overlap single_channels_that_train_overlap_nowhere "
        "values_that_were_compared_are_counted pruned_values_are_compared "
        "runs_whose_kept_weights_are_frozen_train_the_same a_mask_of_another_form_is_refused a_mask_of_nothing_is_refused",
        OTHER_BACKENDS,
        NO_MASKS,
    ),
    **_each(
        "weights_set_after_the_last_record_are_recorded_at_the_end "
        "the_last_step_is_recorded_though_it_was_not_due "
        "a_held_weight_that_moves_after_the_last_record_is_a_violation "
        "the_last_values_have_a_sketch",
        ("JAX",),
        PASSED,
    ),
    **_each(
        "a_loop_from_zero_records_its_first_step the_past_of_a_late_beginning_is_unknown",
        (TF1,),
        RESTARTS,
    ),
    **_each(
        "a_loop_from_zero_records_its_first_step the_past_of_a_late_beginning_is_unknown",
        TRAINERS,
        TRAINER_COUNTS,
    ),
    **_each(
        "a_call_without_a_step_counts_updates",
        ("NumPy", "a source of one's own", "JAX", TF1),
        "nothing in it counts updates: write `record(step)`",
    ),
    **_each("a_call_without_a_step_counts_updates", FIT, COUNTED),
    **_each(
        "a_call_without_a_step_where_nothing_counts_is_noted",
        ("PyTorch", "Keras Recorder", *TRAINERS, *FIT),
        "updates are counted",
    ),
    **_each(
        "decay_that_moves_a_held_weight_is_its_cause",
        (TF1,),
        "its ops show what bypassed the masks",
    ),
    **_each("stop_is_refused_where_nothing_could_stop", FIT, "`fit` ends after the batch"),
    **_each(
        "stop_is_refused_where_nothing_could_stop", TRAINERS, "the trainer ends after the step"
    ),
    **_each(
        "fingerprints_show_which_channels_of_frozen_weights_moved "
        "what_fingerprints_do_not_show_is_unknown a_weight_that_trains_again_gets_past_values "
        "masks_of_a_part_are_compared_by_value a_few_channels_train_where_the_rest_is_held",
        ("Keras Recorder", "Keras callback", TF1),
        MASKS_HAVE_VALUES,
    ),
    **_each(
        "masks_of_a_part_are_compared_by_value a_few_channels_train_where_the_rest_is_held",
        OTHER_BACKENDS,
        NO_MASKS,
    ),
    **_each(
        ENFORCED, ("NumPy", "a source of one's own", "JAX"), "masks are declared: nothing holds"
    ),
    **_each(ENFORCED, (TF1,), "masks wrap the optimizer when the graph is made: `masks.wrap`"),
    **_each(ENFORCED, OTHER_BACKENDS, NO_MASKS),
    **_each("a_double_is_measured_as_it_is", ("JAX", "Keras on JAX"), "JAX makes float32 of it"),
}
"""By behaviour and room the reason."""
