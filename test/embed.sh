#!/bin/sh
# embed.sh - the example of README.md compiles without a warning, with the
# static and with the shared library, and prints what README.md says.
#
# In README.md a line "<!-- example -->" stands before the program's ```c
# block, and "<!-- output -->" before the block of what it prints.
#
# usage: srcdir=DIR [top_builddir=DIR] CC=... test/embed.sh [README]
set -u
srcdir=${srcdir:-${top_srcdir:-.}}
# shellcheck source=test/verdict.sh
. "$srcdir/test/verdict.sh"
builddir=${top_builddir:-.}
readme=${1:-$srcdir/README.md}
shared=$builddir/.libs/librtheap.so
archive=$builddir/librtheap.a
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# block MARK: the lines of the fenced block after the line <!-- MARK -->.
block() {
	awk -v mark="<!-- $1 -->" '
		$0 == mark { marked = 1; next }
		inside && /^```/ { exit }
		inside { print; next }
		marked && /^```/ { inside = 1 }
	' "$readme"
}

# build NAME LIBRARY...: false if there is a warning.
build() {
	name=$1
	shift
	# shellcheck disable=SC2086 # lists of options
	${CC:-cc} ${RT_SANITIZER_CFLAGS-} -Wall -Wextra -Werror \
		-I"$srcdir/include" "$dir/example.c" -o "$dir/$name" "$@" \
		-lpthread
}

# run NAME: what was built prints what it should.
run() {
	LD_LIBRARY_PATH=$builddir/.libs "$dir/$1" >"$dir/printed" &&
		diff "$dir/output" "$dir/printed"
}

# check NAME LIBRARY: compiles and runs, if the library was built.
check() {
	[ -e "$2" ] || return 0
	build "$1" "$2"
	verdict $? "the example compiles with the $1 library"
	run "$1"
	verdict $? "the example prints its output with the $1 library"
}

block example >"$dir/example.c"
[ -s "$dir/example.c" ]
verdict $? "$readme has an example"
block output >"$dir/output"
[ -s "$dir/output" ]
verdict $? "$readme says what the example prints"
check static "$archive"
check shared "$shared"
[ $((passed + failed)) -gt 2 ]
verdict $? "there is a library"

verdict_sum
