#!/usr/bin/env python3
"""What `ptxas` and the launches in calls.log say about kernels: kernel_report.py CALLS.LOG [--card KEY] [--json]

With costs in the log (`tandem bench launches --costs`) it reports one training step: bytes, operations and an estimate
of the time on a card. Without them it reports every launch, ordered by threads divided by occupancy.

Occupancy is the share of a multiprocessor's threads that fit with the registers and shared memory of a kernel. The time
of a launch is estimated from the data sheet of the card: the largest of a launch by itself (4 us), its bytes at the
full bandwidth and its operations at the full rate, both of the multiprocessors that have a block. Bytes are those that
threads ask for: what caches answer counts, too, so it is an upper bound. Nothing here was measured on a card.
"""
import argparse
import json
import re
from collections import defaultdict

MODULE = re.compile(r"module (\w+) (\S+) registers (\d+) shared (\d+) stack (\d+) spilled (\d+)")
LAUNCH = re.compile(r"launch device \d+ stream \d+ module (\w+) \S+ grid (\d+) (\d+) (\d+) block (\d+) (\d+) (\d+) shared (\d+)")
COST = re.compile(r"cost module (\w+) block (\d+) shared (\d+) blocks (\d+) read (\d+) written (\d+) flops (\d+) matrix (\d+)")
REGISTERS = 65536
LAUNCH_SECONDS = 4e-6
# Threads, blocks and bytes of shared memory of a multiprocessor, and their number, as in cards.c; operations of f32, and of
# matrix units with TF32 and with bf16 (f16 on the T4) and sums in f32, dense, in TFLOP/s; bandwidth in GB/s; from the data
# sheets.
CARDS = {
    "t4": (1024, 16, 65536, 40, 8.1, {"tf32": 65.0, "bf16": 65.0}, 320),
    "a100-40": (2048, 32, 167936, 108, 19.5, {"tf32": 156.0, "bf16": 312.0}, 1555),
    "rtx3060-12": (1536, 16, 102400, 28, 12.7, {"tf32": 12.7, "bf16": 25.5}, 360),
    "rtx3090": (1536, 16, 102400, 82, 35.6, {"tf32": 35.6, "bf16": 71.0}, 936),
    "rtx4060ti-16": (1536, 24, 102400, 34, 22.1, {"tf32": 22.1, "bf16": 44.1}, 288),
    "rtx4070": (1536, 24, 102400, 46, 29.1, {"tf32": 29.1, "bf16": 58.3}, 504),
    "rtx4090": (1536, 24, 102400, 128, 82.6, {"tf32": 82.6, "bf16": 165.2}, 1008),
    "h100-80": (2048, 32, 233472, 132, 66.9, {"tf32": 494.7, "bf16": 989.4}, 3350),
}


def occupancy(threads, registers, shared, card):
    """The share of a multiprocessor's threads that blocks of this kernel can fill."""
    most_threads, most_blocks, most_shared = CARDS[card][:3]
    warps = -(-threads // 32)
    # Registers are allocated by warp in units of 256; each block reserves 1 KiB of shared memory.
    by_registers = REGISTERS // max(warps * -(-registers * 32 // 256) * 256, 1)
    by_shared = most_shared // (shared + 1024)
    blocks = min(most_threads // (warps * 32), most_blocks, by_registers, by_shared)
    return blocks * warps * 32 / most_threads


def seconds(blocks, moved, flops, matrix, card, units):
    """The estimate for one launch."""
    processors, f32, rates, bandwidth = CARDS[card][3:]
    tensor = rates[units]
    busy = min(1.0, blocks / processors)
    work = max(moved / (bandwidth * 1e9), flops / (f32 * 1e12) + matrix / (tensor * 1e12))
    return max(LAUNCH_SECONDS, work / busy)


def empty_row():
    return {"launches": 0, "threads": 0, "bytes": 0, "flops": 0, "seconds": 0.0, "bound_by_launch": 0}


def read(lines, card, units):
    """Rows by kernel and block size; those of the step with costs, if there is one."""
    facts, every, counted, unknown = {}, defaultdict(empty_row), defaultdict(empty_row), 0
    for line in lines:
        if module := MODULE.match(line):
            facts[module.group(1)] = (module.group(2), *(int(number) for number in module.groups()[2:]))
        elif launch := LAUNCH.match(line):
            key = launch.group(1)
            gx, gy, gz, bx, by, bz, dynamic = (int(number) for number in launch.groups()[1:])
            row = every[key, bx * by * bz, dynamic]
            row["launches"] += 1
            row["threads"] += bx * by * bz * gx * gy * gz
        elif cost := COST.match(line):
            key, (threads, dynamic, blocks, taken, written, flops, matrix) = cost.group(1), map(int, cost.groups()[1:])
            row, estimate = counted[key, threads, dynamic], seconds(blocks, taken + written, flops, matrix, card, units)
            row["launches"] += 1
            row["threads"] += threads * blocks
            row["bytes"] += taken + written
            row["flops"] += flops + matrix
            row["seconds"] += estimate
            row["bound_by_launch"] += estimate == LAUNCH_SECONDS
        elif line.startswith("cost unknown"):
            unknown += 1
    rows = []
    for (key, threads, dynamic), row in (counted or every).items():
        name, registers, shared, stack, spilled = facts[key]
        row.update(
            kernel=name, module=key, block=threads, registers=registers, shared=shared + dynamic, stack=stack,
            spilled=spilled, occupancy=occupancy(threads, registers, shared + dynamic, card),
        )
        rows.append(row)
    return rows, bool(counted), unknown


def summary(rows, has_costs, unknown, card):
    launches = sum(row["launches"] for row in rows)
    spilled = [row for row in rows if row["spilled"]]
    low = [row for row in rows if row["occupancy"] < 0.25]
    what = "one training step" if has_costs else "every launch of the log"
    yield f"{what}: {len(rows)} kernels and block sizes, {launches} launches, on a card like {card}"
    yield f"with spilled registers: {len(spilled)} ({sum(row['launches'] for row in spilled)} launches)"
    yield f"with an occupancy below 25 %: {len(low)} ({sum(row['launches'] for row in low)} launches)"
    if not has_costs:
        return
    total, moved = sum(row["seconds"] for row in rows), sum(row["bytes"] for row in rows)
    bound = sum(row["bound_by_launch"] for row in rows)
    shares = [sum(row["seconds"] for row in some) / total for some in (spilled, low)]
    yield f"estimated {1e3 * total:.2f} ms: {bound} launches are bound by the launch itself ({bound * LAUNCH_SECONDS / total:.0%} of the time)"
    yield f"{moved / 1e6:.0f} MB, {sum(row['flops'] for row in rows) / 1e9:.2f} GFLOP"
    yield f"share of the time: kernels with spills {shares[0]:.1%}, with an occupancy below 25 % {shares[1]:.1%}"
    if unknown:
        yield f"launches whose cost is not known: {unknown}"


def table(rows, has_costs):
    if not has_costs:
        yield "\nthe ten with the most threads for their occupancy:"
        yield f"{'launches':>8} {'block':>5} {'regs':>4} {'spill':>5} {'shared':>7} {'occ.':>5}  kernel"
        for row in sorted(rows, key=lambda row: row["threads"] / max(row["occupancy"], 0.01), reverse=True)[:10]:
            yield (
                f"{row['launches']:>8} {row['block']:>5} {row['registers']:>4} {row['spilled']:>5} {row['shared']:>7}"
                f" {row['occupancy']:>5.0%}  {row['kernel'][:70]}"
            )
        return
    total, moved, flops = (sum(row[what] for row in rows) or 1 for what in ("seconds", "bytes", "flops"))
    yield "\nthe ten with the largest estimate:"
    yield (
        f"{'time us':>8} {'share':>6} {'launches':>8} {'bytes':>6} {'FLOP':>6} {'block':>5} {'regs':>4} {'spill':>5}"
        f" {'shared':>7} {'occ.':>5}  kernel"
    )
    for row in sorted(rows, key=lambda row: row["seconds"], reverse=True)[:10]:
        yield (
            f"{1e6 * row['seconds']:>8.1f} {row['seconds'] / total:>6.1%} {row['launches']:>8} {row['bytes'] / moved:>6.1%}"
            f" {row['flops'] / flops:>6.1%} {row['block']:>5} {row['registers']:>4} {row['spilled']:>5} {row['shared']:>7}"
            f" {row['occupancy']:>5.0%}  {row['kernel'][:60]}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("--card", choices=CARDS, default="rtx4090")
    parser.add_argument("--matrix", choices=("tf32", "bf16"), default="tf32", help="what matrix units compute in (default tf32)")
    parser.add_argument("--json", action="store_true", help="every kernel, for a script")
    arguments = parser.parse_args()
    with open(arguments.log, encoding="utf-8") as file:
        rows, has_costs, unknown = read(file, arguments.card, arguments.matrix)
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    print(*summary(rows, has_costs, unknown, arguments.card), *table(rows, has_costs), sep="\n")


if __name__ == "__main__":
    main()
