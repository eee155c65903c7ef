#!/bin/sh
# one_store.sh - RT_STORE is one predictable branch and one store, in C and in
# C++, as gcc and as clang compile it.
#
# The test reads the code of a function that does nothing more, from its
# beginning to its first return.  That code has at most ten instructions.  Among
# them are one branch to the slow path, which lies behind the return, and one
# store to memory, but no call and nothing that orders memory.  The test runs
# only on x86-64, where each instruction shows what it does.
#
# usage: [srcdir=DIR] [CC=...] [CXX=...] test/order/one_store.sh
set -u
srcdir=${srcdir:-${top_srcdir:-.}}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

cat >"$dir/store.c" <<'end'
#include <rt/rt.h>
#ifdef __cplusplus
extern "C"
#endif
void store(void *obj, void **slot, void *value);
void store(void *obj, void **slot, void *value)
{
	RT_STORE(obj, slot, value);
}
end

# path ASSEMBLY: prints the instructions of store() up to its first return.
path() {
	awk '
	/^store:/ { inside = 1; next }
	!inside || /^[.#_A-Za-z0-9]+:/ || /^[ \t]*([.#]|$)/ { next }
	{ print }
	/^[ \t]*ret/ { exit }' "$1"
}

# An instruction whose last operand is memory, except a comparison.
write='^[[:space:]]*[^ct][a-z]*[[:space:]].*,[^%,$]*\(%[a-z0-9]+\)$'

# count PATTERN: counts matching lines of the path.
count() {
	grep -Ec "$1" "$dir/path"
}

# check NAME COMPILER...: requires the above of the code.  Hardening is off,
# because its marks of branch targets would count as instructions.
check() {
	name=$1
	shift
	if ! "$@" -O2 -S -fcf-protection=none -fno-stack-protector \
		-I"$srcdir/include" -o "$dir/store.s" 2>"$dir/log"; then
		cat "$dir/log"
		verdict 1 "$name compiles it"
		return
	fi
	path "$dir/store.s" >"$dir/path"
	[ "$(count '^[[:space:]]*ret')" -eq 1 ] &&
		[ "$(count '^[[:space:]]*j')" -eq 1 ] &&
		[ "$(count "$write")" -eq 1 ] &&
		[ "$(count 'call|lock|xchg|fence|push')" -eq 0 ] &&
		[ "$(wc -l <"$dir/path")" -le 10 ]
	status=$?
	[ $status -eq 0 ] || cat "$dir/path"
	verdict $status "$name: one branch and one store"
}

# The compilers of the library, with the options that say how thread-local words
# are found; then gcc and clang, if they are installed.
compilers() {
	# shellcheck disable=SC2086 # they may have arguments
	check "${CC:-cc}" ${CC:-cc} "$dir/store.c"
	# shellcheck disable=SC2086
	check "${CXX:-c++}" ${CXX:-c++} -x c++ "$dir/store.c"
	for other in gcc clang; do
		if command -v $other >/dev/null; then
			check $other $other "$dir/store.c"
		else
			skip 1 one_store "no $other" $other
		fi
	done
}

if echo __x86_64__ | ${CC:-cc} -E -P - 2>/dev/null | grep -qx 1; then
	compilers
	verdict_sum
else
	skip 4 one_store "the code is read on x86-64 only"
	exit 77
fi
