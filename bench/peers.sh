#!/bin/sh
# peers.sh - the same workloads on rtheap and on the heaps it is compared with.
#
# usage: srcdir=DIR CC=... bench/peers.sh
#
# Run it in the directory of the build.  It builds the workloads of
# bench/workloads for every heap that is present, and runs each case of
# bench/cases five times, on one heap after the other.  It prints medians
# against the aims; doc/bench.md says how to read them.
#
# It writes the same to bench-peers.md, and every run as a line to
# bench-peers.tsv.  The table of README.md goes to bench-peers-readme.md, and
# the aims of doc/speed.md to bench-peers-aims.md.  If gnuplot is installed,
# pictures go to bench-peers-*.svg.
#
# From the environment:
#   RT_CASES        a regular expression of the names of cases, or quick: the short
#                   form, without jemalloc and the C library's malloc
#   RT_HEAPS        the heaps, with blanks between
#   RT_REPETITIONS  how often each case is run, 5 by default
#   RT_PUBLISH      yes: the results replace those in doc/peers, and the tables
#                   in README.md and doc/speed.md
#   RT_GO           the root of a Go to compare with, or none; by default the
#                   newest of Debian's backports (bench/unpack.sh)
#   RT_OLD          a tree, configured and built, of another version of this
#                   library that has the same functions
#   RT_WHIPPET      a build of Whippet (bench/heaps/whippet.h)
#
# A run that takes longer than two minutes is ended, and shows as "> 120 s".  A
# case with +idle is ended after four, and shows as the same.
#
# The script exits with 1 if a run failed, if two heaps disagree about a
# checksum, or if rtheap took too long.
set -eu
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
CC=${CC:-cc}
wanted=${RT_CASES:-.}
repetitions=${RT_REPETITIONS:-5}
asked="rtheap rtheap-plain boehm-tuned boehm go mimalloc"
[ "$wanted" = quick ] || asked="$asked jemalloc glibc"
asked=${RT_HEAPS:-$asked${RT_WHIPPET:+ whippet}}
asked=${RT_OLD:+rtheap-old }$asked
limit=120 # seconds that one run may work
source=$srcdir/bench/workloads
work=bench/peers.build
unpacked=bench/peers.unpacked
result=bench-peers.tsv
report=bench-peers.md
# shellcheck source=bench/common.sh
. "$srcdir/bench/common.sh"
# shellcheck source=bench/found.sh
. "$srcdir/bench/found.sh"

case $repetitions in
'' | *[!0-9]* | 0*)
	echo "peers: $repetitions: a number of repetitions is wanted" >&2
	exit 2
	;;
esac

if [ "${RT_PUBLISH-}" = yes ] && [ -n "${RT_OLD-}" ]; then
	echo "peers: RT_OLD: another version is not published" >&2
	exit 2
fi

# ---- building ----

# runs_case HEAPS HEAP succeeds if the heaps field of a case includes the heap.
runs_case() {
	if [ "$2" = rtheap-plain ]; then
		case $1 in
		*+plain*) return 0 ;;
		*) return 1 ;;
		esac
	fi
	case ${1%%+*}:${2%-old} in
	c:go) return 1 ;;
	all:* | c:* | gc:rtheap | gc:boehm* | gc:go | gc:whippet) ;;
	exact:rtheap | exact:go | own:rtheap) ;;
	*) return 1 ;;
	esac
}

# has_room MIB succeeds if so much memory is available.
has_room() {
	[ "$1" -le "$(available)" ]
}

# program HEAP NAME prints the path of the program, and builds it if it is
# missing.
program() {
	echo "$work/$2-$1"
	[ ! -x "$work/$2-$1" ] || return 0
	if [ "$1" = go ]; then
		GO111MODULE=off GOFLAGS='' GOTOOLCHAIN=local \
			GOCACHE=$PWD/$work/go-cache \
			"$go_root/bin/go" build -o "$work/$2-go" \
			"$source/harness.go" "$source/$2.go" >&2
	else
		compile "$1" "$source/$2.c" "$work/$2-$1" >&2
	fi
}

# programs prints a line "heap name" for every program that the cases need.
programs() {
	while IFS='	' read -r name which _ _ command _; do
		for heap in $heaps; do
			! runs_case "$which" "$heap" ||
				echo "$heap ${command%% *}"
		done
	done <"$work/cases" | sort -u
}

# build_all builds as many programs at a time as there are processors.
build_all() {
	programs >"$work/programs"
	at_once=$(getconf _NPROCESSORS_ONLN)
	begun=0
	while read -r heap name; do
		program "$heap" "$name" >/dev/null &
		begun=$((begun + 1))
		[ $((begun % at_once)) -ne 0 ] || wait
	done <"$work/programs"
	wait
	while read -r heap name; do
		[ -x "$work/$name-$heap" ] || return 1
	done <"$work/programs"
}

# ---- running ----

# run_once CASE HEAP REPETITION PROGRAM ARGUMENT... adds a line to the result:
# what the program printed, and the share of the processors, in percent, that
# other processes used meanwhile.  If timeout ends the program, it exits with
# 124.
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

# run_heaps NAME HEAPS REPETITION COMMAND runs every heap once.
run_heaps() {
	for heap in $heaps; do
		runs_case "$2" "$heap" || continue
		path=$(program "$heap" "${4%% *}")
		case $2 in
		*+idle*)
			# shellcheck disable=SC2086 # a list of arguments
			with_limit=$with_more run_once "$1" "$heap" "$3" \
				"$path" ${4#"${4%% *}"} &
			;;
		*)
			# shellcheck disable=SC2086 # a list of arguments
			run_once "$1" "$heap" "$3" "$path" ${4#"${4%% *}"}
			;;
		esac
	done
	wait
}

run_case() { # name heaps MiB command
	if ! has_room "$3"; then
		echo "  $1: left out, $3 MiB are not available" >&2
		return
	fi
	echo "  $1" >&2
	repetition=1
	while [ $repetition -le "$repetitions" ]; do
		run_heaps "$1" "$2" $repetition "$4"
		repetition=$((repetition + 1))
	done
}

run_all() {
	echo 'case heap repetition value unit wall_s cpu_s peak_kib others_% checksum figures' |
		tr ' ' '\t' >"$result"
	while IFS='	' read -r name which mib _ command _; do
		run_case "$name" "$which" "$mib" "$command"
	done <"$work/cases"
}

# ---- showing ----

# table MODE OPTION...
table() {
	mode=$1
	shift
	awk -f "$srcdir/bench/medians.awk" -f "$srcdir/bench/readme.awk" \
		-f "$srcdir/bench/table.awk" -v mode="$mode" -v heaps="$heaps" \
		-v limit=$limit -v place="$place" "$@" "$work/cases" "$result"
}

# tables prints all results; the first call reports failures on standard error.
tables() {
	status=0
	echo 'Ratios: what rtheap has over what the heap has (value, CPU time,'
	printf 'peak); below 1 is better.  Best: collector, or malloc and free.\n\n'
	table cases || status=1
	printf '\nWhere a peer is ahead:\n\n'
	table behind 2>/dev/null || status=1
	table figures 2>/dev/null || status=1
	return $status
}

# plot_data NAME CASES CUT
plot_data() {
	table plot -v rows="$2" -v cut="$3" >"$work/$1.dat"
}

# plot_figures NAME CASE UNIT
plot_figures() {
	table plot-figures -v rows="^$2\$" -v cut="$3" >"$work/$1.dat"
}

# rtheap-plain and rtheap-old are left out, because their lines would cover the
# line of rtheap.
plot() {
	heaps=$(echo " $heaps " | sed 's/ rtheap-plain / /; s/ rtheap-old / /')
	plot_data scan '^alloc-.*-scan-1$' 'allocate | B, .*'
	plot_data noscan '^alloc-.*-noscan-1$' 'allocate | B, .*'
	plot_data programs '^(trees-top|gcbench|interp|hash)' \
		', depth 18|binary |-like| mix| of 200 000 keys, an operation'
	plot_data mark '^mark-.*-256$' 'mark |, 256 MB, an object'
	plot_figures latency messages-1024 us
	plot_figures drop drop-random MiB
	gnuplot -e "data = '$work/'" "$srcdir/bench/plot.gp"
}

publish() {
	cp "$report" "$srcdir/doc/peers/table.md"
	rm -f "$srcdir"/doc/peers/*.svg # of another run
	for picture in bench-peers-*.svg; do
		[ ! -e "$picture" ] ||
			cp "$picture" "$srcdir/doc/peers/${picture#bench-peers-}"
	done
	paste_between "$srcdir/README.md" bench-peers bench-peers-readme.md
	paste_between "$srcdir/doc/speed.md" bench-peers bench-peers-aims.md
}

# ---- all of it ----

# choose_cases writes the chosen cases to $work/cases.
choose_cases() {
	if [ "$wanted" = quick ]; then
		awk -F '\t' '$4 == "quick"' "$srcdir/bench/cases"
	else
		awk -F '\t' -v wanted="$wanted" '!/^#/ && $1 ~ wanted' \
			"$srcdir/bench/cases"
	fi >"$work/cases"
	[ -s "$work/cases" ] || {
		echo "peers: RT_CASES=$wanted: no such case" >&2
		exit 2
	}
}

# header touches twice as much memory as most cases use, or half of what is
# available.  The first touch of a page that was never written takes as long as
# the host of a virtual machine needs; later ones do not.
header() {
	touched=$(($(available) / 2))
	[ $touched -le 2500 ] || touched=2500
	echo "machine: $(machine)  "
	echo "date: $(now), load $(cut -d ' ' -f 1-3 /proc/loadavg)," \
		"repetitions: $repetitions  "
	echo "first touch of a page: $(page_touch $touched) ns, once more:" \
		"$(page_touch $touched) ns  "
	# A heap and its version stay in one line.
	echo "heaps: $versions${missing:+; not there: $missing}" |
		sed 's/ \([0-9]\)/~\1/g' | fold -s -w 80 | sed 's/ $//; s/~/ /g'
	echo
}

# show prints and keeps all tables; it fails if a run failed.
show() {
	shown=0
	echo
	tables >"$work/tables" || shown=1
	tee -a "$report" <"$work/tables"
	table readme >bench-peers-readme.md 2>/dev/null || shown=1
	table missed >bench-peers-aims.md 2>/dev/null || shown=1
	if command -v gnuplot >/dev/null 2>&1 && [ "$wanted" = . ]; then
		(plot) 2>"$work/plot.log" || {
			cat "$work/plot.log" >&2
			shown=1
		}
	fi
	return $shown
}

# This is a function so that the shell reads the whole file before the long run.
main() {
	rm -rf "$work"
	mkdir -p "$work"
	choose_cases
	hz=$(getconf CLK_TCK)
	with_limit=
	with_more=
	! command -v timeout >/dev/null 2>&1 || {
		with_limit="timeout -k 5 $limit"
		with_more="timeout -k 5 $((2 * limit))"
	}
	find_unpacked
	find_heaps
	build_all
	place="$(machine); $(now)"
	header | tee "$report"
	run_all
	done=0
	show || done=1
	[ "${RT_PUBLISH-}" != yes ] || publish
	exit $done
}

main
