#!/usr/bin/env python3
"""Tests of streams, events, delays and injected errors: python3 test_streams.py

Work is held back or delayed on purpose; no test depends on how long anything took.
"""
import ctypes
import os

from stand_in import (
    ECC_UNCORRECTABLE, ILLEGAL_ADDRESS, LAUNCH_FAILED, LAUNCH_TIMEOUT, MIB, NOT_READY, OUT_OF_MEMORY, UNKNOWN, Driver,
    log_lines, main,
)

OK = 0


def with_buffer(*values):
    """A driver, a kernel that adds 1, and device memory with these numbers."""
    driver = Driver()
    _, pointer = driver.allocate(4 * len(values))
    _, function = driver.load()
    driver.to_device(pointer, driver.pinned(*values))
    driver.call("cuCtxSynchronize")
    return driver, function, pointer


def a_call_returns_before_its_work_is_done():
    driver, function, pointer = with_buffer(1, 2)
    stream, result = driver.stream(), driver.pinned(0, 0)
    driver.hold("launch")
    assert driver.launch(function, pointer, 2, stream) == OK
    driver.to_host(result, pointer, stream)
    assert driver.result("cuStreamQuery", stream) == NOT_READY
    assert list(result) == [0, 0], list(result)
    driver.hold("launch", False)
    driver.call("cuStreamSynchronize", stream)
    assert driver.result("cuStreamQuery", stream) == OK
    assert list(result) == [2, 3], list(result)


def work_of_one_stream_runs_in_order():
    driver, function, pointer = with_buffer(0)
    stream, source, result = driver.stream(), driver.pinned(5), driver.pinned(*range(20))
    driver.to_device(pointer, source, stream)
    for number in range(20):
        assert driver.launch(function, pointer, 1, stream) == OK
        to = ctypes.c_void_p(ctypes.addressof(result) + 4 * number)
        driver.call("cuMemcpyDtoHAsync_v2", to, pointer, ctypes.c_size_t(4), stream)
    driver.call("cuStreamSynchronize", stream)
    assert list(result) == [6 + number for number in range(20)], list(result)


def one_stream_does_not_wait_for_another():
    driver, function, pointer = with_buffer(1)
    _, elsewhere = driver.allocate(4)
    slow, quick = driver.stream(), driver.stream()
    source = driver.pinned(7)
    driver.hold("copy")
    driver.to_device(elsewhere, source, slow)
    for _ in range(3):
        assert driver.launch(function, pointer, 1, quick) == OK
    driver.call("cuStreamSynchronize", quick)
    assert driver.result("cuStreamQuery", slow) == NOT_READY
    driver.hold("copy", False)
    driver.call("cuCtxSynchronize")
    ends = [line.split()[5] for line in log_lines() if line.startswith("end ")]
    assert ends == ["copy", "launch", "launch", "launch", "copy"], ends


def a_stream_waits_for_an_event_of_another():
    driver, function, pointer = with_buffer(1)
    first, second, event = driver.stream(), driver.stream(), driver.event()
    source, result = driver.pinned(40), driver.pinned(0)
    driver.to_device(pointer, source, first)
    driver.call("cuEventRecord", event, first)
    driver.call("cuStreamWaitEvent", second, event, 0)
    # An event that a stream still needs may be destroyed.
    driver.call("cuEventDestroy_v2", event)
    assert driver.launch(function, pointer, 1, second) == OK
    driver.to_host(result, pointer, second)
    driver.call("cuStreamSynchronize", second)
    assert list(result) == [41], list(result)


def an_event_is_reached_when_the_work_before_it_is_done():
    driver, function, pointer = with_buffer(1)
    stream, begin, end = driver.stream(), driver.event(), driver.event()
    assert driver.result("cuEventQuery", end) == OK, "never recorded"
    driver.call("cuEventRecord", begin, stream)
    driver.hold("launch")
    assert driver.launch(function, pointer, 1, stream) == OK
    driver.call("cuEventRecord", end, stream)
    elapsed = ctypes.c_float()
    assert driver.result("cuEventQuery", end) == NOT_READY
    assert driver.result("cuEventElapsedTime", ctypes.byref(elapsed), begin, end) == NOT_READY
    driver.hold("launch", False)
    driver.call("cuEventSynchronize", end)
    assert driver.result("cuEventQuery", end) == OK
    driver.call("cuEventElapsedTime", ctypes.byref(elapsed), begin, end)
    assert elapsed.value > 0, elapsed.value
    # Recorded again, it is not reached again yet.
    driver.hold("launch")
    assert driver.launch(function, pointer, 1, stream) == OK
    driver.call("cuEventRecord", end, stream)
    assert driver.result("cuEventQuery", end) == NOT_READY
    driver.hold("launch", False)
    driver.call("cuCtxSynchronize")


def parameters_are_those_of_the_call():
    driver, function, pointer = with_buffer(1)
    stream, result = driver.stream(), driver.pinned(0)
    passed = ctypes.c_uint64(pointer.value)
    driver.hold("launch")
    assert driver.launch(function, passed, 1, stream) == OK
    passed.value = 0
    driver.hold("launch", False)
    driver.to_host(result, pointer, stream)
    driver.call("cuStreamSynchronize", stream)
    assert list(result) == [2], list(result)


def a_source_that_changes_before_its_copy_ran_is_found():
    driver, _, pointer = with_buffer(1)
    stream, source = driver.stream(), driver.pinned(5)
    driver.hold("copy")
    driver.to_device(pointer, source, stream)
    source[0] = 6
    driver.hold("copy", False)
    assert driver.result("cuStreamSynchronize", stream) == ILLEGAL_ADDRESS


def memory_that_is_not_page_locked_is_copied_to_before_the_call_returns():
    driver, _, pointer = with_buffer(3)
    pageable, pinned = (ctypes.c_float * 1)(0), driver.pinned(0)
    driver.hold("copy")
    driver.to_host(pinned, pointer)
    assert list(pinned) == [0], list(pinned)
    driver.hold("copy", False)
    driver.to_host(pageable, pointer)
    assert list(pageable) == [3], list(pageable)


def page_locked_memory_lives_until_its_copy_ran():
    driver, _, pointer = with_buffer(1)
    stream, source, result = driver.stream(), driver.pinned(9), driver.pinned(0)
    driver.to_device(pointer, source, stream)
    driver.call("cuMemFreeHost", ctypes.c_void_p(ctypes.addressof(source)))
    assert driver.result("cuStreamQuery", stream) == OK
    driver.to_host(result, pointer, stream)
    driver.call("cuStreamSynchronize", stream)
    assert list(result) == [9], list(result)
    assert driver.result("cuMemFreeHost", ctypes.c_void_p(12345)) != OK


def the_default_stream_is_ordered_with_blocking_streams_only():
    driver, function, pointer = with_buffer(1)
    blocking, free, result = driver.stream(flags=0), driver.stream(), driver.pinned(0)
    source = driver.pinned(10)
    driver.to_device(pointer, source, blocking)
    assert driver.launch(function, pointer, 1) == OK
    driver.to_host(result, pointer, blocking)
    driver.call("cuStreamSynchronize", blocking)
    assert list(result) == [11], list(result)
    _, elsewhere = driver.allocate(4)
    driver.hold("copy")
    driver.to_device(elsewhere, source)
    assert driver.launch(function, pointer, 1, free) == OK
    driver.call("cuStreamSynchronize", free)
    assert driver.result("cuStreamQuery", None) == NOT_READY
    driver.hold("copy", False)
    driver.call("cuCtxSynchronize")


def a_destroyed_stream_does_what_it_was_given():
    driver, function, pointer = with_buffer(1)
    stream, result = driver.stream(), driver.pinned(0)
    assert driver.launch(function, pointer, 1, stream) == OK
    driver.to_host(result, pointer, stream)
    driver.call("cuStreamDestroy_v2", stream)
    driver.call("cuCtxSynchronize")
    assert list(result) == [2], list(result)
    assert driver.launch(function, pointer, 1, stream) != OK


def an_allocation_waits_for_memory_that_a_stream_frees():
    driver, function, pointer = with_buffer(1)
    stream = driver.stream()
    code, large = driver.allocate(200 * MIB)
    assert code == OK
    assert driver.launch(function, large, 1, stream) == OK
    driver.call("cuMemFreeAsync", large, stream)
    # There is room for one of them: the allocation waits for the stream.
    code, _ = driver.allocate(200 * MIB)
    assert code == OK, code
    driver.call("cuMemFreeAsync", pointer, stream)
    assert driver.launch(function, pointer, 1, stream) == OK
    assert driver.result("cuStreamSynchronize", stream) == ILLEGAL_ADDRESS


def a_full_queue_makes_the_caller_wait():
    driver, function, pointer = with_buffer(0)
    stream = driver.stream()
    for _ in range(1100):
        assert driver.launch(function, pointer, 1, stream) == OK
    done = sum(line.startswith("end") and " launch " in line for line in log_lines())
    assert done >= 1100 - 1024, done
    driver.call("cuStreamSynchronize", stream)


def a_wait_ends_with_the_name_of_the_stream():
    driver, function, pointer = with_buffer(1)
    stream = driver.stream()
    driver.hold("launch")
    assert driver.launch(function, pointer, 1, stream) == OK
    assert driver.result("cuStreamSynchronize", stream) == LAUNCH_TIMEOUT


def delays_of_a_seed_are_repeated():
    def delays(of):
        return [int(line.split(" delay ")[1].split()[0]) for line in of if line.startswith("begin") and " launch " in line]

    driver, function, pointer = with_buffer(0)
    stream = driver.stream()
    for _ in range(8):
        assert driver.launch(function, pointer, 1, stream) == OK
    driver.call("cuStreamSynchronize", stream)
    found = delays(log_lines())
    assert len(set(found)) > 4 and max(found) <= 900, found
    other = int(os.environ["OTHER_SEED"])
    # SplitMix64 of faults.c, for stream 2.
    mask, expected = (1 << 64) - 1, []
    for number in range(8):
        x = (other * 0x9E3779B97F4A7C15 + 2 * 0xBF58476D1CE4E5B9 + number) & mask
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ x >> 27) * 0x94D049BB133111EB) & mask
        expected.append((x ^ x >> 31) % 901)
    assert (found == expected) == (os.environ["CUDA_STAND_IN_SEED"] == str(other)), (found, expected)


def a_failed_launch_is_seen_by_the_next_wait_and_stays():
    driver, function, pointer = with_buffer(1)
    stream = driver.stream()
    assert driver.launch(function, pointer, 1, stream) == OK
    driver.call("cuStreamSynchronize", stream)
    assert driver.launch(function, pointer, 1, stream) == OK, "the call does not know yet"
    assert driver.result("cuStreamSynchronize", stream) == LAUNCH_FAILED
    assert driver.launch(function, pointer, 1, stream) == LAUNCH_FAILED
    assert driver.allocate(32)[0] == LAUNCH_FAILED
    # The other card has a context of its own.
    driver.use(1)
    assert driver.allocate(32)[0] == OK
    driver.call("cuCtxSynchronize")


def a_lost_card_stays_lost():
    driver, function, pointer = with_buffer(1)
    event = driver.event()
    assert driver.launch(function, pointer, 1) == OK
    driver.call("cuEventRecord", event, None)
    assert driver.launch(function, pointer, 1) == OK
    assert driver.result("cuCtxSynchronize") == UNKNOWN
    size = ctypes.c_size_t()
    calls = [
        driver.result("cuEventQuery", event),
        driver.result("cuEventSynchronize", event),
        driver.result("cuMemGetInfo_v2", ctypes.byref(size), ctypes.byref(size)),
        driver.load()[0],
    ]
    assert calls == [UNKNOWN] * 4, calls


def the_requested_copy_fails():
    driver, _, pointer = with_buffer(1)
    source = driver.pinned(2)
    driver.to_device(pointer, source)
    assert driver.result("cuCtxSynchronize") == ECC_UNCORRECTABLE


def memory_ends_from_the_requested_allocation_on():
    driver = Driver()
    codes = [driver.allocate(32)[0] for _ in range(4)]
    assert codes == [OK, OUT_OF_MEMORY, OUT_OF_MEMORY, OUT_OF_MEMORY], codes


def only_the_requested_allocation_fails():
    driver = Driver()
    codes = [driver.allocate(32)[0] for _ in range(4)]
    assert codes == [OK, OUT_OF_MEMORY, OK, OK], codes


def calls_are_counted_since_a_file_exists_and_on_one_device():
    driver = Driver()
    path = os.environ["CUDA_STAND_IN_FAIL_AFTER"].replace("*", "1")
    os.makedirs(os.path.dirname(path))
    driver.use(1)
    assert [driver.allocate(32)[0] for _ in range(3)] == [OK] * 3, "the file does not exist yet"
    with open(path, "w", encoding="utf-8"):
        pass
    driver.use(0)
    assert [driver.allocate(32)[0] for _ in range(3)] == [OK] * 3, "the rule names device 1"
    driver.use(1)
    codes = [driver.allocate(32)[0] for _ in range(3)]
    os.remove(path)
    assert codes == [OK, OUT_OF_MEMORY, OK], codes


def a_variable_that_is_not_understood_ends_the_program():
    wrong = [
        {"CUDA_STAND_IN_FAIL": "lunch:2"}, {"CUDA_STAND_IN_FAIL": "launch"}, {"CUDA_STAND_IN_FAIL": "launch:2-"},
        {"CUDA_STAND_IN_DELAY": "launch=5"}, {"CUDA_STAND_IN_DELAY": "lunch=5ms"}, {"CUDA_STAND_IN_DELAY": "copy=2s"},
        {"CUDA_STAND_IN_DELAY": "copy=2ms;launch=1ms"}, {"CUDA_STAND_IN_SEED": "one"}, {"CUDA_STAND_IN_LIMIT": "-1"},
        {"CUDA_STAND_IN_TRACE": "yes"},
    ]
    for variables in wrong:
        child = os.fork()
        if not child:
            os.environ.update(variables)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            ctypes.CDLL(os.environ["STAND_IN_LIBRARY"])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), variables


TRACE = {"CUDA_STAND_IN_DIR": None, "CUDA_STAND_IN_TRACE": "1"}
SEED = {**TRACE, "CUDA_STAND_IN_DELAY": "launch=900us", "OTHER_SEED": "7"}


def the_delays_of_another_seed_are_others():
    delays_of_a_seed_are_repeated()


# The test, and the variables that it needs. SAYS is what the driver prints.
TESTS = {
    a_call_returns_before_its_work_is_done: {},
    work_of_one_stream_runs_in_order: {"CUDA_STAND_IN_DELAY": "launch=3ms,copy=3ms", "CUDA_STAND_IN_SEED": "3"},
    one_stream_does_not_wait_for_another: TRACE,
    a_stream_waits_for_an_event_of_another: {"CUDA_STAND_IN_DELAY": "copy=100ms"},
    an_event_is_reached_when_the_work_before_it_is_done: {},
    parameters_are_those_of_the_call: {},
    a_source_that_changes_before_its_copy_ran_is_found: {
        "SAYS": "the source of a copy of 4 bytes to device 0 changed before the copy ran",
    },
    memory_that_is_not_page_locked_is_copied_to_before_the_call_returns: {"CUDA_STAND_IN_DELAY": "copy=100ms"},
    page_locked_memory_lives_until_its_copy_ran: {"CUDA_STAND_IN_DELAY": "copy=100ms"},
    the_default_stream_is_ordered_with_blocking_streams_only: {"CUDA_STAND_IN_DELAY": "copy=200ms"},
    a_destroyed_stream_does_what_it_was_given: {"CUDA_STAND_IN_DELAY": "launch=100ms"},
    an_allocation_waits_for_memory_that_a_stream_frees: {
        "CUDA_STAND_IN_DELAY": "free=100ms", "CUDA_STAND_IN_MEMORY": "900",
    },
    a_full_queue_makes_the_caller_wait: {**TRACE, "CUDA_STAND_IN_DELAY": "launch=1ms"},
    a_wait_ends_with_the_name_of_the_stream: {
        "CUDA_STAND_IN_LIMIT": "0.2",
        "SAYS": "stream 2 of device 0 did not finish within 0.2 s: 0 of 1 done",
    },
    delays_of_a_seed_are_repeated: {**SEED, "CUDA_STAND_IN_SEED": "7"},
    the_delays_of_another_seed_are_others: {**SEED, "CUDA_STAND_IN_SEED": "8"},
    a_failed_launch_is_seen_by_the_next_wait_and_stays: {"CUDA_STAND_IN_FAIL": "launch:2"},
    a_lost_card_stays_lost: {"CUDA_STAND_IN_FAIL": "lost:2"},
    the_requested_copy_fails: {"CUDA_STAND_IN_FAIL": "copy:2"},
    memory_ends_from_the_requested_allocation_on: {"CUDA_STAND_IN_FAIL": "alloc:2+"},
    only_the_requested_allocation_fails: {"CUDA_STAND_IN_FAIL": "alloc:2"},
    calls_are_counted_since_a_file_exists_and_on_one_device: {
        "CUDA_STAND_IN_FAIL": "alloc:2@1", "CUDA_STAND_IN_FAIL_AFTER": "{room}/run/step-*",
    },
    a_variable_that_is_not_understood_ends_the_program: {},
}

if __name__ == "__main__":
    main(TESTS)
