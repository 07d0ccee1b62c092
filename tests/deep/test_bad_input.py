"""What cannot be learned from, resumed or loaded ends in a BitscaleError that names the cure; damage never passes."""

import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

from bitscale.data.images import ArrayImages, ListImages
from bitscale.data.labelled import Labelled
from bitscale.deep.checkpoint import NAME
from bitscale.deep.memory import check_memory, free_bytes, training_bytes
from bitscale.errors import BitscaleError, CorruptFile, DataError, FileError, InputError
from bitscale.hashers import load_hasher, make_hasher
from bitscale.hashers.model_file import KEY, read
from bitscale.networks.paper import network_layers
from tests.cli.run import bitscale
from tests.conftest import endurance
from tests.hashers.clusters import DEEP, NAMES, features, images

IMAGES = images(200, seed=1)
VECTORS = features(100, seed=1, d=12)
LABELS = np.arange(20) % 2
RNG = np.random.default_rng(0)


def make(name="drsch", n_bits=8, **options):
    return make_hasher(name, n_bits=n_bits, **{"iterations": 3, "images_per_class": 4, **options})


@pytest.mark.parametrize("name", DEEP)
def test_labels_that_cannot_teach(name):
    for labels, said in (
        (np.zeros(200, np.int64), "add images of another, or use a method without labels"),
        (np.minimum(np.arange(200), 1), "Add images to them or leave these classes out"),
    ):
        with pytest.raises(InputError, match=said):
            make(name).fit(Labelled(IMAGES.images, labels, NAMES))
    with pytest.raises(InputError, match="Drop labels that every image carries"):
        make(name).fit(Labelled(IMAGES.images, np.ones((200, 3), bool), NAMES[:3]))
    with pytest.raises(DataError, match="Got 200 images and 199 labels"):
        make(name).fit(Labelled(IMAGES.images, np.zeros(199, np.int64), NAMES))


@pytest.mark.parametrize("name", DEEP)
def test_pictures_that_cannot_be_read_as_one_lot(name):
    first, rest = np.zeros((8, 10), np.uint8), RNG.integers(0, 256, (19, 8, 10), np.uint8)
    colour = np.zeros((8, 10, 3), np.uint8)
    with pytest.raises(InputError, match=r"input_size= or bitscale\.data\.images\.Resized"):
        make(name).fit(Labelled(ListImages([first, colour, *rest[1:]]), LABELS, NAMES))
    for wrong in (np.full((20, 8, 10), np.nan, np.float32), np.full((20, 8, 10), 0.5)):
        with pytest.raises(InputError, match="once NaN is repaired"):
            make(name).fit(Labelled(wrong, LABELS, NAMES))
    with pytest.raises(InputError, match="all equal, so there is nothing to learn"):
        make(name).fit(Labelled(ArrayImages(first[None].repeat(20, 0)), LABELS, NAMES))


@pytest.mark.parametrize("name", DEEP)
def test_embeddings_that_are_no_numbers(name):
    for value in (np.nan, np.inf):
        holed = VECTORS.images.copy()
        holed[3, 4] = value
        with pytest.raises(InputError, match="NaN or infinity"):
            make(name, features="none").fit(Labelled(holed, VECTORS.labels, NAMES))


@pytest.mark.parametrize("n_bits", [0, -8, 1025, 10**9, 8.0, True])
def test_bits_that_no_code_has(n_bits):
    with pytest.raises(InputError, match="between 1 and 1024"):
        make(n_bits=n_bits)


def test_a_step_that_cannot_fit_is_refused_before_anything_is_allocated():
    layers = network_layers("mobilenetv2", (3, 224, 224), 64)
    needed = training_bytes(layers, (3, 224, 224), 200)
    assert 8e9 < needed < 30e9
    check_memory(layers, (3, 224, 224), 200, needed)
    check_memory(layers, (3, 224, 224), 200, None)  # where nobody can tell
    with pytest.raises(InputError, match=r"about [\d.]+ GB of memory, and 4.0 GB are free. Use a smaller images_per_"):
        check_memory(layers, (3, 224, 224), 200, 4_000_000_000)
    assert 1e6 < free_bytes() < 1e15
    huge = ListImages(_Endless(np.zeros((1024, 1024), np.uint8)))
    part = Labelled(huge, np.arange(100_000) % 1000, tuple(map(str, range(1000))))
    with pytest.raises(InputError, match=r"takes about .* of memory"):
        make("nested", network="small-net", input_size=1024, classes_per_batch=1000, images_per_class=100).fit(part)
    with pytest.raises(InputError, match="Use smaller images or fewer bits"):
        make(input_size=2048).fit(part)
    with pytest.raises(InputError, match="Use smaller vectors or fewer bits"):
        network_layers("paper-net", (10**6,), 8)


class _Endless(list):
    """The same picture 100,000 times, without taking the memory."""

    def __init__(self, picture):
        super().__init__([picture])

    def __len__(self):
        return 100_000

    def __getitem__(self, i):
        return super().__getitem__(0)


@pytest.mark.slow
def test_the_estimate_is_near_what_a_step_takes():
    """Measured in a process of its own: 32 pictures of 96x96 through small-net."""
    code = (
        "import re, numpy as np, torch; torch.set_num_threads(1)\n"
        "from bitscale.hashers import make_hasher\n"
        "from bitscale.data.labelled import Labelled\n"
        "def peak(): return 1024 * int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "def fit(n, side):\n"
        "    x = np.random.default_rng(0).integers(0, 256, (n, side, side), np.uint8)\n"
        "    part = Labelled(x, np.arange(n) % 2, ('a', 'b'))\n"
        "    make_hasher('drsch', n_bits=8, network='small-net', iterations=2, images_per_class=n // 2).fit(part)\n"
        "fit(8, 8); before = peak(); fit(32, 96); print(peak() - before)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    estimate = training_bytes(network_layers("small-net", (1, 96, 96), 8), (1, 96, 96), 32)
    assert 0.5 < int(ran.stdout) / estimate < 1.8


@pytest.fixture(scope="module", params=["nested", "dsrh", "vectors"])
def model(request, tmp_path_factory):
    """A small saved model, the items it encodes and their codes."""
    vectors = request.param == "vectors"
    name, features_ = ("bs-drsch", "none") if vectors else (request.param, "pixels")
    part = VECTORS if vectors else IMAGES
    hasher = make(name, features=features_, network="small-net" if not vectors else "paper-net").fit(part)
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    hasher.save(path)
    few = part.images[:20] if vectors else part.images.pixels[:20]
    return path, few, hasher.encode(few)


def mutated(whole: bytes, rng: np.random.Generator) -> bytes:
    """One or a few of: a flipped bit, a changed byte, a cut, bytes put in or taken out, a part zeroed or copied."""
    data = bytearray(whole)
    header = int.from_bytes(whole[:8], "little") + 8
    for _ in range(int(rng.integers(1, 4))):
        end = max(len(data), 1)
        at = int(rng.integers(0, min(header, end) if rng.random() < 0.6 else end))
        size = int(rng.integers(1, 64))
        kind = rng.integers(7)
        if kind == 0:
            data[at : at + 1] = bytes([data[at] ^ 1 << int(rng.integers(8))]) if data else b""
        elif kind == 1:
            data[at : at + 1] = rng.bytes(1)
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            data[at:at] = rng.bytes(size)
        elif kind == 4:
            del data[at : at + size]
        elif kind == 5:
            data[at : at + size] = bytes(min(size, end - at))
        else:
            other = int(rng.integers(0, end))
            data[at : at + size] = data[other : other + size]
    return bytes(data)


@pytest.mark.slow
def test_a_damaged_model_never_gives_other_codes(model, tmp_path):
    path, items, codes = model
    whole, rng, passed = path.read_bytes(), np.random.default_rng(1), 0
    for _ in range(endurance(1000)):
        (tmp_path / "m").write_bytes(mutated(whole, rng))
        try:
            found = load_hasher(tmp_path / "m").encode(items)
        except BitscaleError:
            continue
        assert found == codes
        passed += 1
    assert passed < endurance(1000) / 4  # what tells nothing (a version, the seed) may be hit


@pytest.mark.slow
def test_forged_metadata_never_crashes(model, tmp_path):
    path, items, codes = model
    about, arrays = read(path)
    rng = np.random.default_rng(2)
    junk = [None, True, -1, 0, 1, 2**40, 2**70, 1.5, float("nan"), float("inf"), "", "x" * 9000, "../../etc/passwd",
            [], [1], {}, {"a": 1}, [[[[]]]], "timm:hf-hub:x/y", "mobilenetv2"]  # fmt: skip
    places = [(key,) for key in about] + [("settings", key) for key in about["settings"]]
    places += [("details", key) for key in about["details"]]
    for place in places:
        for value in rng.choice(len(junk), endurance(40), replace=True):
            forged = json.loads(json.dumps(about))
            inner = forged
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = junk[value]
            save_file(arrays, tmp_path / "m", metadata={KEY: json.dumps(forged)})
            try:
                found = load_hasher(tmp_path / "m").encode(items)
            except BitscaleError:
                continue
            assert found == codes, place


@pytest.mark.slow
def test_onnx_files_are_for_others_to_read(model, tmp_path):
    (tmp_path / "m.onnx").write_bytes(load_hasher(model[0]).to_onnx())
    whole, rng = (tmp_path / "m.onnx").read_bytes(), np.random.default_rng(3)
    for i in range(endurance(200)):
        (tmp_path / "bad.onnx").write_bytes(mutated(whole, rng) if i else whole)
        with pytest.raises(FileError, match="ONNX"):
            load_hasher(tmp_path / "bad.onnx")
    done = bitscale("info", tmp_path / "m.onnx")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "safetensors" in done.stderr


def test_a_damaged_checkpoint_is_noticed(tmp_path):
    settings = {"features": "none", "validation_share": 0.2}
    whole = make("nested", **settings).fit(VECTORS, run=tmp_path)
    data, rng = (tmp_path / NAME).read_bytes(), np.random.default_rng(4)
    for _ in range(endurance(200)):
        (tmp_path / NAME).write_bytes(mutated(data, rng))
        try:
            resumed = make("nested", **settings).fit(VECTORS, run=tmp_path, resume=True)
        except BitscaleError:
            continue
        assert resumed.fingerprint == whole.fingerprint


def test_a_checkpoint_of_other_layers_is_refused(tmp_path):
    from bitscale.deep import checkpoint
    from bitscale.deep.fitting import make_task
    from bitscale.deep.source import VectorSource

    hasher = make(features="none")
    hasher.fit(VECTORS, run=tmp_path)
    identity = make_task(hasher, VectorSource(VECTORS.images), [VECTORS.labels]).identity
    state = checkpoint.read(tmp_path, identity)
    state.model["phi.0.weight"] = state.model["phi.0.weight"][:1]
    checkpoint.write(state, tmp_path)
    with pytest.raises(CorruptFile, match="does not fit this network"):
        make(features="none").fit(VECTORS, run=tmp_path, resume=True)
    del state.model["phi.0.weight"]
    checkpoint.write(state, tmp_path)
    with pytest.raises(CorruptFile, match="does not fit this network"):
        make(features="none").fit(VECTORS, run=tmp_path, resume=True)


def test_negative_spreads_are_refused(model):
    hasher = load_hasher(model[0])
    name = next(n for n in hasher.arrays if n.endswith(("running_var", "spread")))
    arrays = {**hasher.arrays, name: -hasher.arrays[name] - 1}
    with pytest.raises(InputError, match="must not be negative"):
        hasher.adopt(arrays, hasher.details)
