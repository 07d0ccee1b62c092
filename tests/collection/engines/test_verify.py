"""What counts as alike when an engine's answers are compared with the collection's."""

import numpy as np

from bitscale.collection.engines.verify import alike
from bitscale.index.base import Hits


def hits(ids, distances, beyond=None):
    cut = None if beyond is None else np.array(beyond)
    return Hits(np.array(ids, np.int64), np.array(distances, np.float64), tied_beyond=cut)


def test_items_at_the_end_of_a_tie_that_is_not_listed_whole_may_be_others():
    here = hits([[1, 2, 3], [1, 4, 5]], [[0, 1, 1], [0, 1, 2]])
    assert alike(here, here)
    others = [[1, 8, 9], [1, 4, 5]], [[0, 1, 1], [0, 1, 2]]
    assert not alike(here, hits(*others))
    assert alike(here, hits(*others, [True, False]))
    assert not alike(here, hits([[7, 8, 9], [1, 4, 5]], others[1], [True, False]))  # one that is nearer than the tie
    assert not alike(here, hits([[1, 2, 3], [1, 4, 6]], others[1], [True, False]))  # the second is listed whole
    assert not alike(here, hits([[1, 8, 9], [1, 4, 5]], [[0, 1, 2], [0, 1, 2]], [True, False]))
    assert alike(hits(np.empty((2, 0)), np.empty((2, 0))), hits(np.empty((2, 0)), np.empty((2, 0)), [False, False]))
