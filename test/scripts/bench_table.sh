#!/bin/sh
# bench_table.sh - bench/table.awk and bench/pairs.awk compute what doc/bench.md
# says, and fail if a run failed; and the figures of the first table of
# README.md are in its large one.
#
# usage: srcdir=DIR test/scripts/bench_table.sh
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
time all 0 full prog less <=12~<=2*go~<=2*whippet~max_us<=4~<=1*@rate takes~time how~long~(peak~MiB);the~longest=max_us
rate all 0 full prog more >=30~>=3*gc has~a~rate -
END

# case heap repetition value unit wall cpu peak others checksum figures
as_tabs >"$work/good" <<'END'
case heap repetition value unit wall_s cpu_s peak_kib others_% checksum figures
time rtheap 1 10 ns 1 4 2048 0 c p50_us=1~max_us=5
time rtheap 2 12 ns 1 4 2048 0 c p50_us=1~max_us=3
time rtheap 3 11 ns 1 4 2048 0 c p50_us=1~max_us=4
time go 1 22 ns 1 2 4096 0 c p50_us=2~max_us=9
time glibc 1 timeout
rate rtheap 1 20 Mops 1 3 1024 0 d a_figure_of_a_case=1~b_figure_of_a_case=1~c_figure_of_a_case=1~d_figure_of_a_case=1~e_figure_of_a_case=1~f_figure_of_a_case=1
rate go 1 10 Mops 1 3 1024 0 d 
rate glibc 1 5 Mops 1 0 1024 0 d 
END

# run MODE FILE: prints the table, all in one line.
run() {
	awk -f "$srcdir/bench/medians.awk" -f "$srcdir/bench/readme.awk" \
		-f "$srcdir/bench/table.awk" -v mode="$1" -v limit=60 \
		-v place="a machine; a day" -v heaps="rtheap go glibc whippet" -v rows="^time$" -v cut=us \
		"$work/cases" "$2" 2>"$work/error"
}

# shows WHAT MODE TEXT: requires that the text is in the table.
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

# refuses WHAT LINE ERROR: requires that error if the line is present.
refuses() {
	{
		cat "$work/good"
		echo "$2" | as_tabs
	} >"$work/bad"
	if ! run cases "$work/bad" >/dev/null &&
		grep -F -e "$3" "$work/error" >/dev/null; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "bench_table: $1: not refused"
	fi
}

shows "the median, the spread, CPU time and peak" cases \
	"| rtheap | 11.0 ±9% | 4.00 | 2 | - |"
shows "the best collector and the ratios" cases \
	"| go (best) | 22.0 ±0% | 2.00 | 4 | 0.500 2.00 0.500 |"
shows "the best malloc; no ratio where the clock saw nothing" cases \
	"| glibc (best) | 5.00 ±0% | 0.00 | 1 | 0.250 - equal |"
shows "a ratio below 1 where more is better and more was had" cases \
	"| go (best) | 10.0 ±0% | 3.00 | 1 | 0.500 equal equal |"
shows "a heap that was too slow" cases "| glibc | > 60 s |  |  |  |"
shows "a case" cases "| **takes time, ns** |  |  |  |  |"
shows "an aim that was reached" cases "| reached: <= 2 x go |  |  |  |  |"
shows "one of a figure" cases "| reached: max us <= 4 |  |  |  |  |"
shows "one of another case" cases "| reached: <= 1 x rate |  |  |  |  |"
shows "an aim that was missed" cases \
	"| missed: >= 3 x the best collector |  |  |  |  |"
shows "an aim whose heap did not run" cases \
	"| not compared: <= 2 x whippet |  |  |  |  |"
shows "the medians of figures" figures "| rtheap | 11.0 ±9% | 1.00 ±0% | 4.00 ±25% |"
shows "the figures to be plotted" plot-figures '"max"	4	9	?'
shows "that more figures than a line holds are in two tables" figures \
	"| heap | d, figure_of_a_case | e, figure_of_a_case |"
shows "where, when and how often below a table" cases \
	"a machine; a day; medians of 3 runs in turn (7 in all); other processes"
shows "the same below the figures of one case" figures \
	"a machine; a day; medians of 3 runs in turn; other processes had"
shows "a case that misses aims" missed "| has a rate, Mops |  |  |  |  |"
shows "the first of these, with the figures" missed \
	"| aim >= 30 | 20.0 (1) | ±0% | 10.0 (1) go | 0.500 equal equal |"
shows "the next of these" missed "| aim >= 3 x the best collector |  |  |  |  |"
shows "how many aims were reached" missed "Aims reached: 4, missed: 2."
shows "the rows of the README" readme "| how long | **11.0** | 22.0 |"
shows "the peak below a row of the README" readme "| peak MiB | 2 | 4 |"
shows "the spread of the README's rows" readme "their range is 5 % in the"
shows "a figure in the README" readme "| the longest | **4.00** | 9.00 |"
shows "that no peer is ahead" behind \
	"A collector is ahead of rtheap in: none."
shows "in how many cases the peak is low" behind \
	"least of any other collector in 2 of 2"
sed 's/^rate	go	1	10/rate	go	1	60/; s/^time	go	1	22/time	go	1	12/' \
	"$work/good" >"$work/other"
mv "$work/other" "$work/good"
shows "that a peer is ahead" behind \
	"in: has a rate (3.00 x go)."
shows "in how many cases a peer is ahead" readme \
	"ahead of rtheap in 1 of 2 cases, farthest in: has a rate (3.00 x"
shows "equal within the spread" cases \
	"| go (best) | 12.0 ±0% | 2.00 | 4 | equal 2.00 0.500 |"
shows "both in bold within the spread" readme "| how long | **11.0** | **12.0** |"
if run cases "$work/good" | grep -F "| whippet" >/dev/null; then
	failed=$((failed + 1))
	echo "bench_table: a heap that did not run has a line"
else
	passed=$((passed + 1))
fi
refuses "another checksum" "time go 2 22 ns 1 2 4096 0 X p50_us=2~max_us=9" \
	"time, go: checksum X, not c"
refuses "a run that failed" "time go 2 failed" "time, go: failed"
refuses "rtheap too slow" "rate rtheap 2 timeout" "rate, rtheap: not done"

# row setting cpu_s peak_kib collections checksum
as_tabs >"$work/pairs" <<'END'
trees rtheap-50 4 1024 20 c
trees rtheap 1 4096 9 c
trees rtheap 3 4096 9 c
trees boehm-3 4 2048 10 c
trees boehm-1 1 512 7 c
END

# pairs WHAT LINE: requires that line in the table of pairs.
pairs() {
	if awk -f "$srcdir/bench/pairs.awk" "$work/pairs" >"$work/table" &&
		grep -Fx -e "$2" "$work/table" >/dev/null; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "bench_table: pairs: $1: '$2' is not in:"
		cat "$work/table"
	fi
}

pairs "what a setting took" "| trees | rtheap-50 | 4.000 ±0% | 1.0 | 20 | - | - |"
pairs "the spread" "|  | rtheap | 2.000 ±50% | 4.0 | 9 | - | - |"
pairs "the time at a peak between two settings" \
	"|  | boehm-3 | 4.000 ±0% | 2.0 | 10 | 0.50 2.00 | 0.71 |"
pairs "a peak below that of every setting" \
	"|  | boehm-1 | 1.000 ±0% | 0.5 | 7 | 2.00 8.00 worse | peak x 2.00 |"
pairs "the mean of a column" "| geometric mean | boehm-3 | - | - | - | 0.50 2.00 | 0.71 of 1 |"
pairs "no mean of no row" "|  | boehm-1 | - | - | - | 2.00 8.00 | - |"
echo "trees boehm-3 4 2048 10 d" | as_tabs >>"$work/pairs"
if awk -f "$srcdir/bench/pairs.awk" "$work/pairs" >/dev/null 2>&1; then
	failed=$((failed + 1))
	echo "bench_table: pairs: another checksum: not refused"
else
	passed=$((passed + 1))
fi

# figures: prints the numbers of the first table of README.md that its large
# table does not have, and then how many it has.
figures() {
	awk '
		/^\| [a-z]/ && !large {
			sub(/^[|][^|]*[|]/, "")
			gsub(/[^0-9.]+/, " ")
			for (n = split($0, word, " "); n; n--)
				want[word[n]]
		}
		/^<!-- bench-peers -->/ { large = 1 }
		/^## / && large { large = 0; past = 1 }
		large { gsub(/[|* ]+/, " "); text = text $0 " " }
		END {
			for (w in want) {
				if (index(text, " " w " "))
					found++
				else
					print w
			}
			print found + 0, "found"
		}
	' "$srcdir/README.md"
}

if [ "$(figures)" = "15 found" ]; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
	echo "bench_table: the first figures of README.md, of which 15 should be found:"
	figures
fi
echo "bench_table: $passed passed, $failed failed"
[ $failed = 0 ]
