"""Running the service: what is loaded by the start is no garbage to look for, and threads take short turns."""

import gc
import sys

from bitscale.server.run import keep_what_is_there, take_short_turns


def test_what_is_loaded_by_the_start_is_left_out_of_searches_for_garbage():
    gc.unfreeze()
    try:
        keep_what_is_there()
        assert gc.get_freeze_count() > 10_000  # all modules
        assert len(gc.get_objects(generation=2)) < gc.get_freeze_count() // 10
    finally:
        gc.unfreeze()


def test_threads_of_a_service_take_short_turns():
    before = sys.getswitchinterval()
    try:
        take_short_turns()
        assert sys.getswitchinterval() < before / 2
    finally:
        sys.setswitchinterval(before)
