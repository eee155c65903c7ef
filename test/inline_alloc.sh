#!/bin/sh
# inline_alloc.sh - an inline allocation executes at most 20 instructions, in
# C and in C++.
#
# usage: srcdir=DIR CC=... CXX=... LIBRTHEAP=... test/inline_alloc.sh
set -u
srcdir=${srcdir:-.}
export srcdir
most=20
counts=$(${SHELL:-/bin/sh} "$srcdir/bench/inline.sh")
status=$?
if [ $status -ne 0 ]; then
	echo "$counts"
	exit $status
fi

# Five loops a language; a line without a number is a loop that was not inline.
echo "$counts" | awk -v most=$most '
{ languages[$1]++ }
NF == 3 && $3 ~ /^[0-9.]+$/ && $3 > 0 && $3 <= most { passed++; next }
{ failed++; print "inline: " $0 ", at most " most " are wanted" }
END {
	for (language in languages)
		if (languages[language] != 5) {
			failed++
			print "inline: " language ": not all loops counted"
		}
	print "inline: " passed + 0 " passed, " failed + 0 " failed"
	exit failed > 0 || passed == 0
}'
