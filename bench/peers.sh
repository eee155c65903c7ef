#!/bin/sh
# peers.sh - the same workloads on rtheap and on the heaps it is compared with.
#
# usage: srcdir=DIR CC=... bench/peers.sh
#
# Runs in the directory of the build.  Builds the workloads of bench/workloads for
# every heap that is installed (./bootstrap --bench installs all), runs each
# case up to three times, the heaps in turn, and prints medians against the
# aims in bench/cases.  doc/bench.md says how to read it.  Writes the same
# to bench-peers.md, every run as a line to bench-peers.tsv, and pictures to
# bench-peers-*.svg where gnuplot is installed.  Takes less than 15 minutes on
# two idle processors, 2 with RT_CASES=quick.
#
# From the environment:
#   RT_CASES        a regular expression of the names of cases, or quick
#   RT_HEAPS        the heaps, with blanks between
#   RT_REPETITIONS  how often each case is run; by default 3, 1 if quick; cases
#                   with a lower number in bench/cases keep that
#
# A run that takes more than a minute is ended, and shows as "> 60 s".
# Exits with 1 when a run failed, two heaps disagree about a checksum, or
# rtheap took too long.
set -eu
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
CC=${CC:-cc}
wanted=${RT_CASES:-.}
repetitions=3
[ "$wanted" != quick ] || repetitions=1
repetitions=${RT_REPETITIONS:-$repetitions}
asked=${RT_HEAPS:-rtheap boehm-tuned boehm go mimalloc jemalloc glibc}
limit=60 # seconds that one run may take
source=$srcdir/bench/workloads
work=bench/peers.build
result=bench-peers.tsv
report=bench-peers.md

case $repetitions in
'' | *[!0-9]* | 0*)
	echo "peers: $repetitions: a number of repetitions is wanted" >&2
	exit 2
	;;
esac

# ---- what there is ----

cpu() {
	name=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
	echo "${name:-$(uname -m)}"
}

# module NAME OTHERWISE: the options of a library.
module() {
	pkg-config --cflags --libs "$1" 2>/dev/null || echo "$2"
}

# The shared library, as programs find it when it is installed.
library() {
	if [ -f .libs/librtheap.so ]; then
		echo ".libs/librtheap.so -Wl,-rpath,$PWD/.libs"
	elif [ -f librtheap.a ]; then
		echo "librtheap.a $(module atomic_ops -latomic_ops)"
	else
		echo "peers: no library in $PWD" >&2
		return 1
	fi
}

options() {
	case $1 in
	rtheap) echo "-I$srcdir/include $(library)" ;;
	boehm | boehm-tuned) module bdw-gc -lgc ;;
	mimalloc) module mimalloc -lmimalloc ;;
	jemalloc) module jemalloc -ljemalloc ;;
	esac
}

# compile HEAP SOURCE OUTPUT
compile() {
	adapter=../heaps/$(echo "$1" | tr - _).h
	# shellcheck disable=SC2046,SC2086 # lists of options
	$CC -std=gnu11 -O2 -pthread -I"$source" -DHEAP="\"$adapter\"" \
		"$2" -o "$3" $(options "$1")
}

# installed HEAP: a program that allocates can be made.
installed() {
	if [ "$1" = go ]; then
		command -v go >/dev/null 2>&1
		return
	fi
	cat >"$work/probe.c" <<-'END'
		#include "harness.h"

		int main(void)
		{
			heap_begin();
			heap_free(peer_alloc(16));
			return 0;
		}
	END
	compile "$1" "$work/probe.c" "$work/probe" >"$work/probe.log" 2>&1 &&
		"$work/probe"
}

# macros HEADER TEXT: what the preprocessor makes of TEXT.
macros() {
	printf '#include <%s>\n%s\n' "$1" "$2" | $CC -E -P - 2>/dev/null |
		tail -n 1 | tr -d ' "'
}

version() {
	case $1 in
	rtheap) sh "$srcdir/tools/version.sh" \
		"$srcdir/include/rt/version.h" ;;
	boehm*) macros gc/gc.h 'GC_VERSION_MAJOR.GC_VERSION_MINOR.GC_VERSION_MICRO' ;;
	glibc) getconf GNU_LIBC_VERSION | sed 's/.* //' ;;
	mimalloc) macros mimalloc.h MI_MALLOC_VERSION | sed 's/./&./g; s/\.$//' ;;
	jemalloc) macros jemalloc/jemalloc.h JEMALLOC_VERSION | sed 's/-g.*//' ;;
	go) go version | sed 's/.*go\([0-9][^ ]*\).*/\1/' ;;
	esac
}

# ---- building ----

# runs_case HEAPS HEAP: the heaps field of a case includes the heap.
runs_case() {
	case $1:$2 in
	all:* | gc:rtheap | gc:boehm* | gc:go | exact:rtheap | exact:go) ;;
	*) return 1 ;;
	esac
}

# program HEAP NAME: where the program is; it is built when it is not.
program() {
	echo "$work/$2-$1"
	[ ! -x "$work/$2-$1" ] || return 0
	if [ "$1" = go ]; then
		GO111MODULE=off GOFLAGS='' GOCACHE=$PWD/$work/go-cache \
			go build -o "$work/$2-go" "$source/harness.go" \
			"$source/$2.go" >&2
	else
		compile "$1" "$source/$2.c" "$work/$2-$1" >&2
	fi
}

build_all() {
	while IFS='	' read -r name which _ _ command _; do
		for heap in $heaps; do
			! runs_case "$which" "$heap" ||
				program "$heap" "${command%% *}" >/dev/null ||
				return 1
		done
	done <"$work/cases"
}

# ---- running ----

# Sets busy and total to processor time since the start of the machine, in
# ticks, of all processes.
ticks() {
	read -r _ user nice system idle iowait irq softirq steal _ </proc/stat
	busy=$((user + nice + system + irq + softirq + steal))
	total=$((busy + idle + iowait))
}

# run_once CASE HEAP REPETITION PROGRAM ARGUMENT... adds a line to the result:
# what the program printed, and the share of the processors in percent that
# other processes had meanwhile.  timeout ends with 124 when it ended a program.
run_once() {
	row="$1	$2	$3"
	shift 3
	ticks
	busy_before=$busy
	total_before=$total
	status=0
	line=$($with_limit "$@" </dev/null) || status=$?
	case $status in
	0) ;;
	124)
		echo "$row	timeout" >>"$result"
		return
		;;
	*) line=failed ;;
	esac
	ticks
	echo "$line" | awk -v row="$row" -v busy=$((busy - busy_before)) \
		-v total=$((total - total_before)) -v hz="$hz" '
	NF < 7 {
		print row "\tfailed"
		next
	}
	{
		others = total ? 100 * (busy - $6 * hz) / total : 0
		figures = ""
		for (i = 8; i <= NF; i++)
			figures = figures (i > 8 ? " " : "") $i
		printf "%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t%s\t%s\n", row, $1, $2,
			$3, $4, $5, others < 0 ? 0 : others, $7, figures
	}' >>"$result"
}

run_case() { # name heaps repetitions command
	echo "  $1" >&2
	repetition=1
	while [ $repetition -le "$repetitions" ] && [ $repetition -le "$3" ]; do
		for heap in $heaps; do
			runs_case "$2" "$heap" || continue
			# shellcheck disable=SC2086 # a list of arguments
			run_once "$1" "$heap" $repetition \
				"$(program "$heap" "${4%% *}")" ${4#"${4%% *}"}
		done
		repetition=$((repetition + 1))
	done
}

# touch_memory writes once to as much memory as the largest cases use, or half
# of what is free.  The host of a virtual machine may have to find a page that
# was never written, which takes it far longer than a page fault takes us; who
# runs first would pay for all.
touch_memory() {
	cat >"$work/touch.c" <<-'END'
		#include <stdlib.h>

		int main(int argc, char **argv)
		{
			size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) << 20 : 0;
			volatile char *p = malloc(n);

			for (size_t i = 0; p && i < n; i += 4096)
				p[i] = 1;
			return 0;
		}
	END
	$CC -O1 "$work/touch.c" -o "$work/touch" &&
		"$work/touch" "$(awk '/^MemAvailable:/ {
			half = int($2 / 2048)
			print half < 2500 ? half : 2500
		}' /proc/meminfo)"
}

run_all() {
	touch_memory
	while IFS='	' read -r name which most _ command _; do
		run_case "$name" "$which" "$most" "$command"
	done <"$work/cases"
}

# ---- showing ----

table() {
	awk -f "$srcdir/bench/table.awk" -v heaps="$heaps" -v limit=$limit "$@" \
		"$work/cases" "$result"
}

# tables prints what was measured; the first says on standard error what failed.
tables() {
	table -v mode=aims || status=1
	printf '\nMedian, half the range of the runs, CPU time of the measured'
	printf ' part, peak MiB:\n\n'
	table -v mode=all 2>/dev/null || status=1
	printf '\nWhat rtheap has over what each heap has, below 1 is better:'
	printf ' value, CPU time, peak MiB:\n\n'
	table -v mode=ratios 2>/dev/null || status=1
	table -v mode=figures 2>/dev/null || status=1
	return $status
}

# plot_data NAME CASES CUT
plot_data() {
	table -v mode=plot -v rows="$2" -v cut="$3" >"$work/$1.dat"
}

# plot_figures NAME CASE UNIT
plot_figures() {
	table -v mode=plot-figures -v rows="^$2\$" -v cut="$3" >"$work/$1.dat"
}

plot() {
	plot_data scan '^alloc-.*-scan-1$' 'allocate | B, .*'
	plot_data noscan '^alloc-.*-noscan-1$' 'allocate | B, .*'
	plot_data programs '^(trees|gcbench|interp)' ', depth 18|binary |-like| mix'
	plot_data mark '^mark-.*-256$' 'mark |, 256 MB, an object'
	plot_figures latency messages-1024 us
	plot_figures drop drop-random MiB
	gnuplot -e "data = '$work/'" "$srcdir/bench/plot.gp"
}

rm -rf "$work"
mkdir -p "$work"
if [ "$wanted" = quick ]; then
	awk -F '\t' '$4 == "quick"' "$srcdir/bench/cases" >"$work/cases"
else
	awk -F '\t' -v wanted="$wanted" '!/^#/ && $1 ~ wanted' \
		"$srcdir/bench/cases" >"$work/cases"
fi
[ -s "$work/cases" ] || {
	echo "peers: RT_CASES=$wanted: no such case" >&2
	exit 2
}
hz=$(getconf CLK_TCK)
with_limit=
! command -v timeout >/dev/null 2>&1 || with_limit="timeout -k 5 $limit"

machine="$(cpu), $(getconf _NPROCESSORS_ONLN) CPUs, $(uname -sr)"
date="$(date -u '+%Y-%m-%d %H:%M UTC'), load $(cut -d ' ' -f 1-3 /proc/loadavg)"
heaps=
missing=
for heap in $asked; do
	if installed "$heap"; then
		heaps="$heaps $heap"
		versions="${versions+$versions, }$heap $(version "$heap")"
	else
		missing="$missing $heap"
	fi
done
{
	echo "machine: $machine  "
	echo "date: $date, repetitions: $repetitions  "
	echo "heaps: $versions${missing:+; not there:$missing}"
	echo
} | tee "$report"
case $heaps in
*rtheap*) ;;
*)
	cat "$work/probe.log" >&2
	exit 1
	;;
esac

build_all
echo 'case heap repetition value unit wall_s cpu_s peak_kib others_% checksum figures' |
	tr ' ' '\t' >"$result"
run_all
echo
status=0
tables >"$work/tables" || status=1
tee -a "$report" <"$work/tables"
if command -v gnuplot >/dev/null 2>&1 && [ "$wanted" = . ]; then
	plot 2>"$work/plot.log" || {
		cat "$work/plot.log" >&2
		status=1
	}
fi
exit $status
