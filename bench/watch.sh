#!/bin/sh
# watch.sh - memory and collections over time, at several settings of rtheap.
#
# usage: srcdir=DIR CC=... bench/watch.sh drop|limit|small|sweep
#
# Run it in the directory of the build.  Each row of this bench in
# bench/watch.rows runs at its settings in turn.  bench-WHAT.md has a table of
# all figures.  For drop and limit, it then has what each row looked like second
# by second.  Every run is a line of bench-WHAT.tsv.
#
# From the environment:
#   RT_CASES        a regular expression of the names of rows
#   RT_REPETITIONS  how often each row is run; 1 by default, of sweep
#                   and small 5
#   RT_SECONDS      how long an idle program is watched, 12 by default
#   RT_PUBLISH      yes: the table of figures replaces the one in doc/speed.md
set -eu
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
CC=${CC:-cc}
wanted=${RT_CASES:-.}
seconds=${RT_SECONDS:-12}
bench=${1#bench-}
work=bench/watch.build/$bench
result=bench-$bench.tsv
report=bench-$bench.md
unset RTGC RTMEMLIMIT RTDEBUG
# shellcheck source=bench/common.sh
. "$srcdir/bench/common.sh"

case $bench in
drop | limit) repetitions=${RT_REPETITIONS:-1} ;;
small | sweep) repetitions=${RT_REPETITIONS:-5} ;;
*)
	echo "watch: $bench: drop, limit, small or sweep is wanted" >&2
	exit 2
	;;
esac
for number in "$repetitions" "$seconds"; do
	case $number in
	'' | *[!0-9]* | 0*)
		echo "watch: $number: a number is wanted" >&2
		exit 2
		;;
	esac
done

rows() { # HOW
	awk -F '\t' -v OFS='\t' -v bench="$bench" -v wanted="$wanted" \
		-v how="$1" -v seconds="$seconds" '
		!/^#/ && $1 == bench && $2 ~ wanted && $3 ~ how {
			sub(/SECONDS/, seconds, $5)
			print $2, $4, $5, $6
		}' "$srcdir/bench/watch.rows"
}

build() {
	bench_cflags=-I$srcdir/bench/watch compile rtheap \
		"$srcdir/bench/watch/$bench.c" "$work/$bench"
}

# run_once ROW SETTING COMMAND prints lines of a run: row, setting, and what the
# program printed.
run_once() {
	# shellcheck disable=SC2086 # a list of arguments
	(RTDEBUG=$2 && export RTDEBUG && "$work"/$3 </dev/null) |
		awk -v row="$1" -v setting="$2" -v OFS='\t' '
			{ print row, setting, $0 }'
}

run_turn() {
	rows turn | while IFS='	' read -r name settings command _; do
		echo "  $name" >&2
		for setting in $settings; do
			run_once "$name" "$setting" "$command"
		done
	done
}

# run_together runs the rows that mostly wait.
run_together() {
	rows together >"$work/together"
	number=0
	while IFS='	' read -r name settings command _; do
		echo "  $name" >&2
		for setting in $settings; do
			number=$((number + 1))
			run_once "$name" "$setting" "$command" \
				>"$work/$(printf 'out-%03d' $number)" &
		done
	done <"$work/together"
	wait
	[ $number = 0 ] || cat "$work"/out-*
}

run_all() {
	i=0
	while [ $i -lt "$repetitions" ]; do
		run_turn
		run_together
		i=$((i + 1))
	done
}

# others prints the share of the processors, in percent, that other processes
# had meanwhile.
others() {
	awk -F '\t' -v hz="$(getconf CLK_TCK)" -v busy=$((busy - busy_before)) \
		-v total=$((total - total_before)) '
		$3 !~ /^at / { split($3, part, " "); busy -= part[6] * hz }
		END {
			share = total ? 100 * busy / total : 0
			printf "%.0f", share < 0 ? 0 : share
		}' "$result"
}

# This is a function so that the shell reads the whole file before the long run.
main() {
	rm -rf "$work"
	mkdir -p "$work"
	build
	ticks
	busy_before=$busy
	total_before=$total
	run_all >"$result"
	ticks
	rows . >"$work/rows"
	{
		awk -f "$srcdir/bench/watch.awk" "$work/rows" "$result"
		echo
		echo "$(machine); $(now); medians of runs in turn, $repetitions" \
			"of each; other processes had $(others) % of the" \
			"processors." | fold -s -w 80 | sed 's/ $//'
	} >"$work/figures"
	{
		cat "$work/figures"
		awk -v series=1 -f "$srcdir/bench/watch.awk" "$work/rows" \
			"$result"
	} | tee "$report"
	[ "${RT_PUBLISH-}" != yes ] ||
		paste_between "$srcdir/doc/speed.md" "bench-$bench" \
			"$work/figures"
}

main
