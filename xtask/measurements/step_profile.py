#!/usr/bin/env python3
"""CPU time of a training step, by kind of work.

    xtask/measurements/step_profile.py [PROGRAM] [ARGUMENTS OF `tandem bench step` ...]

Samples the program with Linux `perf`, resolves each sampled address with `addr2line`, and counts samples by kind.
Needs both tools (Debian: linux-perf, binutils) and a program with line tables, as in the release profile.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

# The first pattern that matches the chain of inlined functions and files of an address.
KINDS = [
    ("matrix products", r"gemm"),
    ("attention", r"ops/(attention|product)"),
    ("norms", r"ops/norm"),
    ("optimizer", r"ops/adamw"),
    ("gates, biases, sums", r"ops/"),
    ("element-wise operations of Burn", r"burn|macerator|cubecl"),
    ("threads of rayon", r"rayon|crossbeam"),
    ("allocator", r"mimalloc|\bmi_"),
    ("the rest of the program", r""),
]
# The same for samples outside of the program.
OUTSIDE = [
    ("copies", r"memmove|memcpy"),
    ("zeroing", r"memset"),
    ("libraries", r""),
]
KERNEL_MEMORY = re.compile(r"page|fault|folio|vma|madvise|zap_|pte|rmqueue|tlb|clear")


def main():
    args = sys.argv[1:]
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    program = args.pop(0) if args and not args[0].startswith("-") else f"{target}/release/tandem"
    with tempfile.TemporaryDirectory() as directory:
        samples = f"{directory}/samples"
        command = ["perf", "record", "-q", "-F", "499", "-o", samples, program, "bench", "step", *args]
        subprocess.run(command, check=True)
        print_shares(count(samples, os.path.realpath(program)))


def count(samples, program):
    """The number of samples of each kind of work."""
    script = ["perf", "script", "-i", samples, "-F", "ip,sym,dso", "--show-mmap-events"]
    lines = subprocess.run(script, check=True, capture_output=True, text=True).stdout.splitlines()
    shift, inside, counts = None, collections.Counter(), collections.Counter()
    for line in lines:
        if "PERF_RECORD" in line:
            mapped = re.search(r"\[0x(\w+)\(0x\w+\) @ (\w+) .*r-xp (.*)$", line)
            if mapped and os.path.realpath(mapped[3]) == program:
                shift = int(mapped[1], 16) - virtual_address(program, int(mapped[2], 0))
            continue
        address, _, rest = line.strip().partition(" ")
        if not re.fullmatch(r"[0-9a-f]+", address):
            continue
        if f"({program})" in rest:
            inside[int(address, 16) - shift] += 1
        elif "kernel" in rest:
            counts["kernel: memory" if KERNEL_MEMORY.search(rest) else "kernel: waking and sleeping"] += 1
        else:
            counts[kind_of(rest, OUTSIDE)] += 1
    for address, chain in chains(program, list(inside)):
        counts[kind_of(chain, KINDS)] += inside[address]
    return counts


def virtual_address(program, offset):
    """The virtual address of a file offset in the code segment."""
    headers = subprocess.run(["readelf", "-lW", program], check=True, capture_output=True, text=True).stdout
    for line in headers.splitlines():
        fields = line.split()
        if fields[:1] == ["LOAD"] and "E" in line.split("0x")[-2]:
            start, linked = int(fields[1], 16), int(fields[2], 16)
            return linked - start + offset
    raise SystemExit(f"{program} has no code segment")


def chains(program, addresses):
    """Each address with its chain of inlined functions and files, innermost first."""
    command = ["addr2line", "-e", program, "-f", "-i", "-C", "-a"]
    text = "\n".join(hex(address) for address in addresses)
    found = subprocess.run(command, check=True, input=text, capture_output=True, text=True).stdout
    for part in re.split(r"^(?=0x[0-9a-f]{16}$)", found, flags=re.MULTILINE):
        if part:
            address, _, chain = part.partition("\n")
            yield int(address, 16), chain


def kind_of(text, kinds):
    return next(name for name, pattern in kinds if re.search(pattern, text))


def print_shares(counts):
    total = sum(counts.values())
    if total == 0:
        raise SystemExit("perf took no samples")
    for name, samples in counts.most_common():
        print(f"{100 * samples / total:5.1f} %  {name}")


if __name__ == "__main__":
    main()
