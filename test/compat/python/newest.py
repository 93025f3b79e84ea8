"""Prints requirements with newer versions of the clients: newest.py RANK, by a Python with pip. Rank 0 is the newest minor version of each client of
requirements.txt, and rank 1 the one before."""

import pathlib
import re
import subprocess
import sys

rank = int(sys.argv[1])
for line in pathlib.Path(__file__).with_name("requirements.txt").read_text().splitlines():
    name, pinned, _ = line.partition("==")
    if not pinned:
        continue
    listing = subprocess.run([sys.executable, "-m", "pip", "index", "versions", name], capture_output=True, text=True, check=True).stdout
    versions = re.search(r"Available versions: (.*)", listing)[1].split(", ")  # the newest first
    minors = {}
    for version in versions:
        minors.setdefault(tuple(version.split(".")[:2]), version)
    newest = list(minors.values())
    print(f"{name}=={newest[min(rank, len(newest) - 1)]}")
