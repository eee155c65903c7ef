#!/bin/sh
# inline_alloc.sh - an inline allocation executes at most 20 instructions, and
# one of a size or a kind that the compiler does not know at most 28, in C and in
# C++.
#
# usage: srcdir=DIR CC=... CXX=... LIBRTHEAP=... test/scripts/inline_alloc.sh
set -u
srcdir=${srcdir:-.}
export srcdir
most=20
any=28
counts=$(${SHELL:-/bin/sh} "$srcdir/bench/inline.sh")
status=$?
if [ $status -ne 0 ]; then
	echo "$counts"
	exit $status
fi

# Fourteen loops a language; a line without a number is a loop that was not inline.
echo "$counts" | awk -v most=$most -v any=$any '
{ languages[$1]++; limit = $2 ~ /^(any|number)_/ ? any : most }
NF == 3 && $3 ~ /^[0-9.]+$/ && $3 > 0 && $3 <= limit { passed++; next }
{ failed++; print "inline: " $0 ", at most " limit " are wanted" }
END {
	for (language in languages)
		if (languages[language] != 14) {
			failed++
			print "inline: " language ": not all loops counted"
		}
	print "inline: " passed + 0 " passed, " failed + 0 " failed"
	exit failed > 0 || passed == 0
}'
