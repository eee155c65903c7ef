#!/bin/sh
# hardening.sh - what each level of protection costs: the table of SECURITY.md.
#
# usage: srcdir=DIR CC=... CFLAGS=... RT_HARDENING_CFLAGS=... bench/hardening.sh
#
# The script compiles the workloads alloc and mix together with the library:
# once with the options for hardening that configure has chosen, and once
# without.  It runs them on every level, which takes some minutes.
#
# Instructions are those of alloc 64 scan, for one allocation, and of mix,
# without the kernel's.  They are the same on every run; alloc collects for
# gcstress only.  Without valgrind the table has no instructions.
#
# A time is CPU time, including the system's: the least of RT_RUNS (9) runs,
# which take turns.  Other work of the machine can only add to a time.
set -eu
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
runs=${RT_RUNS:-9}
allocations=60000 # of alloc with this divisor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RTGC RTMEMLIMIT RTDEBUG

# compile OPTION... compiles C; the options may be many, and include files.
compile() {
	# shellcheck disable=SC2086 # lists of options
	${CC:-cc} -std=gnu11 -pthread -fvisibility=hidden -D_GNU_SOURCE \
		-I"$srcdir" -I"$srcdir/include" ${CFLAGS:--O2} -gdwarf-4 \
		${ATOMIC_OPS_CFLAGS-} "$@"
}

# build LEVEL OPTION... makes the programs, with the library inside.
build() {
	level=$1
	shift
	# shellcheck disable=SC2046 # a list of files
	compile "$@" -r -nostdlib -o "$work/$level.o" \
		$(find "$srcdir/runtime" "$srcdir/gc" -name '*.c')
	for program in alloc mix; do
		# shellcheck disable=SC2086 # a list of options
		compile "$@" -I"$srcdir/bench/workloads" -DPEER_DIVISOR=100 \
			-DHEAP='"../heaps/rtheap.h"' -o "$work/$program-$level" \
			"$srcdir/bench/workloads/$program.c" \
			"$work/$level.o" ${ATOMIC_OPS_LIBS--latomic_ops}
	done
}

# levels prints what is compared: the build, RTDEBUG, and the words of the
# table.
levels() {
	cat <<-EOF
		hard - default
		plain - --disable-hardening
		hard guard_large=1 guard_large=1
		hard guard_small=1000 guard_small=1000
		hard guard_small=100 guard_small=100
		hard guard_large=1,guard_small=1000 guard_large=1,guard_small=1000
		hard clobberfree=1 clobberfree=1
		hard poison=1 poison=1
		hard checkmark=1 checkmark=1
		hard tracecheck=1 tracecheck=1
		hard gcstress=1000 gcstress=1000
	EOF
}

# at RTDEBUG COMMAND... runs a command on that level, without helper threads.
at() {
	debug=gc_threads=0,$1
	shift
	RTDEBUG=${debug%,-} "$@"
}

# instructions BUILD RTDEBUG PROGRAM ARGUMENT... prints the instructions of the
# measured part, or "-" if there is no valgrind.
instructions() {
	if ! command -v valgrind >/dev/null 2>&1; then
		echo -
		return
	fi
	program=$work/$3-$1
	debug=$2
	shift 3
	at "$debug" valgrind --tool=callgrind --zero-before='peer_start*' \
		--dump-before='peer_stop*' \
		--callgrind-out-file="$work/profile" "$program" "$@" \
		>"$work/log" 2>&1 || {
		cat "$work/log" >&2
		return 1
	}
	awk '/^totals:/ { print $2 }' "$work/profile.1"
}

# take runs every level once; each line has the level, and what mix prints.
take() {
	number=0
	levels | while read -r build debug _; do
		number=$((number + 1))
		echo "$number $(at "$debug" "$work/mix-$build" 20)"
	done
}

# Lists of options.
# shellcheck disable=SC2086
build hard ${RT_HARDENING_CFLAGS-}
build plain

i=0
while [ $i -lt "$runs" ]; do
	take >>"$work/runs"
	i=$((i + 1))
done
number=0
levels | while read -r build debug title; do
	number=$((number + 1))
	echo "$number $(RTGC=off && export RTGC &&
		instructions "$build" "$debug" alloc 64 scan 1)" \
		"$(instructions "$build" "$debug" mix 1) $title"
done >"$work/counts"

# least LEVEL COLUMN prints the smallest number in that column of a level's
# runs.
least() {
	awk -v level="$1" -v column="$2" '
		$1 == level && (!n++ || $column < min) { min = $column }
		END { print min }' "$work/runs"
}

while read -r number one all title; do
	echo "$one $all $(least "$number" 7) $(least "$number" 6) $title"
done <"$work/counts" | awk -v allocations=$allocations '
	NR == 1 { base = $2; seconds = $3 }
	function times(x, of) {
		return x == "-" ? "-" : sprintf("%.2f", x / of)
	}
	NR == 1 {
		print "| level | instructions of an allocation | program:" \
			" instructions | CPU time | memory |"
		print "|---|--:|--:|--:|--:|"
	}
	{
		printf "| %s | %s | %s | %s | %.1f MiB |\n", $5,
			$1 == "-" ? "-" : sprintf("%.1f", $1 / allocations),
			times($2, base), times($3, seconds), $4 / 1024
	}'
