"""The experiments of Elasticutor (SIGMOD 2019, section 5) in simulation, each with the paper's result.

Run ``python benchmarks/elasticutor.py`` for all, or name some: ``python benchmarks/elasticutor.py fig6 table2``. The
paper prints its figures without numbers, so its column is its text. Every run is seeded; nothing is asserted.

The assumptions beyond the paper are in ``ElasticSettings``, ``KeyedOperator`` and ``_queues``; two things
matter most. A key is never split, so the most frequent key bounds the throughput of every paradigm ("key bound").
And all shards of one repartitioning share one synchronisation of the upstream executors, which favours the
resource-centric paradigm; figures 6 and 7 also show it with one synchronisation for every 8 shards.

Differences from the paper, with the reasons:

- Figure 6: RC does not become useless at 16 shuffles per minute with one synchronisation per repartitioning: it falls
  to static. With one for every 8 shards it does, and its transient (figure 7) lasts the paper's 10 to 20 s; but then it
  loses some throughput even without shuffles, because load measured over 1 s fluctuates and saturated cores are
  evened out although chance may explain it. Static gains with frequent shuffles here: a hot key moves on before its
  queue of 1024 records is full.
- Figure 9: at 32 MB per shard and 2 shuffles RC stays above static and above Elasticutor; at 16 shuffles both fall
  below static. A plan of RC moves some ten shards at once over idle network cards, whereas every core that changes its
  executor makes an eighth of that executor's 8 GB move, and one shard held back stops all sources.
- Figure 10: from a skew of 0.6 on, RC and Elasticutor are equal, at the key bound, instead of Elasticutor losing. The
  paper blames congested networks; at the 50,000 records/s of 128 B that the most frequent key allows, records take 6
  MB/s of the 4 GB/s of all network cards. Its key distribution or its records must have been heavier than stated.
- Figure 16: with 16 shuffles per minute y = 1 falls behind static only at z = 64 and less (at 256 they are level),
  y = 8 at 16 and less; at z = 1024 all y up to 64 are above static. The 193,000 records/s
  of 128 B of y = 1 are 25 MB/s, a fifth of its one network card.
- Table 2: the stock data is private; keys, rates and costs are those that its tables 2 and 3 suggest. The optimised
  scheduler keeps almost everything on its home node, so the ratios are larger than the paper's.
"""

import dataclasses
import sys
import time

from workbench.scaling import advise_executors
from workbench.scaling.elastic import ElasticCluster, ElasticSettings, KeyedOperator, simulate_paradigm
from workbench.simulation import KeyTrace, RateTrace

STATIC, RC, NAIVE, EC = "static", "resource-centric", "naive-executor-centric", "executor-centric"
THREE = (STATIC, RC, EC)
CLUSTER, OPERATOR, SETTINGS = ElasticCluster(), KeyedOperator(), ElasticSettings()
KEYS, SKEW, SHUFFLES, SECONDS = 10_000, 0.5, 2.0, 70.0
LOAD = 150_000.0  # records/s of the runs with a given rate: three quarters of what executor-centric sustains


def run(paradigm, operator=OPERATOR, *, skew=SKEW, shuffles=SHUFFLES, **how):
    """One seeded run of the paper's set-up."""
    keys = KeyTrace.zipf(KEYS, skew, shuffles, seed=1)
    how = {"seconds": SECONDS, "seed": 1} | how
    return simulate_paradigm(paradigm, operator, how.pop("cluster", CLUSTER), keys, **how)


def changed(**fields):
    return dataclasses.replace(OPERATOR, **fields)


def key_bound(skew, cpu_s=OPERATOR.cpu_s):
    """Records/s at which the core of the most frequent key is full, or all cores are."""
    return min(1 / (cpu_s * KeyTrace.zipf(KEYS, skew).shares[0]), CLUSTER.cores / cpu_s)


def heading(title, paper):
    print(f"\n{title}\n  paper: {paper}")


def row(label, runs):
    """Throughput in thousands a second and mean latency in ms of each run."""
    cells = "  ".join(f"{r.throughput_per_s / 1e3:9.1f} {r.mean_latency_s * 1e3:9.1f}" for r in runs)
    print(f"{label:>12}  {cells}")


def columns(first, names):
    print(f"{first:>12}  " + "  ".join(f"{name[:19]:^19}" for name in names))
    print(" " * 14 + "  ".join(f"{'k/s':>9} {'mean ms':>9}" for _ in names))


def fig6():
    heading(
        "Figure 6: throughput and mean latency against shuffles per minute, sources saturated",
        "static poor but stable; RC and Elasticutor far better at few shuffles; Elasticutor's loss is marginal, RC's "
        "2-3 orders of magnitude larger, useless at 16",
    )
    columns("shuffles/min", (*THREE, "RC, 8 per sync"))
    for shuffles in (0, 1, 2, 4, 8, 16):
        runs = [run(p, shuffles=shuffles) for p in THREE]
        runs.append(run(RC, shuffles=shuffles, settings=dataclasses.replace(SETTINGS, moves_per_sync=8)))
        row(shuffles, runs)
    print(f"  the same at a given {LOAD / 1e3:.0f} k/s; latency counts from the time a record is due")
    columns("shuffles/min", (*THREE, "RC, 8 per sync"))
    rate = RateTrace.constant(LOAD, SECONDS)
    for shuffles in (0, 2, 16):
        runs = [run(p, shuffles=shuffles, rate=rate) for p in THREE]
        runs.append(run(RC, shuffles=shuffles, rate=rate, settings=dataclasses.replace(SETTINGS, moves_per_sync=8)))
        row(shuffles, runs)


def fig7():
    heading(
        "Figure 7: throughput per second around a shuffle at 30 s (k/s)",
        "transient of 10 to 20 s under RC, of 1 to 3 s under Elasticutor",
    )
    runs = {p: run(p) for p in THREE}
    print(f"{'second':>12}  " + "".join(f"{second:5}" for second in range(29, 51)))
    for paradigm, result in runs.items():
        print(f"{paradigm[:12]:>12}  " + "".join(f"{x / 1e3:5.0f}" for x in result.throughput_series[28:50]))
    slow = dataclasses.replace(SETTINGS, moves_per_sync=8)
    print(f"{'RC, 8/sync':>12}  " + "".join(f"{x / 1e3:5.0f}" for x in run(RC, settings=slow).throughput_series[28:50]))


def fig8():
    heading(
        "Figure 8: throughput (k/s) against record size and CPU time per record",
        "larger records and less CPU time lower all three; Elasticutor is the most sensitive at 0.01 ms",
    )
    print(f"{'ms':>6} {'bytes':>6}  " + "  ".join(f"{name:>17}" for name in THREE) + "    EC/static")
    for cpu_s in (1e-2, 1e-3, 1e-4, 1e-5):
        for size in (128, 512, 2048, 8192):
            # at 10 ms a queue of 1024 records lasts 10 s, so back-pressure takes longer to become steady
            length = {"seconds": 150.0, "warm_up_s": 50.0} if cpu_s >= 1e-2 else {"seconds": 45.0}
            runs = [run(p, changed(cpu_s=cpu_s, record_bytes=size), **length) for p in THREE]
            cells = "  ".join(f"{r.throughput_per_s / 1e3:17.1f}" for r in runs)
            print(f"{cpu_s * 1e3:6g} {size:6}  {cells}  {runs[2].throughput_per_s / runs[0].throughput_per_s:11.2f}")


def fig9():
    heading(
        "Figure 9: throughput and mean latency against the state of a shard",
        "RC and Elasticutor fall as it grows, at 32 MB both below static; Elasticutor above RC at the same size",
    )
    columns("KB per shard", THREE)
    for kilobytes in (32, 128, 512, 2048, 8192, 32768):
        row(kilobytes, [run(p, changed(shard_bytes=kilobytes * 1024.0)) for p in THREE])
    print("  with 16 shuffles per minute")
    for kilobytes in (32, 2048, 32768):
        row(kilobytes, [run(p, changed(shard_bytes=kilobytes * 1024.0), shuffles=16.0) for p in THREE])


def fig10():
    heading(
        "Figure 10: throughput and mean latency against the skew of the keys",
        "static suffers; Elasticutor above RC up to 0.6, below from 0.7 (congested network of the fullest executors)",
    )
    columns("skew", THREE)
    for skew in (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        row(skew, [run(p, skew=skew) for p in THREE])
        print(f"{'':12}  key bound {key_bound(skew) / 1e3:.1f}")


def fig13():
    heading(
        "Figure 13: one executor on more and more cores (k/s)",
        "scales to 256 cores, except with 8 KB records or 0.01 ms per record: not beyond 16",
    )
    print(
        f"{'cores':>12}" + "".join(f"{label:>12}" for label in ("1 ms", "0.1 ms", "0.01 ms", "128 B", "2 KB", "8 KB"))
    )
    cases = [{"cpu_s": cpu} for cpu in (1e-3, 1e-4, 1e-5)] + [{"record_bytes": size} for size in (128, 2048, 8192)]
    for cores in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        cluster = ElasticCluster(nodes=max(1, cores // 8), node_cores=min(8, cores))
        cells = []
        for case in cases:
            one = changed(executors=1, shards=8192, **case)
            # the sources stay outside, so that all records reach the executor through its network card
            result = run(EC, one, cluster=cluster, seconds=30.0, skew=0.0)
            cells.append(result.throughput_per_s / 1e3)
        print(f"{cores:12}" + "".join(f"{cell:12.1f}" for cell in cells))


def fig16():
    for title, fields, shuffles in (
        ("default: 128 B, 2 shuffles", {}, 2.0),
        ("data-intensive: 8 KB, 2 shuffles", {"record_bytes": 8192.0}, 2.0),
        ("highly dynamic: 128 B, 16 shuffles", {}, 16.0),
    ):
        heading(
            f"Figure 16: throughput (k/s) against executors y and shards z, {title}",
            "too few shards (64 and less) balance badly, more than 1024 add nothing; y = 256 is static; y = 1 and 8 "
            "fall behind with large records and frequent shuffles; one or two executors per node are robust",
        )
        print(f"{'y':>6}" + "".join(f"{f'z = {z}':>10}" for z in (4, 16, 64, 256, 1024)))
        for executors in (1, 8, 32, 64, 256):
            cells = []
            for shards in (4, 16, 64, 256, 1024):
                # the state of the operator stays 256 MB
                shape = {"executors": executors, "shards": shards, "shard_bytes": 2**28 / (executors * shards)}
                cells.append(run(EC, changed(**shape, **fields), shuffles=shuffles, seconds=40.0).throughput_per_s)
            print(f"{executors:6}" + "".join(f"{cell / 1e3:10.1f}" for cell in cells))
        others = [
            run(p, changed(**fields), shuffles=shuffles, seconds=40.0).throughput_per_s / 1e3 for p in (STATIC, RC)
        ]
        size = OPERATOR.record_bytes if not fields else fields["record_bytes"]
        advice = advise_executors(
            32,
            8,
            data_intensity=size / OPERATOR.cpu_s,
            shuffles_per_minute=shuffles,
            key_counts=KeyTrace.zipf(KEYS, SKEW).shares,
        )
        print(f"  static {others[0]:.1f}, RC {others[1]:.1f}; advised: y = {advice.executors}, z = {advice.shards}")


def table2():
    heading(
        "Table 2 and figure 19: naive and optimised scheduler on a load that moves",
        "migration 13.9 against 2.4 MB/s (5.8x), remote transfer 235.3 against 21.6 MB/s (10.9x); both double the "
        "throughput of static and RC at 1-2 orders lower latency",
    )
    # 218.6 k orders/s pass 12 operators on 256 cores (table 3): about 0.1 ms each; records of 160 B, 300 MB of state
    operator = changed(cpu_s=1e-4, record_bytes=160.0, shard_bytes=300e6 / 8192)
    rate = RateTrace.steps([(15.0, r) for r in (1.2e6, 1.8e6, 1.4e6, 1.9e6, 1.0e6, 1.6e6)] * 2)
    print(f"{'':>24}{'k/s':>9}{'mean ms':>10}{'p99 ms':>10}{'cores':>8}{'migrated MB/s':>15}{'remote MB/s':>13}")
    by_name = {}
    for paradigm in (STATIC, RC, NAIVE, EC):
        by_name[paradigm] = r = run(paradigm, operator, rate=rate, seconds=None)
        print(
            f"{paradigm:>24}{r.throughput_per_s / 1e3:9.1f}{r.mean_latency_s * 1e3:10.1f}{r.p99_latency_s * 1e3:10.1f}"
            f"{r.cores:8.1f}{r.migrated_bytes_per_s / 1e6:15.2f}{r.remote_bytes_per_s / 1e6:13.2f}"
        )
    naive, optimised = by_name[NAIVE], by_name[EC]
    print(
        f"  naive / optimised: migration {naive.migrated_bytes_per_s / optimised.migrated_bytes_per_s:.1f}x, "
        f"remote transfer {naive.remote_bytes_per_s / optimised.remote_bytes_per_s:.1f}x"
    )


EXPERIMENTS = {f.__name__: f for f in (fig6, fig7, fig8, fig9, fig10, fig13, fig16, table2)}

if __name__ == "__main__":
    for name in sys.argv[1:] or EXPERIMENTS:
        began = time.perf_counter()
        EXPERIMENTS[name]()
        print(f"  ({time.perf_counter() - began:.0f} s)", flush=True)
