#!/usr/bin/env python3
"""Tests of the translator on kernels of a few instructions, and of the report: python3 test_emulator.py"""
import ctypes
import os
import struct
import subprocess
import sys
import tempfile
import unittest

from kernel_report import occupancy, read

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
BEGIN = """.visible .entry kernel(.param .u64 kernel_param_0)
{
	.reg .pred %p<9>;
	.reg .b32 %r<39>;
	.reg .b64 %rd<9>;
	ld.param.b64 %rd1, [kernel_param_0];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	ld.global.b32 %r2, [%rd3];
"""
END = """	st.global.b32 [%rd3], %r3;
	ret;
}
"""
RANGES = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64))


def translate(text, directory, **variables):
    source, target = os.path.join(directory, "kernel.ptx"), os.path.join(directory, "kernel.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    command = [sys.executable, os.path.join(HERE, "ptx_to_c.py"), source, target]
    made = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    return made, target


def run(text, values, head="", **variables):
    """The values after a kernel of one block ran on them, one thread each; or the message of its fault."""
    with tempfile.TemporaryDirectory() as directory:
        made, target = translate(HEAD + head + BEGIN + text + END, directory, **variables)
        assert made.returncode == 0, made.stdout
        kernel = ctypes.CDLL(target).run_kernel
        kernel.restype = ctypes.c_char_p
        buffer = (ctypes.c_float * len(values))(*values)
        start = ctypes.addressof(buffer)

        def ranges(_address, lo, hi):
            lo[0], hi[0] = start, start + ctypes.sizeof(buffer)

        pointer = ctypes.c_uint64(start)
        params = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
        grid, block = (ctypes.c_uint * 3)(1, 1, 1), (ctypes.c_uint * 3)(len(values), 1, 1)
        fault = kernel(grid, block, 0, params, RANGES(ranges))
        return fault.decode() if fault else list(buffer)


class Emulator(unittest.TestCase):
    def test_each_thread_adds(self):
        self.assertEqual(run("add.rn.f32 %r3, %r2, 0f3F800000;\n", [1.0, 2.5]), [2.0, 3.5])

    def test_lanes_exchange_values(self):
        values = [float(lane) for lane in range(32)]
        swapped = [float(lane ^ 1) for lane in range(32)]
        self.assertEqual(run("shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;\n", values), swapped)

    def test_a_barrier_orders_writes_and_reads_of_all_warps(self):
        text = """	cvt.u32.u64 %r4, %rd2;
	mov.u32 %r5, memory;
	add.s32 %r6, %r5, %r4;
	st.shared.b32 [%r6], %r2;
	bar.sync 0;
	sub.s32 %r7, 252, %r4;
	add.s32 %r8, %r5, %r7;
	ld.shared.b32 %r3, [%r8];
"""
        values = [float(number) for number in range(64)]
        result = run(text, values, head=".shared .align 4 .b8 memory[256];\n")
        self.assertEqual(result, values[::-1])

    def test_an_access_outside_of_the_buffer_names_thread_and_block(self):
        fault = run("ld.global.b32 %r3, [%rd3+64];\n", [0.0] * 4)
        self.assertIn("outside of every buffer", fault)
        self.assertIn("thread 0 0 0 of block 0 0 0", fault)

    def test_an_unknown_instruction_is_an_error_that_names_it(self):
        with tempfile.TemporaryDirectory() as directory:
            made, target = translate(HEAD + BEGIN + "frobnicate.b32 %r3, %r2;\n" + END, directory)
            self.assertEqual(made.returncode, 3)
            self.assertIn("frobnicate.b32 %r3, %r2", made.stdout)
            self.assertFalse(os.path.exists(target))

    def test_tf32_keeps_ten_bits_of_the_mantissa_unless_it_is_switched_off(self):
        value = 1.0 + 2.0**-11 + 2.0**-20
        self.assertEqual(run("cvt.rna.tf32.f32 %r3, %r2;\n", [value]), [1.0 + 2.0**-10])
        exact = run("cvt.rna.tf32.f32 %r3, %r2;\n", [value], CUDA_STAND_IN_TF32="exact")
        self.assertEqual(exact, [struct.unpack("f", struct.pack("f", value))[0]])

    def test_a_matrix_product_rounds_its_factors_to_tf32(self):
        """All elements of A are the lane's value and those of B are 1: each sum is of a row of A."""
        text = """	mov.b32 %r10, 0f3F800000;
	mov.b32 %r11, 0f00000000;
	mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r3,%r4,%r5,%r6},{%r2,%r2,%r2,%r2},{%r10,%r10},{%r11,%r11,%r11,%r11};
"""
        small = 2.0**-13
        rounded = run(text, [1.0 + small] * 32)
        self.assertEqual(rounded, [8.0] * 32)
        exact = run(text, [1.0 + small] * 32, CUDA_STAND_IN_TF32="exact")
        self.assertEqual(exact, [8.0 + 8 * small] * 32)

    def test_bits_are_extracted_and_inserted(self):
        as_float = lambda bits: struct.unpack("f", struct.pack("I", bits))[0]
        value = as_float(0x40ABCDEF)
        self.assertEqual(run("bfe.u32 %r3, %r2, 8, 8;\n", [value]), [as_float(0xCD)])
        inserted = run("bfi.b32 %r3, 255, %r2, 4, 8;\n", [value])
        self.assertEqual(inserted, [as_float(0x40ABCFFF)])


class Report(unittest.TestCase):
    def test_occupancy_is_limited_by_threads_registers_and_shared_memory(self):
        self.assertEqual(occupancy(256, 32, 0, "rtx4090"), 1.0)
        # Registers for one block of 256 threads only.
        self.assertEqual(occupancy(256, 255, 0, "rtx4090"), 256 / 1536)
        self.assertEqual(occupancy(128, 32, 49152, "rtx4090"), 2 * 128 / 1536)

    def test_launches_are_counted_for_each_kernel(self):
        lines = [
            "module 0a first registers 40 shared 16 stack 0 spilled 8",
            "launch device 0 stream 1 module 0a first grid 2 3 1 block 64 1 1 shared 0",
            "launch device 1 stream 1 module 0a first grid 1 1 1 block 64 1 1 shared 0",
        ]
        (row,), has_costs, _ = read(lines, "rtx4090", "tf32")
        self.assertFalse(has_costs)
        self.assertEqual((row["launches"], row["threads"], row["spilled"], row["shared"]), (2, 7 * 64, 8, 16))


class Costs(unittest.TestCase):
    LINES = [
        "module 0a small registers 16 shared 0 stack 0 spilled 0",
        "launch device 0 stream 1 module 0a small grid 1 1 1 block 32 1 1 shared 0",
        "costs begin",
        "launch device 0 stream 1 module 0a small grid 1 1 1 block 32 1 1 shared 0",
        "cost module 0a block 32 shared 0 blocks 1 read 128 written 128 flops 32 matrix 0",
        "launch device 0 stream 1 module 0a small grid 128 1 1 block 32 1 1 shared 0",
        "cost module 0a block 32 shared 0 blocks 128 read 504000000 written 504000000 flops 0 matrix 0",
        "costs end",
    ]

    def test_a_launch_takes_its_bytes_or_the_launch_itself(self):
        (row,), has_costs, unknown = read(self.LINES, "rtx4090", "tf32")
        self.assertTrue(has_costs)
        self.assertEqual((row["launches"], row["bound_by_launch"], unknown), (2, 1, 0))
        # 4 us, and a gigabyte at 1008 GB/s.
        self.assertAlmostEqual(row["seconds"], 4e-6 + 1e-3)


if __name__ == "__main__":
    unittest.main()
