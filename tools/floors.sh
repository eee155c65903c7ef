#!/bin/sh
# floors.sh - proves that includes and calls go down only.
#
# Makefile.am lists the sources of the library, ground first.  The rules are:
# - every file is listed once, beside the others of its module and of its
#   folder;
# - includes go down, and are in the same order;
# - every source has been compiled;
# - what an object needs is defined in its own module or below;
# - Makefile.am lists every test.
#
# usage: srcdir=DIR NM=... tools/floors.sh      (where the objects were built)
set -u
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
passed=0
failed=0
found=$(mktemp) && listed=$(mktemp) || exit 99
trap 'rm -f "$found" "$listed"' EXIT

# rule NAME reports that the rule holds if nothing was found.
rule() {
	if [ -s "$found" ]; then
		failed=$((failed + 1))
		echo "floors: broken: $1"
		sed 's/^/  /' "$found"
	else
		passed=$((passed + 1))
	fi
	: >"$found"
}

# listed_files prints the sources of the library in the order of Makefile.am.
listed_files() {
	sed '/^# ---- the library/,/^# ---- tests/!d; /^#/d' \
		"$srcdir/Makefile.am" |
		grep -oE '(runtime|gc)/[a-z0-9/]+\.[ch]'
}

# modules prints them without endings.  A module is a source and its header.
modules() {
	listed_files | sed 's/\.[ch]$//' | awk '!seen[$0]++'
}

# files prints the existing files, named as in an include.
files() {
	(cd "$srcdir" && find runtime gc -name '*.[ch]')
}

object_of() {
	object=$1.o
}

{
	listed_files | sort >"$listed"
	files | sort | comm -13 "$listed" - | sed 's/$/: not in Makefile.am/'
	files | sort | comm -23 "$listed" - | sed 's/$/: there is no such file/'
	uniq -d "$listed" | sed 's/$/: listed twice/'
	# The files of a module must be in a row, and so must the files of a
	# folder.
	for part in '\.[ch]$' '/[^/]*$'; do
		listed_files | sed "s,$part,," | uniq | sort | uniq -d |
			sed 's/$/: its files are apart/'
	done
} >"$found"
rule "Makefile.am lists what exists"

# Private headers are included by their path from the top.  An include in angle
# brackets is the system's or a public header (rt/).
modules=$(modules)
files=$(files)
(
	cd "$srcdir" || exit
	# shellcheck disable=SC2086 # a list of files
	awk -v modules="$modules" '
	BEGIN {
		n = split(modules, list, "\n")
		for (i = 1; i <= n; i++)
			rank[list[i]] = i
	}
	!/^[ \t]*#[ \t]*include/ { next }
	!/"/ && !/<(runtime|gc|test)\// { next }
	{
		me = FILENAME
		sub(/\.[ch]$/, "", me)
		file = you = $0
		gsub(/^[^"<]*["<]|[">].*$/, "", file)
		you = file
		sub(/\.[ch]$/, "", you)
		where = FILENAME ":" FNR ": "
		if (!(you in rank))
			print where file " is no module of the house"
		else if (me ~ /^runtime/ && you ~ /^gc/)
			print where "runtime includes gc: " file
		else if (rank[you] > rank[me])
			print where "includes " file " from above"
	}' $files
) >"$found"
rule "includes go down"

# A source must include its own header first, then others, ground first.
(
	cd "$srcdir" || exit
	# shellcheck disable=SC2086 # a list of files
	awk -v modules="$modules" '
	BEGIN {
		n = split(modules, list, "\n")
		for (i = 1; i <= n; i++)
			rank[list[i]] = i
	}
	FNR == 1 { last = 0 }
	!/^#include "/ { next }
	{
		me = FILENAME
		sub(/\.[ch]$/, "", me)
		you = $0
		gsub(/^#include "|\.h".*$/, "", you)
		if (you == me && last == 0)
			next
		if (rank[you] < last)
			print FILENAME ":" FNR ": " you " is below the one before"
		last = rank[you]
	}' $files
) >"$found"
rule "includes are in order"

for module in $(modules); do
	[ -f "$srcdir/$module.c" ] || continue
	object_of "$module"
	[ -f "$object" ] || echo "$module: no object; is it in Makefile.am?"
done >"$found"
rule "every source is compiled"

for test in $(cd "$srcdir" && ls test/*/check_*.c test/*/stress_*.c test/*/*.sh); do
	cat "$srcdir/Makefile.am" "$srcdir"/test/*.am |
		grep -qw "${test%.c}" ||
		echo "$test: neither in Makefile.am nor in test/list.am"
done >"$found"
rule "every test is run"

for module in $(modules); do
	object_of "$module"
	[ -f "$object" ] || continue
	# shellcheck disable=SC2086 # NM may carry options
	${NM:-nm} -P "$object" | awk -v module="$module" '
	{ print module, $2, $1 }'
done | awk '
!($1 in rank) { rank[$1] = ++n }
$2 ~ /^[TDBRCVWG]$/ { home[$3] = $1 }
$2 == "U" { user[++k] = $1; symbol[k] = $3 }
END {
	for (i = 1; i <= k; i++) {
		there = home[symbol[i]]
		if (there && rank[there] > rank[user[i]])
			print user[i] " needs " symbol[i] " of " there
	}
}' >"$found"
rule "calls go down"

echo "floors: $passed passed, $failed failed"
[ $failed = 0 ]
