"""Weight files of torch, read without it: what torch reads, and nothing that would run."""

import io
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch

from bitscale.errors import DataError
from bitscale.networks.torch_file import read_torch_file

STATE = OrderedDict(
    a=torch.randn(3, 4, 2),
    turned=torch.randn(4, 5).T,
    part=torch.arange(20.0)[3:9].reshape(2, 3),
    count=torch.tensor(7),
    half=torch.randn(5).half(),
    none=torch.zeros(0, 3),
    parameter=torch.nn.Parameter(torch.randn(2)),
)


@pytest.mark.parametrize("older", [False, True])
def test_arrays_are_those_torch_reads(older, tmp_path):
    path = tmp_path / "x.pth"
    torch.save(STATE, path, _use_new_zipfile_serialization=not older)
    found = read_torch_file(path)
    assert list(found) == list(STATE)
    for name, tensor in STATE.items():
        expected = tensor.detach().numpy()
        assert found[name].dtype == expected.dtype
        np.testing.assert_array_equal(found[name], expected)


def test_a_module_in_the_place_of_arrays(tmp_path):
    torch.save(torch.nn.Linear(2, 2), tmp_path / "x.pth")
    with pytest.raises(DataError, match="NEWOBJ, which no weight file needs"):
        read_torch_file(tmp_path / "x.pth")


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("older", [False, True])
def test_nothing_is_run(older, tmp_path):
    torch.save({"a": torch.zeros(2), "b": Evil(str(tmp_path / "ran"))}, tmp_path / "x.pth",
               _use_new_zipfile_serialization=not older)  # fmt: skip
    with pytest.raises(DataError, match=r"asks to run '.*open'"):
        read_torch_file(tmp_path / "x.pth")
    (tmp_path / "plain.pth").write_bytes(pickle.dumps(Evil(str(tmp_path / "ran"))))
    with pytest.raises(DataError):
        read_torch_file(tmp_path / "plain.pth")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("older", [False, True])
def test_damage_is_told(older, tmp_path):
    torch.save(STATE, tmp_path / "x.pth", _use_new_zipfile_serialization=not older)
    data = (tmp_path / "x.pth").read_bytes()
    for i, wrong in enumerate((data[: len(data) // 2], data[:40], b"", b"hello", data[::-1])):
        (tmp_path / f"{i}.pth").write_bytes(wrong)
        with pytest.raises(DataError):
            read_torch_file(tmp_path / f"{i}.pth")


def test_a_view_beyond_its_numbers_is_refused(tmp_path):
    """A forged shape: torch writes (2,), the file is changed to say more."""
    torch.save({"a": torch.zeros(2)}, tmp_path / "x.pth")
    with zipfile.ZipFile(tmp_path / "x.pth") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    forged = io.BytesIO()
    with zipfile.ZipFile(forged, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data.replace(b"K\x02\x85", b"K\x09\x85") if name.endswith("data.pkl") else data)
    (tmp_path / "forged.pth").write_bytes(forged.getvalue())
    with pytest.raises(DataError, match="beyond its numbers"):
        read_torch_file(tmp_path / "forged.pth")
