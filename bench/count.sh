#!/bin/sh
# count.sh - instructions of the library's work, counted by callgrind.
#
# usage: bench/count.sh bench/bench_count
#
# A count, not a time: it is the same on every run of the same build, however
# busy the machine.  Memory that is slow to come does not show in it.
#
# Prints "instructions title" for each item of bench_count.c; exits with 77 when
# there is no valgrind, or the program cannot run under it.
set -eu
LC_ALL=C
export LC_ALL
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
	echo "count: skipped: $1"
	exit 77
}

command -v valgrind >/dev/null 2>&1 || skip "valgrind is not installed"
! nm "$program" 2>/dev/null | grep -q ' __[at]san_init' ||
	skip "a sanitizer is built in"

# profile NUMBER: instructions of the item's work.
profile() {
	valgrind --tool=callgrind --toggle-collect=count_work \
		--callgrind-out-file="$work/profile" "$program" "$1" \
		>"$work/log" 2>&1 || {
		cat "$work/log" >&2
		return 1
	}
	awk '/^(summary|totals):/ { count = $2 }
		END {
			if (!count)
				exit 1
			print count
		}' "$work/profile"
}

"$program" >"$work/items"
while read -r number times title; do
	count=$(profile "$number")
	echo "$count $times $title" | awk '{
		title = $0
		sub(/^[^ ]* [^ ]* /, "", title)
		printf "%.1f %s\n", $1 / $2, title
	}'
done <"$work/items"
