#!/bin/sh
# read_prefetch.sh - the marker prefetches to read, never to write.
#
# A prefetch to write would move the line of a hot object's mark from processor
# to processor at every reference.  Only with -mprfchw may the compiler use
# another instruction for a prefetch to write.  So the marker is compiled with
# this option, and its code is read.  A function that prefetches to write shows
# that the test would find the instruction.  The test runs only on x86-64.
#
# usage: [srcdir=DIR] [CC=...] [ATOMIC_OPS_CFLAGS=...] test/order/read_prefetch.sh
set -u
srcdir=${srcdir:-${top_srcdir:-.}}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# code FILE: compiles it to $dir/code.
code() {
	# shellcheck disable=SC2086 # they may have arguments
	${CC:-cc} -std=gnu11 -O2 -S -mprfchw -I"$srcdir" -I"$srcdir/include" \
		${ATOMIC_OPS_CFLAGS-} -o "$dir/code" "$1"
}

if ! echo __x86_64__ | ${CC:-cc} -E -P - 2>/dev/null | grep -qx 1; then
	skip 4 read_prefetch "the code is read on x86-64 only"
	exit 77
fi

echo 'void f(void *p); void f(void *p) { __builtin_prefetch(p, 1); }' \
	>"$dir/write.c"
code "$dir/write.c" && grep -q prefetchw "$dir/code"
verdict $? "a prefetch to write is found"

code "$srcdir/gc/mark/drain.c"
verdict $? "the marker compiles"
grep -q 'prefetch[nt]' "$dir/code"
verdict $? "the marker prefetches"
! grep prefetchw "$dir/code"
verdict $? "the marker prefetches to read only"
verdict_sum
