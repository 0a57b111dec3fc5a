#!/usr/bin/env python3
"""Translates a PTX kernel to C and compiles it to a shared library that runs it on the CPU.

    ptx_to_c.py KERNEL.ptx KERNEL.so [--costs]

It covers what LLVM writes for the kernels of this program. An instruction, operand or directive that it does not
know is an error that lists every one of them; nothing is skipped. `ptx_instructions.py` translates instructions,
`ptx_runtime.h` has the threads, barriers, matrix units and checked memory that the C code uses.
With --costs it counts bytes and operations, in one block (`cost_of_block`); see `costs_of` in ptx_instructions.py.
CUDA_STAND_IN_TF32=exact leaves out the rounding of TF32; by default it is that of the hardware.
"""
import os
import re
import subprocess
import sys
import tempfile

from ptx_instructions import WIDTH, Instructions, Unknown, c_name, costs_of, split_operands

HERE = os.path.dirname(os.path.abspath(__file__))
ENDINGS = {8: "u8", 16: "u16", 32: "u32", 64: "u64"}

VARIABLE = re.compile(
    r"^\s*(?:\.(?:visible|extern|weak|common|internal)\s+)*\.(global|const|shared)\s+"
    r"(?:\.attribute\([^)]*\)\s*)?\.align\s+(\d+)\s+\.(\w+)\s+([\w$]+)((?:\[\d*\])*)\s*(?:=\s*(\{[^}]*\}|[^;]*))?;",
    re.M,
)


class Kernel:
    """One kernel of a PTX module as parts of a C file."""

    def __init__(self, ptx, counts_costs=False):
        self.counts_costs = counts_costs
        self.symbols = {}  # name -> (space, offset or C name)
        self.shared = 0  # bytes of static shared memory
        self.variables = []
        self.declarations = []
        self.statements = []
        self.unknown = []
        ptx = re.sub(r"//[^\n]*", "", ptx)
        ptx = re.sub(r"^\s*\.(loc|file)\b[^\n]*", "", ptx, flags=re.M)
        self.read_variables(ptx)
        body = self.read_entry(ptx)
        self.instructions = Instructions(self.symbols)
        statements = list(statements_of(body))
        # Declarations first: dynamic shared memory begins after all that is static.
        for kind, text in statements:
            if kind == "statement" and text.startswith("."):
                self.declare(text)
        self.shared = -(-self.shared // 16) * 16
        self.instructions.dynamic_shared = self.shared
        for kind, text in statements:
            if kind == "label":
                self.statements.append(f"{c_name(text)}:;")
            elif not text.startswith("."):
                self.translate(text)

    def place_shared(self, name, align, size):
        self.shared = -(-self.shared // align) * align
        self.symbols[name] = ("shared", self.shared)
        self.shared += size

    def read_variables(self, ptx):
        head = ptx[: ptx.index(".entry")]
        for space, align, kind, name, dimensions, initial in VARIABLE.findall(head):
            lengths = re.findall(r"\[(\d*)\]", dimensions)
            count = 1
            for length in lengths:
                count *= int(length or 0)
            if space == "shared" and count == 0:
                self.symbols[name] = ("dynamic", 0)
            elif space == "shared":
                self.place_shared(name, int(align), count * WIDTH[kind] // 8)
            else:
                values = [literal(value) for value in re.findall(r"[-\w.]+", initial.strip("{}"))]
                c_type = ENDINGS[WIDTH[kind]]
                self.variables.append(
                    f"static {c_type} {c_name(name)}[{max(count, 1)}] __attribute__((aligned({align})))"
                    f" = {{{','.join(values) or 0}}};"
                )
                self.symbols[name] = ("global", c_name(name))

    def read_entry(self, ptx):
        """Places the parameters; returns the text between the braces."""
        entry = re.search(r"\.entry\s+([\w$]+)\s*\((.*?)\)\s*(?:\.\w+[^{]*)?\{", ptx, re.S)
        self.loads, self.param_bytes = [], 0
        parameters = [text.strip() for text in entry.group(2).split(",") if text.strip()]
        for number, text in enumerate(parameters):
            array = re.search(r"([\w$]+)\[(\d+)\]$", text)
            if array:
                name, size = array.group(1), int(array.group(2))
            else:
                kind = re.search(r"\.([busf]\d+)\b", text.replace(".param", "")).group(1)
                name, size = text.split()[-1], WIDTH[kind] // 8
            self.param_bytes = -(-self.param_bytes // 16) * 16
            self.symbols[name] = ("param", self.param_bytes)
            self.loads.append(f"memcpy(PARAMS+{self.param_bytes}, p[{number}], {size});")
            self.param_bytes += size
        depth, end = 1, entry.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(ptx[end], 0)
            end += 1
        return ptx[entry.end() : end - 1]

    def translate(self, text):
        guard = re.match(r"@(!?)%(\w+)\s+(.*)$", text, re.S)
        condition = f"if ({guard.group(1)}{guard.group(2)}) " if guard else ""
        name, operands = re.match(r"([\w.:]+)\s*(.*)$", guard.group(3) if guard else text, re.S).groups()
        try:
            code = self.instructions.translate(name, split_operands(operands))
            counted = costs_of(name) if self.counts_costs else ""
            self.statements.append(f"{condition}{{{counted}{code}}}")
        except (Unknown, KeyError, StopIteration, ValueError, IndexError, TypeError) as problem:
            self.unknown.append(f"{text}   ({type(problem).__name__} {problem})")

    def declare(self, text):
        array = re.match(r"\.(local|shared)\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\]", text)
        if text.startswith(".reg"):
            kind, names = re.match(r"\.reg\s+\.(\w+)\s+(.*)$", text).groups()
            for name in names.split(","):
                self.declarations.append(self.instructions.declare(kind, name.strip()))
        elif array and array.group(1) == "shared":
            self.place_shared(array.group(3), int(array.group(2)), int(array.group(4)))
        elif array:
            name = c_name(array.group(3))
            self.symbols[array.group(3)] = ("local", name)
            self.declarations.append(f"u8 {name}[{array.group(4)}] __attribute__((aligned({array.group(2)})));")
        elif not text.startswith(".pragma"):
            self.unknown.append(text)

    def c_file(self):
        newline = "\n"
        return f"""#include "{HERE}/ptx_runtime.h"
static u8 PARAMS[{max(self.param_bytes, 1)}] __attribute__((aligned(16)));
static const int WAITS = {int(self.instructions.waits)};
static const u32 STATIC_SHARED = {self.shared};
static void load_params(void **p) {{ {" ".join(self.loads)} }}
{newline.join(self.variables)}
static void thread_of_kernel(Lane *me) {{
{newline.join(self.declarations)}
{newline.join(self.statements)}
}}
"""


def literal(value):
    """A number of an initializer: floats are written as their bits."""
    if value[:2] in ("0f", "0F"):
        return "0x" + value[2:]
    if value[:2] in ("0d", "0D"):
        return "0x" + value[2:] + "ull"
    return value


def statements_of(body):
    """Labels and statements in order; a statement may continue on further lines."""
    pending = ""
    for line in body.split("\n"):
        line = line.strip()
        label = re.match(r"([$\w]+):\s*(.*)$", line)
        if label:
            yield "label", label.group(1)
            line = label.group(2)
        if not line:
            continue
        pending += " " + line
        while ";" in pending:
            statement, pending = pending.split(";", 1)
            # Braces around a block of declarations have no meaning of their own.
            statement = statement.strip().lstrip("{} ")
            if statement:
                yield "statement", statement
    if pending.strip(" {}"):
        yield "statement", pending.strip()


def main():
    source, target = sys.argv[1:3]
    counts_costs = sys.argv[3:] == ["--costs"]
    with open(source, encoding="utf-8") as file:
        kernel = Kernel(file.read(), counts_costs)
    if kernel.unknown:
        print(f"{source}: not translated:", *sorted(set(kernel.unknown)), sep="\n  ")
        sys.exit(3)
    exact = os.environ.get("CUDA_STAND_IN_TF32") == "exact"
    # Replaced whole: another process may translate the same kernel.
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(target))) as directory:
        code, library = os.path.join(directory, "kernel.c"), os.path.join(directory, "kernel.so")
        with open(code, "w", encoding="utf-8") as file:
            file.write(kernel.c_file())
        command = ["gcc", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-mfma", "-mf16c"]
        command += ["-DEXACT_TF32"] if exact else []
        command += ["-DCOUNT_COSTS"] if counts_costs else []
        made = subprocess.run([*command, code, "-o", library, "-lm"], capture_output=True, text=True, check=False)
        if made.returncode:
            print(made.stderr[:3000])
            sys.exit(4)
        os.replace(library, target)


if __name__ == "__main__":
    main()
