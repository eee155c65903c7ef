#!/bin/sh
# headers.sh - every public header compiles alone, and twice, as C99 and as
# C++11, without a warning, with every compiler that is there.
#
# usage: srcdir=DIR CC=... test/headers.sh
set -u
srcdir=${srcdir:-.}
passed=0
failed=0

# compile HEADER COMPILER OPTION...
compile() {
	header=$1
	shift
	if printf '#include <rt/%s>\n#include <rt/%s>\nextern int rt_alone;\n' \
		"$header" "$header" |
		"$@" -I"$srcdir/include" -fsyntax-only -Wall -Wextra -Wpedantic \
			-Wshadow -Wundef -Werror -; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "headers: rt/$header: $*"
	fi
}

# compile_all COMPILER OPTION...
compile_all() {
	command -v "$1" >/dev/null 2>&1 || return 0
	for path in "$srcdir"/include/rt/*.h; do
		compile "$(basename "$path")" "$@"
	done
}

# shellcheck disable=SC2086 # CC may carry options
compile_all ${CC:-cc} -x c -std=c99 -Wstrict-prototypes -Wmissing-prototypes
for compiler in gcc clang; do
	compile_all $compiler -x c -std=c99
	compile_all $compiler -x c -std=c11
done
for compiler in g++ clang++; do
	compile_all $compiler -x c++ -std=c++11
	compile_all $compiler -x c++ -std=c++17
done

echo "headers: $passed passed, $failed failed"
[ $failed = 0 ]
