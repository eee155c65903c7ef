#!/bin/sh
# run.sh - runs the benches and prints what they measure, the machine first.
#
# usage: srcdir=DIR CC=... CXX=... bench/run.sh
#
# Runs in the directory of the build.  RT_BENCHES in the environment is a list
# of what to run: workloads, which is this heap's column of make bench-peers
# (the short form, unless RT_CASES says otherwise), memstats and mark, which
# take times, and count, which counts instructions.  Only when asked for runs
# released, which looks for three minutes whether memory stays with the system.
set -eu
srcdir=${srcdir:-.}
CC=${CC:-cc}
work=.
export srcdir CC
benches=${RT_BENCHES:-workloads memstats mark count}
# shellcheck source=bench/common.sh
. "$srcdir/bench/common.sh"

workloads() {
	RT_CASES=${RT_CASES:-quick} RT_HEAPS='rtheap rtheap-plain' \
		${SHELL:-/bin/sh} "$srcdir/bench/peers.sh"
}

# script NAME ARGUMENT...: keeps in $printed what a script of ours prints, which
# may be why it was skipped (77).
script() {
	name=$1
	shift
	printed=$("${SHELL:-/bin/sh}" "$srcdir/bench/$name" "$@") || [ $? -eq 77 ]
}

count() {
	printf '\n%-38s %12s\n' "one inline allocation" instructions
	script inline.sh
	printf '%s\n' "$printed" | awk '
		NF == 3 { printf "%-38s %12s\n", $1 ", " $2, $3; next }
		{ print }'
	printf '\n%-38s %12s\n' "all that is executed" instructions
	script count.sh bench/bench_count
	printf '%s\n' "$printed" | awk '
		$1 + 0 {
			count = $1
			sub(/^[^ ]* /, "")
			printf "%-38s %12s\n", $0, count
			next
		}
		{ print }'
}

echo "machine: $(machine); $(now)"
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg)" \
	"(above a few tenths, times are of the load too)"
for bench in $benches; do
	case $bench in
	workloads | count) $bench ;;
	memstats | mark | released) "bench/bench_$bench" ;;
	*)
		echo "run.sh: RT_BENCHES: there is no $bench" >&2
		exit 2
		;;
	esac
done
