import subprocess
import sys

import pytest

from bitscale.errors import InputError
from bitscale.hashers import hasher_names, make_hasher


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match=r"there is no hasher 'sift'\. Known: lsh, sh"):
        make_hasher("sift", n_bits=8)


@pytest.mark.parametrize(("name", "value"), [("iterations", "50"), ("iterations", 5.5), ("iterations", True)])
def test_settings_are_checked(name, value):
    with pytest.raises(InputError, match="iterations of itq must be int"):
        make_hasher("itq", n_bits=8, **{name: value})


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("itq", {"iterations": -1}),
        ("mlh", {"rho_share": 1.5}),
        ("bre", {"anchors": 0}),
        ("ksh", {"labelled": 1}),
    ],
)
def test_settings_out_of_range_are_refused(method, settings):
    with pytest.raises(InputError, match=method):
        make_hasher(method, n_bits=8, **settings)


def test_every_name_leads_to_its_own_method():
    assert all(make_hasher(name, n_bits=8).name == name for name in hasher_names())


def test_no_torch_is_loaded():
    code = "import sys, bitscale.hashers as h; [h.make_hasher(n, n_bits=8) for n in h.hasher_names()]; "
    assert subprocess.run([sys.executable, "-c", code + "sys.exit('torch' in sys.modules)"]).returncode == 0
