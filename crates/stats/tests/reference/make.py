#!/usr/bin/env python3
"""Writes the reference values of the statistics in nodewise-measure, one file each, beside itself.

    python3 -m venv venv
    venv/bin/pip install scipy==1.17.1 statsmodels==0.14.6
    venv/bin/python make.py

The samples are drawn here with fixed seeds and written down with the values, so that a reader of the
files needs nothing else. crates/measure/tests/reference.rs holds the library to them.
"""

import json
import pathlib

import numpy
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import NormalIndPower

FOLDER = pathlib.Path(__file__).parent
PACKAGES = f"SciPy {scipy.__version__}, statsmodels {statsmodels.__version__}, NumPy {numpy.__version__}"


def write(name, made_by, cases):
    document = {"packages": PACKAGES, "made_by": made_by, "cases": cases}
    lines = ",\n    ".join(json.dumps(case) for case in document.pop("cases"))
    head = json.dumps(document, indent=2).removesuffix("\n}")
    (FOLDER / f"{name}.json").write_text(f'{head},\n  "cases": [\n    {lines}\n  ]\n}}\n')


def samples(seed, sizes):
    """Differences as studies have them: some per cent, some skewed."""
    draw = numpy.random.default_rng(seed)
    for number, size in enumerate(sizes):
        noise = draw.normal(0.01, 0.05, size) if number % 2 else draw.exponential(0.05, size) - 0.03
        yield [float(value) for value in noise]


def signed_rank():
    cases = []
    for sample in samples(1, [5, 6, 7, 8, 10, 12, 15, 20, 25]):
        found = stats.wilcoxon(sample, method="exact")
        cases.append({"sample": sample, "method": "exact", "p": float(found.pvalue)})
    for sample in samples(2, [26, 40, 80]):
        found = stats.wilcoxon(sample, correction=True, method="asymptotic")
        cases.append({"sample": sample, "method": "asymptotic", "p": float(found.pvalue)})
    write("signed_rank", "scipy.stats.wilcoxon, asymptotic with correction=True", cases)


def rank_sum():
    cases = []
    pairs = list(samples(3, [4, 6, 5, 9, 8, 8, 10, 7]))
    for first, second in zip(pairs[::2], pairs[1::2]):
        found = stats.mannwhitneyu(second, first, method="exact")
        cases.append({"first": first, "second": second, "p": float(found.pvalue)})
    write("rank_sum", "scipy.stats.mannwhitneyu(second, first, method='exact')", cases)


def holm():
    draw = numpy.random.default_rng(4)
    cases = []
    for size in [1, 2, 3, 5, 8, 13]:
        p = [float(value) for value in draw.beta(0.4, 2.0, size)]
        cases.append({"p": p, "adjusted": [float(v) for v in multipletests(p, method="holm")[1]]})
    write("holm", "statsmodels.stats.multitest.multipletests(p, method='holm')", cases)


def hodges_lehmann(sample, axis=-1):
    """The median of the means of all pairs, each value with itself among them."""
    sample = numpy.asarray(sample)
    one, other = numpy.triu_indices(sample.shape[axis])
    means = (numpy.take(sample, one, axis) + numpy.take(sample, other, axis)) / 2
    return numpy.median(means, axis=axis)


def expanded(size, confidence):
    """The level at which percentiles are read: Hesterberg 2015, section 4.3."""
    t = stats.t.ppf((1 - confidence) / 2, size - 1)
    return float(1 - 2 * stats.norm.cdf(t * numpy.sqrt(size / (size - 1))))


def bootstrap():
    cases = []
    for estimate, of in [("mean", numpy.mean), ("hodges_lehmann", hodges_lehmann)]:
        for sample in samples(5, [10, 12, 15, 20, 30]):
            level = expanded(len(sample), 0.95)
            found = stats.bootstrap(
                (sample,), of, confidence_level=level, method="percentile", n_resamples=100_000,
                vectorized=True, batch=2_000, rng=numpy.random.default_rng(6),
            ).confidence_interval
            cases.append({
                "estimate": estimate, "sample": sample, "confidence": 0.95, "read_at": level,
                "centre": float(of(numpy.asarray(sample))),
                "low": float(found.low), "high": float(found.high),
            })
    made_by = "scipy.stats.bootstrap(method='percentile', n_resamples=100000), at the level of Hesterberg's expansion"
    write("bootstrap", made_by, cases)


def geometric_mean():
    cases = []
    for sample in samples(7, [8, 12, 20]):
        ratios = [float(numpy.exp(value)) for value in sample]
        level = expanded(len(ratios), 0.95)
        found = stats.bootstrap(
            (ratios,), stats.gmean, confidence_level=level, method="percentile", n_resamples=100_000,
            vectorized=True, batch=2_000, rng=numpy.random.default_rng(8),
        ).confidence_interval
        cases.append({
            "ratios": ratios, "mean": float(stats.gmean(ratios)),
            "low": float(found.low), "high": float(found.high),
        })
    write("geometric_mean", "scipy.stats.gmean, its interval as in bootstrap.json", cases)


def quantiles():
    cases = []
    for degrees in [1, 2, 3, 5, 9, 19, 39, 100, 1000]:
        for p in [1e-6, 0.001, 0.025, 0.2, 0.5, 0.8, 0.95, 0.975, 0.9995]:
            cases.append({"degrees": degrees, "p": p, "t": float(stats.t.ppf(p, degrees))})
    write("student", "scipy.stats.t.ppf(p, degrees)", cases)


def blocks_for():
    cases = []
    for deviation in [0.01, 0.03, 0.08]:
        for comparisons in [1, 5, 12]:
            alpha, effect = 0.05 / comparisons, float(numpy.log1p(0.01))
            blocks = NormalIndPower().solve_power(
                effect_size=effect / deviation, alpha=alpha, power=0.8, ratio=0
            )
            cases.append({
                "effect": effect, "deviation": deviation, "comparisons": comparisons, "blocks": float(blocks),
            })
    write("blocks_for", "statsmodels.stats.power.NormalIndPower().solve_power(ratio=0)", cases)


if __name__ == "__main__":
    for make in [signed_rank, rank_sum, holm, bootstrap, geometric_mean, quantiles, blocks_for]:
        make()
