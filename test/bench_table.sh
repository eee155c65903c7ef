#!/bin/sh
# bench_table.sh - bench/table.awk computes what doc/bench.md says, and
# fails where a run did.
#
# usage: srcdir=DIR test/bench_table.sh
set -u
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
passed=0
failed=0
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# Columns are separated by single blanks here, by tabs in the files.
as_tabs() {
	sed 's/ /	/g; s/~/ /g'
}

as_tabs >"$work/cases" <<'END'
time all 3 full prog less <=12~<=2*go~max_us<=4 takes~time
rate all 3 full prog more >=30 has~a~rate
END

# case heap repetition value unit wall cpu peak others checksum figures
as_tabs >"$work/good" <<'END'
case heap repetition value unit wall_s cpu_s peak_kib others_% checksum figures
time rtheap 1 10 ns 1 4 2048 0 c p50_us=1~max_us=5
time rtheap 2 30 ns 1 4 2048 0 c p50_us=1~max_us=3
time rtheap 3 11 ns 1 4 2048 0 c p50_us=1~max_us=4
time go 1 22 ns 1 2 4096 0 c p50_us=2~max_us=9
time glibc 1 timeout
rate rtheap 1 20 Mops 1 3 1024 0 d 
rate go 1 10 Mops 1 3 1024 0 d 
rate glibc 1 5 Mops 1 0 1024 0 d 
END

# run MODE FILE: the table, all in one line.
run() {
	awk -f "$srcdir/bench/table.awk" -v mode="$1" -v limit=60 \
		-v heaps="rtheap go glibc" -v rows="^time$" -v cut=us \
		"$work/cases" "$2" 2>"$work/error"
}

# shows WHAT MODE TEXT: the text is in the table.
shows() {
	if run "$2" "$work/good" >"$work/table" &&
		grep -F -e "$3" "$work/table" >/dev/null; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "bench_table: $1: '$3' is not in:"
		cat "$work/table" "$work/error"
	fi
}

# refuses WHAT LINE ERROR: with the line there is that error.
refuses() {
	{
		cat "$work/good"
		echo "$2" | as_tabs
	} >"$work/bad"
	if ! run aims "$work/bad" >/dev/null &&
		grep -F -e "$3" "$work/error" >/dev/null; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "bench_table: $1: not refused"
	fi
}

shows "the median, the spread, the best collector and the ratios" aims \
	"| takes time, ns | 11.0 (2) | ±91% | 22.0 (4) go | 0.500 2.00 0.500 |"
shows "what was reached of the aims" aims \
	"| <= 12, <= 2 x go, max us <= 4 | yes, yes, yes |"
shows "a ratio below 1 where more is better and more was had" aims \
	"| has a rate, Mops | 20.0 (1) | ±0% | 10.0 (1) go | 0.500 1.00 1.00 |"
shows "an aim that was missed" aims "| >= 30 | no |"
shows "CPU time and peak of every heap" all \
	"| 11.0 ±91% 4.00s 2M | 22.0 ±0% 2.00s 4M |"
shows "a heap that was too slow" all "| > 60 s |"
shows "the ratios to every heap" ratios "| takes time | 0.500 2.00 0.500 |"
shows "no ratio where the clock saw nothing" ratios \
	"| has a rate | 0.500 1.00 1.00 | 0.250 - 1.00 |"
shows "the medians of figures" figures "| rtheap | 11.0 | 1.00 | 4.00 |"
shows "the figures to be plotted" plot-figures '"max"	4	9	?'
refuses "another checksum" "time go 2 22 ns 1 2 4096 0 X p50_us=2~max_us=9" \
	"time, go: checksum X, not c"
refuses "a run that failed" "time go 2 failed" "time, go: failed"
refuses "rtheap too slow" "rate rtheap 2 timeout" "rate, rtheap: not done"
echo "bench_table: $passed passed, $failed failed"
[ $failed = 0 ]
