"""Running the service: what is loaded at the start is left out of later searches for garbage."""

import gc

from bitscale.server.run import keep_what_is_there


def test_what_is_loaded_by_the_start_is_left_out_of_searches_for_garbage():
    gc.unfreeze()
    try:
        keep_what_is_there()
        assert gc.get_freeze_count() > 10_000  # all modules
        assert len(gc.get_objects(generation=2)) < gc.get_freeze_count() // 10
    finally:
        gc.unfreeze()
