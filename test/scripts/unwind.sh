#!/bin/sh
# unwind.sh - a host in C++ may unwind through the library:
# test/scripts/unwind.cc with every installed C++ compiler, on both libraries.
#
# usage: srcdir=DIR ATOMIC_OPS_LIBS=... test/scripts/unwind.sh
set -u
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
builddir=$(pwd)
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# check COMPILER LIBRARY
check() {
	[ -e "$2" ] || return 0
	rm -f "$dir/program"
	# shellcheck disable=SC2086 # a list of options
	"$1" -std=c++11 -Wall -Wextra -Werror -I"$srcdir/include" \
		"$srcdir/test/scripts/unwind.cc" -o "$dir/program" "$2" \
		${ATOMIC_OPS_LIBS:--latomic_ops} -lpthread
	verdict $? "$1, $2: the program links"
	LD_LIBRARY_PATH=$builddir/.libs "$dir/program"
	verdict $? "$1, $2: the program unwinds"
}

if [ -n "${RT_SANITIZER_CFLAGS-}" ]; then
	skip 4 "unwinding in C++" "a sanitizer of the C compiler is built in"
	exit 77
fi
for compiler in g++ clang++; do
	command -v $compiler >/dev/null 2>&1 || {
		[ $compiler = clang++ ] || skip 4 "unwinding in C++" \
			"there is no $compiler" $compiler
		continue
	}
	check $compiler "$builddir/librtheap.a"
	check $compiler "$builddir/.libs/librtheap.so"
done
if [ $passed = 0 ] && [ $failed = 0 ]; then
	exit 77
fi
verdict_sum
