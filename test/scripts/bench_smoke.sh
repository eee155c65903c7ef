#!/bin/sh
# bench_smoke.sh - every workload of the benches compiles without a warning, and
# does the same on rtheap, with RT_STORE and plain stores, and on the C
# library's malloc.  The runs are small and brief, and no time is looked at.
#
# Every case of bench/cases must name a workload, and one case of each program
# is run here.  So are the programs of bench/watch, and their tables.
#
# usage: srcdir=DIR [top_builddir=DIR] CC=... test/scripts/bench_smoke.sh
set -u
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
builddir=${top_builddir:-.}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# options HEAP: prints the options of the compiler, and the libraries.
options() {
	case $1 in
	rtheap*) echo "-I$srcdir/include ${RT_SANITIZER_CFLAGS-}" \
		"$builddir/librtheap.a ${ATOMIC_OPS_LIBS:--latomic_ops}" ;;
	esac
}

# build PROGRAM HEAP: builds it with a hundredth of the usual work.
build() {
	adapter=../heaps/$(echo "$2" | tr - _).h
	# shellcheck disable=SC2046 # a list of options
	${CC:-cc} -std=gnu11 -O1 -pthread -Wall -Wextra -Werror \
		-I"$srcdir/bench/workloads" -DHEAP="\"$adapter\"" \
		-DPEER_DIVISOR=100 "$srcdir/bench/workloads/$1.c" \
		-o "$dir/$1-$2" $(options "$2")
}

# run PROGRAM HEAP ARGUMENT...: requires seven fields or more; puts the checksum
# into $sum.
run() {
	path=$dir/$1-$2
	shift 2
	sum=$("$path" "$@" </dev/null | awk 'NF >= 7 { print $7 }')
	[ -n "$sum" ]
}

# smoke HEAPS PROGRAM ARGUMENT...: requires that the heaps agree about the
# checksum.
smoke() {
	heaps=$1
	program=$2
	shift 2
	first=
	for heap in $heaps; do
		[ -x "$dir/$program-$heap" ] || {
			build "$program" "$heap"
			verdict $? "$program compiles for $heap"
		}
		run "$program" "$heap" "$@"
		verdict $? "$program $* runs on $heap"
		[ -z "$first" ] || [ "$sum" = "$first" ]
		verdict $? "$program $* does the same on $heap"
		first=$sum
	done
}

# watch PROGRAM ARGUMENT...: runs a program of bench/watch, which sweeps in the
# stop and beside the threads.
watch() {
	program=$1
	shift
	[ -x "$dir/watch-$program" ] || {
		# shellcheck disable=SC2046 # a list of options
		${CC:-cc} -std=gnu11 -O1 -pthread -Wall -Wextra -Werror \
			-I"$srcdir/bench/workloads" -I"$srcdir/bench/watch" \
			-DHEAP='"../heaps/rtheap.h"' -DPEER_DIVISOR=100 \
			"$srcdir/bench/watch/$program.c" \
			-o "$dir/watch-$program" $(options rtheap)
		verdict $? "$program of bench/watch compiles"
	}
	for setting in sweep=0 sweep=2; do
		(RTDEBUG=$setting && export RTDEBUG &&
			"$dir/watch-$program" "$@" </dev/null) >"$dir/out"
		grep -q '^at 0' "$dir/out" ||
			[ "$program" = small ] || [ "$program" = sweep ]
		verdict $? "$program $* shows samples, $setting"
		sed "s/^/$program $*	$setting	/" "$dir/out" |
			tee -a "$dir/watched" | awk -F '\t' '
			$3 !~ /^at / && split($3, part, " ") >= 7 { n++ }
			END { exit n != 1 }'
		verdict $? "$program $* prints one result, $setting"
	done
}

# old HEAP: builds a workload as the benches do for another version of the
# library.  The other version is a tree with links to this one.
old() (
	work=$dir
	CC=${CC:-cc}
	RT_OLD=$dir/old
	# shellcheck source=bench/common.sh
	. "$srcdir/bench/common.sh"
	bench_cflags="-DPEER_DIVISOR=100 ${RT_SANITIZER_CFLAGS-}"
	case $(options "$1") in
	"-I$RT_OLD/include $RT_OLD/librtheap.a "*) ;;
	*) return 1 ;;
	esac
	compile "$1" "$srcdir/bench/workloads/alloc.c" "$dir/alloc-$1"
)

mkdir "$dir/old"
ln -s "$(cd "$srcdir" && pwd)/include" "$dir/old/include"
cp "$builddir/librtheap.a" "$dir/old"
for heap in rtheap-old rtheap-old-count; do
	old $heap
	verdict $? "alloc compiles for $heap"
done
smoke "rtheap rtheap-old rtheap-old-count" alloc 16 scan 1

all="rtheap rtheap-plain glibc"
collectors="rtheap rtheap-plain"
smoke "$all" alloc 16 scan 1
smoke "$all" alloc 64 any 2
smoke "$all" alloc 1024 noscan 2
smoke "$all" alloc 64 call 1
smoke "$all" alloc 4 call-noscan 1
smoke "$all" arrays 64
smoke "$all" begin
smoke rtheap byhand free
smoke rtheap byhand malloc
smoke rtheap byhand handle
smoke rtheap byhand handles
smoke rtheap byhand stack
smoke "$all" drop contiguous 2
smoke "$all" drop random 2
smoke "$all" fade told 4 0
smoke "$all" fade untold 4 0
smoke "$all" ebb tenth 4 0
smoke "$all" ebb scattered 4 0
smoke rtheap fibers register
smoke rtheap fibers collect
smoke rtheap fibers values
smoke rtheap fibers abandoned 10000
smoke "$all" gcbench 4
smoke "$all" grow 64 2
smoke "$all" hash 1000
smoke "$all" holes scan
smoke "$all" holes noscan
smoke "$collectors" interp 10
smoke "$all" larson 2 100 264 264
smoke "$all" larson 1 1000 16 512
smoke rtheap kinds collect
smoke rtheap kinds attach
smoke rtheap kinds memory
smoke rtheap look walk
smoke rtheap ends time
smoke rtheap ends none
smoke rtheap ends once
smoke rtheap ends late
smoke rtheap ends never
smoke rtheap look list
smoke rtheap look pick
smoke rtheap look nogc
smoke rtheap look poll
smoke rtheap layouts tree header-3 1
smoke rtheap layouts list index 1
smoke rtheap layouts random trace 1 2
smoke rtheap layouts array nan 1
smoke rtheap layouts array pairs 1 alone
smoke "$collectors" mark random 1
smoke "$collectors" mark tree 1
smoke "$collectors" mark list 1
smoke "$collectors" mark array 1
smoke "$collectors" mark hot 1
smoke "$all" messages 100 1024
smoke "$all" mix 1
smoke "$all" pauses 1
smoke "$collectors" phases 1 2
smoke "$all" prodcons
smoke rtheap roots callback
smoke rtheap roots range
smoke rtheap roots none
smoke rtheap roots one
smoke rtheap roots static
smoke "$all" scaling 16 2
smoke "$all" shift 2
smoke "$collectors" stack 1000
smoke rtheap stats exact 1
smoke rtheap stats exact-alloc 1
smoke rtheap stats exact-sweep 1
smoke rtheap stats live-alloc 1
smoke rtheap stats cached 2
smoke rtheap stats exact-wait 2
smoke rtheap stats metrics 0
smoke rtheap stats history 0
smoke "$collectors" stats collect 2
smoke "$collectors" stats collect 0 0
smoke rtheap stats collect-alloc 2
smoke rtheap stats collect-wait 2 0
smoke "$all" steady 2
smoke "$all" trees 8 1 bottom
smoke "$all" trees 8 2 top

watch drop large 4 0
watch drop tenth 4 0
watch drop scattered 4 0
watch limit 16 100 go 0 10 80
watch limit 16 off small 0 50 110
watch small 2
watch sweep 1 mixed wall
watch sweep 1 messages cpu
watch sweep 1 churn cpu

# The first has an aim that is kept, the second one that is not.
printf '%s\tsweep=0 sweep=2\t%s\t%s\n' \
	'drop tenth 4 0' - 'value<=9999 live_MiB<=0.5*first' \
	'limit 16 100 go 0 10 80' - 'collections<=-1' >"$dir/rows"
awk -f "$srcdir/bench/watch.awk" "$dir/rows" "$dir/watched" >"$dir/table"
grep -q '^| drop tenth 4 0 | value, MiB | [0-9.]* | [0-9.]* | <= 9999 |$' \
	"$dir/table" &&
	grep -q '| live, MiB | .* | <= 0.5 x sweep=0: missed by sweep=0, sweep=2 |$' \
		"$dir/table" &&
	grep -q '| collections | .* | <= -1: missed by sweep=0, sweep=2 |$' \
		"$dir/table"
verdict $? "the table of bench/watch.sh shows figures and aims"
awk -v series=1 -f "$srcdir/bench/watch.awk" "$dir/rows" "$dir/watched" |
	grep -q '^| 0.00 |\( [0-9]* |\)\{10\}$'
verdict $? "the table of bench/watch.sh shows samples"

awk -F '\t' '!/^#/ { print $1; sub(/ .*/, "", $5); print $5 }' \
	"$srcdir/bench/watch.rows" | sort -u >"$dir/watches"
for source in "$srcdir"/bench/watch/*.c; do
	basename "$source" .c
done | sort | cmp -s - "$dir/watches"
verdict $? "bench/watch.rows names the programs of bench/watch, and no others"

# Each program that a case or a row of pairs names was built above.
{
	awk -F '\t' '!/^#/ { sub(/ .*/, "", $5); print $5 }' \
		"$srcdir/bench/cases"
	awk -F '\t' '!/^#/ { sub(/ .*/, "", $2); print $2 }' \
		"$srcdir/bench/pairs.rows"
} | sort -u >"$dir/named"
while read -r program; do
	[ -x "$dir/$program-rtheap" ]
	verdict $? "$program, which has a case or a row, is run here"
done <"$dir/named"
for source in "$srcdir"/bench/workloads/*.c; do
	grep -qx "$(basename "$source" .c)" "$dir/named"
	verdict $? "a case or a row names $source"
done

# A compiler that finds no header is like a machine without Boehm's collector.
! CC=false sh "$srcdir/bench/pairs.sh" >"$dir/pairs" 2>&1 &&
	grep -q 'on Debian: libgc-dev' "$dir/pairs"
verdict $? "without Boehm's collector bench/pairs.sh names its package"
verdict_sum
