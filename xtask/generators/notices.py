#!/usr/bin/env python3
"""Writes crates/tandem/notices/crates.tsv: the crates that a build of the program contains, with licence and copyright lines.

  xtask/generators/notices.py            write the file
  xtask/generators/notices.py --check    exit code 1 if it is not up to date

`tandem licenses` prints it. Needs the sources of all crates: `cargo fetch --locked`. Python 3.8, no packages.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "crates/tandem/notices/crates.tsv"


def copyrights(directory):
    """The copyright lines of the licence files of a crate, without repetitions."""
    found = []
    for path in sorted(directory.iterdir()):
        if not re.match(r"(?i)(licen[cs]e|copying|copyright|notice)", path.name) or not path.is_file():
            continue
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            line = " ".join(line.split())
            begins = re.match(r"(?i)copyright .*(\(c\)|©|[12][0-9]{3}).*[a-z]", line)
            if begins and len(line) < 160 and line not in found:
                found.append(line.replace("\t", " "))
    return "; ".join(found)


def contents():
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline"]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu", "--manifest-path", str(ROOT / "crates/tandem/Cargo.toml")]
    data = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in data["packages"]}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    wanted = [package["id"] for package in data["packages"] if package["name"] == "tandem" and not package["source"]]
    seen = set()
    while wanted:
        at = wanted.pop()
        if at in seen:
            continue
        seen.add(at)
        for dependency in nodes[at]["deps"]:
            # Neither tests nor build scripts are part of the program.
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                wanted.append(dependency["pkg"])
    rows = []
    for at in seen:
        package = packages[at]
        if package["source"]:
            lines = copyrights(Path(package["manifest_path"]).parent)
            rows.append((package["name"], package["version"], package["license"] or "see its files", lines))
    rows.sort()
    return "".join("\t".join(row) + "\n" for row in rows)


def main():
    text = contents()
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
            sys.exit(f"error: {TARGET.relative_to(ROOT)} is not up to date\nhint: run xtask/generators/notices.py")
        return
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    print(f"{len(text.splitlines())} crates in {TARGET.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
