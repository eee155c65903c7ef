#!/bin/sh
# headers.sh - every public header compiles alone, and twice, as C99 and as
# C++11, without a warning, with every compiler that is there.
#
# usage: srcdir=DIR CC=... test/headers.sh
set -u
srcdir=${srcdir:-.}
# shellcheck source=test/verdict.sh
. "$srcdir/test/verdict.sh"

# compile HEADER COMPILER OPTION...
compile() {
	header=$1
	shift
	printf '#include <rt/%s>\n#include <rt/%s>\nextern int rt_alone;\n' \
		"$header" "$header" |
		"$@" -I"$srcdir/include" -fsyntax-only -Wall -Wextra -Wpedantic \
			-Wshadow -Wundef -Werror -
	verdict $? "rt/$header: $*"
}

# package_of COMPILER
package_of() {
	case $1 in
	clang*) echo clang ;;
	*) echo "$1" ;;
	esac
}

# compile_all COMPILER OPTION...
compile_all() {
	command -v "$1" >/dev/null 2>&1 || {
		skip "$(find "$srcdir/include/rt" -name "*.h" | wc -l)" "headers with $1" \
			"there is no $1" "$(package_of "$1")"
		return
	}
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

verdict_sum
