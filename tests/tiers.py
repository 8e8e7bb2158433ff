"""Which tests `make test` leaves to `make test-all`, and why: the one place that says so.

`make test` is for whoever changes something: every capability and every law once, the demo and the README, within four
minutes on two cores where no kernel is compiled yet. Compiling is what takes the time: some fifth of a second for every
kernel, of which each kind of estimator, each number of classes and each number of columns has its own. So

- of a test with variants for several kinds of estimators the variants for a representative kind are quick (`QUICK_KINDS`);
- of the tests in `FIRST_ONLY` the first of those variants is;
- the tests in `SLOW` are not quick at all, for the reason under which they stand.

A name stands for all below it: a file, a class, a function, or one variant of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

KINDS = (
    "categorical bernoulli multinomial gaussian poisson mixed exponential CategoricalNB BernoulliNB MultinomialNB "
    "GaussianNB PoissonNB MixedNB TAN SPODE AODE NetworkNB FeatureAveragedNB PolyaNB"
).split() + ["sparse bernoulli", "sparse multinomial"]
QUICK_KINDS = {"categorical", "CategoricalNB"}
QUICK_KINDS_OF_LAWS = QUICK_KINDS | {"gaussian"}

SLOW: dict[str, tuple[str, ...]] = {
    "simulation: figures of many data sets or draws": (
        "calibration/test_bands.py::test_uniform_ranks_leave_the_band_as_often_as_they_may",
        "calibration/test_bands.py::test_p_value_is_the_share_of_outcomes_that_are_no_less_extreme",
        "checking/test_calibration.py",
        "estimators/test_polya.py::test_concentrations_of_simulated_documents_are_found",
        "families/test_added.py::test_draws_have_the_exact_moments",
        "families/test_added.py::test_draws_of_different_classes_are_independent",
        "families/test_dirichlet.py::test_log_evidence_is_the_likelihood_averaged_over_the_prior",
        "families/test_normal_inverse_gamma.py::test_draws_have_the_marginals_and_moments",
        "families/test_normal_inverse_gamma.py::test_log_likelihood_cumulants_are_those_of_draws",
        "families/test_transformations.py::test_draws_of_the_model_average_to_the_predictive",
        "selection/test_averaged.py::test_its_draws_average_to_its_predictive",
        "uncertainty/test_calibration.py",
        "uncertainty/test_given_draws.py::test_analyses_of_draws_are_near_those_of_the_posterior",
        "uncertainty/test_given_draws.py::test_their_average_is_the_predictive_distribution",
        "uncertainty/test_parameters.py::test_intervals_cover",
        "uncertainty/test_rows.py::test_draws_are_of_the_posterior",
        "uncertainty/test_rows.py::test_given_the_row_draws_average_to_predict_proba",
        "uncertainty/test_rows.py::test_log_odds_moments_are_those_of_draws",
    ),
    "data: folds of real tables": (
        "estimators/test_polya.py::test_log_loss_of_digits_is_below_the_multinomials",
        "estimators/test_polya.py::test_log_loss_of_newsgroups_is_below_the_multinomials",
        "oracles/test_published.py::test_ten_fold_cross_validation",
        "oracles/test_sklearn_equivalence.py::test_digits",
        "test_em.py::test_unlabelled_texts_help_where_labels_are_few",
    ),
    "processes: each imports JAX and compiles anew": (
        "persistence/test_files.py::test_a_killed_writer_leaves_a_whole_file",
        "test_cli.py::test_as_a_process",
        "test_devices.py",
        "test_distributed.py::test_a_killed_worker_changes_nothing",
        "test_plots.py::TestAxes::test_importing_the_package_does_not_import_matplotlib",
        "faults/test_threads.py::test_joblib",
    ),
    "files: thousands of damaged ones": (
        "persistence/test_damaged.py::test_any_change_of_bytes_is_noticed",
        "persistence/test_damaged.py::test_forged_files_that_load_answer",
    ),
    "kernels: shapes that no other test has": (
        "checking/test_independence.py::test_too_many_pairs_and_levels",
        "checking/test_sensitivity.py::test_all_blocks_of_a_mixed_move_together",
        "checking/test_sensitivity.py::test_alpha_outside_the_interval_of_sparse_counts",
        "estimators/test_bad_input.py::test_counts_of_a_million_millions",
        "estimators/test_mixture.py::test_a_row_that_no_component_can_have",
        "estimators/test_mixture.py::test_a_structure_can_be_given",
        "estimators/test_mixture.py::test_components_have_no_posterior",
        "estimators/test_mixture.py::test_frames_and_sparse_matrices",
        "estimators/test_mixture.py::test_one_component_is_the_fit_of_one_class",
        "estimators/test_mixture.py::test_rows_with_missing_cells_are_marginalised",
        "estimators/test_mixture.py::test_scores_are_sums_by_hand",
        "estimators/test_mixture.py::test_weights_are_replication",
        "estimators/test_options.py::test_a_column_without_an_observed_cell_says_nothing",
        "estimators/test_options.py::test_kinds_from_the_dtypes_of_polars",
        "estimators/test_options.py::test_a_mixed_table_with_a_column_of_nothing",
        "estimators/test_polya.py::test_objective_does_not_fall",
        "estimators/test_polya.py::test_probabilities_are_bayes_theorem",
        "estimators/test_polya.py::test_words_that_a_class_never_had_are_possible",
        "estimators/test_polya.py::test_weights_are_replication_counts",
        "estimators/test_sklearn.py::test_pipelines_of_real_preprocessing",
        "families/test_added.py::test_cumulants_of_an_added_row_are_sums_of_polygammas",
        "families/test_added.py::test_draws_under_small_concentrations_are_log_probabilities",
        "families/test_added.py::test_each_cumulant_is_the_slope_of_the_one_before",
        "families/test_dirichlet.py::test_draws_under_tiny_concentrations_do_not_underflow_to_nan",
        "families/test_gamma_poisson.py::test_predictive_after_much_data_is_poisson",
        "families/test_normal_inverse_gamma.py::test_predictive_with_many_degrees_of_freedom_is_normal",
        "families/test_transformations.py::test_an_array_of_counts_is_read_over_the_groups_of_its_dirichlet",
        "families/test_transformations.py::test_chain_rule_of_the_model",
        "families/test_transformations.py::test_log_joint_is_the_sum_over_class_prior_and_blocks",
        "families/test_transformations.py::test_vmap_over_priors_is_a_loop_over_priors",
        "programs/test_referee.py::test_without_labels_the_class_is_summed_out",
        "selection/test_averaged.py::test_it_is_the_average_over_all_subsets",
        "selection/test_averaged.py::test_sparse_presence_is_dense_presence",
        "selection/test_averaged.py::test_draws_take_inclusion_first_and_the_table_is_that_of_draws",
        "selection/test_tune.py::test_gaussian_strength_is_the_optimum_over_refits",
        "selection/test_tune.py::test_slopes_are_those_of_finite_differences",
        "structures/test_analyses.py::test_arviz",
        "structures/test_analyses.py::test_decisions",
        "structures/test_analyses.py::test_every_parameter_has_its_beta_distribution",
        "structures/test_analyses.py::test_gaussian_columns_are_a_factor",
        "structures/test_analyses.py::test_learning_curves",
        "structures/test_analyses.py::test_log_odds_have_the_moments_of_log_probabilities",
        "structures/test_analyses.py::test_scores_of_estimates",
        "structures/test_analyses.py::test_sensitivity_is_that_of_refits",
        "structures/test_analyses.py::test_the_configuration_of_jax_stays",
        "structures/test_aode.py::test_each_member_has_all_analyses",
        "structures/test_aode.py::test_gaussian_columns_are_those_of_every_member",
        "structures/test_aode.py::test_only_gaussian_columns_make_gaussian_naive_bayes",
        "structures/test_aode.py::test_scores_of_estimates_and_learning_curves",
        "structures/test_input.py::test_check_estimator",
        "structures/test_input.py::test_polars_and_pandas_agree",
        "structures/test_learning.py::test_the_tree_by_evidence_has_the_most_of_it",
        "structures/test_query.py::test_any_variables_given_any_others",
        "structures/test_query.py::test_many_given_cells_do_not_underflow",
        "structures/test_structures.py::test_many_levels_and_parents_do_not_wrap_around",
        "structures/test_structures.py::test_other_numbers_of_rows_compile_nothing",
        "structures/test_traps.py::test_many_variables_neither_overflow_nor_underflow",
        "test_cli.py::test_a_file",
        "test_cli.py::test_a_class_of_one_row_is_said",
        "test_cli.py::test_improper_prior_says_why_there_is_no_table",
        "test_cli.py::test_one_estimator_for_all_columns",
        "test_cli.py::test_quoted_cells",
        "test_cli.py::test_scores_are_those_of_the_estimator",
        "test_cli_stream.py::test_a_class_of_one_row_and_one_of_two",
        "test_counting.py::test_classes_that_are_declared_later_compile_once_each",
        "test_counting.py::test_every_dtype_of_sparse_data_holds_the_same_numbers",
        "test_counting.py::test_forty_sizes_of_batches_compile_a_few_kernels",
        "test_counting.py::test_levels_that_grow_compile_seldom",
        "test_decision.py::test_under_zero_one_loss_it_is_the_prediction",
        "test_distributed.py::test_options_of_predictions",
        "test_distributed.py::test_dataframes",
        "test_distributed.py::test_sparse_blocks",
        "test_distributed.py::test_wrong_columns_are_refused_at_once",
        "test_em.py::test_a_structure_is_that_of_the_labelled_rows",
        "test_em.py::test_categorical_levels_are_bernoulli_ones",
        "test_em.py::test_frames_of_mixed_columns",
        "test_em.py::test_restarts_are_further_climbs_of_which_the_best_wins",
        "test_em.py::test_ways_to_say_the_same",
        "test_evaluation.py::test_a_class_that_a_fold_lacks_is_impossible",
        "test_inference_data.py::test_average_likelihood_of_a_row_is_its_predictive",
        "test_inference_data.py::test_predicted_labels_have_the_probabilities_of_their_draws",
        "test_inference_data.py::test_small_blocks_make_no_difference",
        "test_inference_data.py::test_sparse_rows",
        "test_learning_curve.py::test_a_frame_of_several_kinds",
        "test_plots.py::TestUncertaintyMap::test_regions_shading_and_points",
        "test_plots_selection.py::TestAlphaPath::test_several_hyperparameters_have_marks_of_their_own",
        "test_plots_selection.py::TestInclusion::test_a_column_keeps_its_probability_wherever_its_block_puts_it",
        "test_plots_selection.py::TestInclusion::test_nothing_overlaps_and_the_highest_have_names",
        "test_plots_selection.py::TestPointwiseLoo::test_nothing_overlaps",
        "test_plots_selection.py::TestPrequentialCurve::test_differences_of_two_end_at_the_log_bayes_factor",
        "test_plots_selection.py::TestPrequentialCurve::test_it_is_the_evidence_of_each_prefix_and_grows_by_the_next_row",
        "test_plots_selection.py::TestPrequentialFigure::test_what_cannot_be_compared_is_refused",
        "test_streaming.py::test_bad_files",
        "test_text.py::test_pipeline_clone_and_parameters",
        "uncertainty/test_draws.py::test_draws_are_independent_also_between_chunks",
        "uncertainty/test_draws.py::test_the_seed_is_all_that_is_random",
        "uncertainty/test_given_draws.py::test_another_class_prior",
        "uncertainty/test_parameters.py::test_many_words_are_one_call",
        "uncertainty/test_parameters.py::test_mixed_stands_in_the_order_of_the_columns",
        "uncertainty/test_row_limits.py::test_double_precision_whatever_the_configuration",
        "uncertainty/test_row_limits.py::test_known_class_probabilities_do_not_learn_from_the_row",
        "uncertainty/test_row_limits.py::test_seeds",
        "uncertainty/test_row_limits.py::test_small_concentrations",
        "uncertainty/test_rows.py::test_a_row_does_not_see_the_others",
        "uncertainty/test_rows.py::test_permuted_classes_and_rows_permute_the_answer",
        "uncertainty/test_rows.py::test_without_a_cell_the_class_prior_is_what_is_known",
    ),
}

FIRST_ONLY = (
    "estimators/test_options.py::test_labels_of_any_type",
    "families/test_added.py",
    "families/test_normal_inverse_gamma.py",
    "families/test_transformations.py",
    "oracles/test_published.py",
    "oracles/test_sklearn_equivalence.py",
    "selection/test_tune.py",
    "structures/test_analyses.py",
    "structures/test_aode.py",
    "test_cli_stream.py::test_fits_are_those_of_the_whole_file",
    "test_counting.py",
    "test_distributed.py",
    "test_inference_data.py",
    "test_plots.py::TestNothingOverlaps",
    "test_plots_selection.py",
    "uncertainty/test_parameters.py",
    "uncertainty/test_row_limits.py",
    "uncertainty/test_rows.py",
)


def mark(items: Sequence[pytest.Item]) -> None:
    """Give the slow tests their mark, with the reason."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0].removeprefix("tests/"), []).append(item)
    for name, variants in tests.items():
        reason = next((why for why, names in SLOW.items() if _stands_in(name, names)), None)
        quick = [] if reason else _representative(name, variants)
        for item in variants:
            if item not in quick:
                item.add_marker(pytest.mark.slow(reason or "variants: the same code, for another kind or option"))


def unknown(items: Iterable[pytest.Item]) -> list[str]:
    """Names in the tables that no test has, if these are all tests."""
    every = {item.nodeid.partition("[")[0].removeprefix("tests/") for item in items}
    named = [name for names in (*SLOW.values(), FIRST_ONLY) for name in names]
    return [name for name in named if not any(_stands_in(test, (name,)) for test in every)]


def _representative(name: str, variants: list[pytest.Item]) -> list[pytest.Item]:
    """The quick ones of all variants of a test."""
    kinds = [_kinds(item) for item in variants]
    wanted = QUICK_KINDS_OF_LAWS if name.startswith("laws/") else QUICK_KINDS
    if not any(own & wanted for own in kinds):
        wanted = next((own for own in kinds if own), wanted)
    chosen = [item for item, own in zip(variants, kinds, strict=True) if not own or own & wanted]
    return chosen[:1] if _stands_in(name, FIRST_ONLY) else chosen


def _kinds(item: pytest.Item) -> set[str]:
    """Kinds of estimators in the name of a variant."""
    variant = item.nodeid.partition("[")[2].removesuffix("]")
    return {part.partition("(")[0] for part in variant.split("-")} & set(KINDS)


def _stands_in(name: str, names: Iterable[str]) -> bool:
    return any(name == other or name.startswith(f"{other}::") for other in names)
