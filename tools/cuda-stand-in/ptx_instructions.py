"""PTX instructions as C statements. `Instructions.translate` knows one by its name, or raises `Unknown`.

Registers are C variables that hold bits. F, D, H, B read bits as f32, f64, f16 and bf16, UF, UD, UH, UB write them;
these and everything else that is called is in ptx_runtime.h.
"""
import re

WIDTH = {
    "pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "b32": 32, "u32": 32,
    "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "tf32": 32, "b64": 64, "u64": 64, "s64": 64, "f64": 64, "b128": 128,
}
UNSIGNED = {8: "u8", 16: "u16", 32: "u32", 64: "u64", 128: "u128"}
SIGNED = {8: "s8", 16: "s16", 32: "s32", 64: "s64", 128: "s128"}
READ = {"f32": "F", "f64": "D", "f16": "H", "bf16": "B"}
PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
SIGN_BIT = {"f32": "0x80000000u", "f64": "0x8000000000000000ull", "f16": "0x8000u", "bf16": "0x8000u"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
BITWISE = {"and": "&", "or": "|", "xor": "^"}
TO_INTEGER = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
SPECIAL = {
    "%laneid": "me->lane", "%warpid": "me->warp_id", "%clock": "0u", "%clock64": "0ull",
    "%lanemask_lt": "((1u<<me->lane)-1)", "%lanemask_le": "((2u<<me->lane)-1)", "%lanemask_eq": "(1u<<me->lane)",
    "%lanemask_gt": "(~((2u<<me->lane)-1))", "%lanemask_ge": "(~((1u<<me->lane)-1))",
    **{f"%tid.{axis}": f"me->t{axis}" for axis in "xyz"},
    **{f"%ntid.{axis}": f"BLOCK.{axis}" for axis in "xyz"},
    **{f"%ctaid.{axis}": f"AT.{axis}" for axis in "xyz"},
    **{f"%nctaid.{axis}": f"GRID.{axis}" for axis in "xyz"},
}
# Hints for caches and order: without meaning where one thread runs at a time.
NO_EFFECT = ("membar", "fence", "prefetch", "prefetchu", "discard", "applypriority", "nanosleep")


class Unknown(Exception):
    """Not translated."""


def c_name(name):
    return "sym_" + re.sub(r"[^A-Za-z0-9_]", "_", name)


def register(operand):
    return operand.replace("%", "").replace(".", "_").replace("$", "_")


def list_of(operand):
    return [part.strip() for part in operand.strip()[1:-1].split(",")]


def split_operands(text):
    """Splits at commas that are outside of brackets."""
    parts, depth, part = [], 0, ""
    for character in text:
        depth += (character in "{[(") - (character in "}])")
        if character == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    return parts + [part.strip()] if part.strip() else parts


def integer_type(kind):
    return (SIGNED if kind[0] == "s" else UNSIGNED)[WIDTH[kind]]


ARITHMETIC = {"add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh", "min", "max", "neg", "abs"}


def costs_of(name):
    """C code that counts what an instruction reads and writes in global memory, and the floats it computes. A matrix
    product is computed by 32 lanes together."""
    parts = name.split(".")
    operation = parts[0]
    if operation in ("ld", "st", "atom", "red") and "global" in parts:
        lanes = next((int(part[1]) for part in parts if re.fullmatch(r"v[248]", part)), 1)
        size = lanes * WIDTH[next(part for part in reversed(parts) if part in WIDTH)] // 8
        read = f"cost_read+={size};" if operation != "st" else ""
        return read + (f"cost_written+={size};" if operation != "ld" else "")
    if operation in ("mma", "wmma") and "mma" in parts[:2]:
        m, n, k = next(map(int, shape.groups()) for part in parts if (shape := re.fullmatch(r"m(\d+)n(\d+)k(\d+)", part)))
        return f"cost_matrix+={2 * m * n * k}/32.0;"
    floats = {"f32": 1, "f64": 1, "f16": 1, "bf16": 1, "f16x2": 2, "bf16x2": 2}.get(parts[-1], 0)
    if floats and (operation == "fma" or operation in ARITHMETIC):
        return f"cost_flops+={floats * (2 if operation == 'fma' else 1)};"
    return ""


class Instructions:
    def __init__(self, symbols):
        self.symbols = symbols
        self.dynamic_shared = 0
        # Whether threads wait for each other; then each has a stack of its own.
        self.waits = False
        self.sites = 0
        self.widths = {}

    def declare(self, kind, name):
        """The C declaration of registers, such as `%r<4>` or `%r1`."""
        width = max(WIDTH[kind], 8)
        many = re.match(r"%(\w+?)<(\d+)>$", name)
        prefix = many.group(1) if many else register(name)
        self.widths[re.match(r"[A-Za-z]+", prefix).group(0)] = width
        names = [f"{prefix}{number}" for number in range(int(many.group(2)))] if many else [prefix]
        if not names:
            return ""
        return f"{UNSIGNED[width]} " + ", ".join(f"{one}=0" for one in names) + ";"

    # Operands.

    def value(self, operand, kind=None):
        """The bits of an operand."""
        operand = operand.strip()
        if operand in SPECIAL:
            return SPECIAL[operand]
        if operand.startswith("%"):
            return register(operand)
        if re.match(r"0[fF][0-9A-Fa-f]{8}$", operand):
            return f"0x{operand[2:]}u"
        if re.match(r"0[dD][0-9A-Fa-f]{16}$", operand):
            return f"0x{operand[2:]}ull"
        if re.match(r"-?(0x[0-9A-Fa-f]+|\d+)U?$", operand):
            width = max(WIDTH.get(kind, 64), 32)
            bits = int(operand.rstrip("U"), 0) & ((1 << width) - 1)
            return hex(bits) + ("ull" if width > 32 else "u")
        if operand in ("true", "false"):
            return str(int(operand == "true"))
        symbol = re.match(r"([\w$]+)(?:\+(\d+))?$", operand)
        if symbol and symbol.group(1) in self.symbols:
            return f"({self.place(symbol.group(1))}+{symbol.group(2) or 0})"
        raise Unknown(f"operand {operand}")

    def condition(self, operand):
        return f"!{self.value(operand[1:])}" if operand[0] == "!" else self.value(operand)

    def place(self, name):
        space, where = self.symbols[name]
        if space == "dynamic":
            return f"{self.dynamic_shared}ull"
        return {"shared": f"{where}ull", "param": f"(u64)(PARAMS+{where})"}.get(space, f"(u64){where}")

    def address(self, operand):
        found = re.match(r"\[\s*([%\w$.]+?)\s*(?:\+\s*(-?\w+))?\s*\]$", operand.strip())
        if not found:
            raise Unknown(f"address {operand}")
        base, offset = found.groups()
        start = self.place(base) if base in self.symbols else self.value(base)
        return f"((u64)({start})+(s64){int(offset or '0', 0)})"

    def pointer(self, parts, operand, size):
        """Checked memory of the state space that the instruction names."""
        spaces = [part.split("::")[0] for part in parts]
        space = next((one for one in spaces if one in ("global", "shared", "local", "const", "param")), "generic")
        check = {"global": "global_memory", "shared": "shared_memory", "generic": "any_memory"}.get(space)
        address = self.address(operand)
        return f"{check}({address},{size},{size})" if check else f"(void*){address}"

    def read(self, operand, kind):
        """An operand as a C value of its type."""
        bits = self.value(operand, kind)
        return f"{READ[kind]}({bits})" if kind in READ else f"(({integer_type(kind)}){bits})"

    def write(self, target, kind, expression):
        if kind in READ:
            expression = f"U{READ[kind]}({expression})"
        elif WIDTH[kind] > 1:
            expression = f"({UNSIGNED[WIDTH[kind]]})({expression})"
        return f"(void)({expression});" if target == "_" else f"{register(target)}={expression};"

    def pairwise(self, target, kind, operands, compute):
        """Both halves of packed floats."""
        read = READ[PAIRS[kind]]
        half = lambda shift: f"(u32)U{read}({compute([f'{read}((u16)({self.value(one)}>>{shift}))' for one in operands])})"
        return f"{register(target)}={half(0)}|({half(16)}<<16);"

    def site(self):
        """A number for a place where threads wait for each other."""
        self.waits = True
        self.sites += 1
        return self.sites

    # Instructions.

    def translate(self, name, operands):
        parts = name.split(".")
        method = getattr(self, f"do_{parts[0]}", None)
        if parts[0] in NO_EFFECT:
            return ";"
        if method is None:
            raise Unknown(name)
        return method(parts, operands)

    def do_mov(self, parts, operands):
        kind, (target, source) = parts[-1], operands
        if target.startswith("{"):
            targets = list_of(target)
            width = WIDTH[kind] // len(targets)
            shifted = lambda number: f"({UNSIGNED[width]})({self.value(source, kind)}>>{number * width})"
            return "".join(f"{register(one)}={shifted(n)};" for n, one in enumerate(targets) if one != "_")
        if source.startswith("{"):
            sources = list_of(source)
            width = WIDTH[kind] // len(sources)
            wide, narrow = UNSIGNED[WIDTH[kind]], UNSIGNED[width]
            packed = [f"(({wide})({narrow}){self.value(one, narrow)}<<{n * width})" for n, one in enumerate(sources)]
            return f"{register(target)}={'|'.join(packed)};"
        return f"{register(target)}={self.value(source, kind)};"

    def do_cvta(self, parts, operands):
        target, source = register(operands[0]), self.value(operands[1])
        if any(part.startswith("shared") for part in parts):
            return f"{target}={source}-(u64)SHARED;" if "to" in parts else f"{target}=(u64)SHARED+{source};"
        return f"{target}={source};"

    def do_ld(self, parts, operands):
        kind, count = parts[-1], self.lanes(parts)
        targets = list_of(operands[0]) if count > 1 else [operands[0]]
        c_type = integer_type(kind) if kind not in READ else UNSIGNED[WIDTH[kind]]
        pointer = self.pointer(parts, operands[1], count * WIDTH[kind] // 8)
        loads = "".join(f"{register(one)}=q[{n}];" for n, one in enumerate(targets) if one != "_")
        return f"const {c_type} *q={pointer}; {loads}"

    do_ldu = do_ld

    def do_st(self, parts, operands):
        kind, count = parts[-1], self.lanes(parts)
        sources = list_of(operands[1]) if count > 1 else [operands[1]]
        c_type = UNSIGNED[WIDTH[kind]]
        pointer = self.pointer(parts, operands[0], count * WIDTH[kind] // 8)
        stores = "".join(f"q[{n}]=({c_type}){self.value(one, kind)};" for n, one in enumerate(sources))
        return f"{c_type} *q={pointer}; {stores}"

    @staticmethod
    def lanes(parts):
        return next((int(part[1:]) for part in parts if re.match(r"v\d$", part)), 1)

    def arithmetic(self, parts, operands):
        operation, kind = parts[0], parts[-1]
        target, a, b = operands
        sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}.get(operation)
        if kind in PAIRS:
            compute = lambda x: f"{x[0]}{sign}{x[1]}" if sign else f"f{operation}f({x[0]},{x[1]})"
            return self.pairwise(target, kind, (a, b), compute)
        x, y = self.read(a, kind), self.read(b, kind)
        if kind in READ:
            expression = f"{x}{sign}{y}"
            if not sign:
                expression = f"f{operation}{'' if kind == 'f64' else 'f'}({x},{y})"
                if "NaN" in parts:
                    expression = f"(isnan({x})||isnan({y})?NAN:{expression})"
            if "sat" in parts:
                expression = f"fminf(fmaxf({expression},0),1)"
            return self.write(target, kind, expression)
        unsigned = UNSIGNED[WIDTH[kind]]
        if operation in ("min", "max"):
            return self.write(target, kind, f"({x}{'<' if operation == 'min' else '>'}{y}?{x}:{y})")
        return self.write(target, kind, f"({unsigned}){x}{sign}({unsigned}){y}")

    do_add = do_sub = do_min = do_max = arithmetic

    def do_mul(self, parts, operands):
        kind = parts[-1]
        if kind in READ or kind in PAIRS:
            return self.arithmetic(parts, operands)
        product, _ = self.product(parts, kind, operands[1:3])
        return f"{register(operands[0])}={product};"

    def product(self, parts, kind, operands):
        """An integer product, whole (`wide`), its upper (`hi`) or its lower half; and its type."""
        width = WIDTH[kind]
        double = (SIGNED if kind[0] == "s" else UNSIGNED)[2 * width]
        x, y = (self.read(one, kind) for one in operands)
        if "wide" in parts:
            return f"({UNSIGNED[2 * width]})(({double}){x}*({double}){y})", 2 * width
        if "hi" in parts:
            return f"({UNSIGNED[width]})((({double}){x}*({double}){y})>>{width})", width
        return f"({UNSIGNED[width]})((u64){x}*(u64){y})", width

    def do_mad(self, parts, operands):
        kind = parts[-1]
        if kind in READ:
            return self.do_fma(parts, operands)
        product, width = self.product(parts, kind, operands[1:3])
        addend = self.value(operands[3], UNSIGNED[width])
        return f"{register(operands[0])}=({UNSIGNED[width]})({product}+({UNSIGNED[width]}){addend});"

    def do_fma(self, parts, operands):
        kind, target = parts[-1], operands[0]
        if kind in PAIRS:
            return self.pairwise(target, kind, operands[1:], lambda x: f"fmaf({','.join(x)})")
        values = ",".join(self.read(one, kind) for one in operands[1:])
        return self.write(target, kind, f"fma{'' if kind == 'f64' else 'f'}({values})")

    def do_div(self, parts, operands):
        kind = parts[-1]
        if kind in READ:
            return self.arithmetic(parts, operands)
        sign = "/" if parts[0] == "div" else "%"
        x, y = self.read(operands[1], kind), self.read(operands[2], kind)
        unsigned = UNSIGNED[WIDTH[kind]]
        if kind[0] == "u":
            return self.write(operands[0], kind, f"({y}?{x}{sign}{y}:~0)")
        by_minus_one = f"-({unsigned}){x}" if sign == "/" else "0"
        return self.write(operands[0], kind, f"({y}==0?-1:{y}==-1?{by_minus_one}:{x}{sign}{y})")

    do_rem = do_div

    def bitwise(self, parts, operands):
        kind, (target, a, b) = parts[-1], operands
        return self.write(target, kind, f"{self.value(a, kind)}{BITWISE[parts[0]]}{self.value(b, kind)}")

    do_and = do_or = do_xor = bitwise

    def do_not(self, parts, operands):
        kind = parts[-1]
        if kind == "pred":
            return f"{register(operands[0])}=!{self.value(operands[1])};"
        return self.write(operands[0], kind, f"~{self.read(operands[1], kind)}")

    def do_neg(self, parts, operands):
        kind, bits = parts[-1], self.value(operands[1], parts[-1])
        if kind in PAIRS:
            return f"{register(operands[0])}={bits}^0x80008000u;"
        if kind in READ:
            return f"{register(operands[0])}={bits}^{SIGN_BIT[kind]};"
        return self.write(operands[0], kind, f"-({UNSIGNED[WIDTH[kind]]}){bits}")

    def do_abs(self, parts, operands):
        kind, bits = parts[-1], self.value(operands[1], parts[-1])
        if kind in PAIRS:
            return f"{register(operands[0])}={bits}&0x7fff7fffu;"
        if kind in READ:
            return f"{register(operands[0])}={bits}&~{SIGN_BIT[kind]};"
        x, unsigned = self.read(operands[1], kind), UNSIGNED[WIDTH[kind]]
        return self.write(operands[0], kind, f"({x}<0?-({unsigned}){x}:({unsigned}){x})")

    def do_shl(self, parts, operands):
        kind, amount = parts[-1], self.value(operands[2], "u32")
        width = WIDTH[kind]
        return self.write(operands[0], kind, f"{amount}>={width}?0:({UNSIGNED[width]}){self.value(operands[1], kind)}<<{amount}")

    def do_shr(self, parts, operands):
        kind, x, amount = parts[-1], self.read(operands[1], parts[-1]), self.value(operands[2], "u32")
        empty = f"({x}<0?-1:0)" if kind[0] == "s" else "0"
        return self.write(operands[0], kind, f"{amount}>={WIDTH[kind]}?{empty}:{x}>>{amount}")

    def do_shf(self, parts, operands):
        target, low, high, amount = operands[0], *(self.value(one, "u32") for one in operands[1:])
        shift = f"({amount}&31)" if "wrap" in parts else f"({amount}>32?32:{amount})"
        result = f"(q<<{shift})>>32" if "l" in parts else f"q>>{shift}"
        return f"u64 q=((u64){high}<<32)|{low}; {register(target)}=(u32)({result});"

    def do_setp(self, parts, operands):
        comparison, kind = parts[1], parts[-1]
        if kind in READ:
            x, y = self.read(operands[1], kind), self.read(operands[2], kind)
            unordered = f"(isnan({x})||isnan({y}))"
            if comparison in ("num", "nan"):
                test = unordered if comparison == "nan" else f"!{unordered}"
            elif comparison in COMPARE:
                test = f"(!{unordered}&&{x}{COMPARE[comparison]}{y})"
            else:  # with a `u` at the end: true for NaN
                test = f"({unordered}||{x}{COMPARE[comparison[:-1]]}{y})"
        else:
            as_kind = "u" + kind[1:] if comparison in ("lo", "ls", "hi", "hs") else kind
            test = f"({self.read(operands[1], as_kind)}{COMPARE[comparison]}{self.read(operands[2], as_kind)})"
        joined = next((part for part in parts[2:-1] if part in BITWISE), None)
        other = f"{BITWISE[joined]}({self.condition(operands[3])})" if joined else ""
        targets = operands[0].split("|")
        tests = (f"({test}){other}", f"(!{test}){other}")
        # Both are computed before either is written: a target may be an input.
        results = "".join(f"u8 q{n}={tests[n]};" for n in range(len(targets)))
        return results + "".join(f"{register(one)}=q{n};" for n, one in enumerate(targets) if one != "_")

    def do_selp(self, parts, operands):
        target, a, b, condition = operands
        return f"{register(target)}={self.value(condition)}?{self.value(a, parts[-1])}:{self.value(b, parts[-1])};"

    def do_cvt(self, parts, operands):
        to, source = parts[-2:]
        target = operands[0]
        rounding = next((p for p in parts[1:-2] if p in (*TO_INTEGER, "rn", "rz", "rm", "rp", "rna")), None)
        if to in PAIRS:
            write = "U" + READ[PAIRS[to]]
            high, low = (f"(u32){write}(F({self.value(one)}))" for one in operands[1:3])
            return f"{register(target)}=({high}<<16)|{low};"
        if to == "tf32":
            return f"{register(target)}=round_tf32(F({self.value(operands[1])}));"
        x = self.read(operands[1], source)
        if to in READ:
            if rounding in TO_INTEGER:
                x = f"{TO_INTEGER[rounding]}{'' if source == 'f64' else 'f'}({x})"
            elif rounding not in (None, "rn"):
                raise Unknown(".".join(parts))
            if "sat" in parts:
                x = f"fminf(fmaxf({x},0),1)"
            if "relu" in parts:
                x = f"fmaxf({x},0)"
            return self.write(target, to, x)
        width = self.widths[re.match(r"%?([A-Za-z]+)", target).group(1)]
        c_type, lowest, highest = integer_type(to), *self.limits(to)
        if source in READ:
            whole = f"{TO_INTEGER[rounding]}((double){x})"
            return f"{register(target)}=({UNSIGNED[width]})({c_type})clamp({whole},{lowest},{highest});"
        if "sat" in parts:
            x = f"clamp_integer({x},{lowest},{highest})"
        return f"{register(target)}=({UNSIGNED[width]})({c_type}){x};"

    @staticmethod
    def limits(kind):
        """The smallest and the largest value as C constants."""
        width = WIDTH[kind]
        if kind[0] == "s":
            return f"(s128)-((s128)1<<{width - 1})", f"(((s128)1<<{width - 1})-1)"
        return "(s128)0", f"(((s128)1<<{width})-1)"

    def do_bra(self, parts, operands):
        return f"goto {c_name(operands[0])};"

    def do_ret(self, parts, operands):
        return "return;"

    do_exit = do_ret

    def do_trap(self, parts, operands):
        return 'fault("trap",0,0);'

    # Threads that wait for each other.

    def do_bar(self, parts, operands):
        if parts[1] == "warp":
            return f"group_at(me,{self.site()},{self.value(operands[0], 'u32')});"
        if "sync" not in parts or len(operands) > 1:
            raise Unknown(".".join(parts))
        return f"wait_for_block(me,{self.site()});"

    do_barrier = do_bar

    def do_activemask(self, parts, operands):
        return f"{register(operands[0])}=group_at(me,{self.site()},0);"

    def do_shfl(self, parts, operands):
        targets, mode = operands[0].split("|"), ("up", "down", "bfly", "idx").index(parts[2])
        values = ",".join(self.value(one, "u32") for one in operands[1:])
        second = f"{register(targets[1])}=q;" if len(targets) > 1 else ""
        return f"u8 q; u32 x=shuffle(me,{self.site()},{mode},{values},&q); {register(targets[0])}=x; {second}"

    def do_vote(self, parts, operands):
        mask = self.value(operands[2], "u32")
        result = {"ballot": "q", "any": "q!=0", "all": f"q==(me->warp->group&{mask})"}[parts[2]]
        return f"u32 q=ballot(me,{self.site()},{self.condition(operands[1])},{mask}); {register(operands[0])}={result};"

    def do_redux(self, parts, operands):
        operation = parts[2] + (parts[-1][0] if parts[2] in ("min", "max") else "")
        number = ("add", "minu", "maxu", "mins", "maxs", "and", "or", "xor").index(operation)
        return f"{register(operands[0])}=reduce(me,{self.site()},{number},{self.value(operands[1])},{self.value(operands[2], 'u32')});"

    def do_atom(self, parts, operands):
        kind = parts[-1]
        operation = next(p for p in parts if p in ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"))
        target, operands = ("_", operands) if parts[0] == "red" else (operands[0], operands[1:])
        c_type, size = UNSIGNED[WIDTH[kind]], WIDTH[kind] // 8
        b = self.value(operands[1], kind)
        if kind in READ and operation != "exch":
            if operation != "add":
                raise Unknown(".".join(parts))
            result = f"U{READ[kind]}({READ[kind]}(old)+{self.read(operands[1], kind)})"
        elif operation == "cas":
            result = f"(old==({c_type}){b}?({c_type}){self.value(operands[2], kind)}:old)"
        elif operation in ("min", "max"):
            signed = integer_type(kind)
            result = f"(({signed})old{'<' if operation == 'min' else '>'}({signed}){b}?old:{b})"
        else:
            result = {
                "add": f"old+{b}", "exch": b, "inc": f"(old>={b}?0:old+1)", "dec": f"(old==0||old>{b}?{b}:old-1)",
                **{name: f"old{sign}{b}" for name, sign in BITWISE.items()},
            }[operation]
        keep = "" if target == "_" else f"{register(target)}=old;"
        return f"{c_type} *q={self.pointer(parts, operands[0], size)}; {c_type} old=*q; *q=({c_type})({result}); {keep}"

    do_red = do_atom

    # Functions of one number. Approximations of the hardware are computed exactly.

    def function(self, parts, operands):
        kind, name = parts[-1], parts[0]
        if kind in PAIRS:
            raise Unknown(".".join(parts))
        x, ending = self.read(operands[1], kind), "" if kind == "f64" else "f"
        expression = {"ex2": f"exp2{ending}({x})", "lg2": f"log2{ending}({x})", "rcp": f"1/{x}", "rsqrt": f"1/sqrt{ending}({x})"}
        return self.write(operands[0], kind, expression.get(name, f"{name}{ending}({x})"))

    do_ex2 = do_lg2 = do_rcp = do_rsqrt = do_sqrt = do_sin = do_cos = do_tanh = function

    def do_copysign(self, parts, operands):
        kind = parts[-1]
        sign, size = (self.read(one, kind) for one in operands[1:])
        return self.write(operands[0], kind, f"copysign{'' if kind == 'f64' else 'f'}({size},{sign})")

    def do_testp(self, parts, operands):
        test = {"infinite": "isinf", "finite": "isfinite", "notanumber": "isnan", "number": "!isnan"}[parts[1]]
        return f"{register(operands[0])}=!!{test}({self.read(operands[1], parts[-1])});".replace("!!!", "!")

    # Bits.

    def do_popc(self, parts, operands):
        return f"{register(operands[0])}=__builtin_popcountll({self.read(operands[1], 'u' + parts[-1][1:])});"

    def do_clz(self, parts, operands):
        x, width = self.read(operands[1], "u" + parts[-1][1:]), WIDTH[parts[-1]]
        return f"{register(operands[0])}={x}?__builtin_clzll({x})-{64 - width}:{width};"

    def do_brev(self, parts, operands):
        return f"{register(operands[0])}=reverse_bits({self.value(operands[1])},{WIDTH[parts[-1]]});"

    def do_bfe(self, parts, operands):
        kind, values = parts[-1], [self.value(operands[1], parts[-1]), *(self.value(one, "u32") for one in operands[2:])]
        signed = int(kind[0] == "s")
        return self.write(operands[0], kind, f"extract_bits({','.join(values)},{WIDTH[kind]},{signed})")

    def do_bfi(self, parts, operands):
        kind = parts[-1]
        values = [*(self.value(one, kind) for one in operands[1:3]), *(self.value(one, "u32") for one in operands[3:])]
        return self.write(operands[0], kind, f"insert_bits({','.join(values)},{WIDTH[kind]})")

    def do_prmt(self, parts, operands):
        if parts[-1] != "b32":
            raise Unknown(".".join(parts))
        return f"{register(operands[0])}=permute_bytes({','.join(self.value(one, 'u32') for one in operands[1:])});"

    def do_lop3(self, parts, operands):
        return f"{register(operands[0])}=logic({','.join(self.value(one, 'u32') for one in operands[1:])});"

    # Matrix units.

    @staticmethod
    def shape(parts):
        found = next(filter(None, (re.match(r"m(\d+)n(\d+)k(\d+)$", part) for part in parts)))
        return tuple(int(number) for number in found.groups())

    def fragment(self, name, operand, kind=None):
        return f"u32 {name}[]={{{','.join(self.value(one, kind) for one in list_of(operand))}}};"

    @staticmethod
    def unpack(name, operand):
        return "".join(f"{register(one)}={name}[{n}];" for n, one in enumerate(list_of(operand)))

    def do_mma(self, parts, operands):
        m, n, k = self.shape(parts)
        if (m, n) != (16, 8) or parts[-4] != "f32" or parts[-1] != "f32" or parts[-3] != parts[-2]:
            raise Unknown(".".join(parts))
        kind = ("tf32", "f16", "bf16").index(parts[-3])
        counts = [len(list_of(one)) for one in operands]
        fragments = self.fragment("a", operands[1]) + self.fragment("b", operands[2]) + self.fragment("c", operands[3], "f32")
        call = f"multiply_16_8(me,{self.site()},{k},{kind},a,{counts[1]},b,{counts[2]},c,d);"
        return f"{fragments} u32 d[4]; {call} {self.unpack('d', operands[0])}"

    def do_ldmatrix(self, parts, operands):
        count = next(int(part[1:]) for part in parts if re.match(r"x\d$", part))
        call = f"load_matrix(me,{self.site()},{count},{int('trans' in parts)},{self.address(operands[1])},o);"
        return f"u32 o[4]; {call} {self.unpack('o', operands[0])}"

    def do_wmma(self, parts, operands):
        m, n, k = self.shape(parts)
        if parts[1] in ("load", "store"):
            return self.wmma_memory(parts, operands, {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[parts[2]])
        if parts[1] != "mma":
            raise Unknown(".".join(parts))
        kinds = [part for part in parts if part in ("f16", "f32", "tf32", "bf16")]
        kind = 0 if "tf32" in kinds else 2 if "bf16" in kinds else 1
        counts = [len(list_of(one)) for one in operands]
        half = int(counts[3] == 4 and m * n == 256 and kind == 1)
        fragments = self.fragment("a", operands[1]) + self.fragment("b", operands[2]) + self.fragment("c", operands[3], "f32")
        call = f"multiply_tile(me,{self.site()},{m},{n},{k},{kind},a,{counts[1]},b,{counts[2]},c,d,{half});"
        return f"{fragments} u32 d[8]; {call} {self.unpack('d', operands[0])}"

    def wmma_memory(self, parts, operands, tile):
        rows, columns = tile
        is_load, is_row = parts[1] == "load", int("row" in parts)
        where, registers = (operands[1], operands[0]) if is_load else (operands[0], operands[1])
        stride = self.value(operands[2], "u32") if len(operands) > 2 else str(columns if is_row else rows)
        size = WIDTH[parts[-1]] // 8
        space = 1 if any(part.startswith("shared") for part in parts) else 0 if "global" in parts else 2
        common = f"{space},{self.address(where)},{stride},{is_row},{rows},{columns},{size},o);"
        if is_load:
            return f"u32 o[16]; load_tile(me,{self.site()},{common} {self.unpack('o', registers)}"
        return f"{self.fragment('o', registers)} store_tile(me,{self.site()},{common}"
