"""Writes every change of a file in a repository's history as a pair of texts, for the example `history`.

python3 crates/text/examples/pairs.py REPOSITORY | cargo run --release -p text --example history
"""

import subprocess
import sys

BYTES_MAX = 400_000


def git(repository, *arguments):
    return subprocess.run(["git", "-C", repository, *arguments], capture_output=True, check=False).stdout


def pairs(repository):
    for commit in git(repository, "log", "--no-merges", "--format=%H").decode().split():
        raw = git(repository, "diff", "--raw", "--no-renames", "--abbrev=40", commit + "^", commit)
        for row in raw.decode(errors="replace").splitlines():
            facts, path = row.split("\t", 1)
            _, _, before, after, kind = facts.split()
            if kind != "M" or path.endswith((".lock", ".json")):
                continue
            yield git(repository, "cat-file", "blob", before), git(repository, "cat-file", "blob", after)


for old, new in pairs(sys.argv[1]):
    if old != new and b"\0" not in old + new and len(old) < BYTES_MAX:
        sys.stdout.buffer.write(b"%d %d\n" % (len(old), len(new)) + old + new)
