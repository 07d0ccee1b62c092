import numpy as np

from bitscale.data import load_dataset
from bitscale.data.sets.tinted import DYES


def test_the_dyed_sample_is_the_sample_in_colours_that_say_nothing_of_the_kind() -> None:
    grey, dyed = load_dataset("sample").query, load_dataset("sample-tinted").query
    colour = dyed.attribute("colour")
    assert np.array_equal(dyed.labels, grey.labels)
    assert colour.label_names == tuple(DYES)
    dye = np.array(DYES[colour.label_names[colour.labels[7]]])
    assert np.array_equal(dyed.images[7], grey.images[7].astype(int) * dye // 255)
    table = np.array([np.bincount(colour.labels[dyed.labels == kind], minlength=len(DYES)) for kind in range(10)])
    assert table.min() > 5
    assert np.array_equal(load_dataset("sample-tinted").query.attribute("colour").labels, colour.labels)
