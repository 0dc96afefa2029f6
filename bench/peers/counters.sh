#!/usr/bin/env bash
# Prints the bytes that sums over neighbours move, by the GPU's own counters (ncu), over the fewest
# they could move: every row read and written once, every edge's column (and weight) read once.
#
#     counters.sh DATA [WIDTHS]
#
# NACRE is the program (default: nacre), NCU the profiler (default: ncu).
#
# Reading counters needs permission from the driver (NVreg_RestrictProfilingToAdminUsers=0) or root.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,9s/^# \?//p' "$0" >&2; exit 2; }
data=$1
widths=${2:-16,32,40,64,100,128,256,602}
nacre=${NACRE:-nacre}
ncu=${NCU:-$(command -v ncu || ls /usr/local/cuda*/bin/ncu /opt/nvidia/nsight-compute/*/ncu 2>/dev/null | head -1)}
[ -n "$ncu" ] || { echo "counters: no ncu here" >&2; exit 1; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The program computes the sum of each width 13 times without weights, then 13 times with them. The
# last of the former and the first of the latter are counted. ncu empties the caches before each and
# leaves the card's clocks as they are.
for width in ${widths//,/ }; do
  echo "width $width" >>"$log"
  if ! "$ncu" --csv --clock-control none --kernel-name 'regex:^reduce_' --launch-skip 12 --launch-count 2 --metrics \
    dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum,gpu__time_duration.sum \
    "$nacre" bench gpu --data "$data" --models "" --spmm "$width" >>"$log" 2>&1 || grep -q ERR_NVGPUCTRPERM "$log"; then
    tail -n 5 "$log" >&2
    exit 1
  fi
done

python3 - "$log" <<'PY'
import csv
import re
import sys

UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1,
         "nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1}
text = open(sys.argv[1], encoding="utf-8").read()
vertices, edges = (int(n.replace(",", "")) for n in re.search(r"([\d,]+) nodes, ([\d,]+) edges", text).groups())
print("| width | weights | ms | DRAM MB | L2 MB | floor MB | DRAM / floor | L2 / floor |")
print("|---:|---|---:|---:|---:|---:|---:|---:|")
for part in re.split(r"^width ", text, flags=re.M)[1:]:
    width = int(part.split()[0])
    launches = {}
    for row in csv.DictReader(line for line in part.splitlines() if line.startswith('"')):
        if row["ID"].isdigit():
            value = float(row["Metric Value"].replace(",", "")) * UNITS[row["Metric Unit"]]
            launches.setdefault(int(row["ID"]), {})[row["Metric Name"]] = value
    for weighted, launch in zip((False, True), (launches[i] for i in sorted(launches))):
        dram = launch["dram__bytes_read.sum"] + launch["dram__bytes_write.sum"]
        cache, seconds = launch["lts__t_bytes.sum"], launch["gpu__time_duration.sum"]
        floor = 2 * vertices * width * 4 + edges * (8 if weighted else 4)
        print(f"| {width} | {'yes' if weighted else 'no'} | {seconds * 1e3:.4f} | {dram / 1e6:.1f} | {cache / 1e6:.1f} | "
              f"{floor / 1e6:.1f} | {dram / floor:.2f} | {cache / floor:.2f} |")
PY
