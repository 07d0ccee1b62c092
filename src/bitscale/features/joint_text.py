"""The text network of a joint model under onnxruntime, and the tokens it takes.

tokenizer.json is read by the `tokenizers` package. A JSON beside the network (text.onnx: text.json) may say

    {"context": 77, "start": "<|startoftext|>", "end": "<|endoftext|>", "pad": 0, "output": "text_embeds"}

context       tokens at most; longer texts are cut, the end token kept. Unless said, as the network or tokenizer.json
              fix it, else 77
start, end    tokens put before and behind, by name or number, where tokenizer.json does not put them itself
pad           what fills up short texts; as tokenizer.json says, else the end token, else 0
output        the output that gives the vectors; text_embeds where there is one, else the first
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32
from bitscale.errors import DataError, InputError
from bitscale.features.own import read_settings
from bitscale.networks.foreign import open_session

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONTEXT = 77  # tokens, unless anything says otherwise
OUTPUT = "text_embeds"
CURE = "pip install 'bitscale[words]'"
_KEYS = {"context", "start", "end", "pad", "output"}
_KINDS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class TextTower:
    """Texts to vectors."""

    def __init__(self, file: Path, folder: Path) -> None:
        self.file, self.session = file, open_session(file)
        self.tokenizer = _tokenizer(folder / "tokenizer.json")
        beside = file.with_suffix(".json")
        settings = read_settings(beside.read_text(), beside, _KEYS, "words") if beside.is_file() else {}
        self.inputs = {one.name: one for one in self.session.get_inputs()}
        if self.inputs.keys() - {"input_ids", "attention_mask"} and len(self.inputs) != 1:
            raise InputError(f"{file} must take input_ids and, if anything, attention_mask. It takes {[*self.inputs]}.")
        self.ids = "input_ids" if "input_ids" in self.inputs else next(iter(self.inputs))
        self.start, self.end = (self._token(settings.get(name), name) for name in ("start", "end"))
        self.context, self.fixed = self._context(settings.get("context"))
        self.pad = self._pad(settings.get("pad"))
        self.output = self._output(settings.get("output"))

    def vectors(self, texts: Sequence[str]) -> Float32:
        """One vector a text: (m, dim)."""
        rows = [self._row(encoding) for encoding in self.tokenizer.encode_batch(list(texts))]
        wide = self.context if self.fixed else max(map(len, rows))
        tokens = np.full((len(rows), wide), self.pad, np.int64)
        there = np.zeros((len(rows), wide), np.int64)
        for place, row in enumerate(rows):
            tokens[place, : len(row)] = row
            there[place, : len(row)] = 1
        values = np.concatenate([self._run(tokens[part], there[part]) for part in self._batches(len(rows))])
        if values.ndim != 2 or len(values) != len(rows):
            raise InputError(f"{self.file} gives an output of shape {values.shape} for {len(rows)} texts, no vectors.")
        return np.asarray(values, np.float32)

    def _batches(self, n: int) -> list[NDArray[np.int64]]:
        """As many texts at a time as the network takes."""
        most = self.inputs[self.ids].shape[0]
        return np.array_split(np.arange(n), n) if most == 1 else [np.arange(n)]

    def _run(self, tokens: NDArray[np.int64], there: NDArray[np.int64]) -> NDArray[Any]:
        tensors = {self.ids: tokens, "attention_mask": there}
        fed = {name: tensors[name].astype(_KINDS.get(one.type, np.int64)) for name, one in self.inputs.items()}
        values: NDArray[Any] = self.session.run([self.output], fed)[0]
        return values

    def _row(self, encoding: Any) -> list[int]:
        """The tokens of a text with those before and behind, cut to the context."""
        row = [int(id) for id in encoding.ids]
        row = row if self.start is None or row[:1] == [self.start] else [self.start, *row]
        row = row if self.end is None or row[-1:] == [self.end] else [*row, self.end]
        ends = self.end is not None or (bool(row) and bool(encoding.special_tokens_mask[-1]))
        if len(row) > self.context:
            row = [*row[: self.context - 1], row[-1]] if ends else row[: self.context]
        return row or [self.pad]

    def _token(self, token_named: Any, name: str) -> int | None:
        """A token by its name or number."""
        if token_named is None or (isinstance(token_named, int) and not isinstance(token_named, bool)):
            return token_named
        token = self.tokenizer.token_to_id(token_named) if isinstance(token_named, str) else None
        if token is None:
            raise InputError(
                f"{name} in {self.file.with_suffix('.json')} is no token of tokenizer.json: {token_named!r}."
            )
        return int(token)

    def _context(self, length: Any) -> tuple[int, bool]:
        """How many tokens a text has at most, and whether it has so many always."""
        shape = self.inputs[self.ids].shape
        fixed = shape[1] if len(shape) == 2 and isinstance(shape[1], int) else None
        least = length or fixed or (self.tokenizer.truncation or {}).get("max_length") or CONTEXT
        if isinstance(least, bool) or not isinstance(least, int) or not 2 <= least <= 65_536:
            raise InputError(f"context in {self.file.with_suffix('.json')} must be 2 or more. Got {least!r}.")
        if fixed not in (None, least):
            raise InputError(f"{self.file} takes texts of {fixed} tokens, and {self.file.stem}.json says {least}.")
        padding = self.tokenizer.padding
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self._padding = padding or {}
        return least, length is not None or fixed is not None

    def _pad(self, token_named: Any) -> int:
        token = self._token(token_named, "pad")
        known = (token, self._padding.get("pad_id"), self.end, 0)
        return int(next(one for one in known if one is not None))

    def _output(self, output: Any) -> str:
        names = [one.name for one in self.session.get_outputs()]
        if output is not None and output not in names:
            raise InputError(f"the text network has no output {output!r}. Its outputs: {', '.join(names)}.")
        return str(output or (OUTPUT if OUTPUT in names else names[0]))


def _tokenizer(file: Path) -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise DataError(f"words need the tokenizers package, which is not installed. Install it: {CURE}") from error
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # what tokenizers raises has no name of its own
        raise DataError(f"{file} cannot be read as a tokenizer ({error}).") from error
