"""A published model from private-PGM (the package mbi), in an environment of its own.

    python -m venv mbi && mbi/bin/pip install mbi==2.0.0
    privacyfunnel scan people.csv --secret income --domain domain.json
    mbi/bin/python private_pgm.py people.csv domain.json 0.2 income workclass education sex
    privacyfunnel sanitise people.csv --secret income --publish workclass,education,sex -e 1 \
      --domain domain.json --model-table synthetic.csv --design-epsilon 0.2

The rows of each secret are counted with every column, with discrete Laplace noise: pure ε-differential privacy for one
row in the place of another, which changes two counts of each table. A program that counts a row added or removed must
get half of the ε that is named to `--design-epsilon`.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
from mbi import Dataset, Domain, LinearMeasurement, estimation

people, domain, epsilon, secret, *columns = sys.argv[1:]
listed = json.loads(Path(domain).read_text(encoding="utf-8"))["columns"]
labels = {name: listed[name]["labels"] for name in (secret, *columns)}
with Path(people).open(encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
codes = {name: np.array([known.index(row[name]) for row in rows]) for name, known in labels.items()}
data = Dataset(codes, Domain(list(labels), [len(known) for known in labels.values()]))

chance, rng = 1 - np.exp(-float(epsilon) / (2 * len(columns))), np.random.default_rng()
measured = []
for name in columns:
    counts = np.asarray(data.project([secret, name]).datavector())
    noise = rng.geometric(chance, counts.size) - rng.geometric(chance, counts.size)
    measured.append(LinearMeasurement(counts + noise, (secret, name)))
model = estimation.MirrorDescent().estimate(data.domain, measured, known_total=len(rows))
drawn = model.synthetic_data(len(rows)).data
with Path("synthetic.csv").open("w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(labels)
    writer.writerows(zip(*(np.array(known)[np.asarray(drawn[name])] for name, known in labels.items()), strict=True))
