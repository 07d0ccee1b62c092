import faiss
import numpy as np

from bitscale.hashers import make_hasher
from tests.hashers.clusters import features

TRAIN = features(2_000, seed=0, d=40)


def test_identical_to_faiss_given_its_matrix_and_thresholds():
    for trained in (False, True):
        index = faiss.IndexLSH(40, 24, True, trained)
        index.train(TRAIN.images)
        rotation = index.rrot
        matrix = faiss.vector_to_array(rotation.A).reshape(24, 40).T
        offset = faiss.vector_to_array(index.thresholds) if trained else np.zeros(24, np.float32)
        hasher = make_hasher("lsh", n_bits=24, features="none").adopt(
            {"matrix": matrix.copy(), "offset": offset, "spread": np.ones(24, np.float32)}
        )
        theirs = np.unpackbits(index.sa_encode(TRAIN.images), axis=1, bitorder="little")
        np.testing.assert_array_equal(hasher.encode(TRAIN.images).signs() > 0, theirs > 0)


def test_bits_differ_as_often_as_the_angle_says():
    hasher = make_hasher("lsh", n_bits=1024, features="none").fit(TRAIN)
    mean = TRAIN.images.mean(axis=0)
    a, b = TRAIN.images[:50] - mean, TRAIN.images[50:100] - mean
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    signs = hasher.encode(TRAIN.images[:100]).signs()
    differing = (signs[:50] != signs[50:]).mean(axis=1)
    assert np.abs(differing - np.arccos(cosine) / np.pi).max() < 0.06  # 4 standard deviations
