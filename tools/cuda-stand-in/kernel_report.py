#!/usr/bin/env python3
"""What `ptxas` and the launches in calls.log say about kernels: kernel_report.py CALLS.LOG [--card KEY] [--json]

Occupancy is the share of a multiprocessor's threads that fit with the registers and shared memory of a kernel.
Time is not measured: the driver computes on the CPU. The order is by threads launched, divided by occupancy, which
says where a kernel that uses a card badly also runs most.
"""
import argparse
import json
import re
from collections import defaultdict

MODULE = re.compile(r"module (\w+) (\S+) registers (\d+) shared (\d+) stack (\d+) spilled (\d+)")
LAUNCH = re.compile(r"launch device \d+ stream \d+ module (\w+) \S+ grid (\d+) (\d+) (\d+) block (\d+) (\d+) (\d+) shared (\d+)")
REGISTERS = 65536
# Threads, blocks and bytes of shared memory of a multiprocessor, as in cards.c.
CARDS = {
    "t4": (1024, 16, 65536), "a100-40": (2048, 32, 167936), "rtx3060-12": (1536, 16, 102400), "rtx3090": (1536, 16, 102400),
    "rtx4060ti-16": (1536, 24, 102400), "rtx4090": (1536, 24, 102400), "h100-80": (2048, 32, 233472),
}


def occupancy(threads, registers, shared, card):
    """The share of a multiprocessor's threads that blocks of this kernel can fill."""
    most_threads, most_blocks, most_shared = CARDS[card]
    warps = -(-threads // 32)
    # Registers are allocated by warp in units of 256; each block reserves 1 KiB of shared memory.
    by_registers = REGISTERS // max(warps * -(-registers * 32 // 256) * 256, 1)
    by_shared = most_shared // (shared + 1024)
    blocks = min(most_threads // (warps * 32), most_blocks, by_registers, by_shared)
    return blocks * warps * 32 / most_threads


def read(lines, card):
    facts, rows = {}, defaultdict(lambda: {"launches": 0, "threads": 0})
    for line in lines:
        module, launch = MODULE.match(line), LAUNCH.match(line)
        if module:
            facts[module.group(1)] = (module.group(2), *(int(number) for number in module.groups()[2:]))
        elif launch:
            key = launch.group(1)
            gx, gy, gz, bx, by, bz, dynamic = (int(number) for number in launch.groups()[1:])
            name, registers, shared, stack, spilled = facts[key]
            threads, row = bx * by * bz, rows[key, bx * by * bz, dynamic]
            row.update(
                kernel=name, module=key, block=threads, registers=registers, shared=shared + dynamic, stack=stack,
                spilled=spilled, occupancy=occupancy(threads, registers, shared + dynamic, card),
            )
            row["launches"] += 1
            row["threads"] += threads * gx * gy * gz
    return list(rows.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("--card", choices=CARDS, default="rtx4090")
    parser.add_argument("--json", action="store_true", help="every kernel, for a script")
    arguments = parser.parse_args()
    with open(arguments.log, encoding="utf-8") as file:
        rows = read(file, arguments.card)
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    launches = sum(row["launches"] for row in rows)
    spilled = [row for row in rows if row["spilled"]]
    low = [row for row in rows if row["occupancy"] < 0.25]
    print(f"{len(rows)} kernels and block sizes, {launches} launches, on a card like {arguments.card}")
    print(f"with spilled registers: {len(spilled)} ({sum(row['launches'] for row in spilled)} launches)")
    print(f"with an occupancy below 25 %: {len(low)} ({sum(row['launches'] for row in low)} launches)\n")
    print("the ten with the most threads for their occupancy:")
    print(f"{'launches':>8} {'block':>5} {'regs':>4} {'spill':>5} {'shared':>7} {'occ.':>5}  kernel")
    rows.sort(key=lambda row: row["threads"] / max(row["occupancy"], 0.01), reverse=True)
    for row in rows[:10]:
        print(
            f"{row['launches']:>8} {row['block']:>5} {row['registers']:>4} {row['spilled']:>5} {row['shared']:>7}"
            f" {row['occupancy']:>5.0%}  {row['kernel'][:70]}"
        )


if __name__ == "__main__":
    main()
