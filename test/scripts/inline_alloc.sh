#!/bin/sh
# inline_alloc.sh - an inline allocation executes at most 20 instructions, and
# one of a size or a kind that the compiler does not know at most 28, in C and in
# C++.
#
# For compilers that were measured there are closer limits.  The limit is 11,
# and for objects of a registered kind 2 more than was counted for objects of
# words (in_words_16).  If the compiler does not know the number of the kind,
# the limit is 7 more than that count, and 14 more for 17 to 24 bytes.
#
# usage: srcdir=DIR CC=... CXX=... LIBRTHEAP=... test/scripts/inline_alloc.sh
set -u
srcdir=${srcdir:-.}
export srcdir
counts=$(${SHELL:-/bin/sh} "$srcdir/bench/inline.sh")
status=$?
if [ $status -ne 0 ]; then
	echo "$counts"
	exit $status
fi

# measured COMPILER... tells whether the closer limits are for this compiler.
measured() {
	"$@" -dM -E -x c /dev/null 2>/dev/null | awk '
	$2 == "__x86_64__" { here = 1 }
	$2 == "__GNUC__" { gcc = $3 }
	$2 == "__clang_major__" { clang = $3 }
	END { exit !(here && (clang ? clang == 14 : gcc == 12)) }'
}

# shellcheck disable=SC2086 # compilers may carry options
languages=$(measured ${CC:-cc} && echo C; measured ${CXX:-c++} && echo C++)

# Fourteen loops a language; a line without a number is a loop that was not inline.
echo "$counts" | awk -v measured="$languages" '
# most returns the limit of a loop.
function most(language, loop) {
	if (!is_close[language])
		return loop ~ /^(any|number)_/ ? 28 : 20
	if (loop ~ /^kind_/)
		return words[language] + 2
	if (loop ~ /^number_/)
		return words[language] + (loop == "number_24" ? 14 : 7)
	return loop ~ /^any_/ ? 28 : 11
}
BEGIN {
	n = split(measured, names)
	for (i = 1; i <= n; i++)
		is_close[names[i]] = 1
}
{ languages[$1]++; lines[NR] = $0 }
$2 == "in_words_16" { words[$1] = $3 }
END {
	for (i = 1; i <= NR; i++) {
		split(lines[i], f)
		limit = most(f[1], f[2])
		if (f[4] == "" && f[3] ~ /^[0-9.]+$/ && f[3] > 0 &&
		    f[3] + 0 <= limit) {
			passed++
		} else {
			failed++
			print "inline: " lines[i] ", at most " limit " are wanted"
		}
	}
	for (language in languages) {
		if (languages[language] != 14) {
			failed++
			print "inline: " language ": not all loops counted"
		}
		if (!is_close[language])
			print "skipped: 11 of closer limits in " language ": they " \
				"are for gcc 12 and clang 14 on x86-64"
	}
	print "inline: " passed + 0 " passed, " failed + 0 " failed"
	exit failed > 0 || passed == 0
}'
