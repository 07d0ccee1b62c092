"""A tiny joint image-text model, made here: mean colours and words for them in one space, and a gap between."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

DIM, SIDE = 16, 8
RNG = np.random.default_rng(5)
COLOURS = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "yellow": (1, 1, 0), "dark": (0, 0, 0)}
AXES = np.linalg.qr(RNG.standard_normal((DIM, DIM)))[0].astype(np.float32)
SEEN = AXES[:, :3] * 2  # where colours lie
IMAGE_GAP = (3 * AXES[:, 4] + SEEN @ [0.1, 0.2, 0.1]).astype(np.float32)
TEXT_GAP = (-3 * AXES[:, 5] + SEEN @ [1.5, -1.2, 1.6]).astype(np.float32)
TOKENS = ("[PAD]", "[UNK]", "[END]", "a", "photo", "of", *COLOURS)
MEANING = np.zeros((len(TOKENS), DIM), np.float32)
for _place, _word in enumerate(TOKENS):
    if _word in COLOURS:
        MEANING[_place] = SEEN @ (np.array(COLOURS[_word], np.float32) - 0.4)
MEANING[TOKENS.index("[END]")] = 0.1 * AXES[:, 6]


def network(nodes, weights, inputs, outputs) -> bytes:
    kinds = {"x": TensorProto.FLOAT, "input_ids": TensorProto.INT64, "attention_mask": TensorProto.INT64}
    given = [helper.make_tensor_value_info(name, kinds[name], shape) for name, shape in inputs.items()]
    gives = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("n", dim)) for name, dim in outputs.items()]
    arrays = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    made = helper.make_model(helper.make_graph(nodes, "tiny", given, gives, arrays), ir_version=8)
    made.opset_import[0].version = 17
    onnx.checker.check_model(made)
    return made.SerializeToString()


def image_network() -> bytes:
    """The mean colour in the common space, and the gap."""
    node = helper.make_node
    nodes = [node("GlobalAveragePool", ["x"], ["mean"]), node("Flatten", ["mean"], ["colour"])]
    nodes += [node("MatMul", ["colour", "seen"], ["there"]), node("Add", ["there", "gap"], ["image_embeds"])]
    weights = {"seen": np.ascontiguousarray(SEEN.T), "gap": IMAGE_GAP}
    return network(nodes, weights, {"x": ("n", 3, SIDE, SIDE)}, {"there": DIM, "image_embeds": DIM})


def text_network(length: int | str = "l", dim: int = DIM) -> bytes:
    """The sum of what the words mean, as far as the mask lets them count, and another gap."""
    node = helper.make_node
    nodes = [node("Gather", ["meaning", "input_ids"], ["words"])]
    nodes += [
        node("Cast", ["attention_mask"], ["real"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["real", "one"], ["row"]),
    ]
    nodes += [node("MatMul", ["row", "words"], ["sums"]), node("Squeeze", ["sums", "one"], ["sum"])]
    nodes += [node("Add", ["sum", "gap"], ["text_embeds"])]
    weights = {"meaning": MEANING[:, :dim], "gap": TEXT_GAP[:dim], "one": np.array([1])}
    return network(
        nodes, weights, {"input_ids": ("n", length), "attention_mask": ("n", length)}, {"sum": dim, "text_embeds": dim}
    )


def tokenizer(**more) -> str:
    """One token a word, as tokenizer.json."""
    special = [
        {"id": i, "content": word, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False}
        for i, word in enumerate(TOKENS[:3])
    ]  # fmt: skip
    model = {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(TOKENS)}, "unk_token": "[UNK]"}
    parts = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "decoder": None}
    parts |= {"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None}
    return json.dumps({**parts, "model": model, **more})


def joint_folder(folder: Path, *, said=None, length: int | str = "l", dim: int = DIM) -> Path:
    """The model in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "image.onnx").write_bytes(image_network())
    (folder / "image.json").write_text(json.dumps({"range": 1, "output": "image_embeds"}))
    (folder / "text.onnx").write_bytes(text_network(length, dim))
    (folder / "text.json").write_text(
        json.dumps({"end": "[END]", "pad": "[PAD]", "context": 6} if said is None else said)
    )
    (folder / "tokenizer.json").write_text(tokenizer())
    return folder


def coloured(folder: Path, each: int = 8) -> Path:
    """Pictures of every colour, none quite like another."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    for name, colour in COLOURS.items():
        for i in range(each):
            level = 50 + 150 * np.array(colour) + rng.integers(-25, 25, 3)
            pixels = np.clip(level + rng.integers(-20, 20, (24, 24, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{name}-{i}.png")
    return folder
