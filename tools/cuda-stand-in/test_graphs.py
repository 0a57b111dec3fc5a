#!/usr/bin/env python3
"""Tests of CUDA graphs: python3 test_graphs.py"""
import ctypes

from stand_in import ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, NOT_READY, OUT_OF_MEMORY, UNKNOWN, Driver, log_lines, main

OK, INVALID_VALUE, ILLEGAL_STATE, NOT_SUPPORTED = 0, 1, 401, 801
UNSUPPORTED, INVALIDATED, ISOLATION, CAPTURED_EVENT = 900, 901, 905, 907
GLOBAL, RELAXED = 0, 2


def with_buffer(*values):
    """A driver, a kernel that adds 1, device memory with these numbers, and a stream."""
    driver = Driver()
    _, pointer = driver.allocate(4 * len(values))
    _, function = driver.load()
    driver.to_device(pointer, driver.pinned(*values))
    driver.call("cuCtxSynchronize")
    return driver, function, pointer, driver.stream()


def read(driver, pointer, count):
    result = driver.pinned(*([0] * count))
    driver.to_host(result, pointer)
    driver.call("cuCtxSynchronize")
    return list(result)


def begin(driver, stream, mode=GLOBAL):
    driver.call("cuStreamBeginCapture_v2", stream, mode)


def end(driver, stream):
    """The result of the end of a capture, and its graph."""
    graph = ctypes.c_void_p()
    return driver.result("cuStreamEndCapture", stream, ctypes.byref(graph)), graph


def what_is_captured_runs_at_each_launch_of_the_graph_and_not_before():
    driver, function, pointer, stream = with_buffer(1, 2)
    before = driver.counts()
    graph = driver.captured(stream, lambda: [driver.launch(function, pointer, 2, stream) for _ in range(3)])
    assert read(driver, pointer, 2) == [1, 2]
    assert driver.counts()["launch"] == before["launch"], driver.counts()
    for _ in range(2):
        driver.call("cuGraphLaunch", graph, stream)
    driver.call("cuStreamSynchronize", stream)
    assert read(driver, pointer, 2) == [7, 8]
    after = driver.counts()
    assert after["launch"] - before["launch"] == after["graph"] - before["graph"] == 2, after


def a_launch_of_a_graph_returns_before_its_work_is_done_and_keeps_its_place():
    driver, function, pointer, stream = with_buffer(0)
    source, result = driver.pinned(5), driver.pinned(0)
    graph = driver.captured(stream, lambda: driver.launch(function, pointer, 1, stream))
    driver.hold("launch")
    driver.to_device(pointer, source, stream)
    driver.call("cuGraphLaunch", graph, stream)
    # Destroyed while a launch of it waits.
    driver.call("cuGraphExecDestroy", graph)
    driver.to_host(result, pointer, stream)
    assert driver.result("cuStreamQuery", stream) == NOT_READY
    driver.hold("launch", False)
    driver.call("cuStreamSynchronize", stream)
    assert list(result) == [6], list(result)


def parameters_are_those_of_the_capture_and_copies_read_their_source_at_each_launch():
    driver, function, pointer, stream = with_buffer(0)
    source, passed = driver.pinned(1), ctypes.c_uint64(pointer.value)

    def work():
        driver.to_device(pointer, source, stream)
        driver.launch(function, passed, 1, stream)

    graph = driver.captured(stream, work)
    passed.value, source[0] = 0, 10
    driver.call("cuGraphLaunch", graph, stream)
    driver.call("cuStreamSynchronize", stream)
    assert read(driver, pointer, 1) == [11]
    source[0] = 20
    driver.call("cuGraphLaunch", graph, stream)
    driver.call("cuStreamSynchronize", stream)
    assert read(driver, pointer, 1) == [21]


def memory_that_is_freed_is_missed_by_the_next_launch():
    driver, function, pointer, stream = with_buffer(0)
    graph = driver.captured(stream, lambda: driver.launch(function, pointer, 1, stream))
    driver.call("cuMemFree_v2", pointer)
    driver.call("cuGraphLaunch", graph, stream)
    assert driver.result("cuStreamSynchronize", stream) == ILLEGAL_ADDRESS


def nodes_have_types():
    driver, function, pointer, stream = with_buffer(0)
    source = driver.pinned(3)
    begin(driver, stream)
    driver.launch(function, pointer, 1, stream)
    driver.to_device(pointer, source, stream)
    driver.call("cuMemsetD8Async", pointer, 0, ctypes.c_size_t(4), stream)
    code, graph = end(driver, stream)
    assert code == OK
    number = ctypes.c_size_t()
    driver.call("cuGraphGetNodes", graph, None, ctypes.byref(number))
    nodes = (ctypes.c_void_p * number.value)()
    driver.call("cuGraphGetNodes", graph, nodes, ctypes.byref(number))
    types = []
    for node in nodes:
        kind = ctypes.c_int(-1)
        driver.call("cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(kind))
        types.append(kind.value)
    assert types == [0, 1, 2], types


def a_graph_that_allocates_can_be_launched_once():
    driver, function, pointer, stream = with_buffer(0)
    made = ctypes.c_uint64()
    size = ctypes.c_size_t(512)
    graph = driver.captured(stream, lambda: driver.call("cuMemAllocAsync", ctypes.byref(made), size, stream))
    driver.call("cuGraphLaunch", graph, stream)
    assert driver.result("cuGraphLaunch", graph, stream) == INVALID_VALUE


def refused(call, *, mode=GLOBAL, result=UNSUPPORTED, spoils=True):
    """That a call during a capture is refused, and what that does to the capture."""
    driver, function, pointer, stream = with_buffer(1)
    other, event = driver.stream(), driver.event()
    begin(driver, stream, mode)
    found = call(driver, stream, other, event, pointer)
    assert found == result, (found, result)
    code, graph = end(driver, stream)
    assert code == (INVALIDATED if spoils else OK), code
    assert bool(graph.value) == (not spoils)
    # The stream works again, and captures again.
    driver.call("cuStreamSynchronize", stream)
    again = driver.captured(stream, lambda: driver.launch(function, pointer, 1, stream))
    driver.call("cuGraphLaunch", again, stream)
    driver.call("cuStreamSynchronize", stream)
    assert read(driver, pointer, 1) == [2]


def waits_and_allocations_spoil_a_capture():
    room = ctypes.c_uint64()
    host = ctypes.c_void_p()
    size = ctypes.c_size_t(64)
    refused(lambda d, s, o, e, p: d.result("cuStreamSynchronize", s))
    refused(lambda d, s, o, e, p: d.result("cuStreamSynchronize", o))
    refused(lambda d, s, o, e, p: d.result("cuCtxSynchronize"))
    refused(lambda d, s, o, e, p: d.result("cuStreamQuery", s))
    refused(lambda d, s, o, e, p: d.result("cuEventQuery", e))
    refused(lambda d, s, o, e, p: d.result("cuMemAlloc_v2", ctypes.byref(room), size))
    refused(lambda d, s, o, e, p: d.result("cuMemFree_v2", p))
    refused(lambda d, s, o, e, p: d.result("cuMemAllocHost_v2", ctypes.byref(host), size))
    refused(lambda d, s, o, e, p: d.load(target="sm_80")[0])
    refused(lambda d, s, o, e, p: d.result("cuMemFreeAsync", p, s), result=INVALID_VALUE)
    # To memory that is not page-locked.
    refused(lambda d, s, o, e, p: d.result("cuMemcpyDtoHAsync_v2", (ctypes.c_float * 1)(), p, ctypes.c_size_t(4), s))


def a_relaxed_capture_forbids_nothing_of_other_streams():
    refused(lambda d, s, o, e, p: d.result("cuStreamSynchronize", o), mode=RELAXED, result=OK, spoils=False)


def events_do_not_cross_the_border_of_a_capture():
    def of_outside(driver, stream, other, event, _):
        driver.call("cuEventRecord", event, other)
        return driver.result("cuStreamWaitEvent", stream, event, 0)

    def of_inside(driver, stream, _, event, __):
        driver.call("cuEventRecord", event, stream)
        driver.call("cuStreamWaitEvent", stream, event, 0)
        return driver.result("cuEventSynchronize", event)

    refused(of_outside, result=ISOLATION)
    refused(of_inside, result=CAPTURED_EVENT)


def captures_begin_and_end_in_order():
    driver, _, _, stream = with_buffer(0)
    assert end(driver, stream)[0] == ILLEGAL_STATE
    assert driver.result("cuStreamBeginCapture_v2", None, GLOBAL) == UNSUPPORTED
    begin(driver, stream)
    assert driver.result("cuStreamBeginCapture_v2", stream, GLOBAL) == ILLEGAL_STATE
    status = ctypes.c_int(-1)
    driver.call("cuStreamIsCapturing", stream, ctypes.byref(status))
    assert status.value == 1
    assert end(driver, stream)[0] == OK


def an_old_driver_refuses_to_capture():
    driver, function, pointer, stream = with_buffer(0)
    assert driver.result("cuStreamBeginCapture_v2", stream, GLOBAL) == NOT_SUPPORTED
    assert driver.launch(function, pointer, 1, stream) == OK
    driver.call("cuStreamSynchronize", stream)
    assert read(driver, pointer, 1) == [1]


def memory_may_run_out_while_a_graph_is_made():
    driver, function, pointer, stream = with_buffer(0)
    begin(driver, stream)
    driver.launch(function, pointer, 1, stream)
    code, graph = end(driver, stream)
    executable = ctypes.c_void_p()
    flags = ctypes.c_ulonglong(0)
    assert code == OK
    assert driver.result("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, flags) == OUT_OF_MEMORY
    assert driver.result("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, flags) == OK


def a_card_that_is_lost_during_a_launch_of_a_graph_stays_lost():
    driver, function, pointer, stream = with_buffer(0)
    graph = driver.captured(stream, lambda: driver.launch(function, pointer, 1, stream))
    driver.call("cuGraphLaunch", graph, stream)
    driver.call("cuStreamSynchronize", stream)
    driver.call("cuGraphLaunch", graph, stream)
    assert driver.result("cuStreamSynchronize", stream) == UNKNOWN
    assert driver.result("cuGraphLaunch", graph, stream) == UNKNOWN


def late_launches_make_a_graph_late():
    driver, function, pointer, stream = with_buffer(0)
    graph = driver.captured(stream, lambda: driver.launch(function, pointer, 1, stream))
    driver.hold("launch")
    driver.call("cuGraphLaunch", graph, stream)
    assert driver.result("cuStreamSynchronize", stream) == LAUNCH_TIMEOUT


def the_log_has_graphs():
    driver, function, pointer, stream = with_buffer(0)
    graph = driver.captured(stream, lambda: [driver.launch(function, pointer, 1, stream) for _ in range(4)])
    driver.call("cuGraphLaunch", graph, stream)
    driver.call("cuStreamSynchronize", stream)
    lines = log_lines()
    assert any("ends with 0: 4 nodes" in line for line in lines), lines
    assert sum(line.startswith("node ") for line in lines) == 4, lines
    assert sum(line.startswith("launch ") and line.endswith("graph of 4 nodes") for line in lines) == 1, lines


TESTS = {
    what_is_captured_runs_at_each_launch_of_the_graph_and_not_before: {},
    a_launch_of_a_graph_returns_before_its_work_is_done_and_keeps_its_place: {},
    parameters_are_those_of_the_capture_and_copies_read_their_source_at_each_launch: {},
    memory_that_is_freed_is_missed_by_the_next_launch: {},
    nodes_have_types: {},
    a_graph_that_allocates_can_be_launched_once: {},
    waits_and_allocations_spoil_a_capture: {},
    a_relaxed_capture_forbids_nothing_of_other_streams: {},
    events_do_not_cross_the_border_of_a_capture: {},
    captures_begin_and_end_in_order: {},
    an_old_driver_refuses_to_capture: {"CUDA_STAND_IN_FAIL": "capture:1"},
    memory_may_run_out_while_a_graph_is_made: {"CUDA_STAND_IN_FAIL": "graph:1"},
    a_card_that_is_lost_during_a_launch_of_a_graph_stays_lost: {"CUDA_STAND_IN_FAIL": "replay:2"},
    late_launches_make_a_graph_late: {"CUDA_STAND_IN_LIMIT": "0.2"},
    the_log_has_graphs: {"CUDA_STAND_IN_DIR": None},
}

if __name__ == "__main__":
    main(TESTS)
