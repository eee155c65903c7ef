#!/bin/sh
# symbols.sh - the symbols that the installed libraries and the headers show are
# those in gc/api/symbols.list.  A library that was not built is left out.
#
# usage: srcdir=DIR CC=... NM=... AR=... tools/symbols.sh
set -u
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
list=$srcdir/gc/api/symbols.list
shared=.libs/librtheap.so
archive=librtheap.a
passed=0
failed=0
found=$(mktemp) || exit 99
trap 'rm -f "$found"' EXIT

# rule NAME reports that the rule holds if nothing was found.
rule() {
	if [ -s "$found" ]; then
		failed=$((failed + 1))
		echo "symbols: broken: $1"
		sed 's/^/  /' "$found"
	else
		passed=$((passed + 1))
	fi
	: >"$found"
}

# compare reads sorted names, and prints those on one side only.
compare() {
	diff "$list" - | sed -n 's/^</missing:/p; s/^>/not in the list:/p'
}

# shown prints the names from nm, without versions and the symbol of the
# version.
# shellcheck disable=SC2086 # NM may carry options
shown() {
	${NM:-nm} -P --defined-only "$@" |
		awk 'NF > 1 && $2 != "A" { sub(/@.*/, "", $1); print $1 }' |
		sort -u
}

# declared prints the names that headers declare with RT_API.  After the
# preprocessor they are the declarations with default visibility.
# shellcheck disable=SC2086 # CC may carry options
declared() {
	for header in "$srcdir"/include/rt/*.h; do
		echo "#include <rt/$(basename "$header")>"
	done | ${CC:-cc} -E -P -I"$srcdir/include" -x c - |
		tr '\n' ' ' | tr ';{}' '[\n*]' | awk '
	!/visibility *\( *"default" *\)/ { next }
	{
		gsub(/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)/, "")
		sub(/ *\(.*/, "") # parameters
		gsub(/[ *]+$/, "")
		print $NF
	}' | sed 's/^\**//' | sort -u
}

sort -uc "$list" 2>"$found"
rule "the list is sorted and without repetition"
declared | compare >"$found"
rule "the headers declare the list"
if [ -f "$shared" ]; then
	shown -D "$shared" | compare >"$found"
	rule "the shared library exports the list"
	readelf -d "$shared" | grep -q NODELETE ||
		echo "NODELETE is not set" >"$found"
	rule "the shared library stays loaded"
fi
if [ -f "$archive" ]; then
	shown -g "$archive" | grep -v '^__odr_asan' | compare >"$found"
	rule "the archive shows the list"
	[ "$("${AR:-ar}" t "$archive")" = rtheap.o ] ||
		"${AR:-ar}" t "$archive" >"$found"
	rule "the archive is one object"
fi

echo "symbols: $passed passed, $failed failed"
[ $failed = 0 ]
