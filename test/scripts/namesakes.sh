#!/bin/sh
# namesakes.sh - a program may have a function of any name that the library
# uses inside.
#
# Every symbol that the sources of the library share among themselves, and some
# that a later version might share, becomes a function of a C and of a C++
# program.  Linked with the static and with the shared library, each program
# calls its own functions, and the heap still works.
#
# usage: [srcdir=DIR] [top_builddir=DIR] CC=... NM=... test/scripts/namesakes.sh
set -u
srcdir=${srcdir:-${top_srcdir:-.}}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
builddir=${top_builddir:-.}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# names: prints the symbols that one source of the library defines for another.
names() {
	{
		${NM:-nm} -g --defined-only \
			"$builddir/librtheap_internal.a" 2>/dev/null |
			awk 'NF == 3 && $3 ~ /^[a-z][a-z0-9_]*$/ { print $3 }' |
			grep -vxFf "$srcdir/gc/api/symbols.list"
		printf '%s\n' arena arena_alloc arena_init gauges heap_init \
			lock_acquire mark_drain mheap mheap_alloc procs sweep \
			work world
	} | sort -u
}

# program: reads names, and writes a program that is both C and C++.
program() {
	awk '
	{ name[NR] = $1 }
	END {
		print "#include <rt/rt.h>"
		print "#include <stdio.h>"
		print "#ifdef __cplusplus\nextern \"C\" {\n#endif"
		for (i = 1; i <= NR; i++) {
			printf "int %s(void);\n", name[i]
			printf "int %s(void) { return %d; }\n", name[i], i
		}
		print "#ifdef __cplusplus\n}\n#endif"
		print "typedef int (*function)(void);"
		print "static volatile const function own[] = {"
		for (i = 1; i <= NR; i++)
			printf "\t%s,\n", name[i]
		print "};"
		print "int main(void)\n{"
		print "\tint mine = 0, bytes = 0;"
		print "\tif (rt_init(0) != RT_OK)\n\t\treturn 1;"
		print "\tfor (int i = 0; i < 100000; i++)"
		print "\t\tbytes += rt_alloc(64) != 0;"
		print "\tif (rt_gc() != RT_OK)\n\t\treturn 1;"
		print "\trt_fini();"
		printf "\tfor (int i = 0; i < %d; i++)\n", NR
		print "\t\tmine += own[i]() == i + 1;"
		print "\tprintf(\"%d own, %d objects\\n\", mine, bytes);"
		print "\treturn 0;\n}"
	}'
}

# check NAME LIBRARY COMPILER...: builds the program, which runs and calls its
# own functions.
check() {
	name=$1
	library=$2
	shift 2
	[ -e "$library" ] || return 0
	rm -f "$dir/program"
	# shellcheck disable=SC2086 # lists of options
	"$@" ${RT_SANITIZER_CFLAGS-} -I"$srcdir/include" \
		"$dir/program.c" -o "$dir/program" -x none "$library" \
		-lpthread
	verdict $? "$name: the program links"
	[ "$(LD_LIBRARY_PATH=$builddir/.libs "$dir/program")" = \
		"$count own, 100000 objects" ]
	verdict $? "$name: the program calls its own functions"
}

# check_both NAME COMPILER...
check_both() {
	name=$1
	shift
	check "$name, static" "$builddir/librtheap.a" "$@"
	check "$name, shared" "$builddir/.libs/librtheap.so" "$@"
}

names >"$dir/names"
count=$(wc -l <"$dir/names")
count=$((count))
[ $count -gt 100 ]
verdict $? "the library has names of its own"
program <"$dir/names" >"$dir/program.c"
# shellcheck disable=SC2086 # CC may carry options
check_both C ${CC:-cc} -x c
# The run-time of a sanitizer must come from the library's compiler.
for compiler in g++ clang++; do
	[ -z "${RT_SANITIZER_CFLAGS-}" ] || continue
	if command -v $compiler >/dev/null 2>&1; then
		check_both $compiler $compiler -x c++
	else
		skip 2 "namesakes in C++" "there is no $compiler" \
			"$([ $compiler = g++ ] && echo g++ || echo clang)"
	fi
done
[ $passed -gt 1 ]
verdict $? "there is a library"

verdict_sum
