#!/bin/sh
# count.sh - instructions of the library's work, counted by callgrind.
#
# usage: srcdir=DIR CC=... CXX=... bench/count.sh
#
# A count, unlike a time, is the same on every run of the same build, however
# busy the machine is.  The cost of slow memory does not show in it.
#
# The script prints the inline sequences (inline.sh), and then the instructions
# of workloads for each unit of work.  It counts between peer_start and
# peer_stop: the workload's own loop, and everything that the library does for
# it.  The heap collects only when it is told to, and has no helper threads.
# Then it prints millions of instructions of programs whose heap collects when
# it is due.  A good result is no more than before the change.  If RT_OLD is a
# tree, configured and built, of another version of this library, a second
# column counts that one, and a third has the ratio.
#
# Run it in the directory of the build.  It exits with 77 if there is no
# valgrind, or if the library cannot run under it.
set -eu
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
CC=${CC:-cc}
work=bench/count.build
# shellcheck source=bench/common.sh
. "$srcdir/bench/common.sh"

# items prints what is counted: the number of units of work, and the command.
# The workloads are compiled to do a hundredth of their usual work.
items() {
	cat <<-'END'
		80000 alloc 16 scan 1
		60000 alloc 64 scan 1
		30000 alloc 256 scan 1
		10000 alloc 1024 scan 1
		80000 alloc 8 noscan 1
		60000 alloc 64 noscan 1
		3000 alloc 4096 noscan 1
		500 alloc 32768 noscan 1
		60000 alloc 64 any 1
		30000 alloc 256 any 1
		80000 alloc 8 call 1
		80000 alloc 16 call 1
		60000 alloc 64 call 1
		30000 alloc 256 call 1
		10000 alloc 1024 call 1
		3000 alloc 4096 call 1
		500 alloc 32768 call 1
		80000 alloc 4 call-noscan 1
		80000 alloc 8 call-noscan 1
		80000 alloc 16 call-noscan 1
		20000 holes scan
		20000 holes noscan
		2000 stats exact 0
		32000 stats live 0
		100 stats collect 0 0
		10 kinds collect alone
		10 kinds attach alone
		100000 byhand free
		100000 byhand handle
		1000 byhand handles
		100000 byhand stack
		1000 fibers register
		10000 look walk
		10000 look list
		10000 look pick
		1000000 look nogc
		1000000 look poll
		262143 mark random 4
		393216 mark tree 4
		786432 mark list 4
		262143 layouts tree words 4 alone
		262143 layouts tree drop 4 alone
		262143 layouts tree type 4 alone
		262143 layouts tree header 4 alone
		262143 layouts tree index 4 alone
		262143 layouts tree trace 4 alone
		262143 layouts tree header-3 4 alone
		262143 layouts tree trace-3 4 alone
		262143 layouts list words 4 alone
		262143 layouts list drop 4 alone
		262143 layouts list type 4 alone
		262143 layouts list header 4 alone
		262143 layouts list index 4 alone
		262143 layouts list trace 4 alone
		262143 layouts list header-3 4 alone
		262143 layouts list trace-3 4 alone
		262143 layouts random words 4 alone
		262143 layouts random type 4 alone
		262143 layouts random header 4 alone
		262143 layouts random index 4 alone
		262143 layouts random trace 4 alone
		262143 layouts random header-3 4 alone
		262143 layouts random trace-3 4 alone
		786432 layouts array words 4 alone
		786432 layouts array nan 4 alone
		786432 layouts array pairs 4 alone
	END
}

# programs prints the same for programs.  The unit is a million instructions.
programs() {
	cat <<-'END'
		1000000 trees 12 1 top
		1000000 trees 12 1 bottom
		1000000 gcbench 12
		1000000 interp 40
		1000000 mix 1
		1000000 hash 20000
		1000000 arrays 256
		1000000 phases 4 4
		1000000 messages 20000 256
		1000000 messages 20000 1024
		1000000 larson 1 1000 16 264
		1000000 stack 10000
	END
}

# profile PROGRAM ARGUMENT... prints the instructions of all measured parts, with
# RTGC as gc says.  callgrind writes a profile whenever a part ends.
profile() {
	program=$work/$1
	shift
	rm -f "$work"/profile*
	RTGC=$gc RTDEBUG=gc_threads=0 valgrind --tool=callgrind \
		--zero-before='peer_start*' --dump-before='peer_stop*' \
		--callgrind-out-file="$work/profile" "$program" "$@" \
		>"$work/log" 2>&1 || {
		cat "$work/log" >&2
		return 1
	}
	awk '/^totals:/ { count += $2 } END { print count }' \
		"$work"/profile.*
}

# profile_of HEAP PROGRAM ARGUMENT... compiles the program if it is missing.
profile_of() {
	heap=$1
	program=$2
	shift 2
	[ -x "$work/$program-$heap" ] || bench_cflags=-DPEER_DIVISOR=100 \
		compile "$heap" "$srcdir/bench/workloads/$program.c" \
		"$work/$program-$heap"
	profile "$program-$heap" "$@"
}

# count GC LIST prints the counts of what LIST prints.
count() {
	gc=$1
	"$2" | while read -r units program arguments; do
		# shellcheck disable=SC2086 # a list of arguments
		new=$(profile_of rtheap-count "$program" $arguments)
		# shellcheck disable=SC2086 # a list of arguments
		old=${RT_OLD:+$(profile_of rtheap-old-count "$program" \
			$arguments)}
		awk -v units="$units" -v new="$new" -v old="$old" \
			-v title="$program $arguments" 'BEGIN {
				printf "%-38s %12.1f", title, new / units
				if (old != "")
					printf " %12.1f %6.3f", old / units,
						new / old
				print ""
			}'
	done
}

main() {
	rm -rf "$work"
	mkdir -p "$work"
	"${SHELL:-/bin/sh}" "$srcdir/bench/inline.sh" >"$work/inline" || {
		cat "$work/inline"
		exit 77
	}
	printf '%-38s %12s\n' "one inline allocation" instructions
	awk '{ printf "%-38s %12s\n", $1 ", " $2, $3 }' "$work/inline"
	columns=${RT_OLD:+"          old  ratio"}
	printf '\n%-38s %12s%s\n' "a unit of a workload" instructions "$columns"
	count off items
	printf '\n%-38s %12s%s\n' "a program" millions "$columns"
	count 100 programs
}

main
