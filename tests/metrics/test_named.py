import numpy as np
import pytest

from bitscale.errors import InputError
from bitscale.metrics import average_precision as ap
from bitscale.metrics import balls, check_names, curves, mean, rank, score

NAMES = {
    "map": lambda r: ap.expected_ap(r),
    "map@5": lambda r: ap.expected_ap(r, within=5),
    "map-ordered": lambda r: ap.ordered_ap(r),
    "map-best@7": lambda r: ap.best_ap(r, within=7),
    "map-worst": lambda r: ap.worst_ap(r),
    "map-ordered-over-found@5": lambda r: ap.ordered_ap_over_found(r, within=5),
    "precision@10": lambda r: curves.precision_at(r, [10])[:, 0],
    "recall@3": lambda r: curves.recall_at(r, [3])[:, 0],
    "cmc@2": lambda r: curves.cmc_at(r, [2])[:, 0],
}


def test_every_name_calls_its_function():
    rng = np.random.default_rng(0)
    ranking = rank(rng.integers(0, 9, (6, 30)), rng.random((6, 30)) < 0.3)
    values = score(NAMES, ranking)
    for name, function in NAMES.items():
        np.testing.assert_array_equal(values[name], function(ranking))


def test_ham2_looks_at_balls_of_its_radius():
    distances, relevant = np.array([[1, 2], [5, 6]]), np.array([[1, 0], [0, 1]], bool)
    ranking, found = rank(distances, relevant), balls(distances, relevant)
    values = score(["ham2", "ham2-empty"], ranking, found)
    np.testing.assert_array_equal(values["ham2"], [0.5, 0])
    np.testing.assert_array_equal(values["ham2-empty"], [0, 1])
    for name, given in (("ham3", found), ("ham2", None)):
        with pytest.raises(InputError, match="needs balls of radius"):
            score([name], ranking, given)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "mean",
        "map@0",
        "precision",
        "ham",
        "ham2@3",
        "map2",
        "cmc@",
        "map-empty",
        "map-ordered-over-found",
    ],
)
def test_unknown_names_are_refused(name):
    with pytest.raises(InputError, match="there is no metric"):
        check_names(["map", name])


def test_mean_excludes_and_counts():
    result = mean(np.array([0.5, np.nan, 1.0]))
    assert (result.value, result.n_queries, result.n_excluded) == (0.75, 2, 1)
    with pytest.raises(InputError, match="query set is empty"):
        mean(np.zeros(0))
    with pytest.raises(InputError, match="none of the 2 queries"):
        mean(np.full(2, np.nan))
