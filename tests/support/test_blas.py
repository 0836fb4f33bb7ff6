import os
import threading
import warnings

import pytest
import threadpoolctl

from attractor.support.blas import single_blas_thread


@pytest.fixture(params=["of the process", "inside a limit of this thread"])
def two_threads(request):
    """BLAS pools of two threads each, however many processors there are."""
    with single_blas_thread():
        pass  # SciPy's pool is loaded
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
        if release and request.param == "of the process":
            release()
        yield


def pool_sizes():
    blas = [i for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"]
    return {i["num_threads"] for i in blas if i.get("threading_layer") != "disabled"}


class Holder:
    """A thread that enters and leaves a block when it is told to."""

    def __init__(self):
        self.inside, self.told = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold)
        self.thread.start()
        assert self.inside.wait(10)

    def hold(self):
        with single_blas_thread():
            self.inside.set()
            self.told.wait(10)

    def leave(self):
        self.told.set()
        self.thread.join(10)


@pytest.mark.parametrize("first_in_first_out", [True, False])
def test_blas_has_one_thread_until_the_last_block_ends_and_all_after_it(
    two_threads, first_in_first_out
):
    blocks = [Holder(), Holder()]
    sizes = [pool_sizes()]
    for block in blocks if first_in_first_out else blocks[::-1]:
        block.leave()
        sizes.append(pool_sizes())
    assert sizes == [{1}, {1}, {2}]


def test_blas_gets_its_threads_back_after_blocks_inside_one_another_and_after_an_error(two_threads):
    with pytest.raises(ZeroDivisionError), single_blas_thread():
        with single_blas_thread():
            assert pool_sizes() == {1}
        assert pool_sizes() == {1}
        raise ZeroDivisionError
    assert pool_sizes() == {2}


def sizes_in_child(look):
    """What a forked child sees, as the sizes it ends with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX has threads of its own, which the child does not use
        child = os.fork()
    if child == 0:
        size = 99  # of a look that raised
        try:
            size = max(look())
        finally:
            os._exit(size)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_child_is_held_by_no_thread_that_it_lacks(two_threads):
    block = Holder()

    def after_a_block():
        before = pool_sizes()
        with single_blas_thread():
            assert pool_sizes() == {1}
        return before & pool_sizes()

    assert sizes_in_child(after_a_block) == 2
    block.leave()
    with single_blas_thread():  # the block of the thread that forks goes on in the child
        assert sizes_in_child(pool_sizes) == 1
