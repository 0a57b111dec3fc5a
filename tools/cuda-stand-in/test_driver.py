#!/usr/bin/env python3
"""Tests of the driver through its own interface: python3 test_driver.py

With CUDA_STAND_IN_PTXAS, kernels are checked by NVIDIA's assembler, too. Each test is a process of its own, because
the driver reads its variables once.
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
OUT_OF_MEMORY, INVALID_PTX, ILLEGAL_ADDRESS, LAUNCH_FAILED = 2, 218, 700, 719
# Adds 1 to each of the floats that a block has threads for; `{offset}` moves the access.
KERNEL = """.version 7.5
.target {target}
.address_size 64
.visible .entry add_one(
	.param .u64 add_one_param_0
)
{{
	.reg .b32 %r<4>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [add_one_param_0];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	ld.global.b32 %r2, [%rd3+{offset}];
	add.rn.f32 %r3, %r2, 0f3F800000;
	st.global.b32 [%rd3+{offset}], %r3;
	ret;
}}
"""


class Driver:
    """The driver with a context on device 0."""

    def __init__(self):
        self.library = ctypes.CDLL(os.environ["STAND_IN_LIBRARY"])
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def result(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def call(self, name, *arguments):
        code = self.result(name, *arguments)
        assert code == 0, f"{name}: {code}"

    def attribute(self, number, device=0):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def allocate(self, size):
        pointer = ctypes.c_uint64()
        return self.result("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size)), pointer

    def load(self, target="sm_75", offset=0):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        text = KERNEL.format(target=target, offset=offset).encode()
        code = self.result("cuModuleLoadData", ctypes.byref(module), text)
        if code:
            return code, None
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"add_one")
        return 0, function

    def launch(self, function, pointer, threads):
        params = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
        return self.result("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, None, params, None)

    def counts(self):
        values = (ctypes.c_uint64 * 9)()
        self.library.cuda_stand_in_counts(values, 9)
        return dict(zip(("launch", "to_device", "to_host", "on_device", "sync", "alloc", "module"), values))


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
    expected = {"launch": 1, "to_device": 1, "to_host": 1, "on_device": 0, "sync": 1, "alloc": 1, "module": 1}
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
    assert driver.launch(function, pointer, 8) == ILLEGAL_ADDRESS


def a_block_larger_than_the_limit_is_refused():
    driver = Driver()
    _, pointer = driver.allocate(32)
    _, function = driver.load()
    assert driver.launch(function, pointer, 2048) == 1


def the_requested_launch_fails_and_the_others_do_not():
    driver = Driver()
    _, pointer = driver.allocate(32)
    _, function = driver.load()
    codes = [driver.launch(function, pointer, 8) for _ in range(3)]
    assert codes == [0, LAUNCH_FAILED, 0], codes


def a_lost_card_stays_lost():
    driver = Driver()
    _, pointer = driver.allocate(32)
    _, function = driver.load()
    codes = [driver.launch(function, pointer, 8) for _ in range(3)]
    assert codes == [0, LAUNCH_FAILED, LAUNCH_FAILED], codes
    assert driver.result("cuStreamSynchronize", None) == LAUNCH_FAILED


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
    with open(os.path.join(os.environ["CUDA_STAND_IN_DIR"], "calls.log"), encoding="utf-8") as log:
        costs = [line.split(" block ")[1].strip() for line in log if line.startswith("cost ")]
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
    the_requested_launch_fails_and_the_others_do_not: {"CUDA_STAND_IN_FAIL": "launch:2"},
    a_lost_card_stays_lost: {"CUDA_STAND_IN_FAIL": "lost:2"},
    without_execution_launches_are_checked_and_counted: {"CUDA_STAND_IN_RUN": "check"},
    the_costs_of_a_launch_are_those_of_all_its_blocks: {"CUDA_STAND_IN_DIR": None},
    a_context_is_active_while_it_is_retained: {},
    an_old_driver_lacks_newer_functions: {"VERSION": "12000"},
}


class Tests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        sources = [os.path.join(HERE, name) for name in os.listdir(HERE) if name.endswith(".c")]
        for version in ("12090", "12000"):
            command = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden"]
            subprocess.run([*command, f"-DSTAND_IN_VERSION={version}", "-o", cls.library(version), *sources], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    @classmethod
    def library(cls, version):
        return os.path.join(cls.directory.name, f"libcuda-{version}.so")

    def in_process(self, name, variables):
        environment = {
            **os.environ,
            "STAND_IN_LIBRARY": self.library(variables.get("VERSION", "12090")),
            "CUDA_STAND_IN_DIR": os.path.join(self.directory.name, "work"),
            "CUDA_STAND_IN_TRANSLATOR": os.path.join(HERE, "ptx_to_c.py"),
            **variables,
        }
        # A test that reads the log has a directory of its own.
        if environment["CUDA_STAND_IN_DIR"] is None:
            environment["CUDA_STAND_IN_DIR"] = os.path.join(self.directory.name, name)
        ran = subprocess.run([sys.executable, __file__, name], env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)


def case(function, variables):
    return lambda self: self.in_process(function.__name__, variables)


for test, needed in TESTS.items():
    setattr(Tests, f"test_{test.__name__}", case(test, needed))

if __name__ == "__main__":
    by_name = {function.__name__: function for function in TESTS}
    if len(sys.argv) == 2 and sys.argv[1] in by_name:
        by_name[sys.argv[1]]()
    else:
        unittest.main()
