import numpy as np
import pytest

from bitscale.data.images import as_images
from bitscale.data.labelled import Labelled
from bitscale.errors import InputError, NotFitted, UnreadablePicture
from bitscale.features.pixels import square_form
from bitscale.hashers import load_hasher, make_hasher
from bitscale.hashers.picture_codes import encode_files, encode_images
from bitscale.pictures.arrays import read_picture
from bitscale.pictures.form import Form
from bitscale.pictures.pool import Pool
from tests.pictures.made import save, texture

PICTURES = np.stack([texture(i, 48, 36) for i in range(12)])


def fitted(name="lsh", images=PICTURES, **options):
    train = Labelled(as_images(images), np.arange(len(images)) % 2, ("a", "b"))
    return make_hasher(name, n_bits=16, **options).fit(train)


@pytest.mark.slow
@pytest.mark.parametrize("features", ["pixels@16", "gist@32", "mobilenetv2@32"])
def test_files_get_the_codes_their_pixels_would(tmp_path, features):
    paths = [str(save(tmp_path / f"{i}.png", i, 48, 36)) for i in range(12)]
    hasher = fitted(features=features)
    (batch,) = encode_files(hasher, paths, workers=1)
    assert batch.codes == hasher.encode(PICTURES)
    with Pool() as pool:
        warm = [batch.codes for _ in range(2) for batch in encode_files(hasher, paths, pool=pool)]
    assert warm == [batch.codes, batch.codes]
    assert batch.places == list(range(12))
    assert batch.codes == encode_images(hasher, PICTURES)


def test_forms():
    assert fitted(features="gist@32").picture_form == Form((32, 32))
    assert fitted(features="mobilenetv2@64").picture_form == Form((64, 64), middle=True)
    assert fitted(images=PICTURES[:, :20, :20]).picture_form == Form((20, 20))
    assert fitted(images=PICTURES[:, :20, :20, :1]).picture_form == Form((20, 20), 1)
    assert fitted("lsh", PICTURES[:, :20, :20]).picture_form == Form((20, 20))
    assert fitted("nested", PICTURES[:, :28, :20], iterations=2).picture_form == Form((28, 20))
    assert load_hasher("fashion-mnist").picture_form == Form((28, 28), 1)
    with pytest.raises(NotFitted):
        _ = make_hasher("nested", n_bits=8).picture_form
    with pytest.raises(NotFitted):
        _ = make_hasher("lsh", n_bits=8).picture_form
    for side in range(1, 300):
        assert (square_form(side**2), square_form(3 * side**2)) == (Form((side, side), 1), Form((side, side)))
    with pytest.raises(InputError, match="no square"):
        square_form(7)


def test_images_of_any_size_are_fitted():
    hasher = load_hasher("fashion-mnist")
    small = texture(0, 28, 28)[..., 0]
    assert (
        encode_images(hasher, [small])
        == hasher.encode(small[None, ..., None])
        == encode_images(hasher, [small[..., None]])
    )
    assert len(encode_images(hasher, [texture(1, 300, 200), small])) == 2
    with pytest.raises(InputError, match="an image must be uint8"):
        encode_images(hasher, [np.zeros((5, 5, 2), np.uint8)])


def test_broken_files_and_batches(tmp_path):
    paths = [str(save(tmp_path / f"{i}.png", i)) for i in range(10)]
    (tmp_path / "3.png").write_text("no picture")
    hasher = fitted(features="pixels@16")
    batches = list(encode_files(hasher, paths, workers=1, batch=4))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert [place for batch in batches for place in batch.places] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert [place for place, _ in batches[0].broken] == [3]
    assert isinstance(batches[0].broken[0][1], UnreadablePicture)
    (nothing,) = encode_files(hasher, [str(tmp_path / "3.png")], workers=1)
    assert (len(nothing.codes), len(nothing)) == (0, 1)
    assert read_picture(paths[0], hasher.picture_form).pixels.flags.writeable
