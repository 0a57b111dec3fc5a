#!/usr/bin/env python3
"""Tests of the driver's cards, memory, kernels and counters: python3 test_driver.py

With CUDA_STAND_IN_PTXAS, kernels are checked by NVIDIA's assembler, too.
"""
import ctypes

from stand_in import ILLEGAL_ADDRESS, INVALID_PTX, MIB, OUT_OF_MEMORY, Driver, log_lines, main


def a_kernel_changes_device_memory_and_every_call_is_counted():
    driver = Driver()
    values = (ctypes.c_float * 8)(*range(8))
    size = ctypes.c_size_t(32)
    _, pointer = driver.allocate(32)
    driver.call("cuMemcpyHtoDAsync_v2", pointer, values, size, None)
    _, function = driver.load()
    driver.call("cuStreamSynchronize", None)
    assert driver.launch(function, pointer, 8) == 0
    driver.call("cuMemcpyDtoHAsync_v2", values, pointer, size, None)
    assert list(values) == [float(number + 1) for number in range(8)], list(values)
    counts = driver.counts()
    # A copy to memory that is not page-locked waits, too.
    expected = {"launch": 1, "to_device": 1, "to_host": 1, "on_device": 0, "sync": 2, "alloc": 1, "module": 1, "graph": 0}
    assert counts == expected, counts


def cards_have_the_properties_of_their_data_sheets():
    driver = Driver()
    count = ctypes.c_int()
    driver.call("cuDeviceGetCount", ctypes.byref(count))
    assert count.value == 2
    capabilities = [(driver.attribute(75, device), driver.attribute(76, device)) for device in range(2)]
    assert capabilities == [(7, 5), (9, 0)], capabilities
    assert [driver.attribute(97, device) for device in range(2)] == [65536, 232448]


def memory_ends_where_that_of_the_card_ends():
    driver = Driver()
    assert driver.allocate(200 * MIB)[0] == 0
    code, _ = driver.allocate(200 * MIB)
    assert code == OUT_OF_MEMORY, code


def memory_can_be_used_again():
    driver = Driver()
    for _ in range(5):
        code, pointer = driver.allocate(200 * MIB)
        assert code == 0, code
        driver.call("cuMemFree_v2", pointer)
    assert driver.result("cuMemFree_v2", pointer) != 0, "freed twice"


def a_kernel_for_a_newer_card_is_refused():
    assert Driver().load(target="sm_90")[0] == INVALID_PTX


def an_access_outside_of_a_buffer_is_an_error():
    driver = Driver()
    _, pointer = driver.allocate(32)
    _, function = driver.load(offset=4096)
    assert driver.launch(function, pointer, 8) == 0
    assert driver.result("cuStreamSynchronize", None) == ILLEGAL_ADDRESS


def a_block_larger_than_the_limit_is_refused():
    driver = Driver()
    _, pointer = driver.allocate(32)
    _, function = driver.load()
    assert driver.launch(function, pointer, 2048) == 1


def without_execution_launches_are_checked_and_counted():
    driver = Driver()
    values = (ctypes.c_float * 8)(*range(8))
    _, pointer = driver.allocate(32)
    driver.call("cuMemcpyHtoDAsync_v2", pointer, values, ctypes.c_size_t(32), None)
    _, function = driver.load()
    assert driver.launch(function, pointer, 8) == 0
    driver.call("cuMemcpyDtoHAsync_v2", values, pointer, ctypes.c_size_t(32), None)
    assert list(values) == [float(number) for number in range(8)]
    assert driver.counts()["launch"] == 1


def the_costs_of_a_launch_are_those_of_all_its_blocks():
    driver = Driver()
    _, pointer = driver.allocate(32)
    _, function = driver.load()
    driver.library.cuda_stand_in_stop_computing()
    driver.library.cuda_stand_in_count_costs(1)
    params = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
    driver.call("cuLaunchKernel", function, 3, 1, 1, 8, 1, 1, 0, None, params, None)
    driver.library.cuda_stand_in_count_costs(0)
    assert driver.launch(function, pointer, 8) == 0
    costs = [line.split(" block ")[1] for line in log_lines() if line.startswith("cost ")]
    # Three blocks of eight threads: each reads and writes a float, and adds once.
    assert costs == ["8 shared 0 blocks 3 read 96 written 96 flops 24 matrix 0"], costs


def a_context_is_active_while_it_is_retained():
    driver = Driver()
    flags, active = ctypes.c_uint(), ctypes.c_int()
    driver.call("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(active))
    assert active.value == 1
    driver.call("cuDevicePrimaryCtxGetState", 1, ctypes.byref(flags), ctypes.byref(active))
    assert active.value == 0


def an_old_driver_lacks_newer_functions():
    driver = Driver()
    version = ctypes.c_int()
    driver.call("cuDriverGetVersion", ctypes.byref(version))
    assert version.value == 12000
    assert not hasattr(driver.library, "cuEventElapsedTime_v2")


# The test, and the variables that it needs.
TESTS = {
    a_kernel_changes_device_memory_and_every_call_is_counted: {},
    cards_have_the_properties_of_their_data_sheets: {"CUDA_STAND_IN_CARDS": "t4,h100-80"},
    memory_ends_where_that_of_the_card_ends: {"CUDA_STAND_IN_MEMORY": "900"},
    memory_can_be_used_again: {"CUDA_STAND_IN_MEMORY": "900"},
    a_kernel_for_a_newer_card_is_refused: {"CUDA_STAND_IN_CARDS": "rtx4090"},
    an_access_outside_of_a_buffer_is_an_error: {},
    a_block_larger_than_the_limit_is_refused: {},
    without_execution_launches_are_checked_and_counted: {"CUDA_STAND_IN_RUN": "check"},
    the_costs_of_a_launch_are_those_of_all_its_blocks: {"CUDA_STAND_IN_DIR": None},
    a_context_is_active_while_it_is_retained: {},
    an_old_driver_lacks_newer_functions: {"VERSION": "12000"},
}

if __name__ == "__main__":
    main(TESTS)
