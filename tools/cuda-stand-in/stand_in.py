"""The driver through its own interface, for its tests: each test is a process of its own, because the driver reads its
variables once.
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
OUT_OF_MEMORY, ECC_UNCORRECTABLE, INVALID_PTX, NOT_READY = 2, 214, 218, 600
ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, LAUNCH_FAILED, UNKNOWN = 700, 702, 719, 999
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
        self.call("cuInit", 0)
        self.use(0)

    def use(self, device):
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
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

    def launch(self, function, pointer, threads, stream=None):
        params = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
        return self.result("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, stream, params, None)

    def stream(self, flags=1):
        """A new stream, which does not wait for the default stream unless `flags` is 0."""
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), flags)
        return stream

    def hold(self, kind, on=True):
        """From now on no work of this kind begins, or it begins again."""
        self.library.cuda_stand_in_hold(("launch", "copy", "set", "event", "free").index(kind), int(on))

    def captured(self, stream, work, mode=0):
        """What `work` gives a stream, as an instantiated graph."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", stream, mode)
        work()
        self.call("cuStreamEndCapture", stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        self.call("cuGraphDestroy", graph)
        return executable

    def event(self):
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def pinned(self, *values):
        """Floats in page-locked memory."""
        memory = ctypes.c_void_p()
        self.call("cuMemAllocHost_v2", ctypes.byref(memory), ctypes.c_size_t(4 * len(values)))
        floats = (ctypes.c_float * len(values)).from_address(memory.value)
        floats[:] = values
        return floats

    def to_device(self, pointer, values, stream=None):
        self.call("cuMemcpyHtoDAsync_v2", pointer, values, ctypes.c_size_t(4 * len(values)), stream)

    def to_host(self, values, pointer, stream=None):
        self.call("cuMemcpyDtoHAsync_v2", values, pointer, ctypes.c_size_t(4 * len(values)), stream)

    def counts(self):
        values = (ctypes.c_uint64 * 10)()
        self.library.cuda_stand_in_counts(values, 10)
        names = ("launch", "to_device", "to_host", "on_device", "sync", "alloc", "module", None, None, "graph")
        return {name: value for name, value in zip(names, values) if name}


def log_lines():
    with open(os.path.join(os.environ["CUDA_STAND_IN_DIR"], "calls.log"), encoding="utf-8") as log:
        return log.read().splitlines()


class DriverTests(unittest.TestCase):
    """Compiles the drivers; `main` adds the tests."""

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
            **{key: value and value.replace("{room}", self.directory.name) for key, value in variables.items()},
        }
        # A test that reads the log has a directory of its own.
        if environment["CUDA_STAND_IN_DIR"] is None:
            environment["CUDA_STAND_IN_DIR"] = os.path.join(self.directory.name, name)
        ran = subprocess.run(
            [sys.executable, sys.argv[0], name], env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        # What the driver prints is part of some tests.
        said = environment.get("SAYS", "")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(said, ran.stderr)


def main(tests):
    """Runs the tests, or in a process of its own the one that is named. `tests`: function, and the variables it needs,
    where `{room}` is a directory that is removed at the end."""
    by_name = {function.__name__: function for function in tests}
    if len(sys.argv) == 2 and sys.argv[1] in by_name:
        by_name[sys.argv[1]]()
        return
    for function, needed in tests.items():
        case = lambda self, name=function.__name__, variables=needed: self.in_process(name, variables)
        setattr(DriverTests, f"test_{function.__name__}", case)
    unittest.main(module=__name__)
