#!/bin/sh
# widths.sh - no line of a document has more than 100 columns, and none of a
# source in C or C++ more than 80, with tabs of 8.  No cell of a table in a
# document has more than 25 words: what needs more is a paragraph.  Programs
# write the tables in doc/peers.
#
# Other files have no such limit: tables that programs read (test/mutants/list,
# bench/cases), and what make, configure and scripts print or pass on.
#
# usage: srcdir=DIR tools/widths.sh
set -u
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"

# wider COLUMNS FILE...: the lines that are wider, as FILE:LINE: COLUMNS.
wider() {
	columns=$1
	shift
	awk -v columns="$columns" '
	{
		width = 0
		n = split($0, part, "\t")
		for (i = 1; i <= n; i++) {
			gsub(/[\200-\277]/, "", part[i]) # rest of a character
			width += length(part[i])
			if (i < n)
				width += 8 - width % 8
		}
	}
	width > columns {
		print "  " FILENAME ":" FNR ": " width
		wide++
	}
	END { exit wide > 0 }' "$@"
}

# wordier WORDS FILE...: the cells that have more, as FILE:LINE: WORDS.
wordier() {
	words=$1
	shift
	awk -v words="$words" -F '|' '
	/^\|/ {
		for (i = 2; i <= NF; i++) {
			n = split($i, word, " ")
			if (n > words) {
				print "  " FILENAME ":" FNR ": " n
				long++
			}
		}
	}
	END { exit long > 0 }' "$@"
}

documents() {
	find "$srcdir/doc" "$srcdir/examples" "$srcdir/test" "$srcdir/runtime" \
		"$srcdir/gc" "$srcdir/include" "$srcdir/bench" \
		\( -name '*.md' -o -name README \) ! -path '*/build/*' \
		! -path '*.unpacked/*'
	echo "$srcdir/README.md"
	echo "$srcdir/HACKING.md"
	echo "$srcdir/SECURITY.md"
	echo "$srcdir/NEWS"
}

sources() {
	find "$srcdir/include" "$srcdir/runtime" "$srcdir/gc" \
		"$srcdir/test" "$srcdir/bench" "$srcdir/examples" \
		"$srcdir/tools" \( -name '*.[ch]' -o -name '*.cc' \) \
		! -path '*.build/*' ! -path '*/build/*' \
		! -name callsite_calls.h # made by make
}

# all COLUMNS WHAT FILE...: no file is wider.
all() {
	columns=$1
	what=$2
	shift 2
	wider "$columns" "$@"
	verdict $? "$what"
}

# The names have no blanks.
# shellcheck disable=SC2046
all 100 "documents have at most 100 columns" $(documents)
# shellcheck disable=SC2046
all 80 "sources have at most 80 columns" $(sources)
# shellcheck disable=SC2046
wordier 25 $(documents | grep -v '/doc/peers/')
verdict $? "cells of tables have at most 25 words"
verdict_sum
