#!/bin/sh
# hardening.sh - what each level of protection costs: the table of SECURITY.md.
#
# usage: srcdir=DIR CC=... CFLAGS=... RT_HARDENING_CFLAGS=... bench/hardening.sh
#
# Compiles the library twice, with the options for hardening that configure has
# chosen and without, and runs bench_hardening.c on every level.  Instructions
# are those of the program, not of the system, and the same on every run; where
# there is no valgrind they are left out.  Times are CPU time, the system's
# included, the least of RT_RUNS (9) runs, which take turns: what else the
# machine does only adds to them.  Takes some minutes.
set -eu
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
runs=${RT_RUNS:-9}
rounds=20
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RTGC RTMEMLIMIT RTDEBUG

# build NAME OPTION...: a program with the library inside.
build() {
	out=$1
	shift
	# Lists of options and files.
	# shellcheck disable=SC2046,SC2086
	${CC:-cc} -std=gnu11 -pthread -fvisibility=hidden -D_GNU_SOURCE \
		-I"$srcdir" -I"$srcdir/include" ${CFLAGS:--O2} -gdwarf-4 "$@" \
		${ATOMIC_OPS_CFLAGS-} -o "$work/$out" \
		"$srcdir/bench/bench_hardening.c" \
		$(find "$srcdir/runtime" "$srcdir/gc" -name '*.c') \
		${ATOMIC_OPS_LIBS--latomic_ops}
}

# What is compared: build, RTDEBUG, and its words in the table.
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
		hard gcstress=1000 gcstress=1000
	EOF
}

# at RTDEBUG COMMAND...: runs a command on that level.
at() {
	debug=$1
	shift
	[ "$debug" != - ] || debug=
	RTDEBUG=$debug "$@"
}

# instructions BUILD RTDEBUG [ROUNDS]: those of count_work; "-": no valgrind.
instructions() {
	if ! command -v valgrind >/dev/null 2>&1; then
		echo -
		return
	fi
	program=$work/$1
	debug=$2
	shift 2
	at "$debug" valgrind --tool=callgrind --toggle-collect=count_work \
		--callgrind-out-file="$work/profile" "$program" "$@" \
		>"$work/log" 2>&1 || {
		cat "$work/log" >&2
		return 1
	}
	awk '/^(summary|totals):/ { count = $2 } END { print count }' \
		"$work/profile"
}

# take: one run on every level; a line "level ms KiB" each.
take() {
	number=0
	levels | while read -r build debug _; do
		number=$((number + 1))
		echo "$number $(at "$debug" "$work/$build" $rounds)"
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
	echo "$number $(instructions "$build" "$debug")" \
		"$(instructions "$build" "$debug" 1) $title"
done >"$work/counts"

# least LEVEL COLUMN: the smallest number there of the runs of a level.
least() {
	awk -v level="$1" -v column="$2" '
		$1 == level && (!n++ || $column < min) { min = $column }
		END { print min }' "$work/runs"
}

while read -r number one all title; do
	echo "$one $all $(least "$number" 2) $(least "$number" 3) $title"
done <"$work/counts" | awk '
	NR == 1 { base = $2; ms = $3 }
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
			$1 == "-" ? "-" : sprintf("%.1f", $1 / 20000),
			times($2, base), times($3, ms), $4 / 1024
	}'
