#!/bin/sh
# pairs.sh - processor time and peak memory together, on rtheap and on Boehm's
# collector, each at several settings.
#
# usage: srcdir=DIR CC=... bench/pairs.sh
#
# Run it in the directory of the build.  A collector buys time with memory, so a
# time without its peak says little.  Each row of bench/pairs.rows runs at each
# setting in turn.  The table goes to bench-pairs.md; doc/bench.md says how to
# read it.  Every run is a line of bench-pairs.tsv.
#
# From the environment:
#   RT_CASES        a regular expression of the names of rows
#   RT_REPETITIONS  how often each row is run, 5 by default
#   RT_PUBLISH      yes: the table replaces the one in doc/speed.md
set -eu
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
CC=${CC:-cc}
wanted=${RT_CASES:-.}
repetitions=${RT_REPETITIONS:-5}
work=bench/pairs.build
result=bench-pairs.tsv
report=bench-pairs.md
bench_cflags=-DPEER_COLLECTIONS
# shellcheck source=bench/common.sh
. "$srcdir/bench/common.sh"

case $repetitions in
'' | *[!0-9]* | 0*)
	echo "pairs: $repetitions: a number of repetitions is wanted" >&2
	exit 2
	;;
esac

# settings prints a line for each setting: a heap, a name and one or two
# variables of the environment.  The settings of rtheap are one family: the room
# grows in proportion, and the default is in the middle.
settings() {
	cat <<-'END'
		rtheap rtheap-12 RTGC=12 RTDEBUG=heap_headroom=2500KiB
		rtheap rtheap-25 RTGC=25 RTDEBUG=heap_headroom=5MiB
		rtheap rtheap-50 RTGC=50 RTDEBUG=heap_headroom=10MiB
		rtheap rtheap RTGC=100
		rtheap rtheap-200 RTGC=200 RTDEBUG=heap_headroom=40MiB
		boehm-tuned boehm-3 GC_FREE_SPACE_DIVISOR=3
		boehm-tuned boehm-1 GC_FREE_SPACE_DIVISOR=1
	END
}

rows() {
	awk -F '\t' -v wanted="$wanted" '!/^#/ && $1 ~ wanted' \
		"$srcdir/bench/pairs.rows"
}

have_boehm() {
	# shellcheck disable=SC2046,SC2086 # lists of options
	echo '#include <gc/gc.h>' |
		$CC -E $(options boehm-tuned) - >/dev/null 2>&1
}

build() {
	rows | cut -f 2 | cut -d ' ' -f 1 | sort -u | while read -r program; do
		for heap in rtheap boehm-tuned; do
			compile $heap "$srcdir/bench/workloads/$program.c" \
				"$work/$program-$heap" || exit
		done
	done
}

# run_once ROW SETTING PROGRAM-HEAP ARGUMENTS VARIABLE... prints row, setting,
# processor seconds, KiB, collections and checksum.
run_once() {
	row=$1 setting=$2 program=$3 arguments=$4
	shift 4
	# shellcheck disable=SC2086 # a list of arguments
	env "$@" "$work/$program" $arguments </dev/null | awk -v row="$row" \
		-v setting="$setting" -v OFS='\t' '
		{
			for (i = 8; i <= NF; i++)
				if (sub(/^collections=/, "", $i))
					n = $i
			print row, setting, $6, $5, n, $7
		}'
}

run_row() { # NAME PROGRAM ARGUMENTS
	settings | while read -r heap setting variables; do
		# shellcheck disable=SC2086 # a list of variables
		run_once "$1" "$setting" "$2-$heap" "$3" $variables
	done
}

run_all() {
	rows | while IFS='	' read -r name command; do
		echo "  $name" >&2
		i=0
		while [ $i -lt "$repetitions" ]; do
			run_row "$name" "${command%% *}" "${command#* }"
			i=$((i + 1))
		done
	done
}

# others prints the share of the processors, in percent, that other processes
# had while the rows ran.
others() {
	awk -F '\t' -v hz="$(getconf CLK_TCK)" -v busy=$((busy - busy_before)) \
		-v total=$((total - total_before)) '
		{ busy -= $3 * hz }
		END {
			share = total ? 100 * busy / total : 0
			printf "%.0f", share < 0 ? 0 : share
		}' \
		"$result"
}

# This is a function so that the shell reads the whole file before the long run.
main() {
	if ! have_boehm; then
		echo "pairs: there is no gc/gc.h (on Debian: libgc-dev)" >&2
		exit 1
	fi
	rm -rf "$work"
	mkdir -p "$work"
	build
	ticks
	busy_before=$busy
	total_before=$total
	run_all >"$result"
	ticks
	{
		awk -f "$srcdir/bench/pairs.awk" "$result"
		echo
		echo "$(machine); $(now); medians of $repetitions runs in turn;" \
			"other processes had $(others) % of the processors." |
			fold -s -w 80 | sed 's/ $//'
	} | tee "$report"
	[ "${RT_PUBLISH-}" != yes ] ||
		paste_between "$srcdir/doc/speed.md" bench-pairs "$report"
}

main
